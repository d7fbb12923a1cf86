"""The second half of f_con: a sentence that states several facts of a subject near an anchor.

A model writes it and cites facts by number; rules refuse a sentence that the facts do not support.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from kpyramid.condensation.graph import Statement
from kpyramid.documents.words import ARTICLES, FUNCTION_WORDS, list_plain_words, stem_words
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

_PROMPT = read_prompts(__file__)["summary"]
_CHARACTERS = 300
"""Most characters of a fact in a prompt; longer facts are not summarised."""
_MOST = 12
"""Facts that a statement may cite; the facts of a subject with more are divided evenly."""
_FACTS = 40
"""Numbered facts in a request: about 1,000 tokens."""
_SILENT = ARTICLES | frozenset("and at in of on".split())
"""Words that a statement may add. All others, also `not`, `was` and `by`, must be of the facts."""
_MARKS = frozenset(" .,;:'’()-–")
"""Marks that it may add."""


@dataclass(frozen=True, slots=True)
class Group:
    """Facts of one subject near one anchor, two or more; `about` is the anchor's label."""

    head_id: str
    anchor: str
    about: str
    facts: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """Subject and anchor, for messages."""
        return f"{self.facts[0].head}: {self.about}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A statement that its facts support; `keys`: sorted keys of the facts that it cites."""

    group: Group
    text: str
    keys: tuple[str, ...]


def cut_groups(group: Group) -> Iterator[Group]:
    """The facts of a group that fit a prompt, in groups of 2 to `_MOST`."""
    facts = sorted(
        (fact for fact in group.facts if len(flatten(fact.text, _CHARACTERS + 1)) <= _CHARACTERS),
        key=lambda fact: (fact.relation, fact.tail, fact.key),
    )
    if len(facts) > 1:
        parts = math.ceil(len(facts) / _MOST)
        for first, last in pairwise(len(facts) * part // parts for part in range(parts + 1)):
            yield Group(group.head_id, group.anchor, group.about, tuple(facts[first:last]))


@dataclass(slots=True, eq=False)
class Summariser(BatchAsker):
    """Writes statements for groups of facts.

    `foresees`: in a plan, it continues where facts are still to be merged.
    """

    foresees: bool = False

    def summarise(self, groups: Sequence[Group]) -> tuple[list[Summary], list[Loss]]:
        """The supported statements, and a loss for each that was refused or got no answer.

        Raises:
            BudgetError, EndpointError: no further call can be made; earlier answers remain.
        """
        parts = [part for group in groups for part in cut_groups(group)]
        batches = cut_batches(
            parts,
            name=lambda g: str((g.head_id, g.anchor, [fact.key for fact in g.facts])),
            weigh=lambda g: len(g.facts),
            size=_FACTS,
        )
        system = write_system(_PROMPT, self.domain, self.language)
        answers = self.ask_batches(batches, TASK, system, show_groups, parse_statements)
        summaries: list[Summary] = []
        losses: list[Loss] = []
        for batch, answer in answers:
            if isinstance(answer, Failure):
                left = "; ".join(group.name for group in batch)
                losses.append(Loss.of(answer, f"not summarised: {left}"))
                continue
            for index, group in enumerate(batch):
                if index not in answer:
                    detail = "the reply leaves it out; not summarised"
                    losses.append(Loss("llm_invalid", group.name, detail))
                elif answer[index].text:
                    made = verify_statement(answer[index], group)
                    if isinstance(made, Summary):
                        summaries.append(made)
                    else:
                        losses.append(made)
        return summaries, losses


# Verification of a statement by its facts.


@dataclass(frozen=True, slots=True)
class Claimed:
    """A model's statement; `cited`: indices in its group's facts, -1 for any other number."""

    text: str
    cited: tuple[int, ...]


def verify_statement(claimed: Claimed, group: Group) -> Summary | Loss:
    """The statement if the facts that it cites support it, else a loss with the reason.

    It must cite two or more facts of its group and no other (`llm_uncited`), use only their words,
    numbers and marks (`llm_unsupported`), include all their ends and qualifiers (`llm_incomplete`),
    have each fact's object behind that fact's wording and next to that fact's times and places
    (`llm_unsupported`), and be no longer than they are together (`llm_longer`). Words are compared
    by their stems.
    """

    def refuse(reason: str, detail: str) -> Loss:
        return Loss(f"llm_{reason}", group.name, f"{detail}: {claimed.text}")

    if -1 in claimed.cited or len(claimed.cited) < 2:
        return refuse("uncited", "it does not cite two or more of its own facts and no other")
    cited = [group.facts[index] for index in claimed.cited]
    stated = "; ".join(fact.text for fact in cited)
    known = _list_stems(stated)
    if strange := sorted(_list_stems(claimed.text) - known - _SILENT):
        return refuse("unsupported", f"no fact that it cites says {', '.join(strange)}")
    signs = {c for c in claimed.text if not c.isalnum()}
    if signs := signs - _MARKS - set(stated):
        return refuse("unsupported", f"no fact that it cites has {' '.join(sorted(signs))}")
    ends = " ; ".join(part for fact in cited for part in (fact.head, fact.tail, *fact.values))
    if left := sorted(_list_stems(ends) - _list_stems(claimed.text) - _SILENT):
        return refuse("incomplete", f"it cites facts and leaves out {', '.join(left)}")
    if fault := _find_misuse(claimed.text, cited):
        return refuse("unsupported", fault)
    if len(claimed.text) > len(stated):
        return refuse("longer", "it is longer than the facts")
    return Summary(group, claimed.text, tuple(sorted(fact.key for fact in cited)))


def _find_misuse(text: str, cited: Sequence[Statement]) -> str:
    """The first object that has another fact's wording or circumstance, in words; empty if none.

    A verb governs the objects behind it up to the next verb: the wording nearest before an object
    must be of a fact with that object, and all of the fact's wording must precede it. A qualifier
    whose role has several values must stand next to its object.
    """
    words = _list_words(text)
    wordings = {fact.relation: _list_words(fact.relation) for fact in cited}
    begun = sorted(
        (start, len(run), name)
        for name, run in wordings.items()
        for start in _find_runs(words, run)
    )
    for fact in cited:
        fitting = {wordings[second.relation] for second in cited if second.tail == fact.tail}
        run, places = wordings[fact.relation], _find_runs(words, _list_words(fact.tail))
        says_much = not FUNCTION_WORDS.issuperset(list_plain_words(fact.relation))
        before = ([(a + size, size, r) for a, size, r in begun if a + size <= i] for i in places)
        nearest = [max(each, key=lambda run: run[:2])[2] for each in before if each]
        if says_much and not any(_is_within(run, words[:i]) for i in places):
            return f"it leaves out that {fact.text}"
        whole = any(name == fact.relation for *_, name in begun)  # else in parts: "in A and for B"
        if says_much and whole and all(wordings[name] not in fitting for name in nearest):
            return f"another wording stands before {fact.tail}"
        for role, value in fact.qualifiers:
            values = {v for second in cited for r, v in second.qualifiers if r == role}
            held = sorted((place, v) for v in values for place in _find_runs(words, _list_words(v)))
            beside = {next((v for place, v in held if place > i), None) for i in places}
            beside |= {next((v for place, v in held[::-1] if place < i), None) for i in places}
            if len(values) > 1 and value not in beside:
                return f"another {role} stands beside {fact.tail}"
    return ""


def _list_words(text: str) -> tuple[str, ...]:
    """The stems in order, without those that a statement may add."""
    stems = zip(words := list_plain_words(text), stem_words(words), strict=True)
    return tuple(stem for word, stem in stems if word not in _SILENT)


def _find_runs(words: Sequence[str], run: Sequence[str]) -> list[int]:
    """The indices at which a run of words begins; an empty run has none."""
    size = len(run)
    return [i for i in range(len(words) - size + 1) if size and words[i : i + size] == run]


def _is_within(run: Sequence[str], words: Sequence[str]) -> bool:
    """Whether `words` contain all words of a run, in order."""
    left = iter(words)
    return all(word in left for word in run)


def _list_stems(text: str) -> frozenset[str]:
    return frozenset(stem_words(list_plain_words(text)))


# The task.


class _Row(Strict):
    group: int
    thought: str
    statement: str
    facts: list[int]


class _Reply(Strict):
    groups: list[_Row]


def show_groups(batch: Sequence[Group]) -> str:
    """The groups as a model is shown them."""
    lines: list[str] = []
    numbers = count(1)
    for group_number, group in enumerate(batch, 1):
        lines += ["", f"Group {group_number}: {flatten(group.about, _CHARACTERS)}"]
        for fact in group.facts:
            shown = flatten(" | ".join(fact.triple) + fact.held, 2 * _CHARACTERS)
            lines.append(f"{next(numbers)}. {shown}")
    return "\n".join(lines).strip()


def parse_statements(content: str, batch: Sequence[Group]) -> Mapping[int, Claimed]:
    """The statements of a reply, by a group's index in the batch; groups may be missing.

    Raises:
        ReplyError: it is no JSON of the schema, or names a group that does not exist.
    """
    places = [(i, place) for i, group in enumerate(batch) for place in range(len(group.facts))]
    claims: dict[int, Claimed] = {}
    for row in parse_json(content, _Reply).groups:
        if not 0 < row.group <= len(batch):
            raise ReplyError(FailureKind.INVALID, f"there is no group {row.group}")
        fact_of = {number: fact for number, (g, fact) in enumerate(places, 1) if g == row.group - 1}
        cited = sorted({fact_of.get(number, -1) for number in row.facts})
        claims.setdefault(row.group - 1, Claimed(" ".join(row.statement.split()), tuple(cited)))
    return claims


TASK = Task(
    name="summary",
    version=1,
    stage="condense",
    reply=_Reply,
    system=lambda settings: write_system(
        _PROMPT, settings.cascade.domain, settings.cascade.language
    ),
    is_asked=lambda settings: settings.condense.summarise == "llm",
    shaping=(
        *(
            _PROMPT["instructions"],
            GUARD,
            _PROMPT["example"],
            _PROMPT["reply"],
            strict_schema(_Reply),
        ),
        *(_CHARACTERS, _MOST, _FACTS),
    ),
    # The demo has 359 facts in 142 groups of 204 chunks; other corpora have a sixth at most.
    expected=Expected(reply=1.0, per_chunk=0.05, characters=2_500, spread=(0.0, 4.0)),
    without='condense.summarise = "none": sentences that join several facts; the facts stay',
)
