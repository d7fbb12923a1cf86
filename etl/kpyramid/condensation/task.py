"""f_con: which of some facts about the same two things say the same, and which says it best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kpyramid.keys import JsonValue
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import (
    GUARD,
    Expected,
    Strict,
    Task,
    flatten,
    strict_schema,
    write_json,
)
from kpyramid.llm.types import FailureKind, ReplyError, Request

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


class _Set(Strict):
    set: int
    thought: str
    same: list[_Group]


class _Reply(Strict):
    sets: list[_Set]


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
            if not all(0 < number <= len(places) for number in (*group.members, group.best)):
                raise ReplyError(FailureKind.INVALID, f"there is no fact among {group.members}")
            sets = {places[number - 1][0] for number in (*group.members, group.best)}
            if sets != {entry.set - 1}:
                raise ReplyError(FailureKind.INVALID, "facts of two sets were grouped")
            if group.best not in group.members:
                raise ReplyError(FailureKind.INVALID, f"{group.best} is best of others")
            if seen & set(group.members):
                raise ReplyError(FailureKind.INVALID, "a fact stands in two groups")
            seen |= set(group.members)
            others = sorted({*group.members} - {group.best})
            if others:
                groups.append(tuple(places[number - 1][1] for number in (group.best, *others)))
        found.setdefault(entry.set - 1, tuple(groups))
    return found


TASK = Task(
    name="condensation",
    version=1,
    stage="condense",
    reply=_Reply,
    parse=parse_what_is_same,
    system=lambda settings: _write_system(settings.cascade.domain, settings.cascade.language),
    is_asked=lambda settings: settings.condense.mode == "llm",
    shaping=(_INSTRUCTIONS, GUARD, _EXAMPLE, _REPLY, _CHARACTERS, strict_schema(_Reply)),
    # .005 batches per chunk on the demo's 204 chunks.
    expected=Expected(reply=1.5, per_chunk=0.01, characters=2_500, spread=(0.0, 4.0)),
)
