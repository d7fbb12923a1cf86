"""Questions over two passages, or twice two, made of a corpus whose passages name each other.

"What harbour mayor of the firm seat of Brask Lamp?": of the passage Brask Lamp a sentence names the
title of another one, which the question leaves out; two words beside it stand for how they are
joined, two of the other passage for what is asked. Every second question compares two such pairs.
No grammar, so no reader is measured by them: whether retrieval goes from one to the other is.
"""

import random
import re
from collections.abc import Mapping, Sequence

from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.words import FUNCTION
from kpyramid.evaluation.questions import EvalQuestion

Corpus = Sequence[Mapping[str, str]]
MOST_NAMING = 12
"""Passages that name a title at most: more say nothing of it."""


def split_title(row: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a title in small letters, without what stands in brackets."""
    return tuple(re.findall(r"\w+", re.sub(r"\(.*?\)", "", row.get("title", "")).casefold()))


def link_titles(corpus: Corpus) -> list[set[int]]:
    """For each document those whose title its text names."""
    titles: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(corpus):
        titles.setdefault(split_title(row), []).append(at)
    titles.pop((), None)
    sizes = sorted({len(title) for title in titles})
    linked = []
    for at, row in enumerate(corpus):
        words = re.findall(r"\w+", row["text"].casefold())
        runs = {tuple(words[i : i + size]) for i in range(len(words)) for size in sizes}
        linked.append({other for run in runs for other in titles.get(run, ())} - {at})
    return linked


def make_bridges(corpus: Corpus, count: int, seed: int) -> list[EvalQuestion]:
    """At most `count` questions; a passage is gold for one of them only."""
    linked, titles = link_titles(corpus), [split_title(row) for row in corpus]
    named = [sum(at in others for others in linked) for at in range(len(corpus))]
    pairs = [
        (at, other)
        for at, others in enumerate(linked)
        for other in sorted(others)
        if titles.count(titles[at]) == titles.count(titles[other]) == 1
        and at not in linked[other]
        and named[other] <= MOST_NAMING
    ]
    chance = random.Random(seed)  # noqa: S311  questions, no secret
    chance.shuffle(pairs)
    taken: set[int] = set()
    open_pairs: list[tuple[int, int, str, str]] = []
    made: list[EvalQuestion] = []
    for first, second in pairs:
        joined = _say_joint(corpus[first]["text"], titles[first], titles[second])
        asked = _say_words(corpus[second]["text"], {*titles[first], *titles[second]}, chance)
        if len(made) == count:
            break
        if taken & {first, second} or not joined or not asked:
            continue
        taken |= {first, second}
        open_pairs.append((first, second, joined, asked))
        if len(open_pairs) > len(made) % 2:
            made.append(_ask(corpus, open_pairs, len(made)))
            open_pairs = []
    return made


def _ask(corpus: Corpus, pairs: Sequence[tuple[int, int, str, str]], number: int) -> EvalQuestion:
    said = [f"the {joined} of {corpus[first]['title']}" for first, _, joined, _ in pairs]
    text = f"What {pairs[0][3]} of {said[0]}?"
    if len(pairs) > 1:
        text = f"Do {' and '.join(said)} have the same {pairs[0][3]}?"
    gold = tuple(corpus[at]["id"] for pair in pairs for at in pair[:2])
    return EvalQuestion(f"bridge-{number}", text, "retrieval", gold_documents=gold)


def _list_content(words: Sequence[str], without: set[str]) -> list[int]:
    """The places of the words that say something."""
    return [
        at
        for at, word in enumerate(words)
        if len(word) > 2 and word not in FUNCTION and word not in without and not word.isdigit()
    ]


def _say_joint(text: str, own: Sequence[str], other: Sequence[str]) -> str:
    """The two words nearest to the other title in the first sentence that names it."""
    for span in split_sentences(text):
        words = re.findall(r"\w+", text[span.start : span.end].casefold())
        for at in range(len(words) - len(other) + 1):
            if tuple(words[at : at + len(other)]) == other:
                places = _list_content(words, {*own, *other})
                near = sorted(places, key=lambda place: (abs(place - at), place))[:2]
                return " ".join(words[place] for place in sorted(near))
    return ""


def _say_words(text: str, without: set[str], chance: random.Random) -> str:
    """Two words that follow each other in a sentence."""
    span = chance.choice(list(split_sentences(text)))
    words = re.findall(r"\w+", text[span.start : span.end].casefold())
    places = _list_content(words, without)
    if len(places) < 2:
        return ""
    at = chance.randrange(len(places) - 1)
    return " ".join(words[place] for place in places[at : at + 2])
