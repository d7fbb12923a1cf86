"""Question to SPARQL by rules: mentions joined to trees, trees written as queries, one chosen."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from kpyramid.answering.lexicon import (
    DATES,
    NEGATIONS,
    PLACE_WORDS,
    Lexicon,
    Step,
    Word,
    open_lexicon,
    read_words,
)
from kpyramid.answering.question import (
    PARTIAL,
    Degree,
    Form,
    Measure,
    Mention,
    MentionFinder,
    Option,
    read_form,
)
from kpyramid.ontology.names import RDF_TYPE, SUBCLASS
from kpyramid.query.decisions import Fact, Found
from kpyramid.query.ontology_layer import MOST_VALUES, judge_rows
from kpyramid.query.types import Outcome
from kpyramid.snapshot.snapshot import Snapshot


class Node(NamedTuple):
    """A variable of a class, or individuals; `noun` says whether the question has a noun for it."""

    classes: frozenset[str] = frozenset()
    iris: tuple[str, ...] = ()
    literal: bool = False
    noun: bool = False
    partial: bool = False


class Link(NamedTuple):
    """Subject, property, object."""

    source: int
    iri: str
    target: int


class Tree(NamedTuple):
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
        return self._replace(nodes=(*self.nodes, node))

    def narrow(self, spot: int, classes: frozenset[str]) -> "Tree":
        """The tree with what a property says of a node."""
        node = self.nodes[spot]._replace(classes=classes)
        return self._replace(nodes=(*self.nodes[:spot], node, *self.nodes[spot + 1 :]))

    def find_spot(self, mention: int) -> int | None:
        """The node of a mention."""
        return dict(self.spots).get(mention)


# A tree and the degrees of a question as SPARQL.


@dataclass(frozen=True, slots=True)
class Rank:
    """The rows with the largest (`descending`) or smallest measure of a node, or count of it."""

    node: int
    measure: Measure
    descending: bool
    top: int


@dataclass(frozen=True, slots=True)
class Bound:
    """The rows whose measure of a node, or count of it when there is none, passes a test."""

    node: int
    measure: Measure
    sign: str
    number: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write: the act, the tree, its order and bounds; `with_count` adds the count."""

    tree: Tree
    act: str
    rank: Rank | None = None
    bounds: tuple[Bound, ...] = ()
    aggregate: str = ""
    with_count: bool = False


def can_write(plan: Plan) -> bool:
    """Whether `write_query` says all of a plan: what it would leave out makes another question."""
    counted = {b.node for b in plan.bounds if not b.measure}
    if plan.rank and not plan.rank.measure:
        counted.add(plan.rank.node)
    if plan.act == "ask":
        return not (counted or plan.rank or plan.aggregate)
    if plan.act == "count" and (plan.rank or plan.aggregate):
        return False
    if plan.aggregate:
        return not (counted or plan.rank)
    return not counted or (len(counted) == 1 and not (plan.rank and plan.rank.measure))


def write_query(plan: Plan, lexicon: Lexicon) -> str:
    """The query of a plan that `can_write` lets pass; its answer is `?result`."""
    body = " ".join(write_patterns(plan, lexicon))
    if plan.act == "ask":
        return f"ASK WHERE {{ {body} }}"
    focus = _name(plan.tree, plan.tree.focus or 0)
    counted = [b for b in plan.bounds if not b.measure]
    counted_rank = plan.rank if plan.rank and not plan.rank.measure else None
    if plan.act == "count" and not (counted or counted_rank):
        return f"SELECT (COUNT(DISTINCT {focus}) AS ?result) WHERE {{ {body} }}"
    if plan.aggregate:
        kept = " ".join(dict.fromkeys([*_list_owners(plan, lexicon), focus]))
        once = f"SELECT DISTINCT {kept} WHERE {{ {body} }}"
        return f"SELECT ({plan.aggregate}({focus}) AS ?result) WHERE {{ {{ {once} }} }}"
    if counted or counted_rank:
        node = counted[0].node if counted else counted_rank.node if counted_rank else 0
        count = f"COUNT(DISTINCT {_name(plan.tree, node)})"
        tests = " && ".join(f"{count} {b.sign} {_write_number(b.number)}" for b in counted)
        having = f" HAVING({tests})" if tests else ""
        order = ""
        if counted_rank:
            way = "DESC" if counted_rank.descending else "ASC"
            order = f" ORDER BY {way}({count}) {focus} LIMIT {counted_rank.top}"
        extra = f" ({count} AS ?count)" if plan.with_count else ""
        grouped = (
            f"SELECT ({focus} AS ?result){extra} WHERE {{ {body} }} GROUP BY {focus}{having}{order}"
        )
        if plan.act == "count" and not counted_rank:
            return f"SELECT (COUNT(?result) AS ?count) WHERE {{ {{ {grouped} }} }}"
        return grouped
    if plan.rank:
        way = "DESC" if plan.rank.descending else "ASC"
        return (
            f"SELECT DISTINCT ({focus} AS ?result) WHERE {{ {body} }} "
            f"ORDER BY {way}(?rank) LIMIT {plan.rank.top}"
        )
    return f"SELECT DISTINCT ({focus} AS ?result) WHERE {{ {body} }}"


def _list_owners(plan: Plan, lexicon: Lexicon) -> list[str]:
    """The variables of what has the focus: two things with the same number are two numbers."""
    tree, owners, ends = plan.tree, [], [plan.tree.focus or 0]
    while ends:
        end = ends.pop()
        for link in tree.links:
            if link.target == end:
                if not tree.nodes[link.source].iris or len(tree.nodes[link.source].iris) > 1:
                    owners.append(_name(tree, link.source))
                if tree.nodes[link.source].classes & lexicon.holders:
                    ends.append(link.source)
    return owners


def spell_out(plan: Plan) -> Plan:
    """The plan with the properties that are measured as links of its tree."""
    tree = plan.tree
    for part in (plan.rank, *plan.bounds):
        if part is None:
            continue
        at = part.node
        for number, iri in enumerate(part.measure, 1):
            ends = [x.target for x in tree.links if x.source == at and x.iri == iri]
            if not ends:
                ends = [len(tree.nodes)]
                links = (*tree.links, Link(at, iri, ends[0]))
                node = Node(literal=number == len(part.measure))
                tree = tree.add(node)._replace(links=links)
            at = ends[0]
    return replace(plan, tree=tree)


def write_patterns(plan: Plan, lexicon: Lexicon) -> list[str]:
    """The patterns of the WHERE clause; an order's measure is `?rank`."""
    tree = plan.tree
    parts = []
    for at, node in enumerate(tree.nodes):
        if len(node.iris) > 1:
            listed = " ".join(f"<{iri}>" for iri in node.iris)
            parts.append(f"VALUES {_name(tree, at)} {{ {listed} }}")
    parts += [
        f"{_name(tree, link.source)} <{link.iri}> {_name(tree, link.target)} ."
        for link in tree.links
    ]
    for number, (at, iri, literals) in enumerate(tree.values):
        listed = ", ".join(write_string(literal) for literal in literals)
        parts.append(
            f"{_name(tree, at)} <{iri}> ?v{number} . FILTER(STR(?v{number}) IN ({listed}))"
        )
    measured = set()
    if plan.rank and plan.rank.measure:
        parts.append(_write_measure(tree, plan.rank.node, plan.rank.measure, "?rank"))
        measured.add(plan.rank.node)
    for number, bound in enumerate(plan.bounds):
        if bound.measure:
            parts.append(_write_measure(tree, bound.node, bound.measure, f"?m{number}"))
            parts.append(f"FILTER(?m{number} {bound.sign} {_write_number(bound.number)})")
            measured.add(bound.node)
    for at, node in enumerate(tree.nodes):
        if node.noun and not node.iris and not node.literal:
            parts += _write_type(tree, at, lexicon, plan)
    return parts


def _write_type(tree: Tree, at: int, lexicon: Lexicon, plan: Plan) -> list[str]:
    """The class of a node, unless its properties imply it or nothing is said to be of it."""
    classes = tree.nodes[at].classes
    if not classes:
        return []
    ends = [lexicon.relations[x.iri].sources for x in tree.links if x.source == at]
    ends += [lexicon.relations[x.iri].targets for x in tree.links if x.target == at]
    ends += [lexicon.relations[iri].sources for node, iri, _ in tree.values if node == at]
    for rank in (plan.rank, *plan.bounds):
        if rank and rank.node == at and rank.measure:
            ends.append(lexicon.relations[rank.measure[0]].sources)
    if any(end and all(lexicon.find_ancestors(c) & classes for c in end) for end in ends):
        return []
    name = _name(tree, at)
    if len(classes) == 1:
        return [f"{name} <{RDF_TYPE}>/<{SUBCLASS}>* <{next(iter(classes))}> ."]
    listed = " ".join(f"<{iri}>" for iri in sorted(classes))
    return [f"VALUES ?c{at} {{ {listed} }} {name} <{RDF_TYPE}>/<{SUBCLASS}>* ?c{at} ."]


def _write_measure(tree: Tree, node: int, measure: Measure, variable: str) -> str:
    current: int | None = node
    for iri in measure:  # the question may have said the property already
        ends = [x.target for x in tree.links if x.source == current and x.iri == iri]
        current = ends[0] if ends else None
    if current is not None:
        return f"BIND({_name(tree, current)} AS {variable})"
    path = "/".join(f"<{iri}>" for iri in measure)
    return f"{_name(tree, node)} {path} {variable} ."


def _name(tree: Tree, at: int) -> str:
    node = tree.nodes[at]
    return f"<{node.iris[0]}>" if len(node.iris) == 1 else f"?x{at}"


def write_string(text: str) -> str:
    """A string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + escaped.replace("\r", "\\r") + '"'


def _write_number(number: float) -> str:
    return format(Decimal(str(number)).normalize(), "f")


# Which way a property runs that could run either way: who mentors whom, what is part of what.

_ASIDE = frozenset("of to for".split())
"""Prepositions after which a noun's owner stands: the mentor of X, an adviser to X."""
_OPEN = frozenset("what which who whom whose".split())
_HAVING = frozenset("have has had".split())


class Facing(Enum):
    """What the word order says of a link."""

    RIGHT = 0
    WRONG = 1
    UNCLEAR = 2


def face(
    tree: Tree,
    link: Link,
    mentions: Sequence[Mention],
    words: Sequence[Word],
    lexicon: Lexicon,
    *,
    passive: bool,
) -> Facing:
    """Whether a link runs as the question says; `RIGHT` too where types leave it one way only."""
    relation = lexicon.relations[link.iri]
    if relation.is_literal or lexicon.meet(relation.sources, relation.targets) is None:
        return Facing.RIGHT
    ends = {
        spot: mentions[at]
        for at, spot in tree.spots
        if spot in (link.source, link.target) and tree.nodes[spot].iris
    }
    said = [
        (m, o)
        for m in mentions
        for o in m.options
        if o.sort == "relation" and o.iris[0] == link.iri
    ]
    if not said:
        return Facing.UNCLEAR
    mention, option = said[0]
    first = min(ends, key=lambda spot: ends[spot].start, default=None)
    if option.passive is not None:
        if first is None:
            return Facing.UNCLEAR
        is_subject = ends[first].start < mention.start
        if len(ends) == 2 and (not is_subject or max(e.start for e in ends.values()) < mention.end):
            return Facing.UNCLEAR
        agrees = option.passive == passive
        return _judge((first == link.source) == (is_subject == agrees))
    if _is_turned(mention, words):
        return Facing.UNCLEAR
    if first is None:
        return Facing.RIGHT
    owner = _find_owner(mention, ends, words)
    if owner is None:
        return Facing.UNCLEAR
    return _judge((owner == link.source) == relation.names_target)


def _judge(is_right: bool) -> Facing:
    return Facing.RIGHT if is_right else Facing.WRONG


def _is_turned(mention: Mention, words: Sequence[Word]) -> bool:
    """Whether the noun may be a verb, or its owner is what is asked for."""
    lowers = [word.lower for word in words]
    before = lowers[: mention.start]
    stranded = lowers[-1] in _ASIDE or any(
        one in _ASIDE and other in _OPEN for one, other in pairwise(lowers)
    )
    return stranded or bool({"do", "does", "did", "whose", "as"} & set(before))


def _find_owner(mention: Mention, ends: dict[int, Mention], words: Sequence[Word]) -> int | None:
    """The named end whose mentor, part, ... the question speaks of; None when it does not say."""
    for spot, end in ends.items():
        if end.end == mention.start:  # X's mentor
            return spot
    for spot, end in sorted(ends.items(), key=lambda pair: pair[1].start):
        between = {word.lower for word in words[mention.end : end.start]}
        if end.start >= mention.end:
            has = {word.lower for word in words[end.end :]} & _HAVING
            return spot if between & _ASIDE or (has and len(ends) == 1) else None
    return None


def turn(tree: Tree, link: Link) -> Tree:
    """The tree with a link the other way round."""
    other = Link(link.target, link.iri, link.source)
    return tree._replace(links=tuple(other if x == link else x for x in tree.links))


# How the things a question mentions hang together: a tree over the graph's properties.

_BEAM = 40
"""Unfinished trees that are followed; on ck25 twenty give the same readings."""
_FARTHEST = 3
"""Properties between two things that the question names one after the other."""
SAID, UNSAID, UNUSED = 0.2, 1.0, 3.0
"""Costs of a property that the question says, of one that it leaves out, of one said in vain."""


class Joiner:
    """Joins mentions in the order of the question, cheapest first."""

    def __init__(self, lexicon: Lexicon, mentions: Sequence[Mention]) -> None:
        self._lexicon = lexicon
        self._mentions = mentions
        self._paths: dict[tuple[frozenset[str], ...], list[tuple[Step, ...]]] = {}

    def join(self) -> list[Tree]:
        """All ways to join every mention, the cheapest first."""
        trees = [Tree()]
        for at in self._order():
            mention = self._mentions[at]
            grown = [
                found._replace(cost=round(found.cost + option.cost, 3))
                for tree in trees
                for option in mention.options
                for found in self._place(tree, at, option)
            ]
            trees = _keep_cheapest(grown)
        done = [self._charge_unused(tree) for tree in trees]
        return sorted((t for t in done if t.nodes and t.focus is not None), key=_rank)

    def _order(self) -> list[int]:
        """The mentions in order, but `Sensor expert` as `expert in Sensor`."""
        order = list(range(len(self._mentions)))
        for at in range(len(order) - 1):
            if self._is_compound(at):
                order[at], order[at + 1] = order[at + 1], order[at]
        return order

    def _is_compound(self, at: int) -> bool:
        """Whether an individual stands right before the property that joins it to the rest."""
        here, following = self._mentions[at], self._mentions[at + 1]
        return (
            here.end == following.start
            and not here.asked
            and here.options[0].sort == "individual"
            and following.options[0].sort == "relation"
            and not self._lexicon.relations[following.options[0].iris[0]].is_literal
        )

    def _place(self, tree: Tree, at: int, option: Option) -> Iterator[Tree]:
        if option.sort == "relation":
            yield from self._place_relation(tree, at, option)
            return
        node, links, values = self._make_thing(option, at)
        if node is None:
            return
        for found, spot in self._attach(tree, node, at, option.sort):
            extra = [Link(spot, link, len(found.nodes)) for link in links]
            grown = found._replace(
                nodes=(*found.nodes, *(self._make_individual(option, at) for _ in links)),
                links=(*found.links, *extra),
                values=(*found.values, *((spot, p, literals) for p, literals in values)),
                spots=(*found.spots, (at, spot)),
            )
            if grown.focus is None and not node.iris:
                grown = grown._replace(focus=spot)
            yield grown

    def _make_thing(
        self, option: Option, at: int
    ) -> tuple[Node | None, list[str], list[tuple[str, tuple[str, ...]]]]:
        """A node, the properties that join it to the option's individuals, its values."""
        lexicon, (first, *_) = self._lexicon, option.iris
        if option.sort == "class":
            return Node(frozenset({first}), noun=True), [], []
        if option.sort == "individual":
            return self._make_individual(option, at), [], []
        if option.sort == "value":
            return Node(lexicon.relations[first].sources), [], [(first, option.literals)]
        classes = lexicon.find_classes(option.iris)
        relations = [r for r in lexicon.kind_relations if r.targets & classes]
        if len(relations) != 1:
            return None, [], []
        return Node(relations[0].sources, noun=True), [relations[0].iri], []

    def _make_individual(self, option: Option, at: int) -> Node:
        classes = self._lexicon.find_classes(option.iris)
        return Node(classes, option.iris, partial=self._mentions[at].partial)

    def _attach(self, tree: Tree, node: Node, at: int, sort: str) -> Iterator[tuple[Tree, int]]:
        if not tree.nodes:
            yield tree.add(node), 0
            return
        latest = max((spot for _, spot in tree.spots), default=0)
        for spot, known in enumerate(tree.nodes):
            if known.literal:
                continue
            adjacent = self._touches(tree, spot, at)
            far = 0.0 if spot == latest or adjacent else 0.2
            classes = self._lexicon.meet(known.classes, node.classes)
            if classes is not None and _may_unite(known, node, sort, adjacent):
                united = known._replace(
                    classes=classes,
                    iris=known.iris or node.iris,
                    noun=known.noun or node.noun,
                    partial=known.partial or node.partial,
                )
                nodes = (*tree.nodes[:spot], united, *tree.nodes[spot + 1 :])
                yield tree._replace(nodes=nodes, cost=tree.cost + far), spot
            for path in self._find_paths(known.classes, node.classes):
                yield self._follow(tree._replace(cost=tree.cost + far), spot, path, node)

    def _touches(self, tree: Tree, spot: int, at: int) -> bool:
        """Whether a mention of a node stands right beside another mention."""
        here = self._mentions[at]
        return any(
            place == spot and self._mentions[mention].end == here.start
            for mention, place in tree.spots
        )

    def _follow(
        self, tree: Tree, spot: int, path: tuple[Step, ...], node: Node
    ) -> tuple[Tree, int]:
        """The tree with a path from a node to a new one, and where that is."""
        pending = list(tree.pending)
        cost, current, links, nodes = tree.cost, spot, list(tree.links), list(tree.nodes)
        for number, (iri, forward) in enumerate(path):
            said = next(
                ((item, option) for item in pending for option in item[1] if option.iris[0] == iri),
                None,
            )
            if said:
                pending.remove(said[0])
                cost += SAID + said[1].cost
            else:
                cost += UNSAID
            relation = self._lexicon.relations[iri]
            last = number == len(path) - 1
            near = relation.sources if forward else relation.targets
            nodes[current] = nodes[current]._replace(
                classes=self._lexicon.meet(nodes[current].classes, near) or frozenset(),
            )
            reach = relation.targets if forward else relation.sources
            nodes.append(
                node._replace(classes=self._lexicon.meet(node.classes, reach) or frozenset())
                if last
                else Node(reach)
            )
            new = len(nodes) - 1
            links.append(Link(current, iri, new) if forward else Link(new, iri, current))
            current = new
        grown = tree._replace(
            nodes=tuple(nodes), links=tuple(links), cost=cost, pending=tuple(pending)
        )
        return grown, current

    def _find_paths(self, one: frozenset[str], other: frozenset[str]) -> list[tuple[Step, ...]]:
        """The shortest paths between members of classes."""
        key = one, other
        if key not in self._paths:
            self._paths[key] = self._walk(one, other)
        return self._paths[key]

    def _walk(self, one: frozenset[str], other: frozenset[str]) -> list[tuple[Step, ...]]:
        meet = self._lexicon.meet
        level: list[tuple[tuple[Step, ...], frozenset[str]]] = [((), one)]
        for _ in range(_FARTHEST):
            level = [
                ((*path, step), end)
                for path, classes in level
                for step, end in self._lexicon.list_steps(classes)
                if not path or path[-1] != (step[0], not step[1])
            ]
            found = [path for path, end in level if meet(end, other) is not None]
            if found or len(level) > 2_000:
                return found
        return []

    def _place_relation(self, tree: Tree, at: int, option: Option) -> Iterator[Tree]:
        """A property that is said: kept for the path to what follows, or followed from here."""
        (iri,) = option.iris
        relation = self._lexicon.relations[iri]
        if tree.nodes:
            for mention, _ in tree.pending:
                if mention == at:
                    return
            kept = (at, tuple(self._mentions[at].options))
            relations = tuple(o for o in kept[1] if o.sort == "relation")
            if option == relations[0] and not relation.is_literal:
                yield tree._replace(
                    pending=(*tree.pending, (at, relations)), cost=tree.cost - option.cost
                )
        measure = self._lexicon.extend_measure(relation)
        # A verb names neither end: whom Ines guided is no guide.
        is_verb = option.passive is not None
        noun = relation.names_target and option.cost < PARTIAL and not is_verb
        end = Node(relation.targets, literal=relation.is_literal, noun=noun)
        if not tree.nodes:
            owner = Node(relation.sources)
            start = tree._replace(nodes=(owner, end), links=(Link(0, iri, 1),), cost=SAID)
            start = start._replace(spots=((at, 1),))
            if len(measure) > 1:
                start = start.add(Node(literal=True))
                links = (*start.links, Link(1, measure[1], 2))
                yield start._replace(links=links, focus=2)
            else:
                yield start._replace(focus=1)
            if not relation.is_literal:
                yield start._replace(
                    focus=0, turned=True, nodes=start.nodes[:2], links=start.links[:1]
                )
            return
        for spot, known in enumerate(tree.nodes):
            if known.literal:
                continue
            new = len(tree.nodes)
            sources = self._lexicon.meet(known.classes, relation.sources)
            if sources is not None:
                grown = tree.narrow(spot, sources).add(end)
                links = (*grown.links, Link(spot, iri, new))
                focus = new
                if len(measure) > 1:
                    grown = grown.add(Node(literal=True))
                    links = (*links, Link(new, measure[1], new + 1))
                    focus = new + 1
                yield grown._replace(
                    links=links,
                    cost=tree.cost + SAID,
                    focus=focus if tree.focus is None else tree.focus,
                    spots=(*tree.spots, (at, new)),
                )

    def _charge_unused(self, tree: Tree) -> Tree:
        """Properties that were said and that no path took: free when a link states one anyway."""
        stated = {link.iri for link in tree.links}
        idle = [
            options
            for _, options in tree.pending
            if not stated & {option.iris[0] for option in options}
        ]
        return tree._replace(pending=(), cost=round(tree.cost + UNUSED * len(idle), 3))


def _may_unite(known: Node, node: Node, sort: str, adjacent: bool) -> bool:
    if known.iris and node.iris:
        return False
    if sort == "value":
        return True
    if sort == "class":
        return adjacent if known.iris else not known.noun or adjacent
    if sort == "individual":
        return adjacent or not known.noun
    return not known.iris  # a kind


def _keep_cheapest(trees: Sequence[Tree]) -> list[Tree]:
    """The `_BEAM` cheapest trees in order, each once, at its least cost."""
    kept: dict[Tree, Tree] = {}
    highest = 0.0
    for tree in sorted(trees, key=lambda tree: tree.cost):
        if len(kept) >= _BEAM and tree.cost > highest:
            break
        kept.setdefault(tree._replace(cost=0.0), tree)
        highest = tree.cost
    return sorted(kept.values(), key=_rank)[:_BEAM]


def _rank(tree: Tree) -> tuple[float, str]:
    """By cost, then by content in an order that does not hang on the hashes of strings."""
    nodes = [(sorted(x.classes), x.iris, x.literal, x.noun, x.partial) for x in tree.nodes]
    pending = [(at, [(o.sort, o.iris) for o in options]) for at, options in tree.pending]
    rest = (tree.links, tree.values, tree.focus, tree.turned, pending, tree.spots)
    return tree.cost, repr((nodes, *rest))


# Where the degrees of a question belong in a tree: what is ordered, bounded or counted.


def make_plans(
    tree: Tree, mentions: Sequence[Mention], form: Form, lexicon: Lexicon
) -> Iterator[tuple[Plan, float]]:
    """The tree with all degrees in their places; none when one has no place."""
    degrees = _merge_orders(form.degrees)
    # "How many seats does it have?" asks for the number that is stated.
    act = "select" if form.act == "count" and _is_numeric(tree, lexicon) else form.act
    plans = [(Plan(tree, act, aggregate=form.aggregate), 0.0)]
    for degree in degrees:
        plans = [
            (grown, cost + more)
            for plan, cost in plans
            for grown, more in _apply(degree, plan, mentions, lexicon)
        ]
    for plan, cost in plans:
        if form.aggregate and not _is_numeric(plan.tree, lexicon):
            continue
        yield plan, cost


def _merge_orders(degrees: Sequence[Degree]) -> list[Degree]:
    """`top 5 … with the highest …` is one order."""
    orders = [d for d in degrees if d.sort == "order"]
    if len(orders) == 2 and orders[0].top > 1:
        merged = replace(orders[1], top=orders[0].top)
        return [merged if d is orders[1] else d for d in degrees if d is not orders[0]]
    return list(degrees)


def _apply(
    degree: Degree, plan: Plan, mentions: Sequence[Mention], lexicon: Lexicon
) -> Iterator[tuple[Plan, float]]:
    tree = plan.tree
    if degree.sort == "order" and plan.rank:
        return
    following = next((at for at, m in enumerate(mentions) if m.start >= degree.end), None)
    spot = tree.find_spot(following) if following is not None else None
    if degree.measures:
        for node, far in _list_near_nodes(tree, spot):
            fitting = [
                m
                for m in degree.measures
                if _has(tree, node, m[0], lexicon) and _has_unit(degree, m, lexicon)
            ]
            for measure in fitting:
                yield _with_degree(plan, degree, node, measure), far + 0.3 * (len(fitting) > 1)
            if fitting:
                return
        return
    if spot is None and degree.sort == "order" and not degree.superlative_of_noun:
        return
    yield from _apply_to_noun(degree, plan, spot, lexicon)


def _apply_to_noun(
    degree: Degree, plan: Plan, spot: int | None, lexicon: Lexicon
) -> Iterator[tuple[Plan, float]]:
    """A degree of the noun beside it: a measure of what has it, or how many there are."""
    tree = plan.tree
    if spot is None:
        spot = max((place for _, place in tree.spots), default=0)
    for link in tree.links:
        if link.target != spot:
            continue
        measure = lexicon.extend_measure(lexicon.relations[link.iri])
        if measure and _has_unit(degree, measure, lexicon):
            if tree.focus in {spot, len(tree.nodes) - 1} and tree.nodes[tree.focus].literal:
                return
            yield _with_degree(plan, degree, link.source, measure), 0.0
            return
    if degree.unit or spot == tree.focus or tree.nodes[spot].iris or tree.nodes[spot].literal:
        return
    if plan.act == "select" or degree.sort == "limit":
        yield _with_degree(plan, degree, spot, ()), 0.1


def _with_degree(plan: Plan, degree: Degree, node: int, measure: tuple[str, ...]) -> Plan:
    if degree.sort == "order":
        return replace(plan, rank=Rank(node, measure, degree.sign == "1", degree.top))
    bound = Bound(node, measure, degree.sign, degree.number)
    return replace(plan, bounds=(*plan.bounds, bound))


def _list_near_nodes(tree: Tree, spot: int | None) -> list[tuple[int, float]]:
    """The node of the mention, those linked with it, then the focus: with the cost of each."""
    start = tree.focus if spot is None else spot
    if start is None:
        return []
    near = [start]
    near += [
        x.source if x.target == start else x.target
        for x in tree.links
        if start in (x.source, x.target)
    ]
    found = {node: 0.1 * (order > 0) for order, node in enumerate(dict.fromkeys(near))}
    if tree.focus is not None:
        found.setdefault(tree.focus, 0.3)
    return [
        (n, c) for n, c in found.items() if not tree.nodes[n].iris and not tree.nodes[n].literal
    ]


def _has(tree: Tree, node: int, iri: str, lexicon: Lexicon) -> bool:
    return lexicon.meet(tree.nodes[node].classes, lexicon.relations[iri].sources) is not None


def _has_unit(degree: Degree, measure: Measure, lexicon: Lexicon) -> bool:
    """Whether the measure is stated in the unit of the number, as its label says in brackets."""
    return not degree.unit or (degree.unit,) in lexicon.relations[measure[-1]].phrases


def _is_numeric(tree: Tree, lexicon: Lexicon) -> bool:
    return any(
        link.target == tree.focus and lexicon.relations[link.iri].is_numeric for link in tree.links
    )


# A question read: the query that answers it, or the reason why none is certain enough.

_MOST_WORDS = 60
"""Longer questions are several; the longest of a benchmark that one query answers has 32."""
_CLOSE = 0.35
"""Cost within which a second reading is as good as the first."""
_UNFIT = 1.0
"""What it costs that answers to `who` are no people."""
_WORST = 3.0
"""Cost from which too much had to be supposed."""
_MOST_LEFT, _MOST_MENTIONS = 2, 8
"""Words that no mention explains, and mentions, beyond which no query is sought."""
_KIN = 0.4
"""Cosine from which a word that is left over says what the query's properties say anyway."""


@dataclass(frozen=True, slots=True)
class Written:
    """A query whose answers are `?result` (or the truth of an ASK), and what it cost to read.

    `facing` is the worst of its links, `turned` the queries with each unclear one the other way
    round, `is_whole` whether the query says all of its plan. `coarse`: how far the dates it finds
    are from the grain that is asked for.
    """

    sparql: str
    plan: Plan
    cost: float
    fits: bool = True
    coarse: int = 0
    facing: Facing = Facing.RIGHT
    turned: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Why a question has no certain query; `sparql` is the best guess, if there was one."""

    reason: str
    sparql: str = ""


def read_question(question: str, lexicon: Lexicon) -> Written | Unwritten:
    """The query of a question. Nothing is guessed: what is not understood is said."""
    words = read_words(question)
    if not words or len(words) > _MOST_WORDS:
        return Unwritten("it has no word" if not words else "it is too long for one query")
    negations = sorted({word.lower for word in words} & NEGATIONS)
    if negations:
        return Unwritten(f"it says {negations[0]!r}, and the rules read no negation")
    if "%" in question:
        return Unwritten("it asks for a share, which the rules do not compute")
    form = read_form(words, lexicon)
    finder = MentionFinder(words, lexicon, form.taken)
    mentions = finder.find()
    if not mentions:
        return Unwritten("it names nothing that the ontology knows")
    left = [at for at in range(len(words)) if finder.is_content(at)]
    early = finder.list_strange() or (
        [words[at].text for at in left] if len(left) > _MOST_LEFT else []
    )
    if early or len(mentions) > _MOST_MENTIONS:
        also = f"the ontology has nothing for {', '.join(early)!r}"
        return Unwritten(also if early else "it names too many things for one query")
    readings = list(_read(words, mentions, form, lexicon))
    if not readings:
        strange = ", ".join(words[at].text for at in left)
        also = f"; it has nothing for {strange!r}" if strange else ""
        return Unwritten("no property of the ontology links what it names" + also)
    return _decide(readings, [words[at] for at in left], lexicon)


def _read(
    words: Sequence[Word],
    mentions: Sequence[Mention],
    form: Form,
    lexicon: Lexicon,
) -> Iterator[Written]:
    written: dict[str, Written] = {}
    for tree in Joiner(lexicon, mentions).join():
        for plan, cost in make_plans(tree, mentions, form, lexicon):
            if plan.act == "ask" and _shares_something(tree):
                continue
            judged = _judge_focus(plan, form, lexicon)
            cost += judged + _judge_turn(plan, form, judged, lexicon)
            sparql = write_query(plan, lexicon)
            total = round(tree.cost + cost, 3)
            if sparql not in written or written[sparql].cost > total:
                facing = {
                    link: face(tree, link, mentions, words, lexicon, passive=form.passive)
                    for link in tree.links
                }
                turned = tuple(
                    write_query(replace(plan, tree=turn(plan.tree, link)), lexicon)
                    for link, way in facing.items()
                    if way is Facing.UNCLEAR
                )
                worst = max(facing.values(), key=list(Facing).index, default=Facing.RIGHT)
                worst = Facing.WRONG if Facing.WRONG in facing.values() else worst
                written[sparql] = Written(
                    sparql,
                    plan,
                    total,
                    not judged,
                    _rate_date(plan, form, lexicon),
                    worst,
                    turned,
                    can_write(plan),
                )
    yield from sorted(written.values(), key=lambda w: (w.cost, w.sparql))[:12]


def _shares_something(tree: Tree) -> bool:
    """Whether two that are named have something in common that is not: no question of yes or no."""
    named = sum(bool(node.iris) for node in tree.nodes)
    return named > 1 and any(not node.iris and not node.literal for node in tree.nodes)


def _judge_focus(plan: Plan, form: Form, lexicon: Lexicon) -> float:
    """What it costs that the answers are not of the kind that is asked for."""
    tree = plan.tree
    focus = tree.nodes[tree.focus or 0]
    if focus.iris and plan.act != "ask":
        return 10.0
    if not form.wants:
        return 0.0
    ends = [lexicon.relations[x.iri] for x in tree.links if x.target == tree.focus]
    if form.wants == "when":
        return 0.0 if any(r.datatypes & DATES for r in ends) else 10.0
    words = {word for r in ends for phrase in r.phrases for word in phrase}
    if form.wants == "where":
        if focus.literal:
            return 0.0 if words & PLACE_WORDS else 10.0
        places = [lexicon.categories[c].place for c in focus.classes if c in lexicon.categories]
        return 0.0 if places and all(places) else 10.0
    if focus.literal:
        return 10.0
    return 0.0 if _are_people(focus.classes, lexicon) else _UNFIT


def _are_people(classes: frozenset[str], lexicon: Lexicon) -> bool:
    """Whether all members of some classes are people."""
    known = lexicon.categories
    return bool(classes) and all(
        any(known[a].person for a in lexicon.find_ancestors(c) if a in known) for c in classes
    )


def _rate_date(plan: Plan, form: Form, lexicon: Lexicon) -> int:
    """0 for dates of the grain that is asked for, more for those that are not."""
    if form.wants != "when":
        return 0
    order = ("gYear", "gYearMonth", "date") if form.grain else ("date", "gYearMonth", "gYear")
    types = {
        datatype.rpartition("#")[2]
        for link in plan.tree.links
        if link.target == plan.tree.focus
        for datatype in lexicon.relations[link.iri].datatypes
    }
    return min((order.index(t) for t in types if t in order), default=0)


def _judge_turn(plan: Plan, form: Form, judged: float, lexicon: Lexicon) -> float:
    """What it costs to take the noun of a property for what has it, unless people are asked for."""
    if not plan.tree.turned:
        return 0.0
    (first, *_) = plan.tree.links
    if not lexicon.relations[first.iri].names_target:
        return 0.0
    values = plan.tree.nodes[first.target]
    free = form.wants == "who" and not judged and not _are_people(values.classes, lexicon)
    return 0.0 if free else 0.8


def _decide(
    readings: Sequence[Written], left: Sequence[Word], lexicon: Lexicon
) -> Written | Unwritten:
    best = next((r for r in readings if r.facing is not Facing.WRONG), None)
    if best is None:
        return Unwritten("it can be read the wrong way round only", readings[0].sparql)
    readings = [r for r in readings if r.facing is not Facing.WRONG]
    if best.cost >= _WORST:
        return Unwritten("the ontology has no property for most of what it asks", best.sparql)
    if not best.fits:
        return Unwritten("what it would find is not of the kind that is asked for", best.sparql)
    strange = _list_strange(best, left, lexicon)
    if strange:
        return Unwritten(f"the ontology has nothing for {', '.join(strange)!r}", best.sparql)
    for at, node in enumerate(best.plan.tree.nodes):
        if node.partial and _count_meant(best.plan, at, lexicon) > 1:
            return Unwritten("a name in it fits several individuals", best.sparql)
    close = [r for r in readings if r.cost - best.cost < _CLOSE]
    if not all(reading.is_whole for reading in close):
        return Unwritten("it orders, bounds or counts more than one query can say")
    if len(close) > 1:
        # A reading that finds nothing where another finds something was not meant.
        answers = [(_run(reading.sparql, lexicon), reading) for reading in close]
        # But of two that are asked for yes or no, one is no as it is meant.
        telling = answers if best.plan.act == "ask" else []
        telling = telling or [pair for pair in answers if pair[0]] or answers
        # A day and its year agree; the finer says more.
        finest = min(reading.coarse for _, reading in telling)
        telling = [(rows, reading) for rows, reading in telling if reading.coarse == finest]
        if any(rows != telling[0][0] for rows, _ in telling):
            return Unwritten("it can be read in two ways that differ", best.sparql)
        best = telling[0][1]
    if best.turned and any(
        _run(query, lexicon) != _run(best.sparql, lexicon) for query in best.turned
    ):
        return Unwritten("it does not say which way round it is meant", best.sparql)
    if best.plan.rank and _is_tied(best, lexicon):
        return Unwritten("several share the place that it asks for", best.sparql)
    return best


def _list_strange(best: Written, left: Sequence[Word], lexicon: Lexicon) -> list[str]:
    """The words that neither the query nor anything like it says."""
    tree = best.plan.tree
    said = {
        " ".join(phrase) for link in tree.links for phrase in lexicon.relations[link.iri].phrases
    } | {
        " ".join(phrase)
        for node in tree.nodes
        for c in node.classes
        if c in lexicon.categories
        for phrase in lexicon.categories[c].phrases
    }
    known, strange = sorted(said), []
    for word in left:
        if word.is_name or max(lexicon.compare(word.lemma, known), default=0.0) < _KIN:
            strange.append(word.text)
    return strange


def _count_meant(plan: Plan, node: int, lexicon: Lexicon) -> int:
    """How many a name fits without what is asked about it: who has no e-mail may be meant too."""
    tree = plan.tree
    if plan.act == "ask":
        return len(tree.nodes[node].iris)
    links = tuple(x for x in tree.links if tree.focus not in (x.source, x.target))
    plan = Plan(tree._replace(links=links), plan.act)
    body = " ".join(write_patterns(plan, lexicon))
    return len(lexicon.run(f"SELECT DISTINCT ?x{node} WHERE {{ {body} }}"))


def _run(sparql: str, lexicon: Lexicon) -> set[tuple[tuple[str, str], ...]]:
    """The rows of a query as a set; empty for a count of none and for an untrue ASK."""
    rows = {tuple(sorted(row.items())) for row in lexicon.run(sparql)}
    return rows - {(("result", "0"),), (("ask", "false"),), ()}


def _is_tied(best: Written, lexicon: Lexicon) -> bool:
    """Whether the last row that is asked for measures the same as the first that is not."""
    rank = best.plan.rank
    if rank is None:
        return False
    if not rank.measure:
        wider = replace(best.plan, rank=replace(rank, top=rank.top + 1), with_count=True)
        rows = lexicon.run(write_query(wider, lexicon))
        return len(rows) > rank.top and rows[-1]["count"] == rows[-2]["count"]
    body = " ".join(write_patterns(best.plan, lexicon))
    way = "DESC" if rank.descending else "ASC"
    rows = lexicon.run(
        f"SELECT DISTINCT ?x{rank.node} ?rank WHERE {{ {body} }} ORDER BY {way}(?rank) "
        f"LIMIT {rank.top + 1}"
    )
    return len(rows) > rank.top and rows[-1]["rank"] == rows[-2]["rank"]


# `Query_onto` by rules: the ontology's answer to a question, with the facts that give it.

_MOST_FACTS = 500
_HOW_OFTEN = re.compile(r"\W*how (?:often|many times)\b", re.IGNORECASE)


def ask_by_rules(question: str, snapshot: Snapshot, *, most: int = MOST_VALUES) -> Found:
    """The answer of the ontology to a question that the rules are sure of."""
    if _HOW_OFTEN.match(question):
        return Found(Outcome.FAILED, "how often something was so is no number of things")
    lexicon = open_lexicon(snapshot)
    read = read_question(question, lexicon)
    if isinstance(read, Unwritten):
        guess = f"; the nearest query was {read.sparql}" if read.sparql else ""
        return Found(Outcome.FAILED, read.reason + guess, sparql=read.sparql)
    rows = snapshot.ontology.select_trusted(read.sparql, limit=most + 1)
    found = judge_reading(read, rows, most)
    if found.outcome is not Outcome.ANSWERED:
        return found
    facts = bind_facts(read.plan, rows, lexicon)
    return replace(found, facts=facts)


def judge_reading(read: Written, rows: list[dict[str, str]], most: int) -> Found:
    """Whether rows answer what was read; all members of a class, unless counted, are too broad."""
    tree = read.plan.tree
    measured = any(x.measure for x in (read.plan.rank, *read.plan.bounds) if x)
    if read.plan.act != "count" and not (
        tree.links or tree.values or measured or any(node.iris for node in tree.nodes)
    ):
        reason = f"it is about nothing in particular: {read.sparql}"
        return Found(Outcome.TOO_BROAD, reason, sparql=read.sparql)
    return judge_rows(rows, read.sparql, most)


def bind_facts(plan: Plan, rows: list[dict[str, str]], lexicon: Lexicon) -> tuple[Fact, ...]:
    """The statements that the answers in `rows` were read from, in the order of the query.

    Of an answer that is the first by a measure they are those of the best measure only.
    """
    if plan.act == "count" and any(not bound.measure for bound in plan.bounds):
        plan = replace(plan, act="select")  # what is counted are the rows of this query
        rows = lexicon.run(write_query(plan, lexicon))
    plan = spell_out(plan)
    body = write_patterns(plan, lexicon)
    if plan.act == "select" and not plan.aggregate and plan.tree.focus is not None:
        listed = ", ".join(write_string(row["result"]) for row in rows if "result" in row)
        body.append(f"FILTER(STR(?x{plan.tree.focus}) IN ({listed}))")
    rank = plan.rank if plan.rank and plan.rank.measure else None
    order = f" ORDER BY {'DESC' if rank.descending else 'ASC'}(?rank)" if rank else ""
    query = f"SELECT * WHERE {{ {' '.join(body)} }}{order} LIMIT {_MOST_FACTS}"
    return tuple(dict.fromkeys(_list_facts(plan, lexicon.run(query), is_ranked=rank is not None)))


def _list_facts(plan: Plan, rows: list[dict[str, str]], *, is_ranked: bool) -> Iterator[Fact]:
    tree, best = plan.tree, dict[str, str]()

    def bind(row: dict[str, str], at: int) -> str | None:
        iris = tree.nodes[at].iris
        return iris[0] if len(iris) == 1 else row.get(f"x{at}")

    for row in rows:
        answer = bind(row, tree.focus or 0)
        if is_ranked and answer and best.setdefault(answer, row["rank"]) != row["rank"]:
            continue
        facts = [(bind(row, x.source), x.iri, bind(row, x.target)) for x in tree.links]
        facts += [
            (bind(row, at), iri, row.get(f"v{number}"))
            for number, (at, iri, _) in enumerate(tree.values)
        ]
        yield from ((s, p, o) for s, p, o in facts if s and o)
