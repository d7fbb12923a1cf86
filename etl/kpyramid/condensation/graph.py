"""What condensation reads: facts as columns, in words, and the values of literals."""

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
    """One fact in words; `key` names it, `tail` is an entity's name or a literal.

    `qualifiers`: role and value of each circumstance that a statement about it must tell.
    """

    key: str
    head: str
    relation: str
    tail: str
    qualifiers: tuple[tuple[str, str], ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """The values of its qualifiers."""
        return tuple(value for _, value in self.qualifiers)

    @property
    def held(self) -> str:
        """What qualifies it, to stand behind its words."""
        return f" ({'; '.join(write_qualifiers(self.qualifiers))})" if self.qualifiers else ""

    @property
    def text(self) -> str:
        """All of it, on one line."""
        return f"{self.head} {self.relation} {self.tail}{self.held}"


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Facts of one pair of ends around one anchor that no rule merged.

    `anchor`: the property's label. `anchor_class`: the label of its subjects' class, None when it
    is not known. A statement that reads the other way round has head and tail swapped.
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
"""Words that `parse_literal` passes over, and that say when, not which date."""
_GROUPED = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?P<before>[-+~$€£¥]?\d+)\.(?P<after>\d*?)0*(?P<unit>(?:[^\d.].*)?)")
"""A number that stands first: `5.0 km` is 5 km, `Python 3.10` is not `Python 3.1`."""
_DATES = ("date", "gYearMonth", "gYear")


@dataclass(frozen=True, slots=True)
class Value:
    """A literal's value: values can be of one thing only where `stem` is equal.

    `rest`: month and day of a date whose stem is its year, as far as they are stated.
    """

    stem: str
    rest: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """What a recogniser would call it."""
        if self.stem.startswith("year "):
            return "DATE"
        return "CARDINAL" if _NUMBER.match(self.stem) else LITERAL

    def says(self, other: "Value") -> bool:
        """Whether this value is the other or a more precise one: `5 May 1950` says `1950`."""
        return self.stem == other.stem and self.rest[: len(other.rest)] == other.rest


def read_value(literal: str) -> Value:
    """The value of a literal: dates by year, month and day; numbers without marks of thousands.

    Units are not converted: "5 km" and "5,000 m" differ.
    """
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), " ".join(literal.split()))
    date = _LEAD.sub("", text)
    if not _VAGUE.search(date):
        for name in _DATES:
            found = parse_literal(date, XSD + name)
            if found is not None:
                year, *rest = found.split("-")
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
    """Facts as columns of equal length n: places of heads, relations and tails in their tables.

    `tails`: -1 where the tail is a literal; `literals`: the place of its text in `texts`, else -1.
    `names`, `types`: of the entities. `wordings`, `support`: of the relations. `qualifiers`: of the
    facts that have any, by row; `times`: those among them. `denied`: rows that the text denies;
    `corrected`: rows that a person says do not hold.
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
        """The facts that neither the text denies nor a person corrected."""
        mask = np.ones(len(self), dtype=np.bool_)
        mask[[*self.denied, *self.corrected]] = False
        return mask

    def __len__(self) -> int:
        return len(self.heads)


_COPULAS = frozenset({"be"})
_POSSESSIVE = re.compile(r"(?P<owner>.+)['’]s? (?P<noun>[^'’]+)")


def unfold_nouns(graph: Graph) -> Graph:
    """The graph with facts whose end names a relation put as that relation.

    `Ida | is the | manager of Lund` says `Ida | is the manager of | Lund`, and
    `Lund's manager | is | Ida` says `Lund | has manager | Ida`. The things must be of the graph.
    """
    copulas = {
        at: frame
        for at, wording in enumerate(graph.wordings)
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
        found = named.get(thing, -1)
        if found >= 0 and found != head:
            said, tails[row] = f"{wording} {noun}", found
        else:
            noun, thing = of_head
            found = named.get(thing, -1)
            if found in (-1, tail) or not _is_name(graph, row, frame):
                continue
            said, heads[row] = f"has {noun}", found
        relations[row] = places.setdefault(said, len(graph.wordings) + len(places))
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
    """The entity that alone has a name, for some names in their normal form; -1 of several."""
    found: dict[str, int] = {}
    for at, name in enumerate(map(normalise_name, graph.names)):
        if name in wanted:
            found[name] = -1 if name in found else at
    return found


def _split_ends(graph: Graph, row: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """What a fact's tail and its head may say: the noun, and the thing that it is of."""
    tail = int(graph.tails[row])
    of_tail = _split_noun(graph.names[tail]) if tail >= 0 else ("", "")
    return of_tail, _split_owner(graph.names[int(graph.heads[row])])


def _split_noun(name: str) -> tuple[str, str]:
    """A noun with its preposition, and the thing after it: `manager of`, `lund`; else nothing."""
    words = name.split()
    words = words[1:] if words and words[0].casefold() in ARTICLES else words
    for at, word in enumerate(words):
        if word in PREPOSITIONS and 0 < at < len(words) - 1:
            return " ".join(words[: at + 1]), normalise_name(" ".join(words[at + 1 :]))
        if not word.replace("-", "").isalpha() or not word.islower():
            break
    return "", ""


def _split_owner(name: str) -> tuple[str, str]:
    """What something has, and the thing: of `Lund's manager`, `manager of Lund`; else nothing."""
    found = _POSSESSIVE.fullmatch(name)
    if found:
        noun = found["noun"]
        return (noun, normalise_name(found["owner"])) if noun.islower() else ("", "")
    noun, thing = _split_noun(name)
    return (noun.removesuffix(" of"), thing) if noun.endswith(" of") else ("", "")


def _is_name(graph: Graph, row: int, frame: Frame) -> bool:
    """Whether a fact says which one its head is, not of what kind: a value or a name is given."""
    tail = int(graph.tails[row])
    plain = not (frame.negated or frame.qualities)
    return plain and (tail < 0 or not graph.names[tail].islower())


def read_values(graph: Graph) -> tuple[Value, ...]:
    """The value of each text of the graph's literals."""
    return tuple(map(read_value, graph.texts))


def find_shared_ends(graph: Graph, values: Sequence[Value]) -> Iterator[Integers]:
    """The rows of plain facts that have both ends in common, where there are several.

    Ends are a pair of entities, whichever is the head, or a head and literals that can be one
    value. Time grows with n log n.
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
