"""What a pyramid gains by learning from a question, what it refuses to learn twice (WTS, 3.2.2).

Set and metric: PathQuestion (Zhou, Huang, Zhu, COLING 2018), hits@1. Pairs of questions share a
fact; it is left out of the texts, in both directions. The pyramid is asked the second question,
learns from the first with its gold answer (`kpyramid learn`, rules), is built again, and is asked
again: `gain` with a 95 % bootstrap interval over pairs. The first question ends with the fact, so
that its answer says it; of whom has to be found by its other facts. The
strategy wts is asked.

`paraphrases_refused`: of facts of the graph in wordings of ours, written down before any was tried,
those that are refused. `new_facts_refused`: of facts that the graph does not hold, half of them of
two things that it joins by another relation, those that are refused. `curve`: facts of the
graph after each quarter of the feedback, were each statement one; before and after it is counted.
"""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from options import explain_faults, print_figures, read_options, report
from pathquestion import Held, hits, list_arms
from sets.pathquestion import read, read_paths, read_triples, say_name, say_triple

from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.evaluation.results import bootstrap
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.pipeline.build import build
from kpyramid.pipeline.learning.learn import EXPERIENCE, Graph, learn
from kpyramid.pipeline.learning.statements import Stater, Triple
from kpyramid.query import EVERYTHING, Snapshot, open_snapshot
from kpyramid.settings import check_settings
from kpyramid.storage.layout import Warehouse

FOLDER = "pathquestion_pq"
PAIRS = 100
WORDED = 300
"""Facts that are offered in other words, and new ones of each kind."""
Fact = tuple[str, str, str]
Pair = tuple[Fact, EvalQuestion, EvalQuestion]

OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "spouse": ("has spouse", "is the spouse of", "wed", "is wedded to"),
    "parents": ("has parent", "is a child of", "was born to", "< is the parent of"),
    "children": ("has child", "is the parent of", "has offspring", "< is the child of"),
    "place_of_birth": ("has birthplace", "came into the world in", "< is the birthplace of"),
    "place_of_death": ("passed away in", "lost his life in", "< is the place of death of"),
    "cause_of_death": ("passed away of", "was killed by", "perished from", "< killed"),
    "nationality": ("has the nationality", "is a national of", "is a citizen of"),
    "profession": ("has profession", "has occupation", "was employed as", "earned a living as"),
    "religion": ("has faith", "is an adherent of", "is a follower of"),
    "gender": ("has sex", "is of the gender"),
    "location": ("resided in", "dwelt in", "made his home in"),
}
"""Other wordings of a relation of the set; `<`: from the value to the subject."""
ELSE: Mapping[str, tuple[str, ...]] = {
    "spouse": ("has child", "murdered"),
    "parents": ("is the parent of", "married"),
    "children": ("is a child of", "married"),
    "place_of_birth": ("died in", "fled from"),
    "place_of_death": ("was born in", "governed"),
    "cause_of_death": ("wrote about", "survived"),
    "nationality": ("invaded", "emigrated to"),
    "profession": ("despised", "wrote a handbook for"),
    "religion": ("left", "wrote against"),
    "gender": ("wrote about", "studied"),
    "location": ("was born in", "died in"),
}
"""Wordings that say something else of the same two."""


def choose_pairs(
    questions: Sequence[EvalQuestion], paths: Mapping[str, Sequence[str]], most: int, seed: int
) -> list[Pair]:
    """Pairs of questions that share a fact, which the first one ends with; no fact of two pairs."""
    chance = Random(seed)  # noqa: S311  a sample, no secret
    hops = {q.id: _list_hops(q, paths[q.id]) for q in questions}
    last: dict[Fact, list[EvalQuestion]] = defaultdict(list)
    within: dict[Fact, list[EvalQuestion]] = defaultdict(list)
    for question in questions:
        last[hops[question.id][-1]].append(question)
        for hop in dict.fromkeys(hops[question.id]):
            within[hop].append(question)
    found: list[Pair] = []
    removed: set[frozenset[str]] = set()
    needed: set[frozenset[str]] = set()
    facts = sorted(last)
    chance.shuffle(facts)
    for fact in facts:
        ends = frozenset({fact[0], fact[2]})
        first = chance.choice(last[fact])
        others = [q for q in within[fact] if paths[q.id] != paths[first.id]]
        if not others or ends in needed or ends in removed:
            continue
        second = chance.choice(others)
        both = {frozenset({s, v}) for q in (first, second) for s, _, v in hops[q.id]} - {ends}
        if both & removed or fact[0] in paths[first.id][:1]:
            continue
        removed.add(ends)
        needed |= both
        found.append((fact, first, second))
        if len(found) == most:
            break
    return found


def _list_hops(question: EvalQuestion, path: Sequence[str]) -> list[Fact]:
    relations = question.group.split(" > ")
    return [(s, r, v) for (s, v), r in zip(pairwise(path), relations, strict=True)]


def write_corpus(triples: Sequence[Fact], left_out: set[frozenset[str]], place: Path) -> int:
    """A row for each subject of the base without some facts; returns how many are left out."""
    said: dict[str, list[str]] = defaultdict(list)
    gone = 0
    for subject, relation, value in triples:
        if frozenset({say_name(subject), say_name(value)}) in left_out:
            gone += 1
        else:
            said[subject].append(say_triple(subject, relation, value))
    rows = [
        {"id": key, "title": say_name(key), "text": " ".join(sentences)}
        for key, sentences in sorted(said.items())
    ]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return gone


def measure(data: Path, limit: int | None, seed: int, kept: Path) -> dict[str, Any]:
    """The figures."""
    with explain_faults(data, FOLDER):
        found = read(data)
        if found is None:
            raise ValueError("no questions PQ*.txt with a base *-kb.txt")
        triples, paths = read_triples(data), read_paths(data)
    pairs = choose_pairs(found.questions, paths, limit or PAIRS, seed)
    if limit:  # a quick look: only the texts that the questions need
        asked = [q for _, first, second in pairs for q in (first, second)]
        needed = {name for q in asked for name in paths[q.id]}
        triples = [triple for triple in triples if say_name(triple[0]) in needed]
    left_out = {frozenset({s, v}) for (s, _, v), _, _ in pairs}
    corpus = kept / "corpus"
    gone = write_corpus(triples, left_out, corpus / "corpus.jsonl")
    (corpus / EXPERIENCE).unlink(missing_ok=True)
    values = {"publish": {"min_document_share": 0.0, "min_triple_share": 0.0}}
    settings = check_settings(values, {"file": "this measurement"})
    warehouse = Warehouse(kept / "warehouse")
    report(f"building a pyramid without {gone} of {len(triples)} facts")
    build(corpus, warehouse, settings, ref="before")
    before = open_snapshot("before", warehouse.root, scope=EVERYTHING)
    figures = measure_redundancy(before, triples, left_out, seed)

    rows = [{"question": first.text, "gold": list(first.values)} for _, first, _ in pairs]
    feedback = kept / "feedback.jsonl"
    feedback.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    extractor = DependencyExtractor(settings.extract.parser, settings.extract.language)
    report(f"learning from {len(rows)} questions")
    told = learn(feedback, corpus, before, lambda scoped: Stater(scoped, extractor))
    report("building again")
    build(corpus, warehouse, settings, ref="after")
    after = open_snapshot("after", warehouse.root, scope=EVERYTHING)
    lines = {o.line for o in told.outcomes if o.result == "learnt"}
    held = Held(after)
    found_by = _measure_gain("wts", pairs, {"before": before, "after": after}, lines, seed)
    figures |= {f"{name}_wts": value for name, value in found_by.items()}
    return figures | {
        "pairs": len(pairs),
        "learnt_from": len(lines),
        "learnt_right": sum(held.joins(say_name(s), say_name(v)) for (s, _, v), _, _ in pairs),
        "outcomes": told.count(),
        "curve": _list_sizes(told.outcomes, len(rows), before.count("condensed")),
        "facts_before": before.count("condensed"),
        "facts_after": after.count("condensed"),
    }


def _measure_gain(
    arm: str, pairs: Sequence[Pair], snapshots: Mapping[str, Snapshot], lines: set[int], seed: int
) -> dict[str, float]:
    """Hits of the second questions before and after; `lines`: first questions that were learnt."""
    right: dict[str, list[float]] = {}
    for name, snapshot in snapshots.items():
        ask = list_arms(snapshot, [arm])[0][arm]
        report(f"{arm} is asked {len(pairs)} questions {name} learning")
        right[name] = [float(hits(second, ask(second.text))) for _, _, second in pairs]
    differences = [b - a for a, b in zip(right["before"], right["after"], strict=True)]
    gain = bootstrap(differences, seed)
    return {
        "hits_before": _mean(right["before"]),
        "hits_after": _mean(right["after"]),
        "gain": round(gain.mean, 4),
        "gain_low": round(gain.low, 4),
        "gain_high": round(gain.high, 4),
        "gain_where_learnt": _mean([d for at, d in enumerate(differences, 1) if at in lines]),
    }


def measure_redundancy(
    snapshot: Any, triples: Sequence[Fact], left_out: set[frozenset[str]], seed: int
) -> dict[str, Any]:
    """Shares of paraphrases and of new facts that are refused."""
    chance = Random(seed)  # noqa: S311  a sample, no secret
    graph, held = Graph(snapshot), Held(snapshot)
    base = {(say_name(s), r, say_name(v)) for s, r, v in triples}
    known = [t for t in sorted(base) if held.joins(t[0], t[2]) and t[1] in OTHERWISE]
    chance.shuffle(known)
    known = [t for t in known if not _is_told_twice(t, base)]
    worded = [Triple(*each) for t in known[:WORDED] for each in _word(t, OTHERWISE)]
    new = [Triple(*each) for t in known[:WORDED] for each in _word(t, ELSE)]
    out = [t for t in sorted(base) if frozenset({t[0], t[2]}) in left_out and t[1] in OTHERWISE]
    new += [Triple(*each) for t in out for each in _word(t, OTHERWISE)]
    refused = [bool(graph.find_known(triple)) for triple in worded]
    wrongly = [bool(graph.find_known(triple)) for triple in new]
    missed = Counter[str]()
    for triple, known_ in zip(worded, refused, strict=True):
        if not known_:
            missed[triple.relation] += 1
    return {
        "paraphrases": len(worded),
        "paraphrases_refused": _mean(refused),
        "paraphrases_missed": dict(missed.most_common()),
        "new_facts": len(new),
        "new_facts_refused": _mean(wrongly),
    }


def _word(fact: Fact, wordings: Mapping[str, tuple[str, ...]]) -> Iterator[Fact]:
    for wording in wordings[fact[1]]:
        if wording.startswith("< "):
            yield fact[2], wording.removeprefix("< "), fact[0]
        else:
            yield fact[0], wording, fact[2]


def _is_told_twice(fact: Fact, base: set[Fact]) -> bool:
    """Whether the base joins the two by another relation as well, so that "else" may be true."""
    back = {"parents": "children", "children": "parents", "spouse": "spouse"}
    return any(
        {s, v} == {fact[0], fact[2]}
        and (s, r, v) != fact
        and (s, r, v) != (fact[2], back.get(fact[1]), fact[0])
        for s, r, v in base
    )


def _list_sizes(outcomes: Sequence[Any], rows: int, before: int) -> list[int]:
    """Facts of the graph after each quarter of the feedback, were each statement one."""
    cuts = [round(rows * quarter / 4) for quarter in range(5)]
    return [before + sum(len(o.statements) for o in outcomes if o.line <= cut) for cut in cuts]


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit=f"so many pairs, not {PAIRS}; only their texts are built",
        seed="which pairs are drawn",
        values={"--kept": "a folder for the pyramid, which a next run finds built"},
    )
    with tempfile.TemporaryDirectory(prefix="kpyramid-evolve-") as folder:
        found = measure(options.data, options.limit, options.seed, Path(options.kept or folder))
    print_figures(found, options.json)


if __name__ == "__main__":
    main()
