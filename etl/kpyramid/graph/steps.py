"""How surely the words of a question say a chain of relations: the twin of a model that scores it.

"The nationality of X's spouse" says its steps in the order away from X: first what X owns, then
what that is "of", then the rest. A chain is rated by the best way to give each of its steps, in
that order, words of its own; each step has to be said, and what is left of the question counts
against the chain. A step says words by being them, by meaning the same in the lexicon of relation
wordings, where it also has a direction, else by the cosine of two short phrases.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    BE,
    FUNCTION,
    HAVE,
    lemmatise,
    normalise_relation,
)
from kpyramid.graph.synonyms.lexicon import load_lexicon
from kpyramid.graph.synonyms.meaning import read_frame

Step = tuple[str, bool]
"""Wording of a relation, and whether it is gone from head to tail."""
Meaning = tuple[str, bool]
"""Name of a meaning, and whether it is read from its tail to its head."""

SAME, MEANT, NEAR = 1.0, 0.9, 0.8
"""What a step is worth that is said by the relation's own words, by words of its meaning, and by
words of cosine 1, as a factor of the cosine."""
ACROSS, MORE = 0.5, 0.6
"""Factor of the cosine of words for each further part of the question that they stand in, and for
each further word: another step may say it."""
AGAINST = 0.02
"""What a step is worth that is said the other way round: a parent where children are asked for."""
UNKNOWN_WAY = 0.5
"""Factor of a cosine where the relation is gone from tail to head: its words say the other end."""
LEFT, HARDLY_LEFT = 0.03, 0.7
"""Factor for each word that no step says, and for one of asking."""
LONGEST = 4
"""Words that say one step."""
MOST_WORDS = 60
"""Words that are read as steps, those nearest to the name: each run of them is embedded."""

_TOKEN = re.compile(r"['’]s\b|['’](?=\s)|[^\W_]+(?:[-.][^\W_]+)*")
_OWNER = frozenset({"'s", "’s", "'", "’"})
_AFTER = {"where": "in", "when": "in", "how": "of", "why": "of", "what": "of"}
"""The preposition that a question word stands for: "where did she die", `died in`."""
_ASKING = _AFTER.keys() - {"what"}
_POLITE = _ASKING | frozenset("name kind type sort tell give show please call know".split())
_EMPTY = FUNCTION - _ASKING | frozenset("who whom whose what which".split())
_PARTING = AUXILIARIES | {"of"}


class _Span(NamedTuple):
    """Words of a question that may say a step: as written, their lemmas, the phrase to embed.

    `parts`: what a cosine of the phrase is worth, which is made of several parts of the question.
    """

    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    phrase: str
    parts: float


class StepRater:
    """What a question says of one thing, by the words in their order away from its name.

    `embed` gives the vectors of texts; `wants_head` says of a relation whether its subject is asked
    for, where the grammar of the question does.
    """

    def __init__(
        self,
        text: str,
        name: str,
        embed: Callable[[Sequence[str]], Any],
        wants_head: Callable[[str], bool | None],
    ) -> None:
        self._embed, self._wants_head = embed, wants_head
        self._tokens = [t if t in _OWNER else t.casefold() for t in _TOKEN.findall(text)]
        self._words = _order(self._tokens, name)[:MOST_WORDS]
        self._skip = [
            HARDLY_LEFT if lemmatise(word) in _POLITE else LEFT for _, word in self._words
        ]
        self._aligned: dict[tuple[Step, ...], Any] = {}
        self._worth: dict[Step, Any] = {}
        count = len(self._words)
        self._spans = {
            (first, last): self._read_span(first, last)
            for first in range(count)
            for last in range(first + 1, min(count, first + LONGEST) + 1)
        }

    def rate(self, steps: tuple[Step, ...]) -> tuple[float, float]:
        """The chance that steps are the first of what is asked, and that they are all.

        Both from 0 to 1; of the second every word of the question counts.
        """
        if not self._words:
            return 0.0, 0.0
        found = self._align(steps)
        left = np.cumprod([1.0, *self._skip[::-1]])[::-1]
        return float(found.max()), float((found * left).max())

    def _align(self, steps: tuple[Step, ...]) -> Any:
        """By the number of words that are used up, the best chance of these steps."""
        if not steps:
            return np.eye(1, len(self._words) + 1)[0]
        if steps not in self._aligned:
            before = self._align(steps[:-1]).copy()
            for at, skip in enumerate(self._skip):  # words between two steps may be left
                before[at + 1] = max(before[at + 1], before[at] * skip)
            self._aligned[steps] = (before[:, None] * self._weigh(steps[-1])).max(axis=0)
        return self._aligned[steps]

    def _weigh(self, step: Step) -> Any:
        """What a step is worth by each span: a matrix of first and last word."""
        if step not in self._worth:
            own, spans = _list_phrases(step), list(self._spans.values())
            vectors = self._embed([*own, *(span.phrase for span in spans)])
            near = np.maximum((vectors[len(own) :] @ vectors[: len(own)].T).max(axis=1), 0.0)
            found = np.zeros((len(self._words) + 1, len(self._words) + 1))
            wants_head, verb = self._wants_head(step[0]), normalise_relation(step[0]).lemmas[:1]
            for (place, span), cosine in zip(self._spans.items(), near.tolist(), strict=True):
                found[place] = _say(step, span, cosine)
                if wants_head is not None and span.lemmas == verb:
                    found[place] = SAME if step[1] is not wants_head else AGAINST
            self._worth[step] = found
        return self._worth[step]

    def _read_span(self, first: int, last: int) -> _Span:
        own = sorted(self._words[first:last])
        between = self._tokens[own[0][0] : own[-1][0] + 1]
        alone = [word for _, word in own]
        whole = [t for t in between if t not in _EMPTY] == alone and not _OWNER & {*between}
        said = between if whole else alone
        says = {*alone} - _ASKING
        lemmas = tuple(lemmatise(w) for w in said if w not in FUNCTION or w in says)
        asking = next((word for word in alone if word in _ASKING), "")
        text = f"someone's {' '.join(said)}"
        if alone == ["do"]:
            text = "what someone does for a living"
        elif asking:
            text = f"{asking} someone {' '.join(said).removeprefix(asking).strip()}"
        plain = [place for place, word in own if word not in _ASKING]
        marks = [at for at, token in enumerate(self._tokens) if token in _OWNER | _PARTING]
        stretches = len({bisect(marks, place) for place in plain})
        parts = MORE ** max(len(plain) - 1, 0) * ACROSS ** max(stretches - 1, 0)
        return _Span(tuple(word for word in said if word not in ARTICLES), lemmas, text, parts)


def _order(tokens: Sequence[str], name: str) -> list[tuple[int, str]]:
    """The words of a question with their places, in the order away from a name.

    What the name owns, then back through what is "of" it, then what is left after it.
    """
    parts = [t.casefold() for t in _TOKEN.findall(name) if t not in _OWNER]
    starts = range(len(tokens) - len(parts) + 1) if parts else ()
    at = next((at for at in starts if list(tokens[at : at + len(parts)]) == parts), 0)
    end = at + len(parts) if list(tokens[at : at + len(parts)]) == parts else 0
    right = list(range(end, len(tokens)))
    owned = right if tokens[end : end + 1] and tokens[end] in _OWNER else []
    left: list[list[int]] = [[]]
    for place in range(at - 1, -1, -1):
        if tokens[place] in _PARTING:
            left.append([])
        left[-1].append(place)
    places = [*owned, *(p for part in left for p in sorted(part)), *([] if owned else right)]
    last = len(tokens) - 1  # "what does she do": the one "do" that says something
    return [
        (place, tokens[place])
        for place in places
        if tokens[place] not in _OWNER
        and (tokens[place] not in _EMPTY or (place == last and tokens[place] == "do"))
    ]


def _list_phrases(step: Step) -> list[str]:
    """A step as phrases about someone; of a verb also what the lexicon calls its other end."""
    words = step[0].split()
    if words[0] in HAVE and len(words) > 1:
        return [f"someone's {' '.join(words[1:])}"]
    if words[-1] == "of" and words[0] in BE and len(words) > 2:
        return [f"someone's {' '.join(words[1:-1])}"]
    found = [f"someone {step[0]}"]
    for name, turned in sorted(read_wording(*step)):
        role = name.removesuffix("_of")
        # A role is of the head, as in "is parent of"; an attribute is of the tail.
        if turned is not step[1] if role == name else turned is step[1]:
            found.append(f"someone's {role.replace('_', ' ')}")
    return found


def _say(step: Step, span: _Span, cosine: float) -> float:
    """How surely words say a step."""
    wording, ahead = step
    lemmas = normalise_relation(wording).lemmas
    own = tuple(lemma for lemma in lemmas if lemma not in _EMPTY and lemma not in {"be", "have"})
    # "X is child of Y" says "child" of Y: from its tail to its head.
    turns = lemmas[:1] == ("be",) and lemmas[-1:] == ("of",)
    relation, asked = read_wording(wording, ahead), read_role(span.words)
    means = compare_meanings(relation, asked)
    same = bool(own) and own == span.lemmas
    if means or (same and means is None and not (relation and asked)):
        return SAME if same and ahead is not turns else MEANT if means else AGAINST
    if means is False:
        return AGAINST
    symmetric = bool(relation) and relation == read_wording(wording, not ahead)
    known_way = ahead is not turns or symmetric
    return NEAR * cosine * span.parts * (1.0 if known_way else UNKNOWN_WAY)


# What relation words mean by the lexicon of relation wordings: "wife" is a case of `spouse`.


@lru_cache(maxsize=10_000)
def read_wording(wording: str, ahead: bool = True) -> frozenset[Meaning]:
    """The meanings of a relation of the graph, from its head to its tail, or back."""
    return _read([(wording, not ahead)])


@lru_cache(maxsize=10_000)
def read_role(words: tuple[str, ...]) -> frozenset[Meaning]:
    """The meanings of words that ask for something of something, from the latter to the former.

    "wife" as in "has wife" and, turned, in "is wife of"; with a question word as a verb.
    """
    asking = next((word for word in words if word in _AFTER), "")
    said = " ".join(word for word in words if word != asking)
    if not said:
        return frozenset()
    if asking:
        return _read([(f"{verb}{said} {_AFTER[asking]}", False) for verb in ("", "was ")])
    return _read([(f"has {said}", False), (f"is {said} of", True)])


def _read(forms: Iterable[Step]) -> frozenset[Meaning]:
    lexicon = load_lexicon()
    return frozenset(
        (sense.meaning.name, not sense.meaning.symmetric and turned != back)
        for wording, back in forms
        for sense, turned in lexicon.find_senses(read_frame(wording))
        if not (sense.negated or sense.weak)
    )


@lru_cache(maxsize=100_000)
def compare_meanings(one: frozenset[Meaning], other: frozenset[Meaning]) -> bool | None:
    """Whether a meaning of one is that of the other, or a case of it; False: the other way round.

    None: nothing in common.
    """
    first, second = (_raise(meanings) for meanings in (one, other))
    if (one & second) | (other & first):
        return True
    back = {(name, not turned) for name, turned in second}
    return False if (one & back) or ({(n, not t) for n, t in other} & first) else None


def _raise(meanings: Iterable[Meaning]) -> frozenset[Meaning]:
    """Meanings with all that are more general."""
    lexicon = load_lexicon()
    above = {
        (general, turned != turns)
        for name, turned in meanings
        for general, turns in lexicon.find_above(name).items()
    }
    return frozenset((n, t and not lexicon.meanings[n].symmetric) for n, t in {*meanings, *above})
