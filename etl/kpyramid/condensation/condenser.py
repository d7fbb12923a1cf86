"""Condensation by a model (f_con): merging of equivalent facts that the rules left apart."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import combinations, count

from kpyramid.condensation.graph import Graph, Neighbourhood, Statement, read_value
from kpyramid.condensation.merging import Condensation, Fact
from kpyramid.llm.caller import BatchAsker, Loss, cut_batches
from kpyramid.llm.prompts import read_prompts, write_system
from kpyramid.llm.task import (
    GUARD,
    Expected,
    Failure,
    FailureKind,
    ReplyError,
    Strict,
    Task,
    flatten,
    parse_json,
    strict_schema,
)
from kpyramid.ontology.schema import Schema

_CHARACTERS = 120
"""Most characters of a name or a wording in a prompt."""
_flatten = partial(flatten, most=_CHARACTERS)
_PROMPT = read_prompts(__file__)["condensation"]


@dataclass(frozen=True, slots=True)
class Question:
    """A set of facts in words, each (subject, wording, object); `about` names their anchor.

    `examples`: the same wordings of further ends, as (subject, object) of the first fact.
    """

    about: str
    facts: tuple[tuple[str, str, str], ...]
    examples: tuple[tuple[str, str], ...] = ()


Same = tuple[int, ...]
"""Indices of a question's facts that say the same, the best first."""


class _Group(Strict):
    members: list[int]
    best: int


class _Answered(Strict):
    set: int
    thought: str
    same: list[_Group]


class _Reply(Strict):
    sets: list[_Answered]


def show_sets(batch: Sequence[Question]) -> str:
    """The sets as a model is shown them."""
    lines: list[str] = []
    numbers = count(1)
    for set_number, question in enumerate(batch, 1):
        lines += ["", f"Set {set_number}: {_flatten(question.about)}"]
        for fact in question.facts:
            lines.append(f"{next(numbers)}. {' | '.join(map(_flatten, fact))}")
        if question.examples:
            further = "; ".join(f"{_flatten(a)} and {_flatten(b)}" for a, b in question.examples)
            lines.append(f"All of it is also said of {further}.")
    return "\n".join(lines).strip()


def parse_what_is_same(content: str, batch: Sequence[Question]) -> dict[int, tuple[Same, ...]]:
    """The groups of equivalent facts in a reply, by index of the set; sets may be missing.

    Raises:
        ReplyError: it is no JSON of the schema, or groups facts of different sets.
    """
    places = [(index, place) for index, q in enumerate(batch) for place in range(len(q.facts))]
    by_set: dict[int, tuple[Same, ...]] = {}
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
        by_set.setdefault(entry.set - 1, tuple(groups))
    return by_set


TASK = Task(
    name="condensation",
    version=1,
    stage="condense",
    reply=_Reply,
    system=lambda settings: write_system(
        _PROMPT, settings.cascade.domain, settings.cascade.language
    ),
    is_asked=lambda settings: settings.condense.mode == "llm",
    shaping=(
        _PROMPT["instructions"],
        GUARD,
        _PROMPT["example"],
        _PROMPT["reply"],
        _CHARACTERS,
        strict_schema(_Reply),
    ),
    # .005 batches per chunk on the demo's 204 chunks.
    expected=Expected(reply=1.5, per_chunk=0.01, characters=2_500, spread=(0.0, 4.0)),
    without='condense.mode = "rules": facts that say the same in words the lexicon does not join',
)


def list_neighbourhoods(
    graph: Graph, made: Condensation, ids: Sequence[str], schema: Schema
) -> list[Neighbourhood]:
    """The facts left apart, by pair of ends and anchor (f_con's X_k); a fact is in one at most.

    `ids`: keys of the facts by row.
    """
    groups = []
    for mergers in made.apart:
        by_anchor: dict[tuple[str, bool], list[Fact]] = defaultdict(list)
        for merger in mergers:
            for anchor in merger.fact.anchors:
                by_anchor[anchor].append(merger.fact)
        taken: set[int] = set()
        for (iri, _), around in sorted(by_anchor.items(), key=lambda e: (-len(e[1]), e[0])):
            left = [fact for fact in around if fact.place not in taken]
            if len(left) > 1:
                taken |= {fact.place for fact in left}
                kind = schema.class_for_type(left[0].ends[0])
                domain = schema.class_by_iri[kind].label if kind else None
                facts = tuple(Statement(ids[f.place], *graph.tell(f.place)) for f in left)
                groups.append(Neighbourhood(schema.property_by_iri[iri].label, domain, facts))
    return groups


def merge_agreed(made: Condensation, ids: Sequence[str], agreed: Iterable[tuple[str, str]]) -> None:
    """Merges the agreed pairs of keys: of the fact that goes, and of the fact that stays."""
    row = {key: index for index, key in enumerate(ids)}
    goes = {row[gone]: row[stay] for gone, stay in agreed}
    by_place = {merger.fact.place: merger for mergers in made.apart for merger in mergers}
    for place in sorted(goes):
        stays = place
        while stays in goes:
            stays = goes[stays]
        for fact, _ in by_place[place].merged:
            made.stands[fact.place], made.how[fact.place] = stays, "llm"


_FACTS = 40
"""Numbered facts in a request: about 900 tokens."""
_EXAMPLES = 2
"""Pairs of ends that a question shows of all that have the same wordings."""

_Anchor = tuple[str, str | None]
_Form = tuple[str, bool]
"""A wording, and whether it reads from the neighbourhood's tail to its head."""
_Pair = frozenset[_Form]
Bars = Callable[[Statement, Statement], bool]
"""Whether two facts of the same ends cannot be equivalent, whatever the model answers."""


@dataclass(frozen=True, slots=True)
class Condensed:
    """The merged facts, as pairs: key of the fact that goes, key of the fact that stays."""

    merged: tuple[tuple[str, str], ...]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Worded:
    """A neighbourhood's facts by wording, directed so that the first wording reads forwards.

    A wording has several facts where their tails are values.
    """

    anchor: _Anchor
    facts: Mapping[_Form, Sequence[Statement]]

    @property
    def ends(self) -> tuple[str, str]:
        first = next(fact for (_, turned), (fact, *_) in self.facts.items() if not turned)
        return first.head, first.tail

    @property
    def forms(self) -> tuple[_Form, ...]:
        return tuple(sorted(self.facts))

    def show(self, form: _Form) -> tuple[str, str, str]:
        return self.facts[form][0].triple


@dataclass(frozen=True, slots=True)
class _Set:
    """A question asked once for all ends: wordings near an anchor, and example ends."""

    anchor: _Anchor
    forms: tuple[_Form, ...]
    pairs: frozenset[_Pair]
    examples: Sequence[_Worded]

    @property
    def question(self) -> Question:
        label, domain = self.anchor
        about = f"{label} ({domain})" if domain else label
        first, *others = self.examples
        return Question(about, tuple(map(first.show, self.forms)), tuple(o.ends for o in others))


class Condenser(BatchAsker):
    """f_con for a graph."""

    def condense(self, neighbourhoods: Sequence[Neighbourhood], bars: Bars) -> Condensed:
        """Merges facts within neighbourhoods; equal wordings near an anchor are asked about once.

        A pair for which `bars` is true is never merged; it is a loss where the model merges it.

        Raises:
            BudgetError, EndpointError: no further call can be made; earlier answers remain.
        """
        groups = [worded for n in neighbourhoods if len((worded := _group_wordings(n)).facts) > 1]
        same, best, losses = self._ask(_list_sets(groups))
        merged: list[tuple[str, str]] = []
        barred: dict[tuple[_Anchor, _Pair], Loss] = {}
        for worded in groups:
            facts = [(form, fact) for form in worded.forms for fact in worded.facts[form]]
            agreed: set[frozenset[str]] = set()
            for (form, first), (second_form, second) in combinations(facts, 2):
                pair = frozenset((form, second_form))
                if (worded.anchor, pair) not in same or not (
                    _says(first, second) or _says(second, first)
                ):
                    continue
                if bars(first, second):
                    barred[worded.anchor, pair] = _refuse(worded.anchor, first, second)
                else:
                    agreed.add(frozenset((first.key, second.key)))
            for group in _group(facts, agreed):
                full = [e for e in group if all(_says(e[1], broader) for _, broader in group)]
                _, stays = min(full, key=lambda e: (-best[worded.anchor, e[0]], e[0]))
                merged += [(fact.key, stays.key) for _, fact in group if fact != stays]
        return Condensed(tuple(sorted(merged)), (*losses, *barred.values()))

    def _ask(
        self, sets: Sequence[_Set]
    ) -> tuple[set[tuple[_Anchor, _Pair]], Counter[tuple[_Anchor, _Form]], list[Loss]]:
        """The equivalent pairs, how often each wording was the best, and the unanswered sets."""
        cut = cut_batches(
            sets, name=lambda s: str((s.anchor, s.forms)), weigh=lambda s: len(s.forms), size=_FACTS
        )
        batches = list(cut)
        questions = [[each.question for each in batch] for batch in batches]
        system = write_system(_PROMPT, self.domain, self.language)
        answers = self.ask_batches(questions, TASK, system, show_sets, parse_what_is_same)
        same: set[tuple[_Anchor, _Pair]] = set()
        best: Counter[tuple[_Anchor, _Form]] = Counter()
        losses = []
        for batch, (_, answer) in zip(batches, answers, strict=True):
            if isinstance(answer, Failure):
                losses.append(Loss.of(answer, f"left apart: {'; '.join(map(_show, batch))}"))
                continue
            left = [_show(each) for i, each in enumerate(batch) if i not in answer]
            why = "the reply leaves it out; left apart"
            losses += [Loss("llm_invalid", each, f"{why}: {each}") for each in left]
            for asked, group in ((batch[i], g) for i, groups in answer.items() for g in groups):
                forms = [asked.forms[place] for place in group]
                pairs = set(map(frozenset, combinations(forms, 2))) & asked.pairs
                same |= {(asked.anchor, pair) for pair in pairs}
                best[asked.anchor, forms[0]] += 1
        return same, best, losses


def _group_wordings(neighbourhood: Neighbourhood) -> _Worded:
    facts: dict[_Form, list[Statement]] = defaultdict(list)
    statements = sorted(neighbourhood.statements, key=lambda s: (s.relation, s.head, s.key))
    for statement in statements:
        facts[statement.relation, statement.head != statements[0].head].append(statement)
    return _Worded((neighbourhood.anchor, neighbourhood.anchor_class), facts)


def _list_sets(groups_worded: Sequence[_Worded]) -> list[_Set]:
    """The sets of wordings that cover every pair near an anchor once."""
    groups: dict[tuple[_Anchor, tuple[_Form, ...]], list[_Worded]] = defaultdict(list)
    for worded in groups_worded:
        groups[worded.anchor, worded.forms].append(worded)
    covered: set[tuple[_Anchor, _Pair]] = set()
    sets = []
    # The largest first: they include most pairs of the smaller sets.
    for anchor, forms in sorted(groups, key=lambda place: (-len(place[1]), str(place))):
        pairs = frozenset(
            pair for pair in map(frozenset, combinations(forms, 2)) if (anchor, pair) not in covered
        )
        if pairs:
            covered |= {(anchor, pair) for pair in pairs}
            asked = tuple(sorted(frozenset[_Form]().union(*pairs)))
            shown = nsmallest(  # by names, independent of the order of the input
                _EXAMPLES,
                groups[anchor, forms],
                key=lambda worded: (worded.ends, tuple(map(worded.show, worded.forms))),
            )
            sets.append(_Set(anchor, asked, pairs, shown))
    return sets


def _says(left: Statement, right: Statement) -> bool:
    """Whether the left fact's value includes the right one's; true for entities as tails."""
    if left.head != right.head or left.tail == right.tail:
        return True
    return read_value(left.tail).says(read_value(right.tail))


def _group(
    facts: Iterable[tuple[_Form, Statement]], agreed: set[frozenset[str]]
) -> list[list[tuple[_Form, Statement]]]:
    """Groups of two or more facts that were pairwise agreed to be equivalent."""
    groups: list[list[tuple[_Form, Statement]]] = []
    for form, fact in facts:
        for group in groups:
            if all(frozenset((fact.key, member.key)) in agreed for _, member in group):
                group.append((form, fact))
                break
        else:
            groups.append([(form, fact)])
    return [group for group in groups if len(group) > 1]


def _refuse(anchor: _Anchor, left: Statement, right: Statement) -> Loss:
    pair = f"{left.relation} / {right.relation}"
    facts = "; ".join(" | ".join(statement.triple) for statement in (left, right))
    return Loss("llm_contrary", f"{anchor[0]}: {pair}", f"cannot say the same: {facts}")


def _show(asked: _Set) -> str:
    return f"{asked.anchor[0]}: {' / '.join(wording for wording, _ in asked.forms)}"
