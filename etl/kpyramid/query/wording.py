"""What the words of a question say of a chain: the rule twin of a model that scores paths (WTS).

"The nationality of X's spouse" says its steps in the order away from X: first what X owns, then
what that is "of", then the rest. A chain is rated by the best way to give each of its steps, in
that order, words of its own; each step has to be said, and what is left of the question counts
against the chain. A step says words by being them, by meaning the same in the lexicon of relation
wordings, where it also has a direction, else by the cosine of two short phrases.
"""

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    BE,
    FUNCTION,
    HAVE,
    lemmatise,
    list_plain_words,
    normalise_relation,
)
from kpyramid.query.analysis import QuestionAnalysis, link_text
from kpyramid.query.facts import find_end

Step = tuple[str, bool]
"""Wording of a relation, and whether it is gone from head to tail."""

SAME, MEANT, NEAR = 1.0, 0.9, 0.8
"""What a step is worth that is said by the relation's own words, by words of its meaning, and by
words of cosine 1, as a factor of the cosine."""
ACROSS = 0.5
"""Factor of the cosine of words for each further part of the question that they stand in."""
MORE = 0.6
"""The same for each further word: a phrase of two that are said together is near to what one says
alone, and another step may say the other."""
OTHERWISE = 0.3
"""What a step is worth that the same words say in another meaning: to die in, and to die of."""
AGAINST = 0.02
"""What a step is worth that is said the other way round: a parent where children are asked for."""
UNKNOWN_WAY = 0.5
"""Factor of a cosine where the relation is gone from tail to head: its words say the other end."""
LEFT, LIGHTLY_LEFT, HARDLY_LEFT = 0.03, 0.1, 0.7
"""Factor for each word that no step says: for one that names a thing, one that says of what form
the answer is, one of asking."""
LONGEST = 4
"""Words that say one step."""
MOST_WORDS = 60
"""Words that are read as steps, those nearest to the name: each run of them is embedded."""

LIGHT = frozenset(
    "be have do take get go come call locate situate base lie stand happen become know kind type "
    "sort part thing time title other two three four five i we you us our my your me "
    "person people man woman city country state town village place location region river company "
    "team club band university organisation organization year date day month century book novel "
    "film movie song album".split()
)
"""Lemmas that say nothing of what is asked, or what the form of the answer says."""

_TOKEN = re.compile(r"['’]s\b|['’](?=\s)|[^\W_]+(?:[-.][^\W_]+)*")
_OWNER = frozenset({"'s", "’s", "'", "’"})
_ASKING = frozenset("where when how why".split())
_POLITE = _ASKING | frozenset("name kind type sort tell give show please call know".split())
_EMPTY = FUNCTION - _ASKING | frozenset("who whom whose what which".split())
_PARTING = AUXILIARIES | {"of"}
_FRAME = "someone's {}"


@dataclass(frozen=True, slots=True)
class _Span:
    """Words of a question that may say a step: as written, and the phrase to embed.

    `lemmas`: those of its words that say something. `parts`: what a cosine of the phrase is worth,
    which is made of several parts of the question.
    """

    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    phrase: str
    parts: float = 1.0


@dataclass(slots=True, eq=False)
class _Said:
    """What a question says of one entity: its words in the order away from the name."""

    asked: QuestionAnalysis
    words: list[tuple[int, str]]
    tokens: list[str]
    kept: dict[tuple[Step, ...], Any] = field(default_factory=dict)
    worth: dict[Step, Any] = field(default_factory=dict)
    spans: dict[tuple[int, int], _Span] = field(default_factory=dict)
    skip: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.skip = [_weigh_left(lemmatise(word)) for _, word in self.words]
        count = len(self.words)
        self.spans = {
            (first, last): self._read_span(first, last)
            for first in range(count)
            for last in range(first + 1, min(count, first + LONGEST) + 1)
        }

    def _read_span(self, first: int, last: int) -> _Span:
        own = sorted(self.words[first:last])
        between = self.tokens[own[0][0] : own[-1][0] + 1]
        content = [t for t in between if t not in _EMPTY and t not in _OWNER]
        whole = content == [word for _, word in own] and not _OWNER & set(between)
        said = between if whole else [word for _, word in own]
        text = " ".join(said)
        words = tuple(word for word in said if word not in ARTICLES)
        says = {word for _, word in own if word not in _ASKING}
        lemmas = tuple(lemmatise(w) for w in said if w not in FUNCTION or w in says)
        asking = next((word for _, word in own if word in _ASKING), "")
        if [word for _, word in own] == ["do"]:
            text = "what someone does for a living"
        elif asking:
            text = f"{asking} someone {text.removeprefix(asking).strip()}"
        else:
            text = _FRAME.format(text)
        plain = [place for place, word in own if word not in _ASKING]
        parts = MORE ** max(len(plain) - 1, 0) * ACROSS ** max(self._count_parts(plain) - 1, 0)
        return _Span(words, lemmas, text, parts)

    def _count_parts(self, places: Sequence[int]) -> int:
        """The parts of the question that words stand in: what is owned, what is of it, the rest."""
        marks = [at for at, token in enumerate(self.tokens) if token in _OWNER or token in _PARTING]
        return len({bisect(marks, place) for place in places})

    def weigh(self, step: Step) -> Any:
        """What a step is worth by each span: a matrix of first and last word."""
        if step not in self.worth:
            count = len(self.words)
            found = np.zeros((count + 1, count + 1))
            phrases = [span.phrase for span in self.spans.values()]
            own = _list_phrases(step)
            vectors = self.asked.snapshot.embed_all([*own, *phrases])
            near = vectors[len(own) :] @ vectors[: len(own)].T
            cosines = np.maximum(near.max(axis=1, initial=0.0), 0.0).tolist()
            for (place, span), cosine in zip(self.spans.items(), cosines, strict=True):
                found[place] = _say(step, span, cosine)
            self._turn_verb(step, found)
            self.worth[step] = found
        return self.worth[step]

    def _turn_verb(self, step: Step, worth: Any) -> None:
        """Where the question's grammar says which end of a verb is asked for, only that way fits.

        "Who bought X?" asks for who did: from the tail of `bought` to its head.
        """
        wording, ahead = step
        wants_head = find_end(wording, self.asked.text, self.asked.linked.names)
        if wants_head is None:
            return
        verb = normalise_relation(wording).lemmas[:1]
        for place, span in self.spans.items():
            if span.lemmas == verb:
                worth[place] = SAME if ahead is not wants_head else AGAINST

    def align(self, steps: tuple[Step, ...]) -> Any:
        """By the number of words that are used up, the best chance of these steps."""
        if steps not in self.kept:
            count = len(self.words)
            if not steps:
                start = np.zeros(count + 1)
                start[0] = 1.0
                self.kept[steps] = start
                return start
            before = self.align(steps[:-1]).copy()
            for at in range(count):  # words between two steps may be left
                before[at + 1] = max(before[at + 1], before[at] * self.skip[at])
            self.kept[steps] = (before[:, None] * self.weigh(steps[-1])).max(axis=0)
        return self.kept[steps]


def rate_prefix(
    asked: QuestionAnalysis, start: str, steps: tuple[Step, ...]
) -> tuple[float, float]:
    """The chance that steps from an entity are the first of what is asked, and that they are all.

    Both from 0 to 1; of the second every word of the question counts.
    """
    said = _read_question(asked, start)
    if not said.words:
        return 0.0, 0.0
    found = said.align(steps)
    left = np.cumprod([1.0, *said.skip[::-1]])[::-1]
    return float(found.max()), float((found * left).max())


def rate_steps(asked: QuestionAnalysis, start: str, steps: Sequence[Step]) -> float:
    """The chance that steps from an entity are what the question asks of it."""
    return rate_prefix(asked, start, tuple(steps))[1]


def cut_question(
    asked: QuestionAnalysis, start: str, steps: tuple[Step, ...]
) -> tuple[float, tuple[int, int]]:
    """The characters of a question that name what steps from an entity lead to, and the chance.

    "[X's spouse]" of "the nationality of X's spouse", where there is a step to a spouse; the
    chance is 0 where the question does not name the entity, or says nothing more than the steps.
    """
    said = _read_question(asked, start)
    name = next((n for n in asked.linked.names if start in _link(asked, n)), "")
    at, end = _find_name(said.tokens, name) if name else (0, 0)
    found = said.align(steps)[:-1] if end else np.zeros(1)
    used = int(found.argmax())
    places = [*range(at, end), *(place for place, _ in said.words[:used])]
    rest = {place for place, _ in said.words[used:]}
    if not rest or rest & {*range(min(places, default=0), max(places, default=0))}:
        return 0.0, (0, 0)
    spans = [match.span() for match in _TOKEN.finditer(asked.text)]
    first = min(places)
    if first and said.tokens[first - 1] in ARTICLES:
        first -= 1
    return float(found[used]), (spans[first][0], spans[max(places)][1])


def _read_question(asked: QuestionAnalysis, start: str) -> _Said:
    """The words that a question says of an entity; of one that it does not name, all of them."""
    names = tuple(name for name in asked.linked.names if start in _link(asked, name))
    kept: dict[tuple[str, ...], _Said] = asked.__dict__.setdefault("_said", {})
    if names[:1] not in kept:
        tokens = [t if t in _OWNER else t.casefold() for t in _TOKEN.findall(asked.text)]
        at, end = _find_name(tokens, names[0]) if names else (0, 0)
        kept[names[:1]] = _Said(asked, _order(tokens, at, end)[:MOST_WORDS], tokens)
    return kept[names[:1]]


def _link(asked: QuestionAnalysis, name: str) -> Sequence[str]:
    return link_text(name, asked.snapshot).entities


def _find_name(tokens: Sequence[str], name: str) -> tuple[int, int]:
    parts = [t.casefold() for t in _TOKEN.findall(name) if t not in _OWNER]
    for at in range(len(tokens) - len(parts) + 1):
        if list(tokens[at : at + len(parts)]) == parts:
            return at, at + len(parts)
    return 0, 0


def _order(tokens: Sequence[str], at: int, end: int) -> list[tuple[int, str]]:
    """The words of a question with their places, in the order away from a name.

    What the name owns, then back through what is "of" it, then what is left after it.
    """
    right = list(range(end, len(tokens)))
    owned = right if tokens[end : end + 1] and tokens[end] in _OWNER else []
    parts: list[list[int]] = [[]]
    for place in range(at - 1, -1, -1):
        if tokens[place] in _PARTING:
            parts.append([])
        parts[-1].append(place)
    left = [place for part in parts for place in sorted(part)]
    places = [*owned, *left, *([] if owned else right)]
    last = len(tokens) - 1  # "what does she do": the one "do" that says something
    return [
        (place, tokens[place])
        for place in places
        if tokens[place] not in _OWNER
        and (tokens[place] not in _EMPTY or (place == last and tokens[place] == "do"))
    ]


def _weigh_left(lemma: str) -> float:
    if lemma in _POLITE:
        return HARDLY_LEFT
    return LIGHTLY_LEFT if lemma in LIGHT else LEFT


def _list_phrases(step: Step) -> list[str]:
    """A step as phrases about someone; of a verb also what the lexicon calls its other end."""
    words = step[0].split()
    if words[0] in HAVE and len(words) > 1:
        return [_FRAME.format(" ".join(words[1:]))]
    if words[-1] == "of" and words[0] in BE and len(words) > 2:
        return [_FRAME.format(" ".join(words[1:-1]))]
    return [f"someone {step[0]}", *map(_FRAME.format, _meanings().name_step(*step))]


def _say(step: Step, span: _Span, cosine: float) -> float:
    """How surely words say a step."""
    wording, ahead = step
    lemmas = normalise_relation(wording).lemmas
    own = tuple(lemma for lemma in lemmas if lemma not in _EMPTY and lemma not in {"be", "have"})
    # "X is child of Y" says "child" of Y: from its tail to its head.
    turns = lemmas[:1] == ("be",) and lemmas[-1:] == ("of",)
    meanings = _meanings()
    one, other = meanings.read_wording(wording, ahead), meanings.read_words(span.words)
    means = meanings.compare_meanings(one, other)
    same = bool(own) and own == span.lemmas
    if means or (same and means is None and not (one and other)):
        return SAME if same and ahead is not turns else MEANT if means else AGAINST
    if means is False or same:
        return AGAINST if means is False else OTHERWISE
    symmetric = bool(one) and one == meanings.read_wording(wording, not ahead)
    known_way = ahead is not turns or symmetric
    return NEAR * cosine * span.parts * (1.0 if known_way else UNKNOWN_WAY)


def _meanings() -> Any:
    # Rules live in a room that imports this one: by name, so that no import runs both ways.
    return import_module("kpyramid.answering.meanings")


def list_behind(asked: QuestionAnalysis) -> frozenset[str]:
    """Words behind "of" in its names alone: another thing than "Miguel of Portugal" is."""
    parts = [name.partition(" of ")[::2] for name in asked.linked.names]
    known = {word for first, _ in parts for word in list_plain_words(first)}
    own = known | {word.casefold() for word in asked.beside}
    return frozenset(word for _, last in parts for word in list_plain_words(last)) - own
