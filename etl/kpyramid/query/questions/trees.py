"""Things of a question and what joins them: what a reading is before it is written."""

from dataclasses import dataclass, replace

from kpyramid.query.questions.meanings import Option


@dataclass(frozen=True, slots=True)
class Node:
    """A variable of a class, or individuals; `noun` says whether the question has a noun for it."""

    classes: frozenset[str] = frozenset()
    iris: tuple[str, ...] = ()
    literal: bool = False
    noun: bool = False
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """Subject, property, object."""

    source: int
    iri: str
    target: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Things and what joins them; `cost` is how much had to be supposed.

    `turned`: the answers are what has the property that the question names first, not its values.
    """

    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()
    values: tuple[tuple[int, str, tuple[str, ...]], ...] = ()
    focus: int | None = None
    turned: bool = False
    cost: float = 0.0
    pending: tuple[tuple[int, tuple[Option, ...]], ...] = ()
    spots: tuple[tuple[int, int], ...] = ()

    def add(self, node: Node) -> "Tree":
        """The tree with one more thing."""
        return replace(self, nodes=(*self.nodes, node))

    def narrow(self, spot: int, classes: frozenset[str]) -> "Tree":
        """The tree with what a property says of a node."""
        node = replace(self.nodes[spot], classes=classes)
        return replace(self, nodes=(*self.nodes[:spot], node, *self.nodes[spot + 1 :]))

    def find_spot(self, mention: int) -> int | None:
        """The node of a mention."""
        return dict(self.spots).get(mention)
