"""Where the degrees of a question belong in a tree: what is ordered, bounded or counted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kpyramid.query.questions.degrees import Degree, Form, Measure
from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.meanings import Mention
from kpyramid.query.questions.trees import Tree
from kpyramid.query.questions.writing import Bound, Plan, Rank


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
        if form.aggregate and plan.rank and plan.rank.measure:
            yield (
                replace(plan, rank=replace(plan.rank, aggregate=form.aggregate), aggregate=""),
                cost,
            )
            continue
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
                if degree.sort == "order" and degree.top == 1:
                    if plan.aggregate:
                        return
                    name = "MAX" if degree.sign == "1" else "MIN"
                    yield replace(plan, aggregate=name), 0.0
                return
            yield _with_degree(plan, degree, link.source, measure), 0.0
            return
    if degree.sort == "limit" and degree.sign == ">=" and degree.number == 1.0:
        yield plan, 0.0
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
