"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import pyarrow as pa

from kpyramid.extraction.normal import RelationForm, normalise_name, normalise_relation
from kpyramid.keys import content_id
from kpyramid.stages.tables import Row, build_rejects, build_table, make_reject

_LITERAL_TYPES = frozenset("DATE TIME CARDINAL ORDINAL QUANTITY MONEY PERCENT".split())
_NO_NAME = "NOUN"
"""The type of a mention that the entity recogniser does not know; any other type outvotes it."""

RawTriple = Mapping[str, object]


def run(mentions: pa.Table, raw_triples: pa.Table) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject when it is denied, weakened by a modal, somebody's words, or says a
    thing of itself.

    Names are one entity when their normal forms agree; phrases are one relation when their
    lemmas and voice agree. A tail that is a date, a number or a quantity is a literal.
    """
    by_place, by_name = _index_mentions(mentions)
    entities = _EntityCollector(by_place, by_name)
    relations: dict[str, list[str]] = defaultdict(list)
    facts: dict[tuple[str, str, str, bool], list[RawTriple]] = defaultdict(list)
    rejects: list[Row] = []
    forms: dict[str, RelationForm] = {}
    for raw in raw_triples.to_pylist():
        reason = _find_fault(raw)
        if reason:
            detail = f"{raw['head']} | {raw['relation']} | {raw['tail']}"
            key = raw["raw_triple_id"]
            rejects.append(make_reject("resolve", reason, key, detail, chunk_id=raw["chunk_id"]))
            continue
        if raw["relation"] not in forms:
            forms[raw["relation"]] = normalise_relation(raw["relation"])
        form = forms[raw["relation"]]
        relations[form.key].append(raw["relation"])
        head = entities.add(raw["head"], raw["head_span"], raw)
        is_literal = entities.find_type(raw["tail"], raw["tail_span"], raw) in _LITERAL_TYPES
        tail = (
            _normalise_literal(raw["tail"])
            if is_literal
            else entities.add(raw["tail"], raw["tail_span"], raw)
        )
        facts[head, form.key, tail, is_literal].append(raw)
    return {
        "entities": build_table("entities", entities.build_rows()),
        "relations": build_table("relations", _build_relations(relations, forms.values())),
        "triples": build_table("triples", _build_triples(facts)),
        "rejects": build_rejects(rejects),
    }


def _normalise_literal(text: str) -> str:
    """A literal with single spaces and without white space around it."""
    return " ".join(text.split())


def _find_fault(raw: RawTriple) -> str | None:
    if raw["negated"]:
        return "negated"
    if raw["modality"]:
        return "not_asserted"
    if raw["attribution"]:
        return "attributed"
    if normalise_name(str(raw["head"])) == normalise_name(str(raw["tail"])):
        return "same_head_and_tail"
    return None


def _index_mentions(
    mentions: pa.Table,
) -> tuple[dict[tuple[str, int, int], Row], dict[str, dict[str, list[Row]]]]:
    by_place: dict[tuple[str, int, int], Row] = {}
    by_name: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in mentions.to_pylist():
        place = (row["chunk_id"], row["start"], row["end"])
        if place not in by_place or by_place[place]["type"] == _NO_NAME:
            by_place[place] = row
        by_name[row["chunk_id"]][normalise_name(row["text"])].append(row)
    return by_place, by_name


class _EntityCollector:
    """Entities by the normal form of their names, with their mentions, types and wordings."""

    def __init__(
        self,
        by_place: Mapping[tuple[str, int, int], Row],
        by_name: Mapping[str, Mapping[str, list[Row]]],
    ) -> None:
        self._by_place = by_place
        self._by_name = by_name
        self._names: dict[str, Counter[str]] = defaultdict(Counter)
        self._types: dict[str, Counter[str]] = defaultdict(Counter)
        self._mentions: dict[str, set[str]] = defaultdict(set)

    def add(self, name: str, span: object, raw: RawTriple) -> str:
        """The id of the entity that these words denote here."""
        normal = normalise_name(name)
        self._names[normal][name] += 1
        for row in self._find_mentions(normal, span, raw):
            self._types[normal][str(row["type"])] += 1
            self._mentions[normal].add(str(row["mention_id"]))
        return content_id("entity", normal)

    def find_type(self, name: str, span: object, raw: RawTriple) -> str:
        """The entity type of these words here."""
        found = self._find_mentions(normalise_name(name), span, raw)
        return _vote_type(Counter(str(row["type"]) for row in found))

    def build_rows(self) -> Iterable[Row]:
        for normal, names in self._names.items():
            yield {
                "entity_id": content_id("entity", normal),
                "name": _pick_most_common(names),
                "type": _vote_type(self._types[normal]),
                "surface_forms": sorted(names),
                "mentions": sorted(self._mentions[normal]),
            }

    def _find_mentions(self, normal: str, span: object, raw: RawTriple) -> list[Row]:
        if isinstance(span, dict):
            row = self._by_place.get((str(raw["chunk_id"]), span["start"], span["end"]))
            if row is not None:
                return [row]
        return self._by_name.get(str(raw["chunk_id"]), {}).get(normal, [])


def _vote_type(types: Counter[str]) -> str:
    """The most frequent type that says more than `NOUN`; ties go by alphabet."""
    named = Counter({name: count for name, count in types.items() if name != _NO_NAME})
    return _pick_most_common(named) if named else _NO_NAME


def _pick_most_common(counts: Counter[str]) -> str:
    """The most frequent key; ties go to the longer, then by alphabet."""
    return min(counts, key=lambda name: (-counts[name], -len(name), name))


def _build_relations(
    phrases: Mapping[str, list[str]], forms: Iterable[RelationForm]
) -> Iterable[Row]:
    inverse = {form.key: form.inverse_key for form in forms}
    for key, wordings in phrases.items():
        active = inverse[key]
        yield {
            "relation_id": content_id("relation", key),
            "name": _pick_most_common(Counter(wordings)),
            "inverse_of": content_id("relation", active) if active in phrases else None,
            "surface_forms": sorted(set(wordings)),
            "support": len(wordings),
        }


def _build_triples(
    facts: Mapping[tuple[str, str, str, bool], list[RawTriple]],
) -> Iterable[Row]:
    for (head, relation, tail, is_literal), raws in facts.items():
        doubt = 1.0
        for confidence in sorted(_strongest_per_chunk(raws)):
            doubt *= 1.0 - confidence
        yield {
            "triple_id": content_id("triple", head, relation, tail, is_literal),
            "head_id": head,
            "relation_id": content_id("relation", relation),
            "tail_id": None if is_literal else tail,
            "literal": tail if is_literal else None,
            "confidence": 1.0 - doubt,
            "raw_triple_ids": sorted(str(raw["raw_triple_id"]) for raw in raws),
        }


def _strongest_per_chunk(raws: Iterable[RawTriple]) -> Iterable[float]:
    """One confidence per chunk: what one chunk says twice is not two witnesses."""
    best: dict[object, float] = {}
    for raw in raws:
        confidence = float(str(raw["confidence"]))
        best[raw["chunk_id"]] = max(best.get(raw["chunk_id"], 0.0), confidence)
    return best.values()
