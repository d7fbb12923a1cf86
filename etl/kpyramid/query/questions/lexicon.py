"""What words can mean in a graph: classes, properties and individuals with their names."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kpyramid.ontology import names as n
from kpyramid.query.questions.wording import (
    CODE_WORDS,
    FUNCTION,
    KIND_WORDS,
    LIGHT,
    NAME_WORDS,
    PERSON_WORDS,
    read_gloss,
    split_lemmas,
    split_local_name,
    vary_name,
)

Run = Callable[[str], list[dict[str, str]]]
"""Runs SPARQL; values are IRIs or lexical forms."""
Compare = Callable[[str, Sequence[str]], Sequence[float]]
"""The cosine of a phrase with each of some others."""
Phrase = tuple[str, ...]

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
    members: bool = True

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

    Both are keyed by the words of the name in small letters; `values` gives pairs of property
    and literal. `compare` is the embedding model's judgement, for words that match nothing.
    """

    categories: Mapping[str, Category]
    relations: Mapping[str, Relation]
    names: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[tuple[str, str], ...]]
    run: Run
    compare: Compare
    naming: frozenset[str] = frozenset({n.LABEL})
    _meets: dict[tuple[frozenset[str], frozenset[str]], frozenset[str] | None] = field(
        default_factory=dict
    )
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

    def find_by_word(self, word: str) -> frozenset[str]:
        """The individuals with a word in one of their names."""
        return self._individuals_by_word.get(word, frozenset())

    def find_by_start(self, start: str) -> frozenset[str]:
        """The individuals with a word in one of their names that begins so."""
        words = self._individuals_by_word
        return frozenset().union(*(words[word] for word in words if word.startswith(start)))

    def list_words(self, iri: str) -> frozenset[str]:
        """The words of all names of an individual."""
        return self._names_by_individual[iri]

    @cached_property
    def _individuals_by_word(self) -> Mapping[str, frozenset[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, iris in self.names.items():
            for word in name.split():
                found[word].update(iris)
        return {word: frozenset(iris) for word, iris in found.items()}

    @cached_property
    def _names_by_individual(self) -> Mapping[str, frozenset[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, iris in self.names.items():
            for iri in iris:
                found[iri].update(name.split())
        return {iri: frozenset(words) for iri, words in found.items()}

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

    @cached_property
    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """The individuals that are kinds of things, by name."""
        classes = {c.iri for c in self.categories.values() if c.is_kind}
        return self.name_members(classes) if classes else {}

    def name_members(self, classes: set[str]) -> Mapping[str, tuple[str, ...]]:
        """The individuals of classes by name; of untyped ones those that stand where these do."""
        found = self.list_members(classes)
        return {name: iris for name, iris in self.names.items() if not found.isdisjoint(iris)}

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
        if relation.is_literal or not relation.targets or relation.targets & self._named:
            return ()
        onward = [r for r in self.relations.values() if relation.targets & r.sources and r.sources]
        numbers = [r for r in onward if r.is_numeric]
        if len(numbers) == 1 and all(r.is_literal for r in onward):
            return (relation.iri, numbers[0].iri)
        return ()


def fold(name: str) -> str:
    """The words of a name in small letters, as the indexes are keyed."""
    return " ".join(re.findall(r"[^\W_]+(?:[-.@&+:/]?[^\W_]+)*", name.casefold()))


def is_naming(iri: str, labels: Iterable[str]) -> bool:
    """Whether the values of a property name the things that have it."""
    if iri in (n.LABEL, n.SKOS + "prefLabel", n.ALT_LABEL):
        return True
    phrases = [split_lemmas(label) for label in (*labels, split_local_name(iri))]
    return any(
        phrase
        and phrase[-1] in NAME_WORDS | CODE_WORDS
        and len(phrase) <= 2
        and not (phrase[-1] in CODE_WORDS and len(phrase) > 1)
        for phrase in phrases
    )


def looks_like_person(phrases: Iterable[Phrase]) -> bool:
    """Whether a class is called as people are: by a word for them, or for who does something."""
    return any(
        phrase and (phrase[-1] in PERSON_WORDS or phrase[-1].endswith(("er", "or", "ist", "ee")))
        for phrase in phrases
    )


def merge_names(*groups: Iterable[str]) -> tuple[str, ...]:
    """All names once, in order."""
    return tuple(dict.fromkeys(name for group in groups for name in group if name))


__all__ = [
    "DATES",
    "NUMERIC",
    "Category",
    "Compare",
    "Lexicon",
    "Phrase",
    "Relation",
    "Run",
    "fold",
    "is_naming",
    "looks_like_person",
    "merge_names",
    "read_gloss",
    "strip_phrase",
]
