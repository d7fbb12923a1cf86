"""f_dis over a corpus: near duplicates that the rules left apart, confirmed by a model.

Candidates are retrieved by forms and vectors; a model only confirms (small models corrupt names
that they may write). It answers in numbers, so it can merge only pairs that were offered.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import numpy as np
from jinja2 import Environment

from kpyramid.embeddings.port import Embedder
from kpyramid.graph.relations import Union
from kpyramid.llm.caller import BatchAsker, Loss, cut_batches
from kpyramid.llm.prompts import read_prompts
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

_PROMPT = read_prompts(__file__)["duplicates"]
_KINDS = {kind: (*parts.values(),) for kind, parts in _PROMPT["kinds"].items()}
_SIMILARITY = 0.75
"""Cosine from which the model is asked about two wordings; `husband of` and `wife of` have .87."""
_BUCKET = 24
"""Most wordings with a word for the word to make pairs; more frequent words are too general."""
_MOST = 8
"""Most wordings in a group; more would be a topic, not a thing."""
_BATCH = 40
"""Wordings in a batch; with their facts about 1,200 tokens."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that may have a duplicate: its name or phrase, words, types, and a fact with it."""

    key: str
    text: str
    words: frozenset[str]
    types: frozenset[str]
    fact: str


Group = tuple[Candidate, ...]
"""Candidates that are near duplicates of each other."""
KeyPair = tuple[str, str]


def find_groups(candidates: Sequence[Candidate], embedder: Embedder) -> list[Group]:
    """Groups of two or more near duplicates; a candidate is in one group at most.

    Only candidates that share a rare word are compared, by the cosine of their vectors, so that
    time grows with their number, not with its square.
    """
    by_key = {c.key: c for c in sorted(candidates, key=lambda c: c.key)}
    pairs = sorted(_list_pairs(by_key.values()))
    wanted = sorted({by_key[key].text for pair in pairs for key in pair})
    vectors = dict(zip(wanted, embedder.embed(wanted), strict=True)) if wanted else {}
    scored = []
    for left, right in pairs:
        cosine = float(np.dot(vectors[by_key[left].text], vectors[by_key[right].text]))
        if cosine >= _SIMILARITY:
            scored.append((-round(cosine, 6), left, right))
    members: dict[str, list[str]] = {}
    for _, left, right in sorted(scored):  # the nearest first, before a group is full
        a, b = members.setdefault(left, [left]), members.setdefault(right, [right])
        if a is not b and len(a) + len(b) <= _MOST:
            a.extend(b)
            members.update(dict.fromkeys(b, a))
    groups = {min(keys): sorted(keys) for keys in members.values() if len(keys) > 1}
    return [tuple(map(by_key.__getitem__, groups[first])) for first in sorted(groups)]


def unite_pairs(pairs: Iterable[KeyPair], rank: Mapping[str, tuple[int, str]]) -> dict[str, str]:
    """The root of each merged key: the key of smallest rank in its set."""
    pairs = sorted(pairs)
    keys = sorted({key for pair in pairs for key in pair})
    joined = Union(keys, rank.__getitem__)
    for left, right in pairs:
        joined.join(left, right)
    return {key: joined.find(key) for key in keys}


def _list_pairs(candidates: Iterable[Candidate]) -> set[KeyPair]:
    """Pairs of keys that share a rare word, and whose known types overlap."""
    candidates = list(candidates)
    bearers = Counter(word for c in candidates for word in c.words)
    by_word: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        for word in candidate.words:
            if bearers[word] <= _BUCKET:
                by_word[word].append(candidate)
    return {
        (min(a.key, b.key), max(a.key, b.key))
        for bearing in by_word.values()
        for a, b in combinations(bearing, 2)
        if not a.types or not b.types or a.types & b.types
    }


def _name_group(group: Group) -> str:
    return "\n".join(wording.key for wording in group)


# The task of the model.


class _Pair(Strict):
    first: int
    second: int


class _Reply(Strict):
    same: list[_Pair]


def show_groups(groups: Sequence[Group]) -> str:
    """The groups as a model is shown them."""
    lines: list[str] = []
    numbers = count(1)
    for group in groups:
        for wording in group:
            lines.append(f"{next(numbers)}. {flatten(wording.text)} | {flatten(wording.fact)}")
        lines.append("")
    return "\n".join(lines).strip()


def parse_duplicates(content: str, groups: Sequence[Group]) -> tuple[KeyPair, ...]:
    """The pairs of keys that the reply judges the same.

    Raises:
        ReplyError: the reply is no JSON of the schema, or pairs wordings of different groups.
    """
    places = [(index, w.key) for index, group in enumerate(groups) for w in group]
    pairs = set()
    for pair in parse_json(content, _Reply).same:
        if not (0 < pair.first <= len(places) and 0 < pair.second <= len(places)):
            raise ReplyError(FailureKind.INVALID, f"there is no wording {pair.first}-{pair.second}")
        (left, first), (right, second) = places[pair.first - 1], places[pair.second - 1]
        if left != right:
            raise ReplyError(FailureKind.INVALID, "wordings of two groups were paired")
        if first != second:
            pairs.add((min(first, second), max(first, second)))
    return tuple(sorted(pairs))


def _write_system(kind: str, domain: str, language: str) -> str:
    what, noun, warning = _KINDS[kind]
    template = Environment(autoescape=False)  # noqa: S701 - text for a model, not for a browser
    return template.from_string(_PROMPT["instructions"]).render(
        what=what, one=noun, warning=warning, domain=domain, language=language, guard=GUARD
    )


TASK = Task(
    name="duplicates",
    version=2,
    stage="resolve",
    reply=_Reply,
    system=lambda s: _write_system("entities", s.cascade.domain, s.cascade.language),
    is_asked=lambda settings: settings.cascade.confirms_duplicates,
    shaping=(_PROMPT["instructions"], GUARD, str(_KINDS), strict_schema(_Reply)),
    # On 1,985 chunks of MuSiQue: 0.03 per chunk that GPT-3.5 read, 0.10 per chunk by the rules.
    expected=Expected(reply=0.1, per_chunk=0.06, characters=2_550, spread=(0.2, 3.0)),
    without='cascade.disambiguation = "rules": near duplicates that no rule unites stay apart',
)


class Disambiguator(BatchAsker):
    """f_dis for a corpus."""

    def confirm(self, kind: str, groups: Sequence[Group]) -> tuple[list[KeyPair], list[Loss]]:
        """The pairs of `entities` or `relations` within each group that are the same, sorted.

        A loss for each batch without an answer.

        Raises:
            BudgetError, EndpointError: no further call can be made; earlier answers remain.
        """
        batches = cut_batches(groups, name=_name_group, weigh=len, size=_BATCH)
        system = _write_system(kind, self.domain, self.language)
        pairs: list[KeyPair] = []
        losses = []
        for batch, answer in self.ask_batches(batches, TASK, system, show_groups, parse_duplicates):
            if isinstance(answer, Failure):
                shown = "; ".join(" / ".join(wording.text for wording in group) for group in batch)
                losses.append(Loss.of(answer, f"left apart: {shown}"))
            else:
                pairs.extend(answer)
        return sorted(pairs), losses
