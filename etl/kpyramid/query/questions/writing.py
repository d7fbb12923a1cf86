"""A tree and the degrees of a question as SPARQL."""

from dataclasses import dataclass, replace
from decimal import Decimal

from kpyramid.ontology.names import RDF_TYPE, SUBCLASS
from kpyramid.query.questions.degrees import Measure
from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.trees import Link, Node, Tree


@dataclass(frozen=True, slots=True)
class Rank:
    """The rows with the largest (`descending`) or smallest measure of a node, or count of it."""

    node: int
    measure: Measure
    descending: bool
    top: int
    aggregate: str = ""


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
        return not (counted or plan.rank or plan.aggregate or plan.with_count)
    if plan.act == "count" and (plan.rank or plan.aggregate or plan.with_count):
        return False
    if plan.aggregate:
        return not (counted or plan.rank or plan.with_count)
    if counted:
        return len(counted) == 1 and not (plan.rank and plan.rank.measure)
    return not plan.with_count


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
    if plan.rank and plan.rank.aggregate:
        way = "DESC" if plan.rank.descending else "ASC"
        kept = " ".join(dict.fromkeys([focus, _name(plan.tree, plan.rank.node), "?rank"]))
        return (
            f"SELECT ({focus} AS ?result) ({plan.rank.aggregate}(?rank) AS ?value) "
            f"WHERE {{ {{ SELECT DISTINCT {kept} WHERE {{ {body} }} }} }} "
            f"GROUP BY {focus} ORDER BY {way}(?value) {focus} LIMIT {plan.rank.top}"
        )
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
                tree = replace(tree.add(node), links=links)
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
    if not any(
        known.members and lexicon.find_ancestors(iri) & classes
        for iri, known in lexicon.categories.items()
    ):
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
