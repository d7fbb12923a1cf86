"""Asking which clusters mean the same although the rules left them apart (`f_dis`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from kpyramid.embeddings.port import Embedder
from kpyramid.resolution.confirming import Disambiguator
from kpyramid.resolution.duplicates import Candidate, find_groups, unite_pairs
from kpyramid.resolution.entries import UNKNOWN
from kpyramid.resolution.names import parse_name
from kpyramid.stages.facts import Fact, find_cluster, pick_most_common, pick_name
from kpyramid.stages.tables import Row, make_reject

_FACT_CHARACTERS = 160
"""Of a fact that shows a model how a wording is used."""


def confirm_same(
    kind: str, candidates: list[Candidate], embedder: Embedder, disambiguator: Disambiguator
) -> tuple[dict[str, str], list[Row]]:
    """What each cluster becomes that a model holds for the same as another, and its failures."""
    confirmed = disambiguator.confirm(kind, find_groups(kind, candidates, embedder))
    rank = {c.key: (-len(c.words), c.key) for c in candidates}
    rejects = [
        make_reject(
            "resolve",
            f"llm_{failure.kind}",
            failure.key,
            f"{failure.detail}; left apart: "
            + "; ".join(" / ".join(wording.text for wording in group) for group in batch),
        )
        for failure, batch in confirmed.failures
    ]
    return unite_pairs(confirmed.pairs, rank), rejects


def list_entities(facts: Iterable[Fact], cluster: Mapping[tuple[str, str], str]) -> list[Candidate]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, set[str]] = defaultdict(set)
    stated: dict[str, str] = {}
    for fact in facts:
        for side, end in (("head", fact.head), ("tail", fact.tail)):
            if side == "head" or not end.is_literal:
                key = find_cluster(cluster, fact, side)
                names[key][end.name] += 1
                types[key] |= {end.type} - {UNKNOWN}
                stated[key] = min(stated.get(key, _state(fact)), _state(fact))
    return [
        Candidate(
            key,
            name := pick_name(names[key]),
            frozenset(parse_name(name).words),
            frozenset(types[key]),
            stated[key],
        )
        for key in sorted(names)
    ]


def list_relations(facts: Iterable[Fact], relation: Mapping[str, str]) -> list[Candidate]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    lemmas: dict[str, set[str]] = defaultdict(set)
    types: dict[str, set[str]] = defaultdict(set)
    stated: dict[str, str] = {}
    for fact in facts:
        key = relation[fact.form.key]
        wordings[key][str(fact.row["relation"])] += 1
        lemmas[key] |= set(fact.form.lemmas)
        types[key].add(f"{fact.head.type} {fact.tail.type} {fact.form.passive_by}")
        stated[key] = min(stated.get(key, _state(fact)), _state(fact))
    return [
        Candidate(
            key,
            pick_most_common(wordings[key]),
            frozenset(lemmas[key]),
            frozenset(types[key]),
            stated[key],
        )
        for key in sorted(wordings)
    ]


def _state(fact: Fact) -> str:
    return f"{fact.row['head']} {fact.row['relation']} {fact.row['tail']}"[:_FACT_CHARACTERS]
