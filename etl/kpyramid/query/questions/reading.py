"""A question read: the query that answers it, or the reason why none is certain enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kpyramid.query.questions.degrees import Form, read_form
from kpyramid.query.questions.facing import Facing, face, turn
from kpyramid.query.questions.joining import UNUSED, Joiner
from kpyramid.query.questions.lexicon import DATES, Lexicon
from kpyramid.query.questions.meanings import Mention
from kpyramid.query.questions.mentions import MentionFinder
from kpyramid.query.questions.planning import make_plans
from kpyramid.query.questions.trees import Tree
from kpyramid.query.questions.wording import (
    NEGATIONS,
    PLACE_WORDS,
    Word,
    read_words,
)
from kpyramid.query.questions.writing import Plan, can_write, write_patterns, write_query

_MOST_WORDS = 60
"""Longer questions are several; the longest of a benchmark that one query answers has 32."""
_CLOSE = 0.35
"""Cost within which a second reading is as good as the first."""
_UNFIT = 1.0
"""What it costs that answers to `who` are no people."""
_WORST = 3.0
"""Cost from which too much had to be supposed."""
_MANY = 5
"""Readings as good as the first beyond which what one of them finds is chance."""
_FARTHER = 1.5
"""Cost by which a reading may lie behind one that turns a property round."""
_MOST_LEFT, _MOST_MENTIONS = 2, 8
"""Words that no mention explains, and mentions, beyond which no query is sought."""
_KIN = 0.4
"""Cosine from which a word that is left over says what the query's properties say anyway."""


@dataclass(frozen=True, slots=True)
class Written:
    """A query whose answers are `?result` (or the truth of an ASK), and what it cost to read.

    `facing` is the worst of its links, `turned` the queries with each unclear one the other way
    round, `is_whole` whether the query says all of its plan.
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
    words, with_count = _cut_second_clause(words)
    form = read_form(words, lexicon)
    finder = MentionFinder(words, lexicon, form.taken)
    mentions = finder.find()
    if not mentions:
        return Unwritten("it names nothing that the ontology knows")
    left = [at for at in range(len(words)) if finder.is_content(at)]
    early = [words[at].text for at in left if words[at].is_name] or (
        [words[at].text for at in left] if len(left) > _MOST_LEFT else []
    )
    if early or len(mentions) > _MOST_MENTIONS:
        also = f"{', '.join(early)!r} is not accounted for"
        return Unwritten(also if early else "it names too many things for one query")
    readings = list(_read(words, mentions, form, lexicon, with_count))
    if not readings:
        strange = ", ".join(words[at].text for at in left)
        also = f"; {strange!r} is not accounted for" if strange else ""
        return Unwritten("what it names does not hang together in the ontology" + also)
    return _decide(readings, [words[at] for at in left], lexicon)


def _cut_second_clause(words: list[Word]) -> tuple[list[Word], bool]:
    """`… and how many are there?`: the clause goes, the count is asked for as well."""
    lowers = [word.lower for word in words]
    for at in range(2, len(words) - 1):
        if lowers[at - 1 : at + 2] == ["and", "how", "many"]:
            said = {word.lemma for word in words[: at - 1]}
            rest = [w for w in words[at + 2 :] if w.lemma not in said]
            if all(
                w.lower in {"this", "that", "these", "those", "are", "is", "be", "there", "it"}
                for w in rest
            ):
                return words[: at - 1], True
    return words, False


def _read(
    words: Sequence[Word],
    mentions: Sequence[Mention],
    form: Form,
    lexicon: Lexicon,
    with_count: bool,
) -> Iterator[Written]:
    written: dict[str, Written] = {}
    for tree in Joiner(lexicon, mentions, passive=form.passive).join():
        for plan, cost in make_plans(tree, mentions, form, lexicon):
            plan = replace(plan, with_count=with_count)
            if plan.act == "ask" and _shares_something(tree):
                continue
            judged = _judge_focus(plan, form, lexicon)
            cost += judged + _judge_leaves(plan) + _judge_turn(plan, form, judged, lexicon)
            sparql = write_query(plan, lexicon)
            total = round(tree.cost + cost, 3)
            if sparql not in written or written[sparql].cost > total:
                coarse = _rate_date(plan, form, lexicon)
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
                    sparql, plan, total, not judged, coarse, worst, turned, can_write(plan)
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


def _judge_leaves(plan: Plan) -> float:
    """What it costs that a literal is named that neither answers nor restricts anything."""
    tree = plan.tree
    measured = {
        iri for part in (plan.rank, *plan.bounds) if part is not None for iri in part.measure
    }
    loose = [
        link
        for link in tree.links
        if tree.nodes[link.target].literal
        and link.target != tree.focus
        and link.iri not in measured
    ]
    return UNUSED * len(loose)


def _decide(
    readings: Sequence[Written], left: Sequence[Word], lexicon: Lexicon
) -> Written | Unwritten:
    best = next((r for r in readings if r.facing is not Facing.WRONG), None)
    if best is None or best.cost - readings[0].cost > _FARTHER:
        return Unwritten("it can be read the wrong way round only", readings[0].sparql)
    readings = [r for r in readings if r.facing is not Facing.WRONG]
    if best.cost >= _WORST:
        return Unwritten("too little of it is accounted for by properties", best.sparql)
    if not best.fits:
        return Unwritten("what it would find is not of the kind that is asked for", best.sparql)
    strange = _list_strange(best, left, lexicon)
    if strange:
        return Unwritten(f"{', '.join(strange)!r} is not accounted for", best.sparql)
    for at, node in enumerate(best.plan.tree.nodes):
        if node.partial and _count_meant(best.plan, at, lexicon) > 1:
            return Unwritten("a name in it fits several individuals", best.sparql)
    close = [r for r in readings if r.cost - best.cost < _CLOSE]
    if len(close) > _MANY:
        return Unwritten("it can be read in many ways", best.sparql)
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
    strange = []
    for word in left:
        known = sorted(said)
        cosines = lexicon.compare(word.lemma, known)
        if word.is_name or max(cosines, default=0.0) < _KIN:
            strange.append(word.text)
    return strange


def _count_meant(plan: Plan, node: int, lexicon: Lexicon) -> int:
    """How many a name fits without what is asked about it: who has no e-mail may be meant too."""
    tree = plan.tree
    if plan.act == "ask":
        return len(tree.nodes[node].iris)
    links = tuple(x for x in tree.links if tree.focus not in (x.source, x.target))
    plan = Plan(replace(tree, links=links), plan.act)
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
    if rank.aggregate:
        wider = replace(best.plan, rank=replace(rank, top=rank.top + 1))
        rows = lexicon.run(write_query(wider, lexicon))
        return len(rows) > rank.top and rows[-1]["value"] == rows[-2]["value"]
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
