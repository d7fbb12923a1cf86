"""Standard relations: a common name for all wordings of a relation, if possible the ontology's."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from kpyramid.condensation.graph import LITERAL, Graph, read_values
from kpyramid.condensation.merging import Ends, Linked, Phrase, can_join
from kpyramid.documents.words import PREPOSITIONS, is_filing, is_past, lemmatise, normalise_relation
from kpyramid.graph.synonyms.comparison import (
    MODAL,
    Comparer,
    is_past_state,
    is_present,
    list_content,
    says_more,
)
from kpyramid.graph.synonyms.lexicon import OPEN, load_lexicon
from kpyramid.graph.synonyms.meaning import read_frame
from kpyramid.graph.synonyms.words import HOLDING, VAGUE, is_usual
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.population.checking import find_head, is_written_as_name
from kpyramid.ontology.schema import OntologyProperty, Schema

_Key: TypeAlias = tuple[str, bool, frozenset[str]]
"""Shared by the wordings of a relation: meaning or base form, whether denied, and qualities."""
_Read: TypeAlias = tuple[_Key, bool]
"""A relation, and whether the wording reads from its tail to its head."""
_Name: TypeAlias = tuple[str, bool]
"""A name of a relation, and whether it reads from its tail to its head."""
_HAS = ("has ", "have ")
_PLACES = frozenset({"located_in", "part_of_place"})
_GUESSED = frozenset({"PERSON", "ORG"})
"""Types that a tagger gives most unknown names: a number or a date as value of a property is
better evidence of what the thing is."""
_NO_THINGS = {"CARDINAL", "PERCENT", "MONEY", "QUANTITY", "GENRE", "INSTRUMENT", "FIELD"}
"""Types of tails that no object property has, although no class excludes them."""


@dataclass(frozen=True, slots=True)
class Standard:
    """The name of a fact's relation; `turned`: it reads from the fact's tail to its head."""

    name: str
    turned: bool


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A wording with the classes and the types of its ends, and the number of facts with it.

    `has_ended`: it is in the past, where the same is also stated in the present, or a former state.
    """

    form: Phrase
    ends: Ends
    count: int
    read: _Read
    has_ended: bool

    @property
    def group(self) -> tuple[_Key, bool, bool]:
        """Shared by phrases with one name where no property has one: a relation in one tense.

        What began is not what begins, where texts say both. Those with values as tails are apart.
        """
        has_value = self.ends[1] == "CARDINAL" or (self.form[2] or "").startswith(LITERAL)
        return self.read[0], has_value, self.has_ended


def name_relations(
    graph: Graph, linked: Linked, schema: Schema, comparer: Comparer
) -> list[Standard]:
    """The standard relation of each fact.

    Wordings are of one relation if they have the same meaning between ends of their types. Its name
    is that of the property that it states between such ends (an anchor, PolyRAG §III-C), by its
    words or by its objects; else its most frequent wording.
    """
    phrases, phrase_of = _list_phrases(graph, linked, comparer)
    # Where most properties have strings as values, these stand for things, and fit any tail.
    loose = 2 * sum(not prop.is_datatype for prop in schema.properties) < len(schema.properties)
    properties = [p for p in schema.properties if loose or p.range != XSD + "string"]
    bare = VAGUE | HOLDING if loose else VAGUE
    stating = _list_properties(phrases, properties, schema, comparer, bare)
    names = _choose_names(phrases, stating, schema)
    chosen = [names[index] for index in phrase_of]
    for rows, label in _list_vouched(graph, phrases, phrase_of, stating, schema, comparer):
        for row in rows:
            chosen[row] = Standard(label, False)
    ends: dict[str, tuple[str, str]] = {}
    for prop in schema.properties:  # "is a work for piano" is no occupation
        is_kind = prop.is_datatype and any(map(is_filing, prop.alt_labels))
        ends[prop.label] = prop.domain, prop.domain if is_kind else prop.range

    @cache
    def may_be(words: str, iri: str) -> bool:
        """Whether words can denote an instance of a class: a dream has no nationality.

        Names can, and so can nouns with a sense of a kind that the class has below it.
        """
        below = (c for c in schema.classes if iri != THING and schema.is_subclass(c.iri, iri))
        kinds = {kind for c in below for kind in c.entity_types}
        if not kinds or is_written_as_name(words):
            return True
        return any(is_usual(find_head(words), (kind,)) is not False for kind in sorted(kinds))

    for row, standard in enumerate(chosen):
        head, wording, tail = graph.tell(row)
        both = (tail, head) if standard.turned else (head, tail)
        if not all(map(may_be, both, ends.get(standard.name, ()))):
            chosen[row] = Standard(wording, False)
    return chosen


def keep_names(
    chosen: Sequence[Standard], former: Mapping[int, Standard], schema: Schema, known: Schema
) -> list[Standard]:
    """The standard relation of each fact, with the name that most facts of the relation had before.

    `former`: earlier standard relations, by row. `known`: the earlier schema. A property that is
    new since then, or has other ends, names the facts that state it; a removed one names none.
    """
    now, then = ({(p.label, p.domain, p.range) for p in s.properties} for s in (schema, known))
    new, gone = ({label for label, *_ in a - b} for a, b in ((now, then), (then, now)))
    former = {row: standard for row, standard in former.items() if standard.name not in gone}
    had: dict[str, Counter[_Name]] = defaultdict(Counter)
    for row, standard in former.items():
        name, turned = chosen[row].name, chosen[row].turned
        had[name][standard.name, standard.turned != turned] += 1
    standards = []
    for row, standard in enumerate(chosen):
        counts = had[standard.name]
        if row in former and standard.name not in new:
            standard = former[row]
        elif counts and standard.name not in new:
            name, way = min(counts, key=lambda name: (-counts[name], name))
            standard = Standard(name, way != standard.turned)
        standards.append(standard)
    return standards


def _list_phrases(
    graph: Graph, linked: Linked, comparer: Comparer
) -> tuple[list[_Phrase], Sequence[int]]:
    """The phrases of the graph, and the index of each fact's phrase."""
    types: dict[str, int] = {}
    kinds = [*graph.types, *(value.type for value in read_values(graph))]
    type_of = np.array([types.setdefault(kind, len(types)) for kind in kinds], dtype=np.int64)
    tails = np.where(graph.tails < 0, len(graph.types) + graph.literals, graph.tails)
    rows = np.stack([linked.phrase_of, type_of[graph.heads], type_of[tails]])
    columns, phrase_of = np.unique(rows, axis=1, return_inverse=True)
    phrase_of = phrase_of.ravel()
    counts = np.bincount(phrase_of[graph.plain], minlength=columns.shape[1])
    names, phrases = list(types), []
    stems = {_find_stem(wording) for wording in graph.wordings if not is_past(wording)}

    @cache
    def has_ended(wording: str) -> bool:
        return _is_over(wording) or (is_past(wording) and _find_stem(wording) in stems)

    both, reads = dict[Ends, Ends](), dict[_Read, _Read]()  # equal values share an object
    for (index, head, tail), count in zip(columns.T.tolist(), counts.tolist(), strict=True):
        form, ends = linked.phrases[index], (names[head], names[tail])
        ends = both.setdefault(ends, ends)
        read = _find_read(form[0], ends, comparer)
        if _is_vague(form):
            read = (form[0], *read[0][1:]), False
        read = reads.setdefault(read, read)
        phrases.append(_Phrase(form, ends, count, read, has_ended(form[0])))
    return phrases, phrase_of.tolist()


def _is_vague(form: Phrase, bare: Set[str] = VAGUE) -> bool:
    """Whether a bare verb is vague without a class of tail: "made" of a debut, not of a film."""
    lemmas, tail = normalise_relation(form[0]).lemmas, form[2]
    return len(lemmas) == 1 and lemmas[0] in bare and (tail is None or tail.startswith(LITERAL))


def _find_read(wording: str, ends: Ends, comparer: Comparer) -> _Read:
    reading = comparer.read(wording, ends)
    key, turned, qualities = reading.key, reading.turned, reading.qualities
    if is_past_state(wording):
        qualities |= {"past"}
    above = load_lexicon().find_above(reading.meaning) if reading.meaning else {}
    if turned and wording.startswith(_HAS) and not _PLACES.isdisjoint(above):
        # `has town` may describe a land with towns or a shop.
        return (key, reading.negated, qualities), False
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
    """The relation with each more general meaning of the lexicon."""
    (key, negated, qualities), turned = read
    if key.startswith("["):
        for name, flipped in load_lexicon().find_above(key[1:-1]).items():
            yield (f"[{name}]", negated, qualities), turned != flipped


def _list_properties(
    phrases: Sequence[_Phrase],
    properties: Sequence[OntologyProperty],
    schema: Schema,
    comparer: Comparer,
    bare: Set[str],
) -> list[frozenset[_Name]]:
    """The properties that each phrase states, with whether it reads from value to subject.

    The ends must fit, and the wording must be one of the ontology, have the same or a narrower
    meaning, or contain the ontology's words; the first of these decides. A state that has ended is
    stated by a property of former states (`former member of`), if one fits the classes.
    """
    names = {prop.iri: (prop.label, *prop.alt_labels) for prop in properties}
    words_of = {iri: frozenset().union(*map(list_content, texts)) for iri, texts in names.items()}

    @cache
    def read_property(iri: str, ends: Ends) -> _Read:
        """What most names of a property say; the label counts twice."""
        reads = Counter(_find_read(name, ends, comparer) for name in (names[iri][0], *names[iri]))
        ordered = sorted(reads, key=lambda read: (*read[0][:2], sorted(read[0][2]), read[1]))
        return max(ordered, key=reads.__getitem__)

    @cache
    def read_names(
        ends: Ends, head: str | None, tail: str | None
    ) -> tuple[list[_Name], dict[_Read, set[_Name]]]:
        stating: dict[_Read, set[_Name]] = defaultdict(set)
        fitting = [
            (prop.iri, turned)
            for prop in properties
            for turned in (False, True)
            if not (turned and prop.is_datatype)
            if not turned or tail is not None or ends[1] not in OPEN or prop.domain == THING
            if (prop.is_datatype or ends[1] not in _NO_THINGS)
            and can_join(
                *((tail, head) if turned else (_trust(ends[0], head, prop), tail)), prop, schema
            )
        ]
        for iri, turned in fitting:
            (words, negated, qualities), way = read_property(iri, ends[::-1] if turned else ends)
            stating[(words, negated, qualities), way != turned].add((iri, turned))
            if not is_present(names[iri][0]):
                stating[(words, negated, qualities | {"past"}), way != turned].add((iri, turned))
        return fitting, stating

    def list_stated(phrase: _Phrase) -> Set[_Name]:
        if _is_vague(phrase.form, bare):
            return frozenset()
        wording, head, tail = phrase.form
        fitting, known = read_names(phrase.ends, head, tail)
        stated = set(known.get(phrase.read, ()))
        for broad in () if stated else _broaden(phrase.read):
            stated |= known.get(broad, set())
        own = list_content(wording)
        stated = stated or {
            (iri, turned)
            for iri, turned in fitting
            if not (own.isdisjoint(words_of[iri]) or (turned and wording.startswith(_HAS)))
            if any(says_more(wording, name, turned) for name in names[iri])
        }
        straight = {(iri, turned) for iri, turned in fitting if iri in former and not turned}
        return straight if stated and straight and phrase.has_ended and tail is not None else stated

    former = {prop.iri for prop in properties if _is_former(prop) and not prop.is_datatype}
    shared: dict[frozenset[_Name], frozenset[_Name]] = {}
    return [shared.setdefault(some, some) for some in map(frozenset, map(list_stated, phrases))]


def _trust(kind: str, head: str | None, prop: OntologyProperty) -> str | None:
    """The class of a head where it can rule out a property, else None."""
    is_measured = prop.is_datatype and prop.range != XSD + "string"
    return None if is_measured and kind in _GUESSED else head


# Properties that a wording states by its objects rather than by its words.

_LEAST = 3
"""Least facts of a wording whose objects are considered."""
_SHARE = 0.2
"""Share of a wording's objects with the same head noun from which they are a separate group."""
_VOUCHED, _ALONE, _FORMER = 0.5, 0.65, 0.25
"""Least cosine of a wording with its objects' noun and a property's phrase for it to state the
property: with support by the objects; without; for a state that has ended and a property of former
states. Of 851 facts of an invented press, on which none of them was chosen, all got the right
name."""
_KNOWN, _REPEATED = 5, 0.3
"""Least facts of a property, and least share of them with a repeated object, for its objects to be
known: a wording with other objects states something else."""
_DOUBTFUL = MODAL | {"nearly", "partly"}


def _list_vouched(
    graph: Graph,
    phrases: Sequence[_Phrase],
    phrase_of: Sequence[int],
    stating: Sequence[frozenset[_Name]],
    schema: Schema,
    comparer: Comparer,
) -> Iterator[tuple[Sequence[int], str]]:
    """Rows of facts whose objects support a property near their wording, with its label.

    Ends, meaning and polarity fit; a state that has ended gets a property of former states, where
    one has such ends. The facts of a wording are split by the head nouns of their objects where
    many share a noun: "Department of Optics", "Department of Law".
    """
    near = [(prop, text) for prop in schema.properties for text in (prop.label, *prop.alt_labels)]
    meanings: dict[str, set[str]] = defaultdict(set)
    for prop, text in near:
        meanings[prop.iri] |= _list_meanings(_find_read(text, ("", ""), comparer))
    texts = [*graph.names, *graph.texts]
    objects = np.where(graph.tails < 0, len(graph.names) + graph.literals, graph.tails).tolist()
    held: dict[str, Counter[int]] = defaultdict(Counter)
    alike: dict[tuple[str, _Read, bool], list[int]] = defaultdict(list)
    for row, index in enumerate(phrase_of):
        phrase, head = phrases[index], phrases[index].form[1]
        for iri, turned in stating[index]:
            meanings[iri] |= _list_meanings(phrase.read)
            if not turned:
                held[iri][objects[row]] += 1
        frame = read_frame(phrase.form[0])
        if not (stating[index] or head is None or frame.negated or frame.qualities & _DOUBTFUL):
            alike[head, phrase.read, phrase.has_ended].append(row)
    find_noun = cache(find_head)
    groups: list[tuple[_Phrase, str, list[int]]] = []
    for rows in alike.values():
        nouns = Counter(find_noun(texts[objects[row]]) for row in rows)
        parts: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            noun = find_noun(texts[objects[row]])
            parts[noun if nouns[noun] >= max(_LEAST, _SHARE * len(rows)) else ""].append(row)
        for noun, part in parts.items():
            counts = Counter(phrase_of[row] for row in part)
            usual = min(counts, key=lambda index: (-counts[index], phrases[index].form[0]))
            if len(part) >= _LEAST:
                groups.append((phrases[usual], noun, part))
    if not groups or not near:
        return
    described = [f"{phrase.form[0]} {noun}".strip() for phrase, noun, _ in groups]
    cosines = comparer.embed(described) @ comparer.embed([text for _, text in near]).T
    for (phrase, noun, rows), row in zip(groups, np.round(cosines, 6).tolist(), strict=True):
        ends = [phrases[phrase_of[r]].form[1:] for r in rows]
        kinds = Counter(ends).items()
        fits = {
            prop.iri
            for prop in schema.properties
            if 2 * sum(n for both, n in kinds if can_join(*both, prop, schema)) >= len(rows)
        }
        former = {prop.iri for prop, _ in near if prop.iri in fits and _is_former(prop)}
        if phrase.has_ended and (former or _is_over(phrase.form[0])):
            fits = former
        else:
            fits -= former
        known, best = _list_meanings(phrase.read), (0.0, "")
        own, frame = list_content(phrase.form[0]), read_frame(phrase.form[0])
        joining = [iri for iri in fits if not schema.property_by_iri[iri].is_datatype]
        for (prop, text), cosine in zip(near, row, strict=True):
            agrees = not (known and meanings[prop.iri]) or known & meanings[prop.iri]
            if prop.iri in fits and agrees and _have_one_role(phrase.form[0], text):
                is_only = joining == [prop.iri]
                least = _ask(prop, noun, [objects[r] for r in rows], ends, held[prop.iri], is_only)
                least = _FORMER if prop.iri in former else least
                shared = own & list_content(text)
                is_worded = least != _ALONE or not own or shared
                # "is owned by" is near "owned", which reads from the other end.
                is_turned = shared and read_frame(text).turned != frame.turned
                if is_worded and not is_turned and cosine >= least:
                    best = max(best, (cosine, prop.label))
        if best[1]:
            yield rows, best[1]


def _ask(
    prop: OntologyProperty,
    noun: str,
    objects: Sequence[int],
    ends: Sequence[tuple[str | None, str | None]],
    held: Counter[int],
    is_only: bool,
) -> float:
    """The least cosine for facts to state a property; above 1 where their objects rule it out.

    `is_only`: no other object property fits.
    """
    twice = sum(count for count in held.values() if count > 1)
    if held.total() >= _KNOWN and twice >= _REPEATED * held.total():
        shared = sum(thing in held for thing in objects) / len(objects)
        return _VOUCHED if 2 * shared >= twice / held.total() else 2.0
    is_named = noun in map(lemmatise, prop.label.casefold().split())
    is_classed = is_only and sum(tail == prop.range for _, tail in ends) >= _REPEATED * len(ends)
    return _VOUCHED if is_named or is_classed else _ALONE


_ROLES = frozenset("by for with as".split())
"""Prepositions that say what part a thing has in a deed: `recorded by` is not `recorded for`."""


def _have_one_role(wording: str, name: str) -> bool:
    """Whether no preposition gives the tails of two wordings different parts in a deed."""
    last, other = wording.rpartition(" ")[2], name.rpartition(" ")[2]
    both = {last, other}
    if last == other or both == {"for", "at"} or both == {"by", "at"}:  # "works for", "works at"
        return True
    return not (both <= PREPOSITIONS and both & _ROLES)


def _is_former(prop: OntologyProperty) -> bool:
    return "former" in read_frame(prop.label).qualities


def _is_over(wording: str) -> bool:
    return "former" in read_frame(wording).qualities or is_past_state(wording)


def _list_meanings(read: _Read) -> set[str]:
    """The meaning in the lexicon, and the more general ones; empty without a meaning."""
    key = read[0][0]
    return {key[1:-1], *load_lexicon().find_above(key[1:-1])} if key.startswith("[") else set()


def _find_stem(wording: str) -> str:
    """A wording's base form, the same for `works in` and `worked at`."""
    words = read_frame(wording).key.removeprefix("~").split()
    return " ".join([*words[:-1], "in"] if words[-1:] == ["at"] else words)


def _choose_names(
    phrases: Sequence[_Phrase], stating: Sequence[frozenset[_Name]], schema: Schema
) -> list[Standard]:
    """The name of each phrase: of a property and its inverse, the one that more facts state.

    A full date takes a property of dates, although a property of years fits it too.

    Without a property, it is the most frequent wording of the relation with values or with things,
    in the tense of the phrase: what began in May is not what begins in May.
    """
    weight: Counter[str] = Counter()
    for phrase, stated in zip(phrases, stating, strict=True):
        weight.update({iri: phrase.count for iri, turned in stated if not turned})
    names: list[_Name | None] = []
    worded: dict[tuple[_Key, bool, bool], Counter[_Name]] = defaultdict(Counter)
    for phrase, stated in zip(phrases, stating, strict=True):
        inverses = ((schema.property_by_iri[iri].inverse_of, not way) for iri, way in stated)
        pairs = {*stated, *((iri, way) for iri, way in inverses if iri is not None)}
        if pairs:
            dated = {p for p in pairs if schema.property_by_iri[p[0]].range == XSD + "date"}
            iri, way = min(dated or pairs, key=lambda pair: (-weight[pair[0]], pair))
            names.append((schema.property_by_iri[iri].label, way != phrase.read[1]))
        else:
            names.append(None)
            worded[phrase.group][phrase.form[0], phrase.read[1]] += phrase.count
    usual = {
        group: min(counts, key=lambda name: (-counts[name], name))
        for group, counts in worded.items()
    }
    chosen = (
        (*(name or usual[phrase.group]), phrase.read[1])
        for phrase, name in zip(phrases, names, strict=True)
    )
    return [Standard(name, way != turned) for name, way, turned in chosen]
