"""Standard relations: one name for all wordings of a relation, the ontology's where it has one."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kpyramid.condensation.graph import LITERAL, Graph, read_values
from kpyramid.condensation.merging import Ends, Linked, Said, Stated, can_join
from kpyramid.documents.words import PREPOSITIONS, normalise_relation
from kpyramid.graph.synonyms.comparison import (
    Comparer,
    Reading,
    is_past_state,
    is_present,
    says_more,
)
from kpyramid.graph.synonyms.lexicon import OPEN, load_lexicon
from kpyramid.graph.synonyms.words import VAGUE
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import OntologyProperty, Schema

_Key: TypeAlias = tuple[str, bool, frozenset[str]]
"""What the wordings of a relation have in common: meaning or base form, denial, qualities."""
_Read: TypeAlias = tuple[_Key, bool]
"""A relation, and whether the wording reads from its tail to its head."""
_Name: TypeAlias = tuple[str, bool]
"""A name of a relation, and whether it reads from its tail to its head."""
_United: TypeAlias = Mapping[_Key, _Read]
_MOST = 64
"""Relations near an anchor that a further one is compared with."""
_NO_THINGS = {"CARDINAL", "GENRE", "INSTRUMENT", "FIELD"}
"""Types of tails that no object property of an ontology has, though no class says so."""


@dataclass(frozen=True, slots=True)
class Standard:
    """The name of a fact's relation; `turned`: it reads from the fact's tail to its head."""

    name: str
    turned: bool


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A wording with the classes and the types of its ends, as `count` facts have it."""

    said: Said
    ends: Ends
    anchors: frozenset[str]
    count: int
    read: _Read

    @property
    def has_value(self) -> bool:
        """Whether its tail is a value, not a thing."""
        return self.ends[1] == "CARDINAL" or (self.said[2] or "").startswith(LITERAL)


def name_relations(
    graph: Graph, linked: Linked, stated: Stated, schema: Schema, comparer: Comparer
) -> list[Standard]:
    """The standard relation of each fact.

    Wordings are one relation where they have one meaning between ends of their types, and where
    both are near one anchor (in its X_k, PolyRAG §III-C) and say the same. It is called by the
    property that it states between such ends, else as most of its facts are.
    """
    phrases, phrase_of = _list_phrases(graph, linked, comparer)
    classes = sum(not prop.is_datatype for prop in schema.properties)
    loose = 2 * classes < len(schema.properties)  # strings stand for things, and fit any tail
    properties = [p for p in schema.properties if loose or p.range != XSD + "string"]
    united = _unite_near(phrases, properties, comparer)
    reads = [_follow(phrase.read, united) for phrase in phrases]
    stating = _list_properties(phrases, reads, properties, stated, schema, comparer, united)
    names = _choose_names(phrases, reads, stating, schema)
    return [names[at] for at in phrase_of]


def keep_names(
    chosen: Sequence[Standard], former: Mapping[int, Standard], schema: Schema, known: str
) -> list[Standard]:
    """The standard relation of each fact, by the name that most facts of it had before.

    `former`: by row, of facts that had one. A property that the schema did not have then, `known`
    as Turtle, gives its name to all that state it now.
    """
    new = {prop.label for prop in schema.properties if f'"{prop.label}"' not in known}
    had: dict[str, Counter[_Name]] = defaultdict(Counter)
    for row, standard in former.items():
        name, turned = chosen[row].name, chosen[row].turned
        had[name][standard.name, standard.turned != turned] += 1
    kept = []
    for row, standard in enumerate(chosen):
        counts = had[standard.name]
        if row in former and standard.name not in new:
            standard = former[row]
        elif counts and standard.name not in new:
            name, way = min(counts, key=lambda name: (-counts[name], name))
            standard = Standard(name, way != standard.turned)
        kept.append(standard)
    return kept


def _list_phrases(
    graph: Graph, linked: Linked, comparer: Comparer
) -> tuple[list[_Phrase], Sequence[int]]:
    """The phrases of the graph, and the place of each fact's."""
    types: dict[str, int] = {}
    own = [*graph.types, *(value.type for value in read_values(graph))]
    type_of = np.array([types.setdefault(kind, len(types)) for kind in own], dtype=np.int64)
    tails = np.where(graph.tails < 0, len(graph.types) + graph.literals, graph.tails)
    rows = np.stack([linked.phrase_of, type_of[graph.heads], type_of[tails]])
    found, phrase_of = np.unique(rows, axis=1, return_inverse=True)
    phrase_of = phrase_of.ravel()
    counts = np.bincount(phrase_of[graph.plain], minlength=found.shape[1])
    names, phrases = list(types), []
    near = {key: frozenset(anchor.property_iri for anchor in key) for key in set(linked.near)}
    both, reads = dict[Ends, Ends](), dict[_Read, _Read]()  # one object for all that are equal
    for (at, head, tail), count in zip(found.T.tolist(), counts.tolist(), strict=True):
        said, ends = linked.phrases[at], (names[head], names[tail])
        ends = both.setdefault(ends, ends)
        read = _find_read(said[0], ends, comparer)
        if _is_vague(said):
            read = (said[0], *read[0][1:]), False
        read = reads.setdefault(read, read)
        phrases.append(_Phrase(said, ends, near[linked.near[at]], count, read))
    return phrases, phrase_of.tolist()


def _is_vague(said: Said) -> bool:
    """Whether a bare verb says nothing without a kind of tail: "made" of a debut, not of a film."""
    lemmas, tail = normalise_relation(said[0]).lemmas, said[2]
    return len(lemmas) == 1 and lemmas[0] in VAGUE and (tail is None or tail.startswith(LITERAL))


def _find_read(wording: str, ends: Ends, comparer: Comparer) -> _Read:
    reading: Reading = comparer.read(wording, ends)
    key, turned, qualities = reading.key, reading.turned, reading.qualities
    if is_past_state(wording):
        qualities |= {"past"}
    if reading.meaning:
        key = f"[{reading.meaning}]"
    else:
        verb, *noun = key.split() or [""]
        last = noun.pop() if noun else ""
        if verb == "be" and noun and last in {"of", "for"} and PREPOSITIONS.isdisjoint(noun):
            key, turned = f"have {' '.join(noun)}", not turned
        elif verb == "have" and noun and last == "of":
            key = f"have {' '.join(noun)}"
    return (key, reading.negated, qualities), turned


def _broaden(read: _Read) -> Iterator[_Read]:
    """The same relation by the more general meanings of the lexicon."""
    (key, negated, qualities), turned = read
    if key.startswith("["):
        for name, flipped in load_lexicon().find_above(key[1:-1]).items():
            yield (f"[{name}]", negated, qualities), turned != flipped


def _order_read(read: _Read) -> tuple[object, ...]:
    (words, negated, qualities), turned = read
    return words, negated, sorted(qualities), turned


def _follow(read: _Read, united: _United) -> _Read:
    key, turned = read
    if key not in united:
        return read
    other, flipped = united[key]
    return other, turned != flipped


def _unite_near(
    phrases: Sequence[_Phrase], properties: Sequence[OntologyProperty], comparer: Comparer
) -> _United:
    """For relations that no lexicon knows, that one near the same anchor that says the same.

    Each is compared with those that others will be called by, never along a chain.
    """
    near: dict[str, list[_Phrase]] = defaultdict(list)
    for phrase in sorted(phrases, key=lambda p: (-p.count, p.said[0], p.ends)):
        for anchor in () if _is_vague(phrase.said) else phrase.anchors:
            near[anchor].append(phrase)
    united: dict[_Key, _Read] = {}
    for prop in properties:
        first: dict[_Key, tuple[str, bool]] = {}
        for name in (prop.label, *prop.alt_labels):
            key, turned = _find_read(name, ("", ""), comparer)
            first.setdefault(key, (name, turned))
        for phrase in near[prop.iri]:
            key, turned = phrase.read
            if key in first or key in united:
                continue
            wording = phrase.said[0]
            for other, (name, other_turned) in list(first.items())[:_MOST]:
                verdict = comparer.compare(wording, name)
                if verdict.likeness == "equivalent" and not key[0].startswith("["):
                    united[key] = other, (turned != other_turned) != verdict.turned
                    break
            else:
                first[key] = wording, turned
    return united


def _list_properties(
    phrases: Sequence[_Phrase],
    reads: Sequence[_Read],
    properties: Sequence[OntologyProperty],
    stated: Stated,
    schema: Schema,
    comparer: Comparer,
    united: _United,
) -> list[frozenset[_Name]]:
    """The properties that each phrase states, with whether it reads from value to subject.

    Its ends fit, and it states them in words of the ontology, in others of one meaning or of a
    narrower one, or in its words with more beside them; the first of these decides.
    """
    names = {prop.iri: _list_names(prop, schema) for prop in properties}
    known: dict[tuple[Ends, str | None, str | None], dict[_Read, set[_Name]]] = {}
    fitting: dict[tuple[Ends, str | None, str | None], list[_Name]] = {}

    def read_names(ends: Ends, head: str | None, tail: str | None) -> None:
        found = known[ends, head, tail] = defaultdict(set)
        fitting[ends, head, tail] = [
            (prop.iri, turned)
            for prop in properties
            for turned in (False, True)
            if not turned or _may_be_subject(ends[1], tail, prop)
            if (prop.is_datatype or ends[1] not in _NO_THINGS)
            and can_join(*((tail, head) if turned else (head, tail)), prop, schema)
        ]
        for iri, turned in fitting[ends, head, tail]:
            reads = Counter(
                _follow(_find_read(name, ends[::-1] if turned else ends, comparer), united)
                for name in (names[iri][0], *names[iri])
            )
            (words, negated, qualities), way = min(
                reads, key=lambda read: (-reads[read], _order_read(read))
            )
            found[(words, negated, qualities), way != turned].add((iri, turned))
            if not is_present(names[iri][0]):
                found[(words, negated, qualities | {"past"}), way != turned].add((iri, turned))

    shared: dict[frozenset[_Name], frozenset[_Name]] = {}
    stating: list[frozenset[_Name]] = []
    for phrase, read in zip(phrases, reads, strict=True):
        wording, head, tail = phrase.said
        place = phrase.ends, head, tail
        if place not in known:
            read_names(*place)
        if _is_vague(phrase.said):
            stating.append(frozenset())
            continue
        found = set(known[place].get(read, ()))
        own = stated.get(wording, frozenset())
        found |= {
            (iri, turned)
            for iri, turned in fitting[place]
            if iri in own and not turned and read[0][0][0] != "["
        }
        for broad in () if found else _broaden(read):
            found |= known[place].get(broad, set())
        found = found or {
            (iri, turned)
            for iri, turned in fitting[place]
            if any(says_more(wording, name, turned=turned) for name in names[iri])
        }
        some = frozenset(found)
        stating.append(shared.setdefault(some, some))
    return stating


def _may_be_subject(kind: str, tail: str | None, prop: OntologyProperty) -> bool:
    """Whether a fact's tail can be the subject: no value, and no noun where a domain is asked."""
    unknown = tail is None and kind in OPEN and prop.domain != THING
    return not (prop.is_datatype or unknown)


def _list_names(prop: OntologyProperty, schema: Schema) -> list[str]:
    """What a property is called; also without the class of its range: `works in` of `in ward`."""
    names = [prop.label, *prop.alt_labels]
    if (entry := schema.class_by_iri.get(prop.range)) is None:
        return names
    for name in tuple(names):
        words = name.removesuffix(f" {entry.label}")
        if words != name and words.split()[-1] not in VAGUE:
            names.append(words)
    return names


def _choose_names(
    phrases: Sequence[_Phrase],
    reads: Sequence[_Read],
    stating: Sequence[frozenset[_Name]],
    schema: Schema,
) -> list[Standard]:
    """The name of each phrase: of a property and its inverse the one that more facts state.

    A full date is called by a property of days, though a property of years fits it too.

    Without a property it is called as most others of its relation that have values too, or things.
    """
    weight: Counter[str] = Counter()
    for phrase, found in zip(phrases, stating, strict=True):
        weight.update({iri: phrase.count for iri, turned in found if not turned})
    own: list[_Name | None] = []
    worded: dict[tuple[_Key, bool], Counter[_Name]] = defaultdict(Counter)
    for phrase, (key, turned), found in zip(phrases, reads, stating, strict=True):
        pairs = {pair for iri, way in found for pair in _list_ways(iri, way, schema)}
        if pairs:
            dated = {p for p in pairs if schema.property_by_iri[p[0]].range == XSD + "date"}
            iri, way = min(dated or pairs, key=lambda pair: (-weight[pair[0]], pair))
            own.append((schema.property_by_iri[iri].label, way != turned))
        else:
            own.append(None)
            worded[key, phrase.has_value][phrase.said[0], turned] += phrase.count
    usual = {
        group: min(counts, key=lambda name: (-counts[name], name))
        for group, counts in worded.items()
    }
    names = [
        (name or usual[key, phrase.has_value], turned)
        for phrase, (key, turned), name in zip(phrases, reads, own, strict=True)
    ]
    return [Standard(name, way != turned) for (name, way), turned in names]


def _list_ways(iri: str, turned: bool, schema: Schema) -> Iterator[tuple[str, bool]]:
    yield iri, turned
    inverse = schema.property_by_iri[iri].inverse_of
    if inverse is not None:
        yield inverse, not turned
