"""What the cascade asks of a language model, how fast, and how well the plan foresees it.

The definitions are our own: no published system states them. Passages are MuSiQue's (Trivedi et
al., TACL 2022); the replies are made from the recorded extraction by GPT-3.5 and come from a real
server in a process of its own that speaks OpenAI's API; it counts tokens as word pieces of a
vocabulary that the plan knows nothing of.

`calls_per_chunk` and `prompt_tokens_per_chunk` are those of the whole cascade, the probe
included, in mode `merged` and in the four prompts of mode `paper`; `prompt_share` is the tokens
of the former over the latter's. `overhead_ms` is our own time per call, one at a time: from the
first request's arrival at the server to the last reply, less the time the server had them.
`wall_over_floor` is the same stretch at 0.2 s latency and concurrency 4 over calls * 0.2 / 4;
`stage_over_floor` takes the whole stage, with loading, probing and writing tables. In
`planned_over_actual`, `first` plans are made before anything was asked, `learned` ones after a
build of every tenth passage; `in_range` is 1 when the actual lies between low and high.
"""

import json
import multiprocessing
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from musique import read_json
from options import explain_faults, print_figures, read_options, report

from kpyramid.extraction.cascade.evidence import find_naming
from kpyramid.extraction.cascade.recorded import Recorded, Recording, read_triple, write_reply
from kpyramid.llm.ledger import read_totals
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.runner import run_stage
from kpyramid.pipeline.stage import Progress
from kpyramid.settings import CascadeSettings, LLMSettings, Settings
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.runs import Run, StageMark, start_run

FOLDER = "musique100"
_LINE = re.compile(r"\d+\| (.*)")
ROOT = Path(__file__).resolve().parent.parent
MODES = ("merged", "paper")
LATENCY, CONCURRENCY = 0.2, 4
TIMED: Mapping[str, int] = {"merged": 400, "paper": 100}
"""Passages that are read at the latency: about as many calls in either mode."""
ALONE = 100
"""Passages that are read one at a time, for the overhead."""
STAGES = ("ingest", "chunk", "extract", "resolve")
"""Those up to the last that asks a model."""


class Replies:
    """Answers each of the cascade's prompts from the recorded passages."""

    def __init__(self, passages: Sequence[Recorded]) -> None:
        self._recording = Recording(passages)
        self._by_claim: dict[str, dict[str, Any]] = {}
        self._words: list[tuple[frozenset[str], dict[str, Any]]] = []

    def answer(self, body: dict[str, Any]) -> str:
        """The reply's text; a probe gets the first value that its schema allows."""
        from tests.loopback import answer_by_schema

        task = body["response_format"]["json_schema"]["name"]
        lines = body["messages"][-1]["content"].split("\n")[1:-1]
        match task:
            case "merged":
                numbered = (_LINE.match(line) for line in lines)
                text = " ".join(found[1] for found in numbered if found)
                return write_reply(self._find(text), text)
            case "paraphrase":
                claims = self._read(lines)["claims"]
                return json.dumps({"claims": [_leave_out(claim, "triples") for claim in claims]})
            case "entities":
                return json.dumps({"entities": self._recall(_list_items(lines))["entities"]})
            case "relations":
                reply = self._recall(_list_items(lines[: lines.index("Entities:")]))
                grounded = [claim for claim in reply["claims"] if claim["evidence"]]
                return json.dumps({"triples": [t for c in grounded for t in c["triples"]]})
            case "disambiguation":
                rows = _list_items(lines[lines.index("Triples:") :])
                return json.dumps({"triples": [_read_row(row) for row in rows]})
            case "duplicates":
                groups = "\n".join(lines).split("\n\n")
                firsts = [int(group.partition(".")[0]) for group in groups[::2]]
                return json.dumps({"same": [{"first": n, "second": n + 1} for n in firsts]})
        return answer_by_schema(body)

    def _find(self, text: str) -> Recorded:
        passage = self._recording.find(text)
        if passage is None:
            raise ValueError(f"not recorded: {text[:80]!r}")
        return passage

    def _read(self, lines: Sequence[str]) -> dict[str, Any]:
        """The claims of a chunk with their triples; remembers what its claims state."""
        text = "\n".join(lines).partition("Text: ")[2]
        passage = self._find(text)
        claims: dict[str, list[dict[str, str]]] = {}
        for triple in filter(None, map(read_triple, passage.triples)):
            span = find_naming(text, (triple[0], triple[2]))
            evidence = text[span.start : span.end] if span else ""
            row = dict(zip(("head", "relation", "tail"), triple, strict=True))
            claims.setdefault(evidence, []).append(row)
        reply: dict[str, Any] = {
            "entities": [name for name in passage.entities if isinstance(name, str)],
            "claims": [{"evidence": e, "claim": e, "triples": rows} for e, rows in claims.items()],
        }
        for claim in reply["claims"]:
            self._by_claim[" ".join(claim["claim"].split())] = reply
        self._words.append((frozenset(text.split()), reply))
        return reply

    def _recall(self, claims: Sequence[str]) -> dict[str, Any]:
        """The reply that the claims come from; names may have been put for their pronouns."""
        for claim in claims:
            if claim in self._by_claim:
                return self._by_claim[claim]
        words = {word for claim in claims for word in claim.split()}
        return max(self._words, key=lambda known: len(known[0] & words))[1]


def _leave_out(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _list_items(lines: Sequence[str]) -> list[str]:
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def _read_row(row: str) -> dict[str, str]:
    return dict(zip(("head", "relation", "tail"), row.split(" | ", 2), strict=True))


def serve_replies(passages: Sequence[Recorded], log: Path, ready: Connection) -> None:
    """A server until it is told to stop; sends its address, and in the end its mistakes."""
    sys.path.insert(0, str(ROOT))  # tests/ is no part of the package
    from tests.loopback import serve

    with serve(Replies(passages).answer, log=log) as server:
        ready.send(server.base_url)
        ready.recv()
        ready.send([repr(error) for error in server.errors])


@dataclass(frozen=True, slots=True)
class Server:
    """The server in its own process, which counts and measures on its side."""

    base_url: str
    log: Path

    def set_latency(self, seconds: float) -> None:
        """From now on each reply takes that long."""
        address = self.base_url.removesuffix("/v1") + "/_control"
        order = Request(address, json.dumps({"latency": seconds}).encode())  # noqa: S310
        with urlopen(order) as reply:  # noqa: S310
            reply.read()

    def read_items(self, since: int) -> list[dict[str, Any]]:
        """The requests of the cascade, without probes, from a place in the log on."""
        rows = [json.loads(line) for line in self.log.read_text("utf-8").splitlines()[since:]]
        return [row for row in rows if row["schema"] != "probe"]

    def count(self) -> int:
        """The requests so far."""
        return len(self.log.read_text("utf-8").splitlines()) if self.log.exists() else 0


@contextmanager
def start_server(passages: Sequence[Recorded], folder: Path) -> Iterator[Server]:
    """A server for the recorded passages."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    log = folder / "server.jsonl"
    process = context.Process(target=serve_replies, args=(passages, log, there), daemon=True)
    process.start()
    try:
        if not here.poll(60):
            raise RuntimeError("the server did not start")
        server = Server(here.recv(), log)
        yield server
        here.send("stop")
        errors = here.recv()
        if errors:
            raise RuntimeError(f"the server failed: {errors[0]}")
        process.join(10)
    finally:
        process.kill()


def read_passages(folder: Path, limit: int | None) -> tuple[list[dict[str, str]], list[Recorded]]:
    """The corpus and what was recorded of it."""
    with explain_faults(folder, FOLDER):
        data = read_json(folder)
        if "recorded" not in data:
            raise ValueError("no *.json with recorded triples")
        documents = {document["text"]: document for document in data["recorded"]}
        corpus = [
            {"id": f"p{at}", "title": p["title"], "text": p["text"]}
            for at, p in enumerate(data["corpus"])
            if p["text"] in documents
        ][:limit]
        recorded = [
            Recorded(
                row["text"],
                tuple(documents[row["text"]]["extracted_entities"]),
                tuple(t for t in documents[row["text"]]["extracted_triples"] if read_triple(t)),
            )
            for row in corpus
        ]
    return corpus, recorded


def write_corpus(folder: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """A corpus of the passages."""
    folder.mkdir(parents=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (folder / "corpus.jsonl").write_text("".join(lines), "utf-8")
    return folder


def make_settings(mode: str, base_url: str, concurrency: int = CONCURRENCY) -> Settings:
    """Every step is the model's."""
    cascade = {step: "llm" for step in ("paraphrase", "entities", "relations", "disambiguation")}
    llm = LLMSettings("openai", "recorded", base_url=base_url, concurrency=concurrency)
    return replace(Settings(), cascade=CascadeSettings(**cascade, mode=mode), llm=llm)


def run_stages(
    corpus: Path, warehouse: Warehouse, settings: Settings, stages: Sequence[str] = STAGES
) -> tuple[Run, dict[str, StageMark]]:
    """A run as far as the last of the stages."""
    run = start_run(warehouse, corpus, settings, ref="main")
    marks = {name: run_stage(run, name, workers=2, progress=Progress()) for name in stages}
    return run, marks


def copy_warehouse(base: Warehouse, folder: Path) -> Warehouse:
    """A warehouse that knows what the rules find, and nothing of a model."""
    shutil.copytree(base.cache, open_warehouse(folder).cache)
    return open_warehouse(folder)


def compare_plan(plan: Sequence[Mapping[str, Any]], calls: int, tokens: int) -> dict[str, float]:
    """Planned over actual calls and tokens, and whether the actual lies in the plan's range."""
    models = [row["model"] for row in plan if "model" in row]
    figures: dict[str, float] = {}
    inside = True
    for name, found in (("calls", calls), ("tokens", tokens)):
        low, expected, high = (
            sum(model[name][bound] for model in models) for bound in ("low", "expected", "high")
        )
        figures[name] = round(expected / found, 3)
        figures[f"{name}_low"] = round(low / found, 3)
        figures[f"{name}_high"] = round(high / found, 3)
        inside &= low <= found <= high
    return {**figures, "in_range": int(inside)}


def measure_mode(
    settings: Settings, tenth: Path, whole: Path, warehouse: Warehouse
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Calls and tokens per chunk, and how well plans foresaw them before and after a tenth."""
    first = plan_build(whole, warehouse, settings)
    early, _ = run_stages(tenth, warehouse, settings)
    learned = plan_build(whole, warehouse, settings)
    late, marks = run_stages(whole, warehouse, settings)
    # What a build of the whole takes when nothing is known: the chunks that the tenth has paid
    # for, and all of the second run.
    begun, rest = read_totals(early.folder).stages["extract"], read_totals(late.folder)
    calls, prompt = begun.calls + rest.run.calls, begun.prompt + rest.run.prompt
    completion = begun.completion + rest.run.completion
    chunks = marks["chunk"].rows["chunks"]
    failed = [n for reason, n in marks["extract"].rejects.items() if reason.startswith("llm_")]
    per_chunk = {
        "calls_per_chunk": round(calls / chunks, 3),
        "prompt_tokens_per_chunk": round(prompt / chunks, 1),
        "completion_tokens_per_chunk": round(completion / chunks, 1),
        "calls_in_resolve": rest.stages["resolve"].calls,
        "unanswered": sum(failed),
        "chunks": chunks,
    }
    return per_chunk, {
        "first": compare_plan(first, calls, prompt + completion),
        "learned": compare_plan(learned, rest.run.calls, rest.run.tokens),
    }


def measure_speed(
    mode: str, corpus: Path, base: Warehouse, server: Server, folder: Path, concurrency: int
) -> dict[str, float]:
    """Of one extraction: calls, seconds at the server, between first and last, in the stage."""
    before = server.count()
    warehouse = copy_warehouse(base, folder)
    settings = make_settings(mode, server.base_url, concurrency)
    _, marks = run_stages(corpus, warehouse, settings, STAGES[:3])
    items = server.read_items(before)
    start, end = min(row["started"] for row in items), max(row["finished"] for row in items)
    return {
        "calls": len(items),
        "busy": sum(row["finished"] - row["started"] for row in items),
        "wall": end - start,
        "stage": marks["extract"].seconds,
    }


def measure(folder: Path, limit: int | None) -> dict[str, Any]:
    """All figures, from builds in a folder that is removed again."""
    rows, recorded = read_passages(folder, limit)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        whole = write_corpus(place / "whole", rows)
        tenth = write_corpus(place / "tenth", rows[::10])
        alone = write_corpus(place / "alone", rows[:ALONE])
        report(f"Reading {len(rows)} passages by rules")
        base = open_warehouse(place / "base")
        run_stages(whole, base, Settings(), STAGES[:3])
        with start_server(recorded, place) as server:
            modes: dict[str, dict[str, float]] = {}
            plans: dict[str, dict[str, float]] = {}
            for mode in MODES:
                report(f"Asking in mode {mode}")
                settings = make_settings(mode, server.base_url)
                warehouse = copy_warehouse(base, place / mode)
                modes[mode], made = measure_mode(settings, tenth, whole, warehouse)
                plans.update({f"{mode} {when}": figures for when, figures in made.items()})
            report("Measuring the overhead per call")
            lone = measure_speed("merged", alone, base, server, place / "alone-merged", 1)
            server.set_latency(LATENCY)
            speed = {}
            for mode in MODES:
                report(f"Measuring at a latency of {LATENCY} s in mode {mode}")
                timed = write_corpus(place / f"timed-{mode}-corpus", rows[: TIMED[mode]])
                spent = measure_speed(
                    mode, timed, base, server, place / f"timed-{mode}", CONCURRENCY
                )
                floor = spent["calls"] * LATENCY / CONCURRENCY
                speed[mode] = {
                    "wall_over_floor": round(spent["wall"] / floor, 3),
                    "stage_over_floor": round(spent["stage"] / floor, 3),
                    "calls": spent["calls"],
                }
    prompts = {mode: modes[mode]["prompt_tokens_per_chunk"] for mode in MODES}
    return {
        "passages": len(rows),
        "calls_per_chunk": {mode: modes[mode]["calls_per_chunk"] for mode in MODES},
        "prompt_tokens_per_chunk": prompts,
        "prompt_share": round(prompts["merged"] / prompts["paper"], 3),
        "overhead_ms": round(1000 * (lone["wall"] - lone["busy"]) / lone["calls"], 2),
        "wall_over_floor": {mode: speed[mode]["wall_over_floor"] for mode in MODES},
        "planned_over_actual": plans,
        "modes": modes,
        "speed": speed,
    }


def main() -> None:
    options = read_options(__doc__, folder=FOLDER, limit="the first N passages only", least=10)
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
