"""How the things a question mentions hang together: a tree over the graph's properties."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from kpyramid.query.questions.lexicon import Lexicon, Relation
from kpyramid.query.questions.meanings import PARTIAL, Mention, Option
from kpyramid.query.questions.trees import Link, Node, Tree

_BEAM = 40
"""Unfinished trees that are followed; on ck25 twenty give the same readings."""
_MANY = 5
"""Equally short paths beyond which none is taken that the question does not say."""
_FARTHEST = 3
"""Properties between two things that the question names one after the other."""
SAID, NOUN, UNSAID, UNUSED, KIND, AGAINST = 0.2, 0.6, 1.0, 3.0, 0.5, 0.5
"""Costs of a property that the question says, of one that the noun for its value says, of one it
leaves out, of one said in vain; of an individual that stands for things of its kind; of a property
that is followed against its wording ("the manager of" leads to who is managed)."""


Step = tuple[str, bool]
"""A property and whether it is followed from source to target."""


class Joiner:
    """Joins mentions in the order of the question, cheapest first."""

    def __init__(
        self, lexicon: Lexicon, mentions: Sequence[Mention], *, passive: bool = False
    ) -> None:
        self._lexicon = lexicon
        self._passive = passive
        self._mentions = mentions
        self._paths: dict[tuple[frozenset[str], frozenset[str]], list[tuple[Step, ...]]] = {}

    def join(self) -> list[Tree]:
        """All ways to join every mention, the cheapest first."""
        trees = [Tree()]
        for at in self._order():
            mention = self._mentions[at]
            grown: dict[Tree, Tree] = {}
            for tree in trees:
                for option in mention.options:
                    for found in self._place(tree, at, option):
                        found = replace(found, cost=round(found.cost + option.cost, 3))
                        shape = replace(found, cost=0.0)
                        if shape not in grown or grown[shape].cost > found.cost:
                            grown[shape] = found
            trees = sorted(grown.values(), key=_rank)[:_BEAM]
        done = [self._charge_voice(self._charge_unused(tree)) for tree in trees]
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

    @cached_property
    def _objects(self) -> list[Relation]:
        return [r for r in self._lexicon.relations.values() if not r.is_literal and r.targets]

    def _place(self, tree: Tree, at: int, option: Option) -> Iterator[Tree]:
        if option.sort == "relation":
            yield from self._place_relation(tree, at, option)
            return
        if self._mentions[at].joined:
            yield from self._join_as_before(tree, at, option)
            return
        if option.sort == "individual" and self._mentions[at].asked and not tree.nodes:
            tree = replace(tree, cost=tree.cost + UNSAID)
        if option.sort == "kind" and tree.nodes:
            tree = replace(tree, cost=tree.cost + KIND)
        if option.sort == "kind" and at + 1 < len(self._mentions) and self._is_compound(at):
            return
        node, links, values = self._make_thing(option, at)
        if node is None:
            return
        for found, spot in self._attach(tree, node, at, option.sort):
            extra = [Link(spot, link, len(found.nodes)) for link in links]
            grown = replace(
                found,
                nodes=(*found.nodes, *(self._make_individual(option, at) for _ in links)),
                links=(*found.links, *extra),
                values=(*found.values, *((spot, p, literals) for p, literals in values)),
                spots=(*found.spots, (at, spot)),
            )
            if grown.focus is None and not node.iris:
                grown = replace(grown, focus=spot)
            yield grown

    def _join_as_before(self, tree: Tree, at: int, option: Option) -> Iterator[Tree]:
        """`Meters and Gauges`: the second hangs where the first does."""
        spot = tree.find_spot(at - 1)
        links = [x for x in tree.links if spot in (x.source, x.target)]
        if option.sort != "individual" or spot is None or len(links) != 1:
            return
        node = self._make_individual(option, at)
        if not tree.nodes[spot].iris or not node.classes & tree.nodes[spot].classes:
            return
        (link,), new = links, len(tree.nodes)
        twin = replace(link, target=new) if link.target == spot else replace(link, source=new)
        yield replace(tree.add(node), links=(*tree.links, twin), spots=(*tree.spots, (at, new)))

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
                united = replace(
                    known,
                    classes=classes,
                    iris=known.iris or node.iris,
                    noun=known.noun or node.noun,
                    partial=known.partial or node.partial,
                )
                nodes = (*tree.nodes[:spot], united, *tree.nodes[spot + 1 :])
                # What is said between the two is skipped: "the name of the sensor expert".
                skipped = 0.4 if tree.pending and sort == "individual" else 0.0
                yield replace(tree, nodes=nodes, cost=tree.cost + far + skipped), spot
            for path in self._find_paths(tree, known.classes, node.classes):
                yield self._follow(tree, spot, path, node, far)

    def _touches(self, tree: Tree, spot: int, at: int) -> bool:
        """Whether a mention of a node stands right beside another mention."""
        here = self._mentions[at]
        return any(
            place == spot and self._mentions[mention].end == here.start
            for mention, place in tree.spots
        )

    def _follow(
        self, tree: Tree, spot: int, path: tuple[Step, ...], node: Node, far: float
    ) -> tuple[Tree, int]:
        """The tree with a path from a node to a new one, and where that is."""
        pending = list(tree.pending)
        cost, current, links, nodes = tree.cost + far, spot, list(tree.links), list(tree.nodes)
        for number, (iri, forward) in enumerate(path):
            said = next(
                ((item, option) for item in pending for option in item[1] if option.iris[0] == iri),
                None,
            )
            if said:
                pending.remove(said[0])
                against = forward == self._lexicon.relations[iri].names_target
                against = against and said[1].cost < PARTIAL and said[1].passive is None
                cost += SAID + said[1].cost + AGAINST * against
            else:
                cost += self._rate_unsaid(tree, current if not number else None, iri, forward, node)
            relation = self._lexicon.relations[iri]
            last = number == len(path) - 1
            near = relation.sources if forward else relation.targets
            nodes[current] = replace(
                nodes[current],
                classes=self._lexicon.meet(nodes[current].classes, near) or frozenset(),
            )
            reach = relation.targets if forward else relation.sources
            nodes.append(
                replace(node, classes=self._lexicon.meet(node.classes, reach) or frozenset())
                if last
                else Node(reach)
            )
            new = len(nodes) - 1
            links.append(Link(current, iri, new) if forward else Link(new, iri, current))
            current = new
        grown = replace(
            tree, nodes=tuple(nodes), links=tuple(links), cost=cost, pending=tuple(pending)
        )
        return grown, current

    def _rate_unsaid(
        self, tree: Tree, start: int | None, iri: str, forward: bool, node: Node
    ) -> float:
        """Less for a property called as the class at its end: suppliers by way of `supplier`."""
        ends = node.classes if forward else tree.nodes[start].classes if start is not None else ()
        known = self._lexicon.categories
        phrases = {phrase for c in ends if c in known for phrase in known[c].phrases}
        return NOUN if phrases & self._lexicon.relations[iri].phrases else UNSAID

    def _find_paths(
        self, tree: Tree, one: frozenset[str], other: frozenset[str]
    ) -> list[tuple[Step, ...]]:
        """The shortest paths between members of classes, and one longer where that is said."""
        key = one, other
        if key not in self._paths:
            self._paths[key] = list(self._walk(one, other))
        paths = self._paths[key]
        least = min(map(len, paths), default=0)
        nearest = [path for path in paths if len(path) == least]
        if len(nearest) > _MANY:  # any of them would be chance
            nearest = [path for path in nearest if self._is_named(path, one | other)]
        said = {option.iris[0] for _, options in tree.pending for option in options}
        saying = [path for path in paths if any(iri in said for iri, _ in path)]
        shortest = min(map(len, saying), default=0)
        return list(dict.fromkeys([*nearest, *(path for path in saying if len(path) == shortest)]))

    def _is_named(self, path: tuple[Step, ...], classes: frozenset[str]) -> bool:
        """Whether a property of a path is called as a class at one of its ends."""
        known = self._lexicon.categories
        phrases = {phrase for c in classes if c in known for phrase in known[c].phrases}
        return any(phrases & self._lexicon.relations[iri].phrases for iri, _ in path)

    def _walk(self, one: frozenset[str], other: frozenset[str]) -> Iterator[tuple[Step, ...]]:
        meet = self._lexicon.meet
        level: list[tuple[tuple[Step, ...], frozenset[str]]] = [((), one)]
        found = 0
        for length in range(_FARTHEST):
            onward = []
            for path, classes in level:
                for relation in self._objects:
                    for forward in (True, False):
                        near = relation.sources if forward else relation.targets
                        end = relation.targets if forward else relation.sources
                        step = (relation.iri, forward)
                        if path and path[-1] == (relation.iri, not forward):
                            continue
                        if meet(classes, near) is None:
                            continue
                        onward.append(((*path, step), end))
                        if meet(end, other) is not None:
                            found += 1
                            yield (*path, step)
            level = onward
            # Beyond two properties a large schema joins everything with everything.
            if (found and length >= 1) or len(level) > 2_000:
                return

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
                yield replace(
                    tree, pending=(*tree.pending, (at, relations)), cost=tree.cost - option.cost
                )
        measure = self._lexicon.extend_measure(relation)
        # A verb names neither end: whom Ines guided is no guide.
        is_verb = option.passive is not None
        noun = relation.names_target and option.cost < PARTIAL and not is_verb
        end = Node(relation.targets, literal=relation.is_literal, noun=noun)
        if not tree.nodes:
            owner = Node(relation.sources)
            start = replace(tree, nodes=(owner, end), links=(Link(0, iri, 1),), cost=SAID)
            start = replace(start, spots=((at, 1),))
            if len(measure) > 1:
                start = start.add(Node(literal=True))
                links = (*start.links, Link(1, measure[1], 2))
                yield replace(start, links=links, focus=2)
            else:
                yield replace(start, focus=1)
            if not relation.is_literal:
                yield replace(
                    start, focus=0, turned=True, nodes=start.nodes[:2], links=start.links[:1]
                )
            return
        near = [
            self._lexicon.meet(n.classes, relation.sources) for n in tree.nodes if not n.literal
        ]
        if relation.is_literal and not any(near):
            for grown, spot in self._attach(tree, Node(relation.sources), at, "value"):
                yield replace(
                    grown.add(end),
                    links=(*grown.links, Link(spot, iri, len(grown.nodes))),
                    cost=grown.cost + SAID,
                    spots=(*grown.spots, (at, len(grown.nodes))),
                )
        for spot, known in enumerate(tree.nodes):
            if known.literal:
                continue
            new = len(tree.nodes)
            far = 0.0 if known.iris or spot == tree.focus else 0.2
            sources = self._lexicon.meet(known.classes, relation.sources)
            if sources is not None:
                grown = tree.narrow(spot, sources).add(end)
                links = (*grown.links, Link(spot, iri, new))
                focus = new
                if len(measure) > 1:
                    grown = grown.add(Node(literal=True))
                    links = (*links, Link(new, measure[1], new + 1))
                    focus = new + 1
                yield replace(
                    grown,
                    links=links,
                    cost=tree.cost + SAID + far,
                    focus=focus if tree.focus is None else tree.focus,
                    spots=(*tree.spots, (at, new)),
                )
            targets = self._lexicon.meet(known.classes, relation.targets)
            if not relation.is_literal and targets is not None:
                yield replace(
                    tree.narrow(spot, targets).add(Node(relation.sources, noun=not is_verb)),
                    links=(*tree.links, Link(new, iri, spot)),
                    cost=tree.cost + SAID + far + 0.1,
                    focus=new if tree.focus is None else tree.focus,
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
        return replace(tree, pending=(), cost=round(tree.cost + UNUSED * len(idle), 3))

    def _charge_voice(self, tree: Tree) -> Tree:
        """Verbs followed against their voice: who influenced X is not whom X influenced."""
        cost = tree.cost
        for mention in self._mentions:
            for option in mention.options:
                if option.passive is None:
                    continue
                for link in tree.links:
                    if link.iri == option.iris[0]:
                        cost += AGAINST * self._runs_against(tree, link, mention, option.passive)
        return replace(tree, cost=round(cost, 3))

    def _runs_against(self, tree: Tree, link: Link, mention: Mention, passive: bool) -> bool:
        named = {
            spot: self._mentions[at].start
            for at, spot in tree.spots
            if spot in (link.source, link.target) and tree.nodes[spot].iris
        }
        if len(named) != 1:
            return False
        ((spot, start),) = named.items()
        is_subject = start < mention.start
        agrees = passive == self._passive
        return (spot == link.source) != (is_subject == agrees)


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


def _rank(tree: Tree) -> tuple[float, str]:
    return tree.cost, repr(tree)
