"""Questions that a path of facts answers, asked of a pyramid that was built of the facts' texts.

Set and metric: PathQuestion (Zhou, Huang, Zhu, COLING 2018), hits@1: the share of questions whose
first answer is a gold value. The knowledge base is worded as sentences (`sets/pathquestion.py`) and
built with default settings, so that what extraction does not find no strategy can: `held` is the
share of the base's triples whose ends a fact of the built graph joins, either way, `reachable` that
of the questions whose gold path is held whole.

Questions are drawn (`--seed`) for each number of hops in turn over the patterns of relations and
the gold paths of each, one question a path. Half of the patterns, those whose SHA-256 is even, may
be looked at while rules are made; `unseen` are the figures of the other half. A strategy that does
not exist, or fails, is named in `missing`. An answer counts however improbable it says it is
(`floor` 0): hits@1 judges the order.
"""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from options import explain_faults, print_figures, read_options, report
from sets.pathquestion import read, read_paths, read_triples, say_name

from kpyramid.documents.words import normalise_name
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query import STRATEGIES, Answer, Snapshot, answer, open_snapshot

FOLDER = "pathquestion_pq"
ASKED = 300
"""Questions of each number of hops."""
Ask = Callable[[str], Answer]


def draw(questions: Iterable[EvalQuestion], hops: int, count: int, seed: int) -> list[EvalQuestion]:
    """Questions of so many hops: pattern after pattern, of each path after path, until enough."""
    chance = Random(seed)  # noqa: S311  a sample, no secret
    patterns: dict[str, dict[tuple[str, ...], list[EvalQuestion]]] = defaultdict(dict)
    for question in questions:
        if question.group.count(">") == hops - 1:
            path = (*question.entities, *question.values)
            patterns[question.group].setdefault(path, []).append(question)
    turns: list[list[EvalQuestion]] = []
    for _, paths in sorted(patterns.items()):
        own = [chance.choice(same) for _, same in sorted(paths.items())]
        chance.shuffle(own)
        turns.append(own)
    found: list[EvalQuestion] = []
    for turn in range(max(map(len, turns), default=0)):
        found += [own[turn] for own in turns if turn < len(own)]
    return found[:count]


def is_seen(question: EvalQuestion) -> bool:
    """Whether its pattern of relations may be looked at while rules are made."""
    return sha256(question.group.encode()).digest()[0] % 2 == 0


def hits(question: EvalQuestion, found: Answer) -> bool:
    """Whether the first value of an answer is a gold one."""
    first = found.choices[0] if found.choices else found.text
    return normalise_name(first) in {normalise_name(v) for v in question.values}


def list_arms(snapshot: Snapshot, only: Sequence[str]) -> tuple[dict[str, Ask], list[str]]:
    """What is asked, by name, and the strategies that do not exist."""
    arms: dict[str, Ask] = {}
    missing = []
    for name in STRATEGIES:
        try:
            STRATEGIES[name]
        except ImportError:
            missing.append(name)
            continue
        arms[name] = lambda text, name=name: answer(text, snapshot, name, floor=0.0)  # type: ignore[misc]
    return {name: ask for name, ask in arms.items() if not only or name in only}, missing


class Held:
    """Which triples of the base the graph holds."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._ids = snapshot.entities_by_name()
        facts = snapshot.table("condensed").select(["head_id", "tail_id", "literal"]).to_pylist()
        self._joined = {(f["head_id"], f["tail_id"] or normalise_name(f["literal"])) for f in facts}

    def joins(self, subject: str, value: str) -> bool:
        """Whether a fact joins two names."""
        from kpyramid.snapshot.search import join_words

        heads, tails = (self._ids.get(join_words(name), ()) for name in (subject, value))
        pairs = [(a, b) for a in heads for b in (*tails, normalise_name(value))]
        return any((a, b) in self._joined or (b, a) in self._joined for a, b in pairs)


def measure(data: Path, limit: int | None, seed: int, only: Sequence[str], kept: Path) -> Any:
    """The figures."""
    from kpyramid.pipeline.build import build
    from kpyramid.settings import check_settings
    from kpyramid.storage.layout import Warehouse

    with explain_faults(data, FOLDER):
        found = read(data)
        if found is None:
            raise ValueError("no questions PQ*.txt with a base *-kb.txt")
        triples, paths = read_triples(data), read_paths(data)
    drawn = {h: draw(found.questions, h, limit or ASKED, seed) for h in (2, 3)}
    rows = found.corpus
    if limit:  # a quick look: only the documents that the questions need
        needed = {key for asked in drawn.values() for q in asked for key in q.gold_documents}
        rows = tuple(row for row in rows if row["id"] in needed)
        triples = [triple for triple in triples if triple[0] in needed]
    (kept / "corpus").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
    (kept / "corpus" / "corpus.jsonl").write_text(lines, "utf-8")
    report(f"building a pyramid of {len(rows)} texts")
    values = {"publish": {"min_document_share": 0.0, "min_triple_share": 0.0}}
    settings = check_settings(values, {"file": "this measurement"})
    build(kept / "corpus", Warehouse(kept / "warehouse"), settings, ref="paths")
    snapshot = open_snapshot("paths", kept / "warehouse")
    held = Held(snapshot)
    joined = Counter[bool](held.joins(say_name(s), say_name(v)) for s, _, v in triples)
    arms, missing = list_arms(snapshot, only)
    figures: dict[str, Any] = {
        "triples": len(triples),
        "held": round(joined[True] / max(1, len(triples)), 4),
        "missing": missing,
    }
    for hops, asked in drawn.items():
        figures |= _measure_hops(_NAMES[hops], asked, arms, held, paths, missing)
    return figures


_NAMES = {2: "two_hop", 3: "three_hop"}


def _measure_hops(
    name: str,
    asked: Sequence[EvalQuestion],
    arms: Mapping[str, Ask],
    held: Held,
    paths: Mapping[str, Sequence[str]],
    missing: list[str],
) -> dict[str, Any]:
    whole = {q.id: all(held.joins(a, b) for a, b in pairwise(paths[q.id])) for q in asked}
    table: dict[str, dict[str, float]] = {}
    for arm, ask in arms.items():
        report(f"{name}: {arm} is asked {len(asked)} questions")
        try:
            found = [(q, ask(q.text)) for q in asked]
        except NotImplementedError:
            missing.append(arm)
            continue
        right = {q.id: hits(q, one) for q, one in found}
        seen = {q.id: is_seen(q) for q in asked}
        table[arm] = {
            "hits_at_1": _share(right.values()),
            "seen": _share(hit for key, hit in right.items() if seen[key]),
            "unseen": _share(hit for key, hit in right.items() if not seen[key]),
            "held": _share(hit for key, hit in right.items() if whole[key]),
            "answered": _share(bool(one.text) for _, one in found),
            "calls_per_question": round(mean(one.calls for _, one in found), 2) if found else 0.0,
            "seconds": round(mean(one.seconds for _, one in found), 3) if found else 0.0,
        }
    return {
        f"questions_{name}": len(asked),
        f"patterns_{name}": len({q.group for q in asked}),
        f"reachable_{name}": _share(whole.values()),
        f"best_{name}": max((row["hits_at_1"] for row in table.values()), default=0.0),
        f"best_{name}_unseen": max((row["unseen"] for row in table.values()), default=0.0),
        f"hits_at_1_{name}": {arm: row["hits_at_1"] for arm, row in table.items()},
        f"calls_per_question_{name}": {a: row["calls_per_question"] for a, row in table.items()},
        f"strategies_{name}": table,
    }


def _share(values: Iterable[bool]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 4) if found else 0.0


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit=f"so many questions of each number of hops, not {ASKED}; only their texts are built",
        seed="which questions are drawn",
        values={
            "--only": "strategies, with commas between; all without it",
            "--kept": "a folder for the pyramid, which a next run finds built",
        },
    )
    only = options.only.split(",") if options.only else []
    with tempfile.TemporaryDirectory(prefix="kpyramid-paths-") as folder:
        kept = Path(options.kept or folder)
        found = measure(options.data, options.limit, options.seed, only, kept)
    print_figures(found, options.json)


if __name__ == "__main__":
    main()
