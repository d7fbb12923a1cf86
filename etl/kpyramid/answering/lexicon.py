"""The lexicon of an ontology: which words name its classes, properties and individuals."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary, ref

import numpy as np

from kpyramid.documents.values import NUMBER_WORDS
from kpyramid.documents.words import FUNCTION, lemmatise
from kpyramid.embeddings.port import Matrix
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.query.analysis import KIND_TYPES
from kpyramid.snapshot.snapshot import EntitiesByName, Snapshot

_WORD = re.compile(r"[^\W_]+(?:[-.@&+:/]?[^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_NUMBER = re.compile(r"[0-9][0-9,]{0,19}(?:\.[0-9]{1,9})?")
_MOST_ROWS = 10_000
_BRACKETS = re.compile(r"\(([^)]*)\)")

LIGHT = frozenset(
    (
        "get give show tell list find know want need see look exist belong locate come base "
        "situate take make use call available work include contain display return enumerate print"
    ).split()
)
"""Lemmas of verbs of asking, being and having: what they say is said by the path anyway."""

PRONOUNS = frozenset("we i you they one".split())
"""What we "offer", "sell" or "use" is what there is: the verb after one of these says no more."""

NEGATIONS = frozenset(
    "not no never without none neither nor except excluding lack lacking nobody nothing n't".split()
)
PLACE_WORDS = frozenset("place location country city town region address locality site".split())
KIND_WORDS = frozenset("category kind type genre class classification sort".split())
"""What a property or a class is called by whose individuals are kinds of things."""

ADJECTIVES: dict[str, tuple[tuple[str, ...], int]] = {
    "expensive": (("price", "cost"), 1), "cheap": (("price", "cost"), -1),
    "costly": (("price", "cost"), 1), "heavy": (("weight", "mass"), 1),
    "light": (("weight", "mass"), -1), "tall": (("height",), 1),
    "high": (("height", "elevation"), 1),
    "low": (("height", "elevation"), -1), "wide": (("width",), 1), "broad": (("width",), 1),
    "narrow": (("width",), -1), "deep": (("depth",), 1), "shallow": (("depth",), -1),
    "long": (("length", "duration", "time"), 1),
    "short": (("length", "height", "duration", "time"), -1),
    "old": (("age",), 1), "young": (("age",), -1), "fast": (("speed",), 1),
    "slow": (("speed",), -1),
    "populous": (("population",), 1), "large": (("area", "size"), 1), "big": (("area", "size"), 1),
    "small": (("area", "size"), -1),
}  # fmt: skip
"""What an adjective of degree measures, and which end of the scale it stands for."""

UPPER = frozenset("most high great large big maximum max good top".split())
LOWER = frozenset("least low small minimum min few bad".split())
"""Lemmas of degrees that take the noun after them as the measure: "the highest price"."""

AGGREGATES = {
    "average": "AVG", "mean": "AVG", "total": "SUM", "sum": "SUM", "overall": "SUM",
    "maximum": "MAX", "minimum": "MIN",
}  # fmt: skip
UNITS = {
    "gram": "g", "gramme": "g", "kilogram": "kg", "kilo": "kg", "ton": "t", "tonne": "t",
    "millimeter": "mm", "millimetre": "mm", "centimeter": "cm", "centimetre": "cm",
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "litre": "l", "liter": "l",
}  # fmt: skip
"""Units in words; a number with one is compared only with a property whose label has its sign."""
NUMBERS = dict(zip(NUMBER_WORDS[:10], range(1, 11), strict=True))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: as written, in small letters, its dictionary form."""

    text: str
    lower: str
    lemma: str

    @property
    def is_name(self) -> bool:
        """Whether it is written as names and codes are."""
        return self.text[0].isupper() or any(c.isdigit() for c in self.text)

    @property
    def is_function(self) -> bool:
        """Whether it only holds the question together; `US` is no pronoun."""
        shouted = len(self.text) > 1 and self.text.isupper()
        return not shouted and (self.lower in FUNCTION or self.lemma in FUNCTION)

    @property
    def is_code(self) -> bool:
        """Whether it is made of letters and digits."""
        return any(c.isdigit() for c in self.text) and any(c.isalpha() for c in self.text)


def read_words(question: str) -> list[Word]:
    """The words of a question without punctuation and possessive endings."""
    plain = _POSSESSIVE.sub(" ", question.replace("n't", " not").replace("n’t", " not"))
    return [Word(m, m.casefold(), find_lemma(m.casefold())) for m in _WORD.findall(plain)]


def find_lemma(word: str) -> str:
    """The dictionary form; a plural of an abbreviation or a name loses its s."""
    if "-" in word and word.replace("-", "").isalpha():
        word = word.replace("-", "")  # e-mail and email
    lemma = lemmatise(word)
    if (
        lemma == word
        and len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
    ):
        return word[:-1]
    return lemma


def split_lemmas(phrase: str) -> tuple[str, ...]:
    """The lemmas of a phrase in small letters."""
    return tuple(find_lemma(m.casefold()) for m in _WORD.findall(phrase))


def vary_name(name: str) -> list[str]:
    """A label and what it says in brackets, each by itself: `weight (g)` gives `weight` and `g`."""
    plain = " ".join(_BRACKETS.sub(" ", name).split())
    inner = [part.strip() for part in _BRACKETS.findall(name)]
    return [part for part in (plain, *inner) if part]


def read_number(word: str) -> float | None:
    """The number that a word states."""
    if word in NUMBERS:
        return float(NUMBERS[word])
    return float(word.replace(",", "")) if _NUMBER.fullmatch(word) else None


def read_top(word: str) -> int | None:
    """The number of rows that a word asks for: whole, one or more, and no more than anybody reads.

    A larger one is no number of rows but part of a name.
    """
    number = read_number(word)
    return int(number) if number and number in range(1, _MOST_ROWS + 1) else None


# What words can mean in a graph: classes, properties and individuals with their names.

Run = Callable[[str], list[dict[str, str]]]
"""Runs SPARQL; values are IRIs or lexical forms."""
Compare = Callable[[str, Sequence[str]], Sequence[float]]
"""The cosine of a phrase with each of some others."""
Phrase = tuple[str, ...]
Step = tuple[str, bool]
"""A property and whether it is followed from source to target."""

NUMERIC = frozenset(
    n.XSD + name
    for name in "integer decimal double float int long nonNegativeInteger positiveInteger".split()
)
DATES = frozenset(n.XSD + name for name in ("date", "dateTime", "gYearMonth", "gYear"))


@dataclass(frozen=True)
class Category:
    """A class; `person` and `place` say whether its members can answer `who` and `where`."""

    iri: str
    names: tuple[str, ...]
    parents: frozenset[str] = frozenset()
    person: bool = False
    place: bool = False

    @cached_property
    def phrases(self) -> frozenset[Phrase]:
        """The lemmas of each of its names."""
        return frozenset(split_lemmas(v) for name in self.names for v in vary_name(name))

    @cached_property
    def is_kind(self) -> bool:
        """Whether its individuals are kinds of things, as the categories of products are."""
        return any(KIND_WORDS & set(phrase) for phrase in self.phrases)


@dataclass(frozen=True)
class Relation:
    """A property from members of `sources` to members of `targets` or, if it has any, literals.

    `spoken` are the phrases that state it from source to target; `names` name it.
    """

    iri: str
    names: tuple[str, ...]
    sources: frozenset[str]
    targets: frozenset[str]
    datatypes: frozenset[str] = frozenset()
    spoken: tuple[str, ...] = ()
    gloss: str = ""

    @cached_property
    def phrases(self) -> frozenset[Phrase]:
        """The content lemmas of each wording, in order."""
        texts = [v for name in (*self.names, self.gloss) for v in vary_name(name)]
        found = {strip_phrase(split_lemmas(text)) for text in (*texts, *self.spoken)}
        return frozenset(phrase for phrase in found if phrase)

    @cached_property
    def contents(self) -> tuple[Phrase, ...]:
        """The words of each wording that say something, once each."""
        found = (
            tuple(w for w in phrase if w not in FUNCTION and w not in LIGHT)
            for phrase in sorted(self.phrases)
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def labels(self) -> frozenset[Phrase]:
        """The wordings that name it, without those that state it."""
        nouns = [name for name in (*self.names, self.gloss) if name not in self.spoken]
        found = {strip_phrase(split_lemmas(v)) for name in nouns for v in vary_name(name)}
        return frozenset(phrase for phrase in found if phrase)

    @cached_property
    def voices(self) -> Mapping[Phrase, bool]:
        """The wordings that state it from source to target; True for those in the passive."""
        nouns = [name for name in self.names if name not in self.spoken]
        named = {strip_phrase(split_lemmas(v)) for name in nouns for v in vary_name(name)}
        said = {strip_phrase(split_lemmas(s)): s.endswith(" by") for s in self.spoken}
        return {phrase: passive for phrase, passive in said.items() if phrase not in named}

    @cached_property
    def names_target(self) -> bool:
        """Whether its label is a noun for its values, as `has manager`, and not `member of`."""
        first = self.names[0].casefold().split() if self.names else [""]
        if first[0] in {"has", "have"}:
            return True
        return first[-1] not in FUNCTION and self.names[0] not in self.spoken

    @property
    def is_literal(self) -> bool:
        return bool(self.datatypes)

    @property
    def is_numeric(self) -> bool:
        return bool(self.datatypes) and self.datatypes <= NUMERIC


def strip_phrase(lemmas: Phrase) -> Phrase:
    """A phrase without the auxiliaries and prepositions at its ends: `has part` is `part`."""
    edge = FUNCTION | {"have", "be", "do"}
    start, end = 0, len(lemmas)
    while start < end and lemmas[start] in edge:
        start += 1
    while end > start and lemmas[end - 1] in edge:
        end -= 1
    return lemmas[start:end]


@dataclass
class Lexicon:
    """The words of one graph. `names` finds individuals, `values` literals of properties.

    Both are keyed by the words of the name in small letters; `values`, of which a snapshot's has
    none, gives pairs of property and literal. `compare` is the embedding model's judgement, for
    words that match nothing.
    """

    categories: Mapping[str, Category]
    relations: Mapping[str, Relation]
    names: EntitiesByName
    values: Mapping[str, tuple[tuple[str, str], ...]]
    run: Run
    compare: Compare
    naming: frozenset[str] = frozenset({n.LABEL})
    _meets: dict[tuple[frozenset[str], frozenset[str]], frozenset[str] | None] = field(
        default_factory=dict
    )
    _steps: dict[frozenset[str], list[tuple[Step, frozenset[str]]]] = field(default_factory=dict)
    _classes: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    def find_ancestors(self, iri: str) -> frozenset[str]:
        """The class and all above it."""
        return self._ancestors.get(iri, frozenset({iri}))

    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        found = {}
        for iri in self.categories:
            seen: set[str] = set()
            queue = [iri]
            while queue:
                if (current := queue.pop()) not in seen:
                    seen.add(current)
                    known = self.categories.get(current)
                    queue += known.parents if known else ()
            found[iri] = frozenset(seen)
        return found

    def meet(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str] | None:
        """The classes that members of both can have; None when there is none; empty is any."""
        if not one or not other:
            return one or other
        if (one, other) not in self._meets:
            self._meets[one, other] = self._find_common(one, other)
        return self._meets[one, other]

    def _find_common(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str] | None:
        found = {
            a if b in self.find_ancestors(a) else b
            for a in one
            for b in other
            if b in self.find_ancestors(a) or a in self.find_ancestors(b)
        }
        return frozenset(found) or None

    def list_steps(self, classes: frozenset[str]) -> list[tuple[Step, frozenset[str]]]:
        """The properties to follow from members of classes, and the classes that each reaches."""
        if classes not in self._steps:
            self._steps[classes] = [
                ((relation.iri, forward), end)
                for relation in self.relations.values()
                if not relation.is_literal and relation.targets
                for forward, near, end in (
                    (True, relation.sources, relation.targets),
                    (False, relation.targets, relation.sources),
                )
                if self.meet(classes, near) is not None
            ]
        return self._steps[classes]

    def find_classes(self, iris: tuple[str, ...]) -> frozenset[str]:
        """The classes of individuals; of untyped ones the ranges of what points to them."""
        if iris not in self._classes:
            listed = " ".join(f"<{iri}>" for iri in iris)
            rows = self.run(
                f"SELECT DISTINCT ?c WHERE {{ VALUES ?s {{ {listed} }} ?s <{n.RDF_TYPE}> ?c }}"
            )
            found = {row["c"] for row in rows if row["c"] in self.categories}
            if not found:
                rows = self.run(f"SELECT DISTINCT ?p WHERE {{ VALUES ?s {{ {listed} }} ?x ?p ?s }}")
                relations = [self.relations[row["p"]] for row in rows if row["p"] in self.relations]
                found = {c for relation in relations for c in relation.targets}
            self._classes[iris] = frozenset(found)
        return self._classes[iris]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The classes whose individuals are kinds of things."""
        return frozenset(iri for iri, c in self.categories.items() if c.is_kind)

    @cached_property
    def kind_relations(self) -> tuple[Relation, ...]:
        """The properties that say of what kind a thing is."""
        return tuple(
            r
            for r in self.relations.values()
            if not r.is_literal and any(KIND_WORDS & set(phrase) for phrase in r.phrases)
        )

    @cached_property
    def holders(self) -> frozenset[str]:
        """The classes whose members only hold a number: nobody asks for a price but its amount."""
        return frozenset(
            c for r in self.relations.values() if len(self.extend_measure(r)) > 1 for c in r.targets
        )

    @cached_property
    def _named(self) -> frozenset[str]:
        """The classes with a member that has a name: such a thing is more than its number.

        A label that begins with a digit is none: `3.50 EUR` says the number again.
        """
        listed = " ".join(f"<{iri}>" for iri in sorted(self.naming))
        rows = self.run(
            f"SELECT DISTINCT ?c WHERE {{ VALUES ?p {{ {listed} }} ?s ?p ?o ; <{n.RDF_TYPE}> ?c "
            'FILTER(!REGEX(STR(?o), "^[-+]?[0-9]")) }'
        )
        return frozenset().union(*(self.find_ancestors(row["c"]) for row in rows))

    @cached_property
    def places(self) -> Mapping[str, tuple[str, ...]]:
        """The individuals that are places, by name."""
        return self.name_members({c.iri for c in self.categories.values() if c.place})

    def name_members(self, classes: set[str]) -> Mapping[str, tuple[str, ...]]:
        """The individuals of classes by name; of untyped ones those that stand where these do."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for iri in sorted(self.list_members(classes)):
            for name in self.names.list_names(iri):
                found[name].append(iri)
        # What shares its name with a place may be meant as well, as in `names`.
        return {name: self.names.get(name, tuple(found[name])) for name in sorted(found)}

    def list_members(self, classes: set[str]) -> set[str]:
        """The individuals of classes, and the untyped ones that stand where these do."""
        ends = [r.iri for r in self.relations.values() if r.targets & classes]
        kinds, listed = (" ".join(f"<{iri}>" for iri in sorted(x)) for x in (classes, ends))
        typed = f"VALUES ?c {{ {kinds} }} ?s <{n.RDF_TYPE}> ?c"
        untyped = f"VALUES ?p {{ {listed} }} ?x ?p ?s FILTER NOT EXISTS {{ ?s <{n.RDF_TYPE}> ?t }}"
        rows = self.run(f"SELECT DISTINCT ?s WHERE {{ {{ {typed} }} UNION {{ {untyped} }} }}")
        return {row["s"] for row in rows}

    def extend_measure(self, relation: Relation) -> tuple[str, ...]:
        """The path to a property's number: itself, or through a thing that only holds a number.

        A price with an amount and a currency is one quantity. Empty when there is no number.
        """
        if relation.is_numeric:
            return (relation.iri,)
        if relation.is_literal or not relation.targets:
            return ()
        onward = [r for r in self.relations.values() if relation.targets & r.sources and r.sources]
        numbers = [r for r in onward if r.is_numeric]
        if len(numbers) != 1 or not all(r.is_literal for r in onward):
            return ()
        # Last, because it looks at all individuals.
        return () if relation.targets & self._named else (relation.iri, numbers[0].iri)


def fold(name: str) -> str:
    """The words of a name in small letters, as the indexes are keyed."""
    return " ".join(re.findall(r"[^\W_]+(?:[-.@&+:/]?[^\W_]+)*", name.casefold()))


# How near in meaning a word is to labels, by the embedding model; each label is embedded once.


class PhraseComparer:
    """Cosines of phrases; the model is opened when the first word matches nothing by its form."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed
        self._vectors: dict[str, Matrix] = {}

    def compare(self, text: str, known: Sequence[str]) -> list[float]:
        """The cosine of a text with each of some others."""
        if not known:
            return []
        new = [phrase for phrase in dict.fromkeys(known) if phrase not in self._vectors]
        own, *others = self._embed([text, *new])
        self._vectors.update(zip(new, others, strict=True))
        rows = np.stack([self._vectors[phrase] for phrase in known])
        return [float(cosine) for cosine in rows @ own]


_OPEN: WeakKeyDictionary[Snapshot, Lexicon] = WeakKeyDictionary()
_MOST_ROWS = 100_000
"""Rows by which readings of a question are told apart."""


def open_lexicon(snapshot: Snapshot) -> Lexicon:
    """What the words of a question can mean in a snapshot's ontology; kept as long as it is."""
    lexicon = _OPEN.get(snapshot)
    if lexicon is None:
        held = ref(snapshot)  # what is kept for a snapshot must not keep it

        def reach() -> Snapshot:
            found = held()
            assert found is not None  # whoever asks has it
            return found

        lexicon = _OPEN[snapshot] = read_snapshot_lexicon(
            snapshot.schema,
            snapshot.entities_by_name(n.ENTITY),
            lambda query: reach().ontology.select_trusted(query, limit=_MOST_ROWS),
            PhraseComparer(lambda texts: reach().embed_all(texts)).compare,
        )
    return lexicon


def read_snapshot_lexicon(
    schema: Schema, entities: EntitiesByName, run: Run, compare: Compare
) -> Lexicon:
    """The lexicon; `entities` gives the IRIs of entities by name in small letters."""
    types = {
        c.iri: {
            t for d in schema.classes if schema.is_subclass(d.iri, c.iri) for t in d.entity_types
        }
        for c in schema.classes
    }
    return Lexicon(
        {c.iri: _read_class(c, types[c.iri]) for c in schema.classes},
        {p.iri: _read_property(p) for p in schema.properties},
        entities,
        {},
        run,
        compare,
    )


def _read_class(row: OntologyClass, types: set[str]) -> Category:
    return Category(
        row.iri,
        (row.label, *row.alt_labels),
        frozenset(row.parents),
        person=bool(types & KIND_TYPES["who"]),
        # Countries are agents too: `where` wants a class of places only.
        place=bool(types) and types <= KIND_TYPES["where"],
    )


def _read_property(row: OntologyProperty) -> Relation:
    ends = [frozenset({iri} - {n.THING}) for iri in (row.domain, row.range)]
    return Relation(
        row.iri,
        (row.label,),
        ends[0],
        frozenset() if row.is_datatype else ends[1],
        frozenset({row.range}) if row.is_datatype else frozenset(),
        spoken=row.alt_labels,
    )
