"""f_dis over a corpus: which near duplicates mean the same, asked in batches.

The candidates are found by forms and vectors; a model only confirms (small ones corrupt names
when they may write them). It answers in numbers, so it can merge nothing that was not offered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment

from kpyramid.extraction.cascade.prompts import GUARD, Strict, strict_schema
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import FailureKind, ReplyError, Request

_INSTRUCTIONS = """\
You compare {{ language }} {{ what }} from the {{ domain }} domain.
You get numbered {{ what }} in groups, each followed by a fact in which it stands.
Say which of one group are two wordings of the same {{ one }}. Similar is not the same:
{{ warning }} In doubt leave them apart.
{{ guard }}
Answer with JSON: {"same": [{"first": 1, "second": 2}]}, one entry per pair of wordings that mean
the same {{ one }}, {"same": []} if there is none.
"""
_KINDS = {
    "entities": (
        "names",
        "thing",
        "a person and a relative, a place and the region around it, an edition or a part of a "
        "whole are different.",
    ),
    "relations": (
        "relation phrases",
        "relation in the same direction",
        "`bought` and `sold`, `husband of` and `wife of`, `opened in` and `closed in`, "
        "`wrote` and `was written by` are different.",
    ),
}


class _Pair(Strict):
    first: int
    second: int


class _Reply(Strict):
    same: list[_Pair]


@dataclass(frozen=True, slots=True)
class Wording:
    """A name or a relation phrase; `key` is its cluster's, `fact` one in which it stands."""

    key: str
    text: str
    fact: str


Group = tuple[Wording, ...]
"""Near duplicates of each other."""
KeyPair = tuple[str, str]


def ask_for_duplicates(
    kind: str, groups: Sequence[Group], *, domain: str, language: str, max_tokens: int
) -> Request:
    """The request for a batch of groups of `entities` or `relations`."""
    lines: list[str] = []
    number = 0
    for group in groups:
        for wording in group:
            number += 1
            lines.append(f"{number}. {_flatten(wording.text)} | {_flatten(wording.fact)}")
        lines.append("")
    system = _write_system(kind, domain, language)
    return TASK.request(system, "\n".join(lines).strip(), max_tokens=max_tokens)


def parse_duplicates(content: str, groups: Sequence[Group]) -> tuple[KeyPair, ...]:
    """The pairs of keys that the reply holds for the same.

    Raises:
        ReplyError: the reply is no JSON of the schema, or pairs what was not offered together.
    """
    places = [(at, w.key) for at, group in enumerate(groups) for w in group]
    pairs = set()
    for pair in parse_json(content, _Reply).same:
        if not (0 < pair.first <= len(places) and 0 < pair.second <= len(places)):
            raise ReplyError(FailureKind.INVALID, f"there is no wording {pair.first}-{pair.second}")
        (one, first), (other, second) = places[pair.first - 1], places[pair.second - 1]
        if one != other:
            raise ReplyError(FailureKind.INVALID, "wordings of two groups were paired")
        if first != second:
            pairs.add((min(first, second), max(first, second)))
    return tuple(sorted(pairs))


def _write_system(kind: str, domain: str, language: str) -> str:
    what, one, warning = _KINDS[kind]
    return (
        Environment(autoescape=False)  # noqa: S701 - text for a model, not for a browser
        .from_string(_INSTRUCTIONS)
        .render(what=what, one=one, warning=warning, domain=domain, language=language, guard=GUARD)
    )


def _flatten(text: str) -> str:
    """One line."""
    return " ".join(text.split())


TASK = Task(
    name="duplicates",
    version=2,
    stage="resolve",
    reply=_Reply,
    parse=parse_duplicates,
    system=lambda s: _write_system("entities", s.cascade.domain, s.cascade.language),
    is_asked=lambda settings: settings.cascade.confirms_duplicates,
    shaping=(_INSTRUCTIONS, GUARD, str(_KINDS), strict_schema(_Reply)),
    # On 1,985 chunks of MuSiQue: 0.03 per chunk of what GPT-3.5 read, 0.10 of what the rules read.
    expected=Expected(reply=0.1, per_chunk=0.06, characters=2_550, spread=(0.2, 3.0)),
)
