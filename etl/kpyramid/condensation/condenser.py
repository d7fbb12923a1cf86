"""Condensation by a model (f_con): which facts that the rules left apart say the same."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import combinations

from kpyramid.condensation.graph import Graph, Neighbourhood, Statement, read_value
from kpyramid.condensation.merging import Condensation, Merger
from kpyramid.keys import JsonValue
from kpyramid.llm.caller import Asker, Loss, Parse, ask_batches, cut_batches
from kpyramid.llm.task import (
    GUARD,
    Expected,
    Failure,
    FailureKind,
    ReplyError,
    Request,
    Strict,
    Task,
    flatten,
    parse_json,
    strict_schema,
    write_json,
)
from kpyramid.ontology.schema import Schema

_CHARACTERS = 120
"""Of a name or a wording that a prompt shows."""
_flatten = partial(flatten, most=_CHARACTERS)

_INSTRUCTIONS = """\
You condense a knowledge graph about {domain} matters; its texts are in {language}.
{guard}
It holds sets of numbered facts: subject | wording | object. The facts of a set are about the same \
two things, and lie near one property of an ontology. Find the facts that say the same, so that \
only the one that says it best needs to be kept. Nothing that was said may be lost.
Think step by step, set by set:
1. Who does what to whom in each fact? In `A | wrote | B` and `B | was written by | A` A does the \
same; in `A | sued | B` and `B | sued | A` not.
2. When, how surely, in which part? `works for` and `used to work for`, `owns` and `may own`, \
`owns` and `owns half of`, `won` and `did not win` are different.
3. Two facts say the same if each follows from the other for any two things of that kind, not only \
for these two. `was born in` and `grew up in` are different, though both may be true. Where their \
objects are dates, numbers or other values, compare the wordings alone: values are compared \
elsewhere.
4. Of the facts that say the same the best says it most plainly and leaves nothing out.
In doubt keep facts apart.
Reply with JSON only, one entry per set, in order: the number of the set; thought: your steps in \
30 words or less; same: the groups of facts that say the same, each with its members and the best \
of them, [] if there is none.
Example
{example}
Reply: {reply}"""
_EXAMPLE = """\
Set 1: member of (person)
1. Ida Holm | works in | Lund Institute
2. Ida Holm | is with | Lund Institute
3. Ida Holm | left | Lund Institute

Set 2: author (work)
4. Blue Harbour | was reviewed by | Per Lund
5. Blue Harbour | is about | Per Lund"""
_REPLY: JsonValue = {
    "sets": [
        {
            "set": 1,
            "thought": "1 and 2: Ida belongs to the institute now; whoever works in an institute "
            "is with it. 3 says that it ended.",
            "same": [{"members": [1, 2], "best": 1}],
        },
        {
            "set": 2,
            "thought": "4: Per wrote about the work. 5: the work tells of Per. Neither follows "
            "from the other.",
            "same": [],
        },
    ]
}


@dataclass(frozen=True, slots=True)
class Question:
    """A set of facts in words, each (subject, wording, object); `about` names their anchor.

    `examples`: the same wordings of further ends, as (subject, object) of the first fact.
    """

    about: str
    facts: tuple[tuple[str, str, str], ...]
    examples: tuple[tuple[str, str], ...] = ()


Same = tuple[int, ...]
"""Places of a question's facts that say the same, the best first."""


class _Group(Strict):
    members: list[int]
    best: int


class _Answered(Strict):
    set: int
    thought: str
    same: list[_Group]


class _Reply(Strict):
    sets: list[_Answered]


def ask_what_is_same(
    batch: Sequence[Question], *, domain: str, language: str, max_tokens: int
) -> Request:
    """The request for a batch of sets."""
    lines: list[str] = []
    number = 0
    for at, question in enumerate(batch, 1):
        lines += ["", f"Set {at}: {_flatten(question.about)}"]
        for fact in question.facts:
            number += 1
            lines.append(f"{number}. {' | '.join(map(_flatten, fact))}")
        if question.examples:
            told = "; ".join(f"{_flatten(a)} and {_flatten(b)}" for a, b in question.examples)
            lines.append(f"All of it is also said of {told}.")
    system = _write_system(domain, language)
    return TASK.request(system, "\n".join(lines).strip(), max_tokens=max_tokens)


def _write_system(domain: str, language: str) -> str:
    return _INSTRUCTIONS.format(
        domain=domain, language=language, guard=GUARD, example=_EXAMPLE, reply=write_json(_REPLY)
    )


def parse_what_is_same(content: str, batch: Sequence[Question]) -> dict[int, tuple[Same, ...]]:
    """The groups that the reply finds, by a set's place in the batch; sets may be missing.

    Raises:
        ReplyError: it is no JSON of the schema, or groups what was not offered together.
    """
    places = [(at, place) for at, q in enumerate(batch) for place in range(len(q.facts))]
    found: dict[int, tuple[Same, ...]] = {}
    for entry in parse_json(content, _Reply).sets:
        if not 0 < entry.set <= len(batch):
            raise ReplyError(FailureKind.INVALID, f"there is no set {entry.set}")
        groups: list[Same] = []
        seen: set[int] = set()
        for group in entry.same:
            members = {*group.members}
            if not all(0 < number <= len(places) for number in (*members, group.best)):
                raise ReplyError(FailureKind.INVALID, f"there is no fact among {group.members}")
            if {places[number - 1][0] for number in (*members, group.best)} != {entry.set - 1}:
                raise ReplyError(FailureKind.INVALID, "facts of two sets were grouped")
            if group.best not in members:
                raise ReplyError(FailureKind.INVALID, f"{group.best} is best of others")
            if seen & members:
                raise ReplyError(FailureKind.INVALID, "a fact stands in two groups")
            seen |= members
            if others := sorted(members - {group.best}):
                groups.append(tuple(places[number - 1][1] for number in (group.best, *others)))
        found.setdefault(entry.set - 1, tuple(groups))
    return found


TASK = Task(
    name="condensation",
    version=1,
    stage="condense",
    reply=_Reply,
    system=lambda settings: _write_system(settings.cascade.domain, settings.cascade.language),
    is_asked=lambda settings: settings.condense.mode == "llm",
    shaping=(_INSTRUCTIONS, GUARD, _EXAMPLE, _REPLY, _CHARACTERS, strict_schema(_Reply)),
    # .005 batches per chunk on the demo's 204 chunks.
    expected=Expected(reply=1.5, per_chunk=0.01, characters=2_500, spread=(0.0, 4.0)),
    without='condense.mode = "rules": facts that say the same in words the lexicon does not join',
)


def list_neighbourhoods(
    graph: Graph, made: Condensation, ids: Sequence[str], schema: Schema
) -> list[Neighbourhood]:
    """The facts left apart, by pair of ends and anchor (f_con's X_k); each in one at most.

    `ids`: keys of the facts by row.
    """
    found = []
    for mergers in made.apart:
        by_anchor: dict[tuple[str, bool], list[Merger]] = defaultdict(list)
        for merger in mergers:
            for anchor in merger.fact.anchors:
                by_anchor[anchor].append(merger)
        taken: set[int] = set()
        for (iri, _), around in sorted(by_anchor.items(), key=lambda e: (-len(e[1]), e[0])):
            left = [merger for merger in around if merger.fact.place not in taken]
            if len(left) > 1:
                taken |= {merger.fact.place for merger in left}
                kind = schema.class_for_type(left[0].fact.ends[0])
                domain = schema.class_by_iri[kind].label if kind else None
                places = [merger.fact.place for merger in left]
                facts = tuple(Statement(ids[at], *graph.tell(at)) for at in places)
                found.append(Neighbourhood(schema.property_by_iri[iri].label, domain, facts))
    return found


def merge_agreed(made: Condensation, ids: Sequence[str], agreed: Iterable[tuple[str, str]]) -> None:
    """Merges what a model agreed to: keys of a fact that goes and of the one that stays."""
    row = {key: at for at, key in enumerate(ids)}
    goes = {row[one]: row[other] for one, other in agreed}
    by_place = {merger.fact.place: merger for mergers in made.apart for merger in mergers}
    for place in sorted(goes):
        stays = place
        while stays in goes:
            stays = goes[stays]
        for fact, _ in by_place[place].merged:
            made.stands[fact.place], made.how[fact.place] = stays, "llm"


_FACTS = 40
"""Numbered facts in a request, about: some 900 tokens."""
_EXAMPLES = 2
"""Ends that a question shows of all that are told in the same wordings."""

_Anchor = tuple[str, str | None]
_Said = tuple[str, bool]
"""A wording, and whether it reads from the neighbourhood's tail to its head."""
_Pair = frozenset[_Said]
Bars = Callable[[Statement, Statement], bool]
"""Whether two facts of the same ends cannot say the same, whatever a model holds of them."""


@dataclass(frozen=True, slots=True)
class Condensed:
    """Which facts are said by others: (key of the one that goes, key of the one that stays)."""

    merged: tuple[tuple[str, str], ...]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """A neighbourhood by its wordings, turned so that the first of them reads forwards.

    Facts of one wording are several where their tails are values.
    """

    anchor: _Anchor
    facts: Mapping[_Said, Sequence[Statement]]

    @property
    def ends(self) -> tuple[str, str]:
        first = next(fact for (_, turned), (fact, *_) in self.facts.items() if not turned)
        return first.head, first.tail

    @property
    def said(self) -> tuple[_Said, ...]:
        return tuple(sorted(self.facts))

    def show(self, said: _Said) -> tuple[str, str, str]:
        return self.facts[said][0].triple


@dataclass(frozen=True, slots=True)
class _Set:
    """What is asked once for all ends: wordings of an anchor, and the ends that show them."""

    anchor: _Anchor
    said: tuple[_Said, ...]
    pairs: frozenset[_Pair]
    examples: Sequence[_Told]

    @property
    def question(self) -> Question:
        label, domain = self.anchor
        about = f"{label} ({domain})" if domain else label
        first, *others = self.examples
        return Question(about, tuple(map(first.show, self.said)), tuple(o.ends for o in others))


@dataclass(frozen=True, slots=True)
class Condenser:
    """f_con for a graph; `concurrency` calls at a time."""

    asker: Asker
    domain: str
    language: str
    max_tokens: int
    concurrency: int

    def condense(self, neighbourhoods: Sequence[Neighbourhood], bars: Bars) -> Condensed:
        """Merges within neighbourhoods; the same wordings near one anchor are asked about once.

        A pair that `bars` is never merged, and a loss where the model would have it so.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """
        told = [found for n in neighbourhoods if len((found := _tell(n)).facts) > 1]
        same, best, losses = self._ask(_list_sets(told))
        merged: list[tuple[str, str]] = []
        barred: dict[tuple[_Anchor, _Pair], Loss] = {}
        for one in told:
            facts = [(said, fact) for said in one.said for fact in one.facts[said]]
            agreed: set[frozenset[str]] = set()
            for (said, first), (other, second) in combinations(facts, 2):
                pair = frozenset((said, other))
                if (one.anchor, pair) not in same or not (
                    _says(first, second) or _says(second, first)
                ):
                    continue
                if bars(first, second):
                    barred[one.anchor, pair] = _refuse(one.anchor, first, second)
                else:
                    agreed.add(frozenset((first.key, second.key)))
            for group in _group(facts, agreed):
                full = [e for e in group if all(_says(e[1], other) for _, other in group)]
                _, stays = min(full, key=lambda e: (-best[one.anchor, e[0]], e[0]))
                merged += [(fact.key, stays.key) for _, fact in group if fact != stays]
        return Condensed(tuple(sorted(merged)), (*losses, *barred.values()))

    def _ask(
        self, sets: Sequence[_Set]
    ) -> tuple[set[tuple[_Anchor, _Pair]], Counter[tuple[_Anchor, _Said]], list[Loss]]:
        """The pairs that say the same, how often each wording was the best, what got no answer."""
        batches = cut_batches(
            sets, name=lambda s: str((s.anchor, s.said)), weigh=lambda s: len(s.said), size=_FACTS
        )

        def pose(batch: Sequence[_Set]) -> tuple[Request, Parse[dict[int, tuple[Same, ...]]]]:
            asked = [one.question for one in batch]
            request = ask_what_is_same(
                asked, domain=self.domain, language=self.language, max_tokens=self.max_tokens
            )
            return request, partial(parse_what_is_same, batch=asked)

        same: set[tuple[_Anchor, _Pair]] = set()
        best: Counter[tuple[_Anchor, _Said]] = Counter()
        losses = []
        for batch, answer in ask_batches(self.asker, batches, pose, self.concurrency):
            if isinstance(answer, Failure):
                detail = f"{answer.detail}; left apart: {'; '.join(map(_show, batch))}"
                losses.append(Loss(f"llm_{answer.kind}", answer.key, detail))
                continue
            left = [_show(one) for at, one in enumerate(batch) if at not in answer]
            why = "the reply leaves it out; left apart"
            losses += [Loss("llm_invalid", each, f"{why}: {each}") for each in left]
            for one, group in ((batch[at], g) for at, own in answer.items() for g in own):
                said = [one.said[place] for place in group]
                pairs = set(map(frozenset, combinations(said, 2))) & one.pairs
                same |= {(one.anchor, pair) for pair in pairs}
                best[one.anchor, said[0]] += 1
        return same, best, losses


def _tell(neighbourhood: Neighbourhood) -> _Told:
    facts: dict[_Said, list[Statement]] = defaultdict(list)
    statements = sorted(neighbourhood.statements, key=lambda s: (s.relation, s.head, s.key))
    for statement in statements:
        facts[statement.relation, statement.head != statements[0].head].append(statement)
    return _Told((neighbourhood.anchor, neighbourhood.anchor_class), facts)


def _list_sets(told: Sequence[_Told]) -> list[_Set]:
    """What is to be asked so that every pair of wordings near an anchor is asked about once."""
    groups: dict[tuple[_Anchor, tuple[_Said, ...]], list[_Told]] = defaultdict(list)
    for one in told:
        groups[one.anchor, one.said].append(one)
    covered: set[tuple[_Anchor, _Pair]] = set()
    sets = []
    # The largest first: they have most of the smaller ones' pairs.
    for anchor, said in sorted(groups, key=lambda place: (-len(place[1]), str(place))):
        pairs = frozenset(
            pair for pair in map(frozenset, combinations(said, 2)) if (anchor, pair) not in covered
        )
        if pairs:
            covered |= {(anchor, pair) for pair in pairs}
            asked = tuple(sorted(frozenset[_Said]().union(*pairs)))
            shown = nsmallest(  # by names, whatever the order of what is given
                _EXAMPLES,
                groups[anchor, said],
                key=lambda one: (one.ends, tuple(map(one.show, one.said))),
            )
            sets.append(_Set(anchor, asked, pairs, shown))
    return sets


def _says(one: Statement, other: Statement) -> bool:
    """Whether a fact's value says the other's; entities of one pair of ends are the same."""
    if one.head != other.head or one.tail == other.tail:
        return True
    return read_value(one.tail).says(read_value(other.tail))


def _group(
    facts: Iterable[tuple[_Said, Statement]], agreed: set[frozenset[str]]
) -> list[list[tuple[_Said, Statement]]]:
    """Groups of two and more in which all say the same as all others."""
    groups: list[list[tuple[_Said, Statement]]] = []
    for said, fact in facts:
        for group in groups:
            if all(frozenset((fact.key, other.key)) in agreed for _, other in group):
                group.append((said, fact))
                break
        else:
            groups.append([(said, fact)])
    return [group for group in groups if len(group) > 1]


def _refuse(anchor: _Anchor, one: Statement, other: Statement) -> Loss:
    pair = f"{one.relation} / {other.relation}"
    facts = "; ".join(" | ".join(statement.triple) for statement in (one, other))
    return Loss("llm_contrary", f"{anchor[0]}: {pair}", f"cannot say the same: {facts}")


def _show(one: _Set) -> str:
    return f"{one.anchor[0]}: {' / '.join(wording for wording, _ in one.said)}"
