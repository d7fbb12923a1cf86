"""Input of condensation: facts as columns, facts in words, and values of literals."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.validity import Time
from kpyramid.documents.words import ARTICLES, PREPOSITIONS, normalise_name
from kpyramid.graph.synonyms.meaning import Frame, read_frame
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact in words; `key` identifies it, `tail` is an entity's name or a literal.

    `qualifiers`: role and value of each circumstance that a statement about it must include.
    """

    key: str
    head: str
    relation: str
    tail: str
    qualifiers: tuple[tuple[str, str], ...] = ()

    @property
    def triple(self) -> tuple[str, str, str]:
        """Head, wording and tail."""
        return self.head, self.relation, self.tail

    @property
    def values(self) -> tuple[str, ...]:
        """The values of its qualifiers."""
        return tuple(value for _, value in self.qualifiers)

    @property
    def held(self) -> str:
        """The qualifiers in brackets, to follow the fact's words."""
        return f" ({'; '.join(write_qualifiers(self.qualifiers))})" if self.qualifiers else ""

    @property
    def text(self) -> str:
        """The fact with its qualifiers, on one line."""
        return f"{self.head} {self.relation} {self.tail}{self.held}"


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Facts of a pair of ends around an anchor that no rule merged.

    `anchor`: the property's label. `anchor_class`: the label of its subjects' class, None if
    unknown. A statement that reads in the opposite direction has head and tail swapped.
    """

    anchor: str
    anchor_class: str | None
    statements: tuple[Statement, ...]


# Values of literals.

LITERAL = "LITERAL"
"""The type of a literal tail that is no date and no number."""
_NUMBER = re.compile(r"text [-+~$€£¥]?\d")
_LEAD = re.compile(
    r"^(?:(?:on|in|the|year|of|(?:mon|tues|wednes|thurs|fri|satur|sun)day,?)\s+)+", re.IGNORECASE
)
_VAGUE = re.compile(r"\b(?:from|since|during|early|mid|late)\b|\bmid-", re.IGNORECASE)
"""Words that `parse_literal` ignores, but that make a date vague."""
_GROUPED = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?P<before>[-+~$€£¥]?\d+)\.(?P<after>\d*?)0*(?P<unit>(?:[^\d.].*)?)")
"""A leading number: `5.0 km` is 5 km, but `Python 3.10` is not `Python 3.1`."""
_DATES = ("date", "gYearMonth", "gYear")


@dataclass(frozen=True, slots=True)
class Value:
    """A literal's value; values with different `stem` differ.

    `rest`: month and day of a date whose stem is its year, as far as they are stated.
    """

    stem: str
    rest: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """The type that a recogniser would give it."""
        if self.stem.startswith("year "):
            return "DATE"
        return "CARDINAL" if _NUMBER.match(self.stem) else LITERAL

    def says(self, broader: "Value") -> bool:
        """Whether this value equals or refines a broader one: `5 May 1950` says `1950`."""
        return self.stem == broader.stem and self.rest[: len(broader.rest)] == broader.rest


def read_value(literal: str) -> Value:
    """The value of a literal: dates by year, month and day; numbers without thousands separators.

    Units are not converted: "5 km" and "5,000 m" differ.
    """
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), " ".join(literal.split()))
    date = _LEAD.sub("", text)
    if not _VAGUE.search(date):
        for name in _DATES:
            iso = parse_literal(date, XSD + name)
            if iso is not None:
                year, *rest = iso.split("-")
                return Value(f"year {year}", tuple(rest))
    number = _DECIMAL.fullmatch(text)
    if number:
        after = f".{number['after']}" if number["after"] else ""
        text = f"{number['before']}{after}{number['unit']}"
    return Value(f"text {text.casefold()}")


# Facts as columns.

Qualifiers = frozenset[tuple[str, str]]
"""Role and value of each circumstance of a fact."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Facts as columns of equal length n: indices of heads, relations and tails in their tables.

    `tails`: -1 where the tail is a literal; `literals`: the index of its text in `texts`, else -1.
    `names`, `types`: of the entities. `wordings`, `support`: of the relations. `qualifiers`: of the
    facts that have any, by row; `times`: the times among them. `denied`: rows that the text denies;
    `corrected`: rows that a person marked as false.
    """

    heads: Integers
    relations: Integers
    tails: Integers
    literals: Integers
    texts: Sequence[str]
    names: Sequence[str]
    types: Sequence[str]
    wordings: Sequence[str]
    support: Sequence[int]
    qualifiers: Mapping[int, Qualifiers]
    times: Mapping[int, tuple[Time, ...]]
    denied: Collection[int] = ()
    corrected: Collection[int] = ()

    def tell(self, row: int) -> tuple[str, str, str]:
        """A fact in words: head, wording and tail."""
        tail = int(self.tails[row])
        last = self.names[tail] if tail >= 0 else self.texts[self.literals[row]]
        return self.names[self.heads[row]], self.wordings[self.relations[row]], last

    @property
    def plain(self) -> Mask:
        """The facts that are neither denied by the text nor corrected by a person, shape (n,)."""
        mask = np.ones(len(self), dtype=np.bool_)
        mask[[*self.denied, *self.corrected]] = False
        return mask

    def __len__(self) -> int:
        return len(self.heads)


_COPULAS = frozenset({"be"})
_POSSESSIVE = re.compile(r"(?P<owner>.+)['’]s? (?P<noun>[^'’]+)")


def unfold_nouns(graph: Graph) -> Graph:
    """The graph with relational nouns moved from the ends of copular facts into their wordings.

    `Ida | is the | manager of Lund` becomes `Ida | is the manager of | Lund`, and `Lund's manager |
    is | Ida` becomes `Lund | has manager | Ida`, where the thing is an entity of the graph.
    """
    copulas = {
        index: frame
        for index, wording in enumerate(graph.wordings)
        if (frame := read_frame(wording)).key in _COPULAS
    }
    rows = np.flatnonzero(np.isin(graph.relations, list(copulas))).tolist()
    named = _find_named(graph, {thing for row in rows for _, thing in _split_ends(graph, row)})
    heads, relations, tails = graph.heads.copy(), graph.relations.copy(), graph.tails.copy()
    places: dict[str, int] = {}
    for row in rows:
        relation, head, tail = (int(c[row]) for c in (relations, heads, tails))
        frame, wording = copulas[relation], graph.wordings[relation]
        of_tail, of_head = _split_ends(graph, row)
        noun, thing = of_tail
        entity = named.get(thing, -1)
        if entity >= 0 and entity != head:
            words, tails[row] = f"{wording} {noun}", entity
        else:
            noun, thing = of_head
            entity = named.get(thing, -1)
            if entity in (-1, tail) or not _is_name(graph, row, frame):
                continue
            words, heads[row] = f"has {noun}", entity
        relations[row] = places.setdefault(words, len(graph.wordings) + len(places))
    if not places:
        return graph
    return replace(
        graph,
        heads=heads,
        relations=relations,
        tails=tails,
        wordings=[*graph.wordings, *places],
        support=[*graph.support, *(0 for _ in places)],
    )


def _find_named(graph: Graph, wanted: Collection[str]) -> dict[str, int]:
    """The entity with each wanted normalised name; -1 where several have it."""
    entities: dict[str, int] = {}
    for index, name in enumerate(map(normalise_name, graph.names)):
        if name in wanted:
            entities[name] = -1 if name in entities else index
    return entities


def _split_ends(graph: Graph, row: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """The relational noun and its complement in a fact's tail and in its head; else empty."""
    tail = int(graph.tails[row])
    of_tail = _split_noun(graph.names[tail]) if tail >= 0 else ("", "")
    return of_tail, _split_owner(graph.names[int(graph.heads[row])])


def _split_noun(name: str) -> tuple[str, str]:
    """A noun with its preposition, and its complement: `manager of`, `lund`; else empty."""
    words = name.split()
    words = words[1:] if words and words[0].casefold() in ARTICLES else words
    for index, word in enumerate(words):
        if word in PREPOSITIONS and 0 < index < len(words) - 1:
            return " ".join(words[: index + 1]), normalise_name(" ".join(words[index + 1 :]))
        if not word.replace("-", "").isalpha() or not word.islower():
            break
    return "", ""


def _split_owner(name: str) -> tuple[str, str]:
    """A relational noun and its owner, of `Lund's manager` or `manager of Lund`; else empty."""
    match = _POSSESSIVE.fullmatch(name)
    if match:
        noun = match["noun"]
        return (noun, normalise_name(match["owner"])) if noun.islower() else ("", "")
    noun, thing = _split_noun(name)
    return (noun.removesuffix(" of"), thing) if noun.endswith(" of") else ("", "")


def _is_name(graph: Graph, row: int, frame: Frame) -> bool:
    """Whether a fact identifies its head by a value or name rather than classifying it."""
    tail = int(graph.tails[row])
    plain = not (frame.negated or frame.qualities)
    return plain and (tail < 0 or not graph.names[tail].islower())


def read_values(graph: Graph) -> tuple[Value, ...]:
    """The value of each text of the graph's literals."""
    return tuple(map(read_value, graph.texts))


def find_shared_ends(graph: Graph, values: Sequence[Value]) -> Iterator[Integers]:
    """Groups of two or more rows of plain facts with the same ends.

    Ends are a pair of entities in either order, or a head and literals that can be the same value.
    Time grows with n log n.
    """
    stems: dict[str, int] = {}
    stem_of = np.array([stems.setdefault(v.stem, len(stems)) for v in values], dtype=np.int64)
    is_literal = graph.tails < 0
    lower = np.where(is_literal, graph.heads, np.minimum(graph.heads, graph.tails))
    upper = np.maximum(graph.heads, graph.tails)
    if len(stem_of):
        upper[is_literal] = len(graph.names) + stem_of[graph.literals[is_literal]]
    order = np.lexsort((upper, lower))  # stable, so that the rows of a pair ascend
    order = order[graph.plain[order]]
    new = (np.diff(lower[order]) != 0) | (np.diff(upper[order]) != 0)
    yield from (part for part in np.split(order, np.flatnonzero(new) + 1) if len(part) > 1)
