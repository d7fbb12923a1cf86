"""A small local model beside the rules and GPT-3.5, on 20 passages of the demo.

Replays the recordings below `tests/recordings/` (Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, on a
llama-server, closed form, one in paper and one in merged mode) and of GPT-3.5 (entities and
triples only, merged mode). Per system: triples; share whose head and tail stand in the evidence
letter by letter; rows of the model that were given up, by reason; calls, tokens and seconds per
chunk as the server counted them; and the share right of a sample that a reader judged
(`tests/recordings/verdicts.tsv`: right, vague or wrong, as in MISTAKES.md).
`--page` prints local_model.md; `--sample` the triples to judge, drawn with `--seed`.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from options import print_figures, read_options, refuse

from kpyramid.llm.cache import ReplyEntry
from kpyramid.llm.recordings import read_recording
from kpyramid.model_settings import CascadeSettings, LLMSettings
from kpyramid.settings import Settings

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.recordings.record import (  # noqa: E402
    MODES,
    ask_model,
    find_recording,
    list_passages,
    make_tables,
    read_tables,
    replay,
)

DEMO = ROOT / "examples" / "demo"
VERDICTS = ROOT / "tests" / "recordings" / "verdicts.tsv"
SYSTEMS = {
    "qwen05_paper": "Qwen 0.5B, paper",
    "qwen05_merged": "Qwen 0.5B, merged",
    "rules": "rules",
    "gpt35": "GPT-3.5, recorded",
}
JUDGED = 60


@dataclass(frozen=True)
class Made:
    """What a system made: rows of triples with the title of their document, and rejects."""

    triples: list[dict[str, object]]
    rejects: list[dict[str, object]]


def read_systems() -> dict[str, Made]:
    """What each system makes of the passages."""
    tables = make_tables()
    made: dict[str, Mapping[str, pa.Table]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode in MODES:
            made[f"qwen05_{mode}"], _ = replay(mode, Path(folder) / mode)
        made["rules"] = read_tables(tables, None)
        gpt = Settings(
            cascade=CascadeSettings(paraphrase="llm", entities="llm", relations="llm"),
            llm=LLMSettings(
                provider="replay",
                model="gpt-3.5-turbo-1106",
                recording=str(DEMO / "recorded_gpt35.jsonl"),
            ),
        )
        made["gpt35"], _ = ask_model(gpt, Path(folder) / "gpt35")
    titles = {row["document_id"]: row["title"] for row in tables["documents"].to_pylist()}
    places = {row["chunk_id"]: titles[row["document_id"]] for row in tables["chunks"].to_pylist()}
    return {
        system: Made(
            [
                {**row, "title": places[row["chunk_id"]]}
                for row in made[system]["raw_triples"].to_pylist()
            ],
            made[system]["rejects"].to_pylist(),
        )
        for system in SYSTEMS
    }


def score_systems(systems: Mapping[str, Made]) -> dict[str, object]:
    """A row of figures per system."""
    chunks = make_tables()["chunks"].num_rows
    reasons = {system: count_reasons(made) for system, made in systems.items()}
    figures = {}
    for system, made in systems.items():
        judged = count_verdicts(system, made)
        literal = sum(bool(row["head_span"] and row["tail_span"]) for row in made.triples)
        figures[system] = {
            "triples": len(made.triples),
            "per_chunk": round(len(made.triples) / chunks, 1),
            "literal": share(literal, len(made.triples)),
            "given_up": reasons[system].total(),
            "judged": judged.total(),
            "right": share(judged["right"], judged.total()),
            "right_95": bound_share(judged["right"], judged.total()),
            "vague": share(judged["vague"], judged.total()),
            "wrong": share(judged["wrong"], judged.total()),
            **measure_replies(system, chunks),
        }
    return {
        "passages": len(list_passages()),
        "chunks": chunks,
        "systems": figures,
        "given_up": {
            reason: {system: reasons[system][reason] for system in systems}
            for reason in sorted({reason for counts in reasons.values() for reason in counts})
        },
    }


def share(part: int, whole: int) -> float | str:
    """A share to three digits; a dash of nothing."""
    return round(part / whole, 3) if whole else "-"


def bound_share(part: int, whole: int) -> str:
    """The share's 95 % interval after Wilson, the rows taken as independent."""
    if not whole:
        return "-"
    z = 1.96
    middle = (part + z * z / 2) / (whole + z * z)
    half = z * (part * (whole - part) / whole + z * z / 4) ** 0.5 / (whole + z * z)
    return f"{middle - half:.2f}-{middle + half:.2f}"


def count_reasons(made: Made) -> Counter[str]:
    """The rejects by reason."""
    return Counter(str(row["reason"]) for row in made.rejects)


def measure_replies(system: str, chunks: int) -> dict[str, object]:
    """Calls, tokens and seconds per chunk, of a system whose replies hold them."""
    mode = system.removeprefix("qwen05_")
    if mode not in MODES:
        return {}
    calls, prompt, completion, seconds = 0, 0, 0, 0.0
    for entry in read_recording(find_recording(mode)):
        assert isinstance(entry, ReplyEntry)
        raw = json.loads(json.dumps(entry.response))
        calls += 1
        prompt += raw["usage"]["prompt_tokens"]
        completion += raw["usage"]["completion_tokens"]
        seconds += (raw["timings"]["prompt_ms"] + raw["timings"]["predicted_ms"]) / 1000
    return {
        "calls": round(calls / chunks, 2),
        "prompt": round(prompt / chunks),
        "completion": round(completion / chunks),
        "seconds": round(seconds / chunks),
    }


def read_verdicts() -> Iterator[list[str]]:
    """System, title, head, relation, tail, verdict and why."""
    for line in VERDICTS.read_text("utf-8").splitlines()[1:]:
        fields = line.split("\t")
        if len(fields) != 7 or fields[5] not in ("right", "vague", "wrong"):
            refuse(f"{VERDICTS}: no verdict: {line!r}")
        yield fields


def count_verdicts(system: str, made: Made) -> Counter[str]:
    """How often a reader found triples right, vague and wrong that the system still makes."""
    rows = {name_row(system, row) for row in made.triples}
    return Counter(fields[5] for fields in read_verdicts() if tuple(fields[:5]) in rows)


def print_sample(systems: Mapping[str, Made], limit: int, seed: int) -> None:
    """The triples to judge: verdicts that stand are kept, so a new draw costs only new ones."""
    known = {}
    if VERDICTS.exists():
        known = {tuple(fields[:5]): fields[5:] for fields in read_verdicts()}
    print("\t".join(["system", "title", "head", "relation", "tail", "verdict", "why"]))
    for system, made in systems.items():
        rows = sorted(name_row(system, row) for row in made.triples)
        order = np.random.default_rng(seed).permutation(len(rows))
        for at in sorted(order[:limit].tolist()):
            print("\t".join([*rows[at], *known.get(rows[at], ["", ""])]))


def name_row(system: str, row: Mapping[str, object]) -> tuple[str, ...]:
    """What a verdict is found by; a denied fact says so in its relation."""
    relation = f"{'not: ' if row['negated'] else ''}{row['relation']}"
    return (system, str(row["title"]), str(row["head"]), relation, str(row["tail"]))


def print_page(systems: Mapping[str, Made], figures: Mapping[str, object]) -> None:
    """Markdown: the figures, then each passage with what every system made of it."""
    scores = figures["systems"]
    assert isinstance(scores, dict)
    columns = list(next(iter(scores.values())))
    print("# A small local model beside the rules and GPT-3.5\n")
    print("Made by `python benchmarks/local_model.py --page`; what the columns say stands there.")
    print("Texts are from English Wikipedia under CC BY-SA, by the articles' contributors; see")
    print(
        "[ATTRIBUTION.md](../examples/demo/ATTRIBUTION.md). ✓ right, ~ vague, ✗ wrong, no mark: not"
    )
    print("judged.\n")
    print(f"| system | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for system, row in scores.items():
        cells = (str(row.get(column, "-")) for column in columns)
        print(f"| {SYSTEMS[system]} | {' | '.join(cells)} |")
    marks = {"right": "✓", "vague": "~", "wrong": "✗"}
    judged = {tuple(fields[:5]): marks[fields[5]] for fields in read_verdicts()}
    for passage in list_passages():
        print(f"\n## {passage['title']}\n\n> {' '.join(passage['text'].split())}")
        for system, made in systems.items():
            rows = sorted(
                name_row(system, row) for row in made.triples if row["title"] == passage["title"]
            )
            print(f"\n**{SYSTEMS[system]}**: {len(rows) or 'nothing'}\n")
            for row in rows:
                words = " · ".join(part.replace("|", "\\|") for part in row[2:])
                print(f"- {words} {judged.get(row, '')}".rstrip())


def main() -> None:
    options = read_options(
        __doc__,
        data=DEMO / "corpus",
        limit=f"triples to judge of each system, {JUDGED} by default",
        seed="of the sample",
        flags={"--page": "Markdown with the triples side by side", "--sample": "triples to judge"},
    )
    systems = read_systems()
    if options.sample:
        print_sample(systems, options.limit or JUDGED, options.seed)
        return
    figures = score_systems(systems)
    if options.page:
        print_page(systems, figures)
    else:
        print_figures(figures, options.json)


if __name__ == "__main__":
    main()
