"""Rating of chains of relations by the words of a question, in place of a model that scores them.

"The nationality of X's spouse" states its steps in the order away from X: first what X owns, then
what that is "of", then the rest. A chain is rated by the best alignment of its steps, in that
order, with disjoint words of the question; each step must be aligned, and words that are left over
count against the chain. A step matches words that are its own, that have its meaning and direction
in the lexicon of relation wordings, or else by the cosine of two short phrases.
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
"""Wording of a relation, and whether the step goes from head to tail."""
Meaning = tuple[str, bool]
"""Name of a meaning, and whether it is read from its tail to its head."""

SAME, MEANT, NEAR = 1.0, 0.9, 0.8
"""Rating of a step that matches by the relation's words, by words of its meaning, and (as a factor
of the cosine) by vectors."""
ACROSS, MORE = 0.5, 0.6
"""Factor of a cosine for each further part of the question that the words span, and for each
further word, which may belong to another step."""
AGAINST = 0.02
"""Rating of a step in the opposite direction: a parent where the question asks for children."""
UNKNOWN_WAY = 0.5
"""Factor of a cosine where the step goes from tail to head: its words describe the other end."""
LEFT, HARDLY_LEFT = 0.03, 0.7
"""Factor for each word that no step matches, and for such a word of asking."""
LONGEST = 4
"""Most words of the question for one step."""
MOST_WORDS = 60
"""Most words that are matched with steps, those nearest to the name: each run is embedded."""

_TOKEN = re.compile(r"['’]s\b|['’](?=\s)|[^\W_]+(?:[-.][^\W_]+)*")
_OWNER = frozenset({"'s", "’s", "'", "’"})
_AFTER = {"where": "in", "when": "in", "how": "of", "why": "of", "what": "of"}
"""The preposition that a question word implies: "where did she die", `died in`."""
_ASKING = _AFTER.keys() - {"what"}
_POLITE = _ASKING | frozenset("name kind type sort tell give show please call know".split())
_EMPTY = FUNCTION - _ASKING | frozenset("who whom whose what which".split())
_PARTING = AUXILIARIES | {"of"}


class _Span(NamedTuple):
    """Words of a question that may match a step: as written, their lemmas, the phrase to embed.

    `parts`: factor of the phrase's cosine, for its words and the parts of the question it spans.
    """

    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    phrase: str
    parts: float


class StepRater:
    """Rates steps from a thing by the words of a question, in their order away from its name.

    `embed` returns the vectors of texts; `wants_head` whether the question asks for the subject of
    a relation, None where its grammar does not show it.
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
        """The chance that the question begins with these steps, and that they are all its steps.

        Both from 0 to 1; the second counts every word of the question.
        """
        if not self._words:
            return 0.0, 0.0
        chances = self._align(steps)
        left = np.cumprod([1.0, *self._skip[::-1]])[::-1]
        return float(chances.max()), float((chances * left).max())

    def _align(self, steps: tuple[Step, ...]) -> Any:
        """The best rating of these steps by the number of words used, shape (words + 1,)."""
        if not steps:
            return np.eye(1, len(self._words) + 1)[0]
        if steps not in self._aligned:
            before = self._align(steps[:-1]).copy()
            for i, skip in enumerate(self._skip):  # words between two steps may be skipped
                before[i + 1] = max(before[i + 1], before[i] * skip)
            self._aligned[steps] = (before[:, None] * self._weigh(steps[-1])).max(axis=0)
        return self._aligned[steps]

    def _weigh(self, step: Step) -> Any:
        """The rating of a step by each span, shape (words + 1, words + 1): first word, end."""
        if step not in self._worth:
            forms, spans = _list_phrases(step), list(self._spans.values())
            vectors = self._embed([*forms, *(span.phrase for span in spans)])
            near = np.maximum((vectors[len(forms) :] @ vectors[: len(forms)].T).max(axis=1), 0.0)
            worth = np.zeros((len(self._words) + 1, len(self._words) + 1))
            wants_head, verb = self._wants_head(step[0]), normalise_relation(step[0]).lemmas[:1]
            for (place, span), cosine in zip(self._spans.items(), near.tolist(), strict=True):
                worth[place] = _rate_span(step, span, cosine)
                if wants_head is not None and span.lemmas == verb:
                    worth[place] = SAME if step[1] is not wants_head else AGAINST
            self._worth[step] = worth
        return self._worth[step]

    def _read_span(self, first: int, last: int) -> _Span:
        placed = sorted(self._words[first:last])
        between = self._tokens[placed[0][0] : placed[-1][0] + 1]
        alone = [word for _, word in placed]
        whole = [t for t in between if t not in _EMPTY] == alone and not _OWNER & {*between}
        shown = between if whole else alone
        says = {*alone} - _ASKING
        lemmas = tuple(lemmatise(w) for w in shown if w not in FUNCTION or w in says)
        asking = next((word for word in alone if word in _ASKING), "")
        text = f"someone's {' '.join(shown)}"
        if alone == ["do"]:
            text = "what someone does for a living"
        elif asking:
            text = f"{asking} someone {' '.join(shown).removeprefix(asking).strip()}"
        plain = [place for place, word in placed if word not in _ASKING]
        marks = [index for index, token in enumerate(self._tokens) if token in _OWNER | _PARTING]
        stretches = len({bisect(marks, place) for place in plain})
        parts = MORE ** max(len(plain) - 1, 0) * ACROSS ** max(stretches - 1, 0)
        return _Span(tuple(word for word in shown if word not in ARTICLES), lemmas, text, parts)


def _order(tokens: Sequence[str], name: str) -> list[tuple[int, str]]:
    """The words of a question with their indices, in the order away from a name.

    Words owned by the name come first, then the parts before it, backwards, then the words after.
    """
    parts = [t.casefold() for t in _TOKEN.findall(name) if t not in _OWNER]
    starts = range(len(tokens) - len(parts) + 1) if parts else ()
    spot = next((spot for spot in starts if list(tokens[spot : spot + len(parts)]) == parts), 0)
    end = spot + len(parts) if list(tokens[spot : spot + len(parts)]) == parts else 0
    right = list(range(end, len(tokens)))
    owned = right if tokens[end : end + 1] and tokens[end] in _OWNER else []
    left: list[list[int]] = [[]]
    for place in range(spot - 1, -1, -1):
        if tokens[place] in _PARTING:
            left.append([])
        left[-1].append(place)
    places = [*owned, *(p for part in left for p in sorted(part)), *([] if owned else right)]
    last = len(tokens) - 1  # "what does she do": only the last "do" has a meaning
    return [
        (place, tokens[place])
        for place in places
        if tokens[place] not in _OWNER
        and (tokens[place] not in _EMPTY or (place == last and tokens[place] == "do"))
    ]


def _list_phrases(step: Step) -> list[str]:
    """A step as phrases about someone; for a verb also the lexicon's names of its other end."""
    words = step[0].split()
    if words[0] in HAVE and len(words) > 1:
        return [f"someone's {' '.join(words[1:])}"]
    if words[-1] == "of" and words[0] in BE and len(words) > 2:
        return [f"someone's {' '.join(words[1:-1])}"]
    phrases = [f"someone {step[0]}"]
    for name, turned in sorted(read_wording(*step)):
        role = name.removesuffix("_of")
        # A role is of the head, as in "is parent of"; an attribute is of the tail.
        if turned is not step[1] if role == name else turned is step[1]:
            phrases.append(f"someone's {role.replace('_', ' ')}")
    return phrases


def _rate_span(step: Step, span: _Span, cosine: float) -> float:
    """The rating of a step by a span of words, 0 to 1."""
    wording, ahead = step
    lemmas = normalise_relation(wording).lemmas
    core = tuple(lemma for lemma in lemmas if lemma not in _EMPTY and lemma not in {"be", "have"})
    # "X is child of Y" makes "child" a role of Y: from its tail to its head.
    turns = lemmas[:1] == ("be",) and lemmas[-1:] == ("of",)
    relation, asked = read_wording(wording, ahead), read_role(span.words)
    means = compare_meanings(relation, asked)
    same = bool(core) and core == span.lemmas
    if means or (same and means is None and not (relation and asked)):
        return SAME if same and ahead is not turns else MEANT if means else AGAINST
    if means is False:
        return AGAINST
    symmetric = bool(relation) and relation == read_wording(wording, not ahead)
    known_way = ahead is not turns or symmetric
    return NEAR * cosine * span.parts * (1.0 if known_way else UNKNOWN_WAY)


# The meanings of relation words in the lexicon: "wife" is a case of `spouse`.


@lru_cache(maxsize=10_000)
def read_wording(wording: str, ahead: bool = True) -> frozenset[Meaning]:
    """The meanings of a relation of the graph, from head to tail (`ahead`), or back."""
    return _read([(wording, not ahead)])


@lru_cache(maxsize=10_000)
def read_role(words: tuple[str, ...]) -> frozenset[Meaning]:
    """The meanings of words that ask for a role of a thing, from the thing to its role.

    "wife" as in "has wife" and, turned, in "is wife of"; with a question word as a verb.
    """
    asking = next((word for word in words if word in _AFTER), "")
    noun = " ".join(word for word in words if word != asking)
    if not noun:
        return frozenset()
    if asking:
        return _read([(f"{verb}{noun} {_AFTER[asking]}", False) for verb in ("", "was ")])
    return _read([(f"has {noun}", False), (f"is {noun} of", True)])


def _read(forms: Iterable[Step]) -> frozenset[Meaning]:
    lexicon = load_lexicon()
    return frozenset(
        (sense.meaning.name, not sense.meaning.symmetric and turned != back)
        for wording, back in forms
        for sense, turned in lexicon.find_senses(read_frame(wording))
        if not (sense.negated or sense.weak)
    )


@lru_cache(maxsize=100_000)
def compare_meanings(left: frozenset[Meaning], right: frozenset[Meaning]) -> bool | None:
    """Whether a left meaning equals or is a case of a right one, or the reverse; None: unrelated.

    False where they agree only in opposite directions.
    """
    first, second = (_raise(meanings) for meanings in (left, right))
    if (left & second) | (right & first):
        return True
    back = {(name, not turned) for name, turned in second}
    return False if (left & back) or ({(n, not t) for n, t in right} & first) else None


def _raise(meanings: Iterable[Meaning]) -> frozenset[Meaning]:
    """Meanings with all more general ones."""
    lexicon = load_lexicon()
    above = {
        (general, turned != turns)
        for name, turned in meanings
        for general, turns in lexicon.find_above(name).items()
    }
    return frozenset((n, t and not lexicon.meanings[n].symmetric) for n, t in {*meanings, *above})
