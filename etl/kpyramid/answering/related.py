"""Members of a set: what stands in a relation to something that a question names.

All layers say so: values of the ontology, facts by their own and their standard relations, and the
sentences that name it. Each member has the chance that it is one, and the statement it rests on.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from unicodedata import normalize

from kpyramid.answering.lexicon import KIND_WORDS
from kpyramid.answering.meanings import (
    Meaning,
    compare_meanings,
    read_wording,
    read_words,
    says_role,
)
from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.values import NUMBER_WORDS, Date, find_values, read_value
from kpyramid.documents.words import (
    FUNCTION,
    PREPOSITIONS,
    WORD,
    lemmatise,
    list_plain_words,
    normalise_relation,
    share_stem,
)
from kpyramid.graph.synonyms.words import load_nouns
from kpyramid.ontology import names as n
from kpyramid.query.analysis import NUMERIC, QuestionAnalysis, fits, link_text
from kpyramid.query.facts import NearFact, list_lemmas, state_facts, state_item
from kpyramid.query.ontology_layer import shorten, state_instance
from kpyramid.query.types import Item, Question
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

MOST_CHUNKS, MOST_FACTS, MOST_ENDS = 400, 4_000, 10_000
"""Chunks and facts about what is named that are looked through."""
_LONGEST, _PLAIN = 9, 3
"""Words of a member's name, and of one that is a common noun."""
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "holder": {
        "bias": -2.97, "instance": 1.52, "says": 1.62, "joined": 1.04, "word": 0.56, "topic": 2.75,
        "owner": 1.3, "beside": -1.07, "fits": 1.04, "unfit": -0.61, "known": 0.83,
        "called": 0.69, "close": 0.8, "near": -0.9, "peer": -0.09, "typed": -0.3,
        "again": -0.39, "other": -0.23, "plain": 0.0, "silent": 0.19, "alien": -1.2,
    },
    "value": {
        "bias": -1.9, "instance": 1.03, "says": 2.44, "joined": 0.4, "word": 0.11,
        "topic": 0.4, "owner": 0.4, "beside": -0.39, "fits": 0.35, "unfit": -0.47, "known": 0.19,
        "called": 0.36, "close": 1.21, "near": 0.35, "peer": 1.02, "typed": 0.54, "again": -0.24,
        "other": -0.56, "plain": -1.24, "silent": 0.79, "alien": -1.2,
    },
}  # fmt: skip
"""Weights of what speaks for a member: of what has the relation to the name (`holder`), and of what
the name has (`value`). Logistic models fitted on half 0 of `benchmarks/structure.py`; `alien` was
added later, as a fit of all anew has it, the others stayed."""
STATED: Mapping[str, float] = {"instance": 0.8, "near": 0.75, "only": 0.5}
"""The chance of a value of the ontology, of that nearest to a word of the relation in a sentence
about what is named, and of the only date of such a sentence."""
_UNWORDED = 0.3
"""What is left of a chance where neither a fact nor a sentence has a word of the verb asked."""
_MUSIC = frozenset("album music musical opera piece single song symphony".split())
_WRITTEN = frozenset({"composed", "wrote_lyrics"})
"""Nouns of what is composed by who writes it, which is not so of films, and what that means."""
_RUN = re.compile(
    r"(?:The |An? )?((?:[A-Z0-9][\w'’!?:./&-]*)"
    r"(?:,? (?:(?:of|the|and|in|to|for|on|a|&|:|de|la|von) )*[A-Z0-9][\w'’!?:./&-]*)*)"
)
"""A name at the beginning of a sentence, as it is written."""
_SPELT = {*NUMBER_WORDS[1:], *"dozen twenty thirty forty fifty sixty seventy eighty ninety".split()}
_UNITS: Mapping[str, Mapping[str, float]] = {
    "length": {
        "mm": 0.001, "millimetre": 0.001, "millimeter": 0.001, "cm": 0.01, "centimetre": 0.01,
        "centimeter": 0.01, "inch": 0.0254, "inches": 0.0254, "m": 1, "metre": 1, "meter": 1,
        "km": 1000, "kilometre": 1000, "kilometer": 1000, "mile": 1609.344, "foot": 0.3048,
        "feet": 0.3048, "ft": 0.3048,
    },
    "mass": {
        "pound": 0.4536, "lb": 0.4536, "g": 0.001, "kg": 1, "kilogram": 1, "tonne": 1000, "t": 1000,
    },
    "area": {"ha": 0.01, "hectare": 0.01, "km2": 1, "km²": 1},
    "time": {"minute": 1, "hour": 60, "day": 1440},
}  # fmt: skip
SIZES = {unit: (kind, size) for kind, units in _UNITS.items() for unit, size in units.items()}
"""What a unit measures, and its size in metres, kilograms, square kilometres or minutes."""
MEASURED = {
    "height": "length", "depth": "length", "width": "length", "length": "length",
    "elevation": "length", "weight": "mass", "area": "area", "duration": "time", "age": "time",
}  # fmt: skip
"""The units in which a noun is measured."""
_UNIT = re.compile(rf"[ -]?({'|'.join(sorted(SIZES, key=len, reverse=True))})s?(?![\w²])")
_OWNED = re.compile(r"(.+?)['’]s [a-z]")
_MADE = frozenset({"released_on", "published_on"})
"""What is done with a work in the year by which it is called."""
_BEING = re.compile(r"\b(?:is|was) an?\b")
_BETWEEN = re.compile(r"[\s,;/&()]|\b(?:and|or|the|also|both)\b")
"""What stands between the names of one row."""
_PRONOUN = re.compile(r"\b(?:it|its|he|his|she|her|they|their)\b", re.IGNORECASE)
_NOUN = re.compile(r"(?:The|This) (\w+)\b")
"""What a sentence may begin with that speaks of what was named before."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is asked of the members of a set: `words`, lemmas, of what has the name `anchor`.

    `verb`: the words that join a member to it, as they are asked: "were born in". `turned`: they
    join it to a member: "operate" of "which ships does X operate".
    """

    anchor: str
    words: tuple[str, ...]
    verb: str = ""
    turned: bool = False
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """One of a set: its key is its entity's id, else its name in small letters.

    What is not `listed` may be one, and counts where it is asked how many there may be.
    """

    key: str
    name: str
    chance: float
    item: Item
    measures: Mapping[str, float]
    listed: bool = True


@dataclass(slots=True)
class _Found:
    """What speaks for a member so far, and the statement that says most."""

    name: str
    measures: dict[str, float]
    item: Item
    worth: float
    places: set[Evidence] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Stated:
    """A value, the chance that it is meant, and the statements that give it; a number's unit."""

    value: Date | Decimal
    chance: float
    items: tuple[Item, ...]
    unit: str = ""

    def measure(self, unit: str) -> float:
        """Its place on a scale; a number without a unit is taken to have `unit`."""
        if isinstance(self.value, Date):
            return self.value.days
        return float(self.value) * SIZES.get(self.unit or unit, ("", 1.0))[1]

    def __str__(self) -> str:
        several = "s" if len(self.unit) > 4 and self.unit.isalpha() and self.value != 1 else ""
        return f"{self.value} {self.unit}{several}".rstrip()


class Relation:
    """A relation as a question words it: which wordings, properties and sentences say it.

    `verb`: the form of a verb that it is asked by, whose date is wanted: "founded". `kind`: lemmas
    of what it is asked of. `wording`: how it is asked.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        snapshot: Snapshot,
        verb: str = "",
        kind: Iterable[str] = (),
        wording: str = "",
    ) -> None:
        self._words, self._snapshot = words, snapshot
        dated = read_wording(f"was {verb} in") if verb else frozenset()
        # A word that is no noun of the lexicon is a verb: "composed".
        said = " ".join(words)
        self._role: frozenset[Meaning] = (
            dated
            or read_words(words)
            or read_wording(said)
            or read_wording(f"has {said} by")
            or read_wording(wording)
        )
        if words and words == (*kind,)[-1:]:  # "films by X"
            self._role |= read_wording(f"is {words[0]} by")
        if not _MUSIC.isdisjoint(kind) and not _WRITTEN.isdisjoint(n for n, _ in self._role):
            self._role |= read_wording("wrote")
        self._known: dict[str, bool] = {}

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The properties with a label that says it, and their labels."""
        return {
            p.iri: p.label
            for p in self._snapshot.schema.properties
            if any(
                self.is_said_by(label) or self.is_said_by(f"has {label}")
                for label in (p.label, *p.alt_labels)
            )
        }

    @property
    def is_named(self) -> bool:
        """Whether a property has one of its words for a label."""
        return any(self._find(label) for label in self.properties.values())

    def _find(self, label: str) -> bool:
        lemmas = [lemmatise(word) for word in list_plain_words(label)]
        return any(share_stem(word, lemma) for word in self._words for lemma in lemmas)

    @cached_property
    def ends(self) -> tuple[frozenset[str], frozenset[str]]:
        """The entities that have such a property, and those that are its values."""
        pairs = set()
        for iri in self.properties:
            query = f"SELECT DISTINCT ?x ?y WHERE {{ ?x <{iri}> ?y }}"
            rows = self._snapshot.ontology.select_trusted(query, limit=MOST_ENDS)
            pairs |= {(shorten(row["x"]), shorten(row["y"])) for row in rows}
        return frozenset(x for x, _ in pairs), frozenset(y for _, y in pairs)

    def is_said_by(self, wording: str) -> bool:
        """Whether a wording says it: all its words, or one of the same meaning."""
        if not wording.strip():
            return False
        if wording not in self._known:
            lemmas = list_lemmas(wording) or frozenset(map(lemmatise, list_plain_words(wording)))
            said = bool(self._words) and all(
                any(word == lemma or share_stem(word, lemma) for lemma in lemmas)
                for word in self._words
            )
            means = self._role and says_role(self._role, read_wording(wording))
            self._known[wording] = bool(said or means)
        return self._known[wording]

    def is_said_by_fact(self, key: str, wording: str) -> bool:
        """Whether a fact's own or its standard relation says it."""
        return self.is_said_by(wording) or self.is_said_by(self._snapshot.name_standard(key))

    def find_words(self, sentence: str) -> list[tuple[int, int]]:
        """Where a sentence has a word of it."""
        return [
            match.span()
            for match in WORD.finditer(sentence)
            if match.group().islower() and self.is_said_by_word(match.group())
        ]

    def is_said_by_word(self, word: str) -> bool:
        """Whether one word says it: "author" and "written" say who wrote something."""
        key = f"{word} "
        if key not in self._known:
            lemma = lemmatise(word)
            said = any(own == lemma or share_stem(own, lemma) for own in self._words)
            if not said and self._role and word not in FUNCTION:
                means = read_words((lemma,))
                means |= read_wording(f"was {word} by") | read_wording(f"was {word} in")
                said = not {name for name, _ in means}.isdisjoint(n for n, _ in self._role)
            self._known[key] = said
        return self._known[key]

    @cached_property
    def others(self) -> tuple["Relation", ...]:
        """The other properties of the ontology."""
        labels = {p.label for p in self._snapshot.schema.properties if p.iri not in self.properties}
        split = (tuple(map(lemmatise, list_plain_words(label))) for label in sorted(labels))
        return tuple(
            Relation(tuple(w for w in words if w not in FUNCTION), self._snapshot)
            for words in split
        )


def find_related(
    condition: Condition,
    kind: tuple[str, ...],
    snapshot: Snapshot,
    relation: Relation | None = None,
) -> dict[str, Member]:
    """The members by their keys, surest first; `relation` is that of the words, read before."""
    words, verb = condition.words, condition.verb
    relation = relation or Relation(words, snapshot, kind=kind, wording=verb)
    gathered = _Gathered(condition, kind, relation, snapshot)
    gathered.read_ontology()
    gathered.read_facts()
    gathered.read_sentences()
    return gathered.weigh()


class _Gathered:
    """What the layers say of members, gathered one after the other."""

    def __init__(
        self, condition: Condition, kind: tuple[str, ...], relation: Relation, snapshot: Snapshot
    ) -> None:
        anchor = condition.anchor
        self._anchor, self._kind, self._condition = anchor, kind, condition
        self._relation, self._snapshot = relation, snapshot
        date = read_value(anchor)
        self._date = date if isinstance(date, Date) and anchor[-1].isdigit() else None
        linked = link_text(anchor, snapshot)
        whole = len(linked.names) == 1 and len(linked.names[0]) >= len(anchor) - 4
        self._entities = linked.entities if whole and not self._date else ()
        forms = snapshot.surface_forms(self._entities)
        spelt = {form for listed in forms.values() for form in listed if form[:1].isupper()}
        names = {_fold(anchor), *(_fold(form) for form in spelt if not _is_common(form))}
        listed = "|".join(re.escape(name) for name in sorted(names, key=lambda x: (-len(x), x)))
        self._named = re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE)
        self._found: dict[str, _Found] = {}
        self._is_known = 0.0
        own = any(relation.is_said_by(" ".join(kind[at:])) for at in range(len(kind)))
        is_value = own or condition.owned or names_property(kind, snapshot)
        self._side = "value" if is_value else "holder"
        # A genre, or a type, is said by "is a thriller".
        self._is_kind = not (is_value or KIND_WORDS.isdisjoint(condition.words))
        asked = QuestionAnalysis(Question(f"Which {' '.join(kind)} is it?"), snapshot)
        self._asked = asked if kind else None

    def read_ontology(self) -> None:
        """Values of the properties that say the relation, either way.

        A property between things of one kind is read as the verb of a question has it.
        """
        for entity in self._entities:
            for iri, label in self._relation.properties.items():
                verb = self._condition.verb
                ahead = compare_way(f"has {label}", True, self._condition) if verb else None
                if verb and ahead is None:
                    continue
                places = f"?x <{iri}> <{n.ENTITY}{entity}>", f"<{n.ENTITY}{entity}> <{iri}> ?x"
                subjects, objects = (self._select(place) for place in places)
                if verb and subjects and objects:
                    subjects, objects = (subjects, []) if ahead else ([], objects)
                self._is_known = 1.0 if subjects or objects else self._is_known
                facts = [(x, iri, entity) for x in subjects] + [(entity, iri, x) for x in objects]
                for row in find_instances(facts, self._snapshot):
                    ends = row["subject_id"], row["object_id"]
                    end = ends[1] if ends[0] == entity else ends[0]
                    if end:
                        item = state_instance(row, self._snapshot)
                        self._note(end, "", {"instance": 1.0}, item)

    def _select(self, place: str) -> list[str]:
        query = f"SELECT DISTINCT ?x WHERE {{ {place} }}"
        rows = self._snapshot.ontology.select_trusted(query, limit=MOST_FACTS)
        return [shorten(row["x"]) for row in rows]

    def read_facts(self) -> None:
        """Facts that join something with what is named."""
        if self._date:
            self._read_dated(self._date)
        keys = self._snapshot.facts_about(self._entities, most=MOST_FACTS)
        for fact in state_sound(keys, self._snapshot):
            end = fact.tail_id if fact.head_id in self._entities else fact.head_id
            is_a = fact.relation == "is a"
            if end is None or end in self._entities or (is_a and not self._is_kind):
                continue
            says = is_a or self._relation.is_said_by_fact(fact.condensed_id, fact.relation)
            measures = {"says": 1.0} if says else {"joined": 1.0}
            if self._condition.verb:
                way = compare_way(fact.relation, fact.head_id == end, self._condition)
                measures |= {"states": fact.confidence} if way else {}
                measures |= {"reverse": 1.0} if way is False else {}
            item = state_item(fact, self._snapshot, fact.confidence)
            self._note(end, "", measures, item)

    def _read_dated(self, date: Date) -> None:
        """Values and facts by which something was done, or was made, in the time that is named."""
        for iri in self._relation.properties:
            query = f"SELECT DISTINCT ?x ?y WHERE {{ ?x <{iri}> ?y }}"
            rows = self._snapshot.ontology.select_trusted(query, limit=MOST_ENDS)
            pairs = [(shorten(r["x"]), iri, r["y"]) for r in rows if _is_in(r["y"], date)]
            for row in find_instances(pairs, self._snapshot):
                item = state_instance(row, self._snapshot)
                self._note(row["subject_id"], "", {"instance": 1.0}, item)
        keys = [key for key, _ in self._snapshot.words(self._anchor, MOST_FACTS, "condensed")]
        made = not _MADE.isdisjoint(n for n, _ in read_wording(self._condition.verb))
        for fact in state_sound(keys, self._snapshot):
            if fact.relation == "is a":  # "is a 1977 film"
                says = made and has_noun(fact.tail, self._kind) and _is_in(fact.tail, date)
            else:
                times = [text for text in fact.qualifiers if text.startswith("time: ")]
                done = times if normalise_relation(fact.relation).passive_by else []
                says = any(_is_in(text, date) for text in (fact.tail, *done)) and bool(
                    compare_way(fact.relation, True, self._condition)
                    or self._relation.is_said_by_fact(fact.condensed_id, fact.relation)
                )
            if says:
                measures = {"says": 1.0, "states": fact.confidence}
                item = state_item(fact, self._snapshot, fact.confidence)
                self._note(fact.head_id, "", measures, item)

    def read_sentences(self) -> None:
        """Names in the sentences that name it."""
        for sentence, own, mentions in self.list_sentences():
            self._read_sentence(sentence, own, mentions)

    def list_sentences(
        self,
    ) -> Iterator[tuple[Evidence, list[tuple[int, int]], list[tuple[int, int, str]]]]:
        """The sentences that speak of it, where they do, and the mentions of their chunks.

        A pronoun, or "the bridge", speaks of what is named first in the sentence before.
        """
        chunks = [key for key, _ in self._snapshot.words(self._anchor, MOST_CHUNKS, "chunks")]
        texts = self._snapshot.texts_of(chunks, "chunks")
        kept = [c for c, text in zip(chunks, texts, strict=True) if self._named.search(_fold(text))]
        mentions: dict[str, list[tuple[int, int, str]]] = {}
        for row in self._snapshot.mentions_in(kept):
            spans = mentions.setdefault(row["chunk_id"], [])
            spans.append((row["start"], row["end"], row["type"]))
        for chunk in kept:
            for place in self._snapshot.evidence(chunk):
                nouns: frozenset[str] = frozenset()
                for span in split_sentences(place.text):
                    text = place.text[span.start : span.end]
                    start = place.start + span.start
                    spans = mentions.get(chunk, [])
                    own = [
                        match.span()
                        for match in self._named.finditer(_fold(text))
                        if not self._is_within(*match.span(), text, start, spans)
                    ]
                    if own and _begins(text, own[0][0]):
                        nouns = self._list_nouns(text[own[0][1] :])
                    elif not own and nouns and (meant := _find_meant(text, nouns)):
                        own = [meant]
                    else:
                        nouns = frozenset()
                    if own:
                        sentence = replace(place, start=start, end=start + len(text), text=text)
                        yield sentence, own, spans

    def _list_nouns(self, after: str) -> frozenset[str]:
        """The words by which what is named is called, in its name or after it: "is a waterfall"."""
        match = re.match(r"[^.;]{0,60}?\b(?:is|was|are|were|,) (?:an?|the) ([^,.;]*)", after)
        said = list_plain_words(match[1]) if match else []
        end = next((at for at, word in enumerate(said) if word in PREPOSITIONS), len(said))
        return frozenset(map(lemmatise, [*list_plain_words(self._anchor), *said[:end]]))

    def _is_within(
        self, first: int, last: int, text: str, start: int, spans: list[tuple[int, int, str]]
    ) -> bool:
        """Whether what has the name is part of the name of something else: "rhythm and blues"."""
        index = self._snapshot.entities_by_name()
        for one, other, _ in spans:
            at, to = one - start, other - start
            if at <= first and last <= to and (at, to) != (first, last):
                known = index.get(join_words(text[max(at, 0) : to]), ())
                behind = text[last:to].strip()
                joined = re.search(r"\b(?:and|&) $", text[max(at, 0) : first])
                if known and not {*known} & {*self._entities} and (behind or joined):
                    return True
        return False

    def _read_sentence(
        self, sentence: Evidence, own: list[tuple[int, int]], mentions: list[tuple[int, int, str]]
    ) -> None:
        text = sentence.text
        names = list(_list_names(sentence, mentions, own, plain=self._side == "value"))
        said = self._relation.find_words(text)
        said += [match.span() for match in _BEING.finditer(text)] if self._is_kind else []
        against = not said and any(other.find_words(text) for other in self._relation.others)
        first = min((start for start, _, _ in names), default=len(text))
        is_owner = own[0][0] <= min(first, 4)
        index = self._snapshot.entities_by_name()
        item = Item(sentence.chunk_id, text, "text", 0.0, (sentence,))
        row: tuple[int, bool] = (0, False)
        for start, end, kind in names:
            close = any(abs(start - b) < 6 or abs(a - end) < 6 for a, b in said)
            close |= row[1] and not _BETWEEN.sub("", text[row[0] : start])
            row = end, close
            name = text[start:end]
            ids = index.get(join_words(name), ())
            if not (kind or ids or " " in name):
                continue  # "Formerly", which only begins a sentence
            fit = fits(kind, self._asked) if self._asked else 0.0
            measures = {
                "word": float(bool(said)),
                "other": float(against),
                "plain": -0.5,
                "close": float(close),
                "near": 1 / (1 + _count_between((start, end), own, names)),
                "topic": float(start == first and not is_owner),
                "owner": float(is_owner),
                "beside": float(_is_beside((start, end), own, names, text)),
                "fits": max(fit, 0.0),
                "unfit": max(-fit, 0.0),
                "called": float(_is_called(text, end, self._kind)),
            }
            for own_id, one in _split_joined(name, index) or ((ids[0] if ids else "", name),):
                self._note(own_id, one, dict(measures), item)

    def list_values(self, dated: bool) -> Iterator[tuple[Date | Decimal, str, float, Item]]:
        """The dates or numbers that say the relation of what is named, with unit and chance."""
        for entity in self._entities:
            for iri in self._relation.properties:
                query = f"SELECT DISTINCT ?x WHERE {{ <{n.ENTITY}{entity}> <{iri}> ?x }}"
                rows = self._snapshot.ontology.select_trusted(query, limit=MOST_FACTS)
                facts = [(entity, iri, shorten(row["x"])) for row in rows]
                for row in find_instances(facts, self._snapshot):
                    for value, unit, _ in list_measures(row["literal"] or "", dated):
                        yield value, unit, STATED["instance"], state_instance(row, self._snapshot)
        keys = self._snapshot.facts_about(self._entities, most=MOST_FACTS)
        for fact in state_sound(keys, self._snapshot):
            if fact.head_id not in self._entities:
                continue
            says = self._relation.is_said_by_fact(fact.condensed_id, fact.relation)
            told = [text for text in fact.qualifiers if self._relation.find_words(text)]
            for text in (fact.tail, *told) if says else told:
                for value, unit, _ in list_measures(text, dated)[:1]:
                    item = state_item(fact, self._snapshot, fact.confidence)
                    yield value, unit, STATED["instance"], item
        for sentence, own, _ in self.list_sentences():
            said = self._relation.find_words(sentence.text)
            values = list_measures(sentence.text, dated)
            apart = [v for v in values if not any(a < v[2][1] and v[2][0] < b for a, b in own)]
            item = Item(sentence.chunk_id, sentence.text, "text", 0.0, (sentence,))
            first = own[0][0] < 8
            gaps = [min((max(a - e, s - b) for a, b in said), default=99) for *_, (s, e) in apart]
            for (value, unit, _), gap in zip(apart if said else apart[:1], gaps, strict=False):
                nearest = said and gap == min(gaps)
                how = "near" if nearest else "only" if len(apart) == 1 and first and dated else ""
                if how:
                    yield value, unit, STATED[how], item

    def _note(self, entity: str, name: str, measures: dict[str, float], item: Item) -> None:
        if entity:
            if self._snapshot.types[entity] in NUMERIC | {LITERAL}:
                return
            name = self._snapshot.names[entity]
        name = _drop_noun(name, self._kind)
        words = name.split() or [""]
        of_name = measures.get("states") and words[0] not in FUNCTION and words[-1].istitle()
        is_named = name and (_is_name(name) or of_name)  # "city of Vellmere"
        if entity in self._entities or not (
            is_named or (self._side == "value" and _is_plain(name))
        ):
            return
        measures["plain"] = float(not is_named)
        key = name_key(name)
        if key in _SPELT:  # "Two rivers, the Orl and the Velm"
            return
        worth = sum(WEIGHTS[self._side].get(k, 3.0) * v for k, v in measures.items())
        found = self._found.setdefault(key, _Found(name, {}, item, -9.0))
        found.places.update(item.evidence)
        for measure, value in measures.items():
            found.measures[measure] = max(value, found.measures.get(measure, 0.0))
        if worth > found.worth and item.evidence:
            found.item, found.worth = item, worth

    def _compare(self, name: str) -> dict[str, float]:
        """Whether a name is that of something like the members that the ontology knows."""
        ids = set(self._snapshot.entities_by_name().get(join_words(name), ()))
        having, values = self._relation.ends
        own = set(self._entities)
        peers = having if own & values else values if own & having else having | values
        typed = bool(ids & self._members)
        alien = not typed and bool(self._classes) and any(map(self._is_alien, ids))
        return {"peer": float(bool(ids & peers)), "typed": float(typed), "alien": float(alien)}

    def _is_alien(self, entity: str) -> bool:
        """Whether the ontology has something as of a class that is not that of the members."""
        schema = self._snapshot.schema
        rows = find_instances([(entity, None, None)], self._snapshot)
        own = {row["class_iri"] for row in rows if row["class_iri"]}
        return bool(own) and not any(
            schema.is_subclass(a, b) or schema.is_subclass(b, a) for a in own for b in self._classes
        )

    @cached_property
    def _classes(self) -> list[str]:
        """The classes of the kind; else those of the values of the properties, of a `value`."""
        classes = find_classes(self._kind, self._snapshot)
        if not classes and self._side == "value":
            known = self._snapshot.schema.property_by_iri
            ends = (known[iri] for iri in self._relation.properties)
            classes = [p.range for p in ends if not p.is_datatype and p.range != n.THING]
        return classes

    @cached_property
    def _members(self) -> frozenset[str]:
        """The individuals of the classes that have the kind's name."""
        return frozenset(list_individuals(self._classes, self._snapshot))

    def _list_unlikely(self) -> frozenset[str]:
        """The keys of what is not to be listed, though it may be a member.

        Where a verb is asked and facts or values state members, a sentence alone is listed for what
        is of the kind; where all stated ones have the kind in their names, for what has it too.
        What is called something else only is none.
        """
        if not self._condition.verb:
            return frozenset()
        said = [one for one in self._found.values() if _is_stated(one.measures)]
        stated = [one for one in said if self._is_called(one) is not False]
        named = all(has_noun(one.name, self._kind) for one in stated)
        alone = bool(self._kind) and not said  # then a sentence has a word of the relation
        return frozenset(
            key
            for key, one in self._found.items()
            if one not in stated
            and not (
                not _is_stated(one.measures)
                and _may_be(one.measures, alone=not said)
                and (one.measures.get("word") or not (alone or one.measures.get("other")))
                and (alone or self._is_of_kind(one, named=named))
            )
        )

    def _is_called(self, found: _Found) -> bool | None:
        """Whether a thing is of the kind by name, class or a fact; None where nothing says so."""
        if not self._kind or has_noun(found.name, self._kind) or found.measures["typed"]:
            return True
        ids = self._snapshot.entities_by_name().get(join_words(found.name), ())
        facts = state_sound(self._snapshot.facts_about(ids, most=MOST_FACTS), self._snapshot)
        nouns = [f.tail for f in facts if f.relation == "is a" and f.head_id in ids]
        if any(has_noun(noun, self._kind) for noun in nouns):
            return True
        unfit = self._asked and any(fits(self._snapshot.types[one], self._asked) < 0 for one in ids)
        return False if nouns or unfit else None

    def _is_of_kind(self, found: _Found, *, named: bool) -> bool:
        """Whether something is known to be of the kind; its type says so where it has a type."""
        if self._asked is None:
            return False
        if has_noun(found.name, self._kind) or found.measures["typed"]:
            return True
        return not named and len(self._asked.types) == 1 and bool(found.measures.get("fits"))

    def weigh(self) -> dict[str, Member]:
        """The members by their keys, surest first; none where nothing says the relation."""
        members = []
        said = any(m.measures.get(how) for m in self._found.values() for how in ("says", "word"))
        another = all(m.measures.get("other") for m in self._found.values())
        if not (said or self._is_known or (self._relation.is_named and not another)):
            return {}
        for found in self._found.values():
            found.measures |= self._compare(found.name)
        unlikely = self._list_unlikely()
        for key, found in self._found.items():
            measures = {**found.measures, "known": self._is_known}
            measures |= {"bias": 1.0, "silent": float(not said)}
            measures["again"] = math.log2(min(len({p.document_id for p in found.places}), 4))
            weights = WEIGHTS[self._side]
            odds = sum(weight * measures.get(k, 0.0) for k, weight in weights.items())
            chance = 1 / (1 + math.exp(-odds))
            if self._condition.verb:
                value = STATED["instance"] * measures.get("instance", 0.0)
                chance = max(chance, value, measures.get("states", 0.0))
            listed = key not in unlikely
            if not (listed or measures.get("word") or measures.get("says")):
                chance *= _UNWORDED
            chance = round(chance, 4)
            item = replace(found.item, score=chance, confidence=chance)
            if item.evidence:
                members.append(Member(key, found.name, chance, item, measures, listed))
        ordered = sorted(members, key=lambda m: (not m.listed, -m.chance, m.key))
        return {member.key: member for member in _merge(ordered)}


def name_key(name: str) -> str:
    """What members are told apart by: the words of a name; "A.C." is one."""
    return " ".join(list_plain_words(re.sub(r"(?<=\b\w)\.(?=\w|\s|$)", "", name)))


def _is_stated(measures: Mapping[str, float]) -> bool:
    """Whether a value or a fact states a member, and no fact the other way round."""
    stated = measures.get("states") and not measures.get("reverse")
    return bool(stated or measures.get("instance"))


def _may_be(measures: Mapping[str, float], *, alone: bool) -> bool:
    """Whether nothing says that something is no member.

    Where others are stated, what a fact joins by another relation, or a sentence about a third
    thing names, is none.
    """
    of_kind = measures.get("fits") or not measures.get("unfit")
    about = measures.get("topic") or measures.get("owner")
    is_meant = alone or (about and not measures.get("joined"))
    return bool(of_kind and is_meant and not measures.get("reverse"))


def compare_way(wording: str, ahead: bool, condition: Condition) -> bool | None:
    """Whether a wording joins a member to what is named as is asked; False: the other way round.

    `ahead`: from the member. None: it says something else.
    """
    asked = read_wording(condition.verb, not condition.turned)
    way = compare_meanings(read_wording(wording, ahead), asked)
    if way is not None:
        return way
    own, wanted = normalise_relation(wording), normalise_relation(condition.verb)
    if not condition.words or not {*condition.words} <= {*own.lemmas}:
        return None
    has = [text.startswith(("has ", "have ", "had ")) for text in (wording, condition.verb)]
    turns = own.passive_by, wanted.passive_by, *has
    return (sum(turns) % 2 == 0) is (ahead is not condition.turned)


def _split_joined(name: str, index: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """The ids and names of the parts of "A and B" where both are known."""
    parts = [(index.get(join_words(part), ("",))[0], part) for part in name.split(" and ")]
    return tuple(parts) if len(parts) > 1 and all(known for known, _ in parts) else ()


def is_counted(condition: Condition, kind: tuple[str, ...], snapshot: Snapshot) -> bool:
    """Whether a sentence or a fact about what is named says how many: "has 61,000 inhabitants"."""
    gathered = _Gathered(condition, (), Relation((), snapshot), snapshot)
    texts = [sentence.text for sentence, _, _ in gathered.list_sentences()]
    own = snapshot.entities_by_name().get(join_words(condition.anchor), ())
    facts = state_sound(snapshot.facts_about(own, most=MOST_FACTS), snapshot)
    for text in [*texts, *(fact.tail for fact in facts if fact.head_id in own)]:
        words = re.findall(r"\w+(?:[,.-]\w+)*", text)
        for ahead, before, word in zip(["", *words], words, words[1:], strict=False):
            number = re.fullmatch(r"\d[\d,.]*", before) and not ahead.isupper()  # "SC 08 club"
            spelt = before.casefold().partition("-")[0] in _SPELT
            if (number or spelt) and lemmatise(word.casefold()) == kind[-1]:
                return True
    return False


def find_value(anchor: str, relation: Relation, dated: bool, snapshot: Snapshot) -> Stated | None:
    """The date or number that something most surely has by a relation; None where it has none.

    Its chance is that of what says it, taken as independent.
    """
    gathered = _Gathered(Condition(anchor, ()), (), relation, snapshot)
    votes: dict[tuple[str, Date | float], tuple[float, Stated]] = {}
    for value, unit, chance, item in gathered.list_values(dated):
        kind, size = SIZES.get(unit, ("", 1.0))
        place = value if isinstance(value, Date) else round(float(value) * size, 6)
        against, known = votes.get((kind, place), (1.0, Stated(value, 0.0, (), unit)))
        votes[kind, place] = against * (1 - chance), replace(known, items=(*known.items, item))
    if not votes:
        return None
    against, stated = min(votes.values(), key=lambda vote: (vote[0], str(vote[1])))
    return replace(stated, chance=round(1 - against, 4))


def list_measures(text: str, dated: bool) -> list[tuple[Date | Decimal, str, tuple[int, int]]]:
    """The dates of a text, or its numbers with their units, and where they stand."""
    found: list[tuple[Date | Decimal, str, tuple[int, int]]] = []
    for one in find_values(text):
        match, value = _UNIT.match(text, one.end), one.value
        if match and isinstance(value, Date) and not value.month:  # 1480 m
            value = Decimal(value.year)
        if isinstance(value, Date) is dated:
            unit = match[1] if match and not dated else ""
            end = match.end() if match and unit else one.end
            found.append((value, unit, (one.start, end)))
    return found


def names_property(kind: tuple[str, ...], snapshot: Snapshot) -> bool:
    """Whether a kind is what a property gives: "genre", but not the work of "language of work"."""
    heads = (re.split(r" (?:of|by|in) ", p.label)[0] for p in snapshot.schema.properties)
    lemmas = ([lemmatise(word) for word in list_plain_words(head)] for head in heads)
    last = [words[-1] for words in lemmas if words]
    return any(kind[-1:] == (noun,) or (kind and share_stem(kind[-1], noun)) for noun in last)


def has_noun(name: str, kind: tuple[str, ...]) -> bool:
    """Whether a name has the noun of a kind: the River Tasse is a river."""
    return kind[-1:] != () and kind[-1] in list_plain_words(name)


def find_classes(kind: Iterable[str], snapshot: Snapshot) -> list[str]:
    """The IRIs of the classes that have a noun for a label, given by its lemmas."""
    wanted = [word for word in kind if word not in FUNCTION]
    said = ((c.iri, map(lemmatise, list_plain_words(c.label))) for c in snapshot.schema.classes)
    return [
        iri for iri, words in said if wanted and [w for w in words if w not in FUNCTION] == wanted
    ]


def state_sound(keys: Iterable[str], snapshot: Snapshot) -> list[NearFact]:
    """Those of some facts that are neither denied nor hedged, in words."""
    keys = list(keys)
    weights = zip(keys, snapshot.weigh_condensed(keys), strict=True)
    sound = [key for key, (_, _, denied, hedged) in weights if not (denied or hedged)]
    return state_facts(dict.fromkeys(sound, 0.0), snapshot)


def list_individuals(classes: Iterable[str], snapshot: Snapshot) -> list[str]:
    """The ids of the individuals of some classes and of those below them, each once."""
    query = "SELECT DISTINCT ?x WHERE {{ ?x <{}>/<{}>* <{}> }}"
    rows = [
        row["x"]
        for iri in classes
        for row in snapshot.ontology.select_trusted(
            query.format(n.RDF_TYPE, n.SUBCLASS, iri), limit=MOST_ENDS
        )
    ]
    return [shorten(iri) for iri in dict.fromkeys(rows) if iri.startswith(n.ENTITY)]


def _list_names(
    sentence: Evidence,
    mentions: Iterable[tuple[int, int, str]],
    own: list[tuple[int, int]],
    *,
    plain: bool,
) -> Iterator[tuple[int, int, str]]:
    """The names in a sentence beside what is named, the longest where they overlap, in order.

    With `plain` also short nouns that are no names, such as "olive oil".
    """
    text, spans = sentence.text, set()
    for start, end, kind in mentions:
        at, to = start - sentence.start, end - sentence.start
        if at < 0 or to > len(text) or kind in NUMERIC:
            continue
        if owned := _OWNED.match(text[at:to]):  # "Ada's genre" speaks of Ada
            to = at + owned.end(1)
        if _is_name(text[at:to]) or (plain and _is_plain(text[at:to])):
            spans.add((at, to, kind))
    if (match := _RUN.match(text)) and match[1].split()[0].casefold() not in FUNCTION:
        spans.add((*match.span(1), ""))
    taken: list[tuple[int, int, str]] = []
    for span in sorted(spans, key=lambda s: (s[0] - s[1], s)):
        places = [*own, *((a, b) for a, b, _ in taken)]
        if all(span[1] <= a or b <= span[0] for a, b in places):
            taken.append(span)
    yield from sorted(taken)


def _merge(members: Iterable[Member]) -> list[Member]:
    """Members without those of one document whose name is part of a surer one's, or holds it."""
    kept: list[Member] = []
    for member in members:
        own = _list_documents(member)
        if not any(
            (f" {short} " in f" {long} " and own & _list_documents(other))
            or _is_short_for(short, long)
            for other in kept
            for short, long in (sorted((member.key, other.key), key=len),)
        ):
            kept.append(member)
    return kept


def _list_documents(member: Member) -> set[str]:
    return {place.document_id for place in member.item.evidence}


def _is_short_for(short: str, long: str) -> bool:
    """Whether a name ends in the initials of what the other ends in: "Clyde FC", of a club."""
    first, last = short.rpartition(" ")[::2]
    rest = long.removeprefix(f"{first} ").split()
    return bool(first) and len(rest) > 1 and last == "".join(word[0] for word in rest)


def _is_in(text: str, date: Date) -> bool:
    """Whether a text says a date, or one within it: a day of a year."""
    values = (one.value for one in find_values(text))
    return any(isinstance(value, Date) and date.agree(value) == 1 for value in values)


def _begins(text: str, at: int) -> bool:
    """Whether nothing is named before a place in a sentence."""
    return not re.search(r"\b[A-Z]", re.sub(r"^\W*(?:The )?\w+", "", text[:at]))


def _find_meant(text: str, nouns: frozenset[str]) -> tuple[int, int] | None:
    """Where a sentence speaks of what is known by some nouns without its name."""
    if (match := _PRONOUN.search(text)) and _begins(text, match.start()):
        return match.span()
    match = _NOUN.match(text)
    if match is None:
        return None
    lemma = lemmatise(match[1].casefold())
    return match.span() if any(lemma == n or share_stem(lemma, n) for n in nouns) else None


def _count_between(
    span: tuple[int, int], own: list[tuple[int, int]], names: list[tuple[int, int, str]]
) -> int:
    """The other names between a name and the nearest place of what is named."""
    return min(
        sum(min(span[1], b) <= start and end <= max(span[0], a) for start, end, _ in names)
        for a, b in own
    )


def _is_beside(
    span: tuple[int, int], own: list[tuple[int, int]], names: list[tuple[int, int, str]], text: str
) -> bool:
    """Whether a name is in one enumeration with what is named: "for Amiga, DOS and MSX"."""
    for a, b in own:
        first, last = (b, span[0]) if b <= span[0] else (span[1], a)
        inside = [(s, e) for s, e, _ in names if first <= s and e <= last]
        between = "".join(
            " " if any(s <= at < e for s, e in inside) else text[at] for at in range(first, last)
        )
        if not _BETWEEN.sub("", between):
            return True
    return False


def _drop_noun(name: str, kind: tuple[str, ...]) -> str:
    """A name without the noun of its kind in small letters: "A.C. Milan club", "genre rhythm"."""
    words = re.sub(r"(?<=\w)['’]s?$", "", name).split()
    for at in (-1, 0):
        if words and kind and words[at].islower() and lemmatise(words[at]) == kind[-1]:
            words.pop(at)
    return " ".join(words)


def _fold(text: str) -> str:
    """A text without accents, each character in its place: "Arros negre" is Arròs negre."""
    if text.isascii():
        return text
    return "".join(normalize("NFD", character)[0] for character in text)


def _is_common(name: str) -> bool:
    """Whether what a thing is called is a noun of many things: "The Journal"."""
    words = list_plain_words(name)
    words = words[1:] if words[:1] in (["the"], ["a"], ["an"]) else words
    return len(words) == 1 and words[0] in load_nouns()


def _is_name(text: str) -> bool:
    words = text.split()
    begins = text[0].isupper() or (text[0].isdigit() and not words[-1].islower())
    return 0 < len(words) <= _LONGEST and begins


def _is_plain(text: str) -> bool:
    """Whether a text is a short noun, such as a dish or a genre."""
    words = text.split()
    return len(words) <= _PLAIN and text.islower() and words[0] not in FUNCTION and len(text) > 2


def _is_called(text: str, end: int, kind: tuple[str, ...]) -> bool:
    """Whether the words behind a name call it a thing of the kind."""
    match = re.match(r"[^.]{0,40}?\b(?:is|was|are|were|,)\b (?:an? |the )?(.{0,80})", text[end:])
    said = {lemmatise(word) for word in list_plain_words(match[1])} if match else set()
    return bool(kind) and kind[-1] in said
