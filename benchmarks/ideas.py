"""What each idea of the pyramid buys: completion, condensation, anchors.

The measure is our own; the ablation is PolyRAG's (Table III), with anchors apart. A pyramid of each
corpus is built once and asked as it is, and as `making/ablation.py` leaves it without an idea. The
corpora: passages of an encyclopaedia (musique100) with plain questions (`encyclopaedia`) and those
of several hops (`multi_hop`), the `demo` by rules and by the recorded replies of a model
(`demo_replies`), and the `handbook` of two companies with an ontology of their own, whose questions
were written from its sentences before anything was measured.

`right`: the first value that polyrag gives is one of the answers; of a question without an answer,
that it gives none. `held`: an answer stands in the context that it hands to a reader; `words`: the
words of that context. `recall_at_5`: the share of a question's gold passages among the first five
of `retrieve`. `gains` are the means of the whole less those without an idea, question by question,
with 95 % bootstrap intervals; `buys` has those in which there is no zero, fewer words being a gain,
and `costs` the contrary. `taken`: what there was to take away, values that completion added, facts
merged into others, and facts that an anchor names.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from embedding import MemoEmbedder
from lookup import HERE, PASSAGES, read_corpus, read_rows
from making.ablation import take_away
from musique import names_one
from options import print_figures, read_options, report
from passages import build_folder, rank_by, read_passages
from passages import build_pyramid as build_passages

from kpyramid.cli.ontology import import_
from kpyramid.evaluation.results import compare_paired
from kpyramid.query import Snapshot, answer
from kpyramid.query.facts import match_candidates

FOLDER = "musique100"
IDEAS = ("completion", "condensation", "anchors")
FIRST = 5
EXAMPLES = HERE.parent / "examples"
REPLIES = {
    "cascade": {"paraphrase": "llm", "entities": "llm", "relations": "llm"},
    "llm": {
        "provider": "replay",
        "model": "gpt-3.5-turbo-1106",
        "recording": str(EXAMPLES / "demo" / "recorded_gpt35.jsonl"),
    },
}


@dataclass(frozen=True)
class Asked:
    """A question with its answers, none where it has none, and its gold passages if it has any."""

    text: str
    answers: Sequence[str]
    gold: frozenset[str] = frozenset()


def build_corpora(
    data: Path, place: Path, limit: int | None
) -> Iterator[tuple[str, Snapshot, list[Asked]]]:
    """Each kind of corpus: its name, its pyramid and its questions; one pyramid at a time."""
    most = limit and PASSAGES * limit
    report("Building the pyramid of the passages")
    passages = read_passages(data, limit)
    snapshot = build_passages(passages.corpus[:most], place / "passages")
    yield "encyclopaedia", snapshot, read_plain(HERE / "lookup" / "musique.jsonl", limit)
    asked = [Asked(q.text, q.answers[0], frozenset(q.gold_documents)) for q in passages.questions]
    yield "multi_hop", snapshot, asked
    rows = read_corpus("demo", data)[:most]
    for name, further in (("demo", {}), ("demo_replies", REPLIES)):
        report(f"Building the pyramid of the {name.replace('_', ', ')}")
        source = place / name
        source.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (source / "passages.jsonl").write_text(lines, "utf-8")
        snapshot = build_folder(source, place / "warehouse", further)
        yield name, snapshot, read_plain(HERE / "lookup" / "demo.jsonl", limit)
    report("Building the pyramid of the handbook")
    ontology = place / "handbook.ttl"
    import_(EXAMPLES / "handbook" / "company.ttl", output=ontology)
    induce = {"induce": {"ontology": str(ontology)}}
    snapshot = build_folder(EXAMPLES / "handbook" / "texts", place / "warehouse", induce)
    yield "handbook", snapshot, read_plain(HERE / "ideas" / "handbook.jsonl", limit)


def read_plain(path: Path, limit: int | None) -> list[Asked]:
    """The questions of a file of the form of `lookup/`."""
    return [Asked(row.question, row.answers) for row in read_rows(path)[:limit]]


def ask_all(questions: Sequence[Asked], snapshot: Snapshot) -> dict[str, list[float]]:
    """Every measure of each question that has it, in the order of the questions."""
    rank = rank_by("walk", snapshot)
    rows: dict[str, list[float]] = defaultdict(list)
    for asked in questions:
        found = answer(asked.text, snapshot)
        first = found.choices[0] if found.choices else found.text
        is_right = first and match_candidates(first, asked.answers)
        rows["right"].append(float(bool(is_right) if asked.answers else not first))
        if asked.answers:
            rows["held"].append(float(names_one([i.text for i in found.context], asked.answers)))
        rows["words"].append(float(sum(len(item.text.split()) for item in found.context)))
        if asked.gold:
            names = (source.rpartition("#")[2] for source in rank(asked.text))
            near = list(dict.fromkeys(names))[:FIRST]
            rows["recall_at_5"].append(len(asked.gold & set(near)) / len(asked.gold))
    return rows


def count_taken(snapshot: Snapshot) -> dict[str, int]:
    """What each idea made of a corpus."""
    facts = snapshot.table("condensed")
    labels = {prop.label for prop in snapshot.schema.properties}
    return {
        "completion": snapshot.table("additions").num_rows,
        "condensation": sum(len(each) - 1 for each in facts["derived_from"].to_pylist()),
        "anchors": sum(name in labels for name in facts["standard_relation"].to_pylist()),
    }


def measure(data: Path, place: Path, limit: int | None, seed: int) -> dict[str, Any]:
    """The table: each corpus as it is, and what it has of each idea."""
    figures: dict[str, Any] = {"whole": {}, "gains": {}, "taken": {}}
    verdicts: dict[str, dict[str, list[str]]] = {
        way: {idea: [] for idea in IDEAS} for way in ("buys", "costs")
    }
    for name, snapshot, questions in build_corpora(data, place, limit):
        report(f"{name}: {len(questions)} questions, as it is and without each idea")
        snapshot.embedder = MemoEmbedder(snapshot.embedder, {})
        whole = ask_all(questions, snapshot)
        means = {way: round(mean(values), 3) for way, values in whole.items()}
        figures["whole"][name] = {"questions": len(questions), **means}
        figures["taken"][name] = count_taken(snapshot)
        for idea in IDEAS:
            with take_away(snapshot, [idea]) as left:
                left.embedder = snapshot.embedder
                without = ask_all(questions, left)
            row = {}
            for way, values in whole.items():
                gain = compare_paired(values, without[way], seed)
                row[way] = [round(end, 3) for end in (gain.difference, gain.low, gain.high)]
                if gain.low > 0 or gain.high < 0:
                    is_good = (gain.difference > 0) != (way == "words")
                    verdicts["buys" if is_good else "costs"][idea].append(f"{name} {way}")
            figures["gains"][f"{name} {idea}"] = row
    return {**figures, **verdicts}


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions of each corpus only, of pyramids of the first 10 N passages",
        seed="of the bootstrap",
        values={"--keep": "a folder for the pyramids, which are then not built twice"},
    )
    with tempfile.TemporaryDirectory(prefix="kpyramid-ideas-") as folder:
        place = Path(options.keep or folder).resolve()
        print_figures(measure(options.data, place, options.limit, options.seed), options.json)


if __name__ == "__main__":
    main()
