"""Clauses of a dependency parse: who does what to whom, how, when and where, as tokens.

A clause is read once, by `reading`. Propositions word it as it stands; the binary facts of the
graph are projections of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpyramid.extraction.syntax.tree import Node

OBJECTS = frozenset({"dobj", "oprd", "attr"})
RELATIVES = frozenset({"WDT", "WP", "WRB", "WP$"})
TIMES = frozenset({"DATE", "TIME"})
MAX_HOPS = 12
"""Steps up the tree before a search gives up, so that malformed parses end."""

Kids = dict[str, list[Node]]


@dataclass(frozen=True, slots=True)
class Part:
    """An argument or circumstance of a clause.

    `role` is object, attribute, quality, receiver, clause, purpose, circumstance, time, manner,
    adverb or preposition. `root` heads it; `link` are the words that lead to it (prepositions,
    conjunctions). `gap` is where it belongs when it stands elsewhere, as a relative clause's
    antecedent does.
    """

    role: str
    root: Node
    link: tuple[Node, ...] = ()
    gap: Node | None = None

    @property
    def place(self) -> int:
        """The token by which the parts of a clause are ordered."""
        if self.link:
            return self.link[0].i
        return self.gap.i if self.gap is not None else self.root.left_edge.i


@dataclass(slots=True, eq=False)
class Frame:
    """A clause.

    `way` says where the subjects stand: "own", "shared" (coordination, control, participles),
    "antecedent" (relative and participial clauses), "object_control", "existential" ("there is a
    house") or "none". `clause` is the relative or participial clause the verb belongs to.
    `chain` are the predicates above that merge with the verb, outermost first: "wants" in "wants
    to buy". `noun` stands between the two: "chance" in "has a chance to win". `lender` is the
    coordinated verb whose auxiliaries are shared.
    """

    verb: Node
    kids: Kids
    construction: str
    subjects: list[Node]
    way: str
    chain: list[Node] = field(default_factory=list)
    lender: Node | None = None
    clause: Node | None = None
    noun: Node | None = None
    parts: list[Part] = field(default_factory=list)

    @property
    def top(self) -> Node:
        """The outermost predicate."""
        return self.chain[0] if self.chain else self.verb


def group_kids(node: Node) -> Kids:
    """The children by dependency label, in text order."""
    kids: Kids = {}
    for child in node.children:
        kids.setdefault(child.dep, []).append(child)
    return kids


def list_merged(frames: dict[int, Frame]) -> set[int]:
    """The verbs that say nothing apart from the infinitive they govern."""
    return {
        verb.i
        for frame in frames.values()
        if frame.noun is None and frame.verb.dep in {"xcomp", "conj"}
        for verb in frame.chain
    }


def count_clauses_above(verb: Node, frames: dict[int, Frame]) -> int:
    """How many clauses the verb's is part of, within reach."""
    depth, at = 0, verb
    for _ in range(MAX_HOPS):
        if at.head is at:
            break
        at = at.head
        depth += at.i in frames
    return depth


def find_infinitive_mark(verb: Node) -> Node | None:
    """The "to" of an infinitive, which coordinated ones share."""
    at = verb
    for _ in range(MAX_HOPS):
        for child in at.children:
            if child.tag == "TO":
                return child
        if at.dep != "conj" or at.tag != "VB" or at.head.tag != "VB":
            return None
        at = at.head
    return None


def find_noun_clause(verb: Node) -> Node | None:
    """The relative or participial clause that the verb belongs to."""
    at = verb
    for _ in range(MAX_HOPS):
        if at.dep in {"relcl", "acl"}:
            return at
        if at.dep not in {"conj", "xcomp", "ccomp"}:
            return None
        at = at.head
    return None
