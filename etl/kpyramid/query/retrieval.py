"""Retrieval: the facts and passages relevant to a question, and how they connect."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis, analyse, cut_value
from kpyramid.query.facts import state_items
from kpyramid.query.lookup import rank_facts
from kpyramid.query.passages import Path, find_connected
from kpyramid.query.types import Item
from kpyramid.snapshot.evidence import SECTION
from kpyramid.snapshot.search import join_words, one_thread
from kpyramid.snapshot.snapshot import Snapshot

CARRIED, LEAST = 5, 0.15
"""Most facts from which retrieval of passages continues, and their least chance; more facts, or
worse ones, crowd out the passages and mislead a reader."""


SURE, FAR = 0.5, 0.02
"""Chances of a fact that shape a prompt. On 110 plain questions the answer is in 109 prompts either
way, of 208 words and marks instead of 762; of 100 questions of several hops 2 have a sure fact."""

SLOPE, MIDDLE = 7.6, 0.69
"""The chance of a passage from its score: a logistic curve, .5 at `MIDDLE`. Fitted on half of the
questions of MuSiQue and of FiQA, each set with the same weight, to which of the first eight
passages are gold; on the other halves the expected calibration error is .12 and .08."""
CHARACTERS = 4
"""Characters per token of English text, about."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A passage that was reached by a name, from another passage or from a fact.

    `source`, `target`: keys of items; the source is None if it was not retrieved itself.
    """

    source: str | None
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Facts and passages for a question, each list best first, each item with its evidence.

    All scores are probabilities that the item answers. `names`: names of the question in the
    snapshot; `titles`: of passages, by their keys.
    """

    question: str
    facts: tuple[Item, ...]
    passages: tuple[Item, ...]
    paths: tuple[Connection, ...]
    names: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Retrieval({self.question!r}, {len(self.facts)} facts, {len(self.passages)} passages, "
            f"{len(self.paths)} paths)"
        )

    def to_prompt(self, *, min_score: float | None = None, max_tokens: int | None = None) -> str:
        """The context in words for a model: facts F1..., passages P1... and how they connect.

        Items with a score below `min_score` are left out; by default only facts below `FAR`, since
        the scale of passages depends on the embedding model. The best of the rest are included, as
        far as they fit into about `max_tokens` (of four characters each), without headings. Where
        the first fact is `SURE` to answer, only the passage that states it, or else the best one,
        is included: the others are about something else. A fact is followed by its standard
        relation, where that differs from its wording, and by a line for each side of its conflicts,
        the newest first.

        Raises:
            InputError: `min_score` is not from 0 to 1, or `max_tokens` less than 1.
        """
        if not 0 <= (min_score or 0) <= 1 or (max_tokens is not None and max_tokens < 1):
            raise InputError(
                f"min_score = {min_score}, max_tokens = {max_tokens}: a score is from 0 to 1, "
                "and a prompt has 1 token at least"
            )
        facts, passages = self._choose(min_score, max_tokens)
        marks = {item.key: f"F{number}" for number, item in enumerate(facts, start=1)}
        marks |= {item.key: f"P{number}" for number, item in enumerate(passages, start=1)}
        parts = []
        if facts:
            lines = [f"[{marks[item.key]}] {self._tell(item)}" for item in facts]
            parts.append("\n".join(["Facts:", *lines]))
        if passages:
            parts.append("Passages:")
        parts += [f"[{marks[item.key]}] {self._tell(item)}" for item in passages]
        texts = [f" {join_words(item.text)} " for item in passages]
        lines = [
            f"[{marks[path.source]}] and [{marks[path.target]}] both name {path.name!r}"
            for path in self.paths
            if path.source in marks and path.target in marks and not _is_shared(path.name, texts)
        ]
        if lines:
            parts.append("\n".join(["Connections:", *lines]))
        return "\n\n".join(parts)

    def _tell(self, item: Item) -> str:
        """A fact, or a passage under its heading, in words."""
        is_passage = item.layer == "text"
        if is_passage:
            return self._head(item) + item.text.strip()
        first, *sides = item.told.split("\n")
        return "\n".join([" ".join([*first.split(), *_list_page(item)]), *sides])

    def _head(self, item: Item) -> str:
        """Title, section and page of a passage, in a line, unless it begins with them."""
        title = self.titles.get(item.key, "")
        section = item.evidence[0].section.split(SECTION) if item.evidence else []
        path = [*dict.fromkeys(name for name in (title, *section) if name)]
        if path and item.text.lstrip().startswith(path[-1]):
            path.pop()
        line = [*([SECTION.join(path)] if path else []), *_list_page(item)]
        return f"{' '.join(line)}\n" if line else ""

    def _choose(self, least: float | None, most: int | None) -> tuple[list[Item], list[Item]]:
        """The facts and passages for a model's prompt."""
        facts = [item for item in self.facts if item.score >= (FAR if least is None else least)]
        passages = [item for item in self.passages if item.score >= (least or 0)]
        if facts and facts[0].score >= SURE:
            stated = {place.chunk_id for place in facts[0].evidence}
            stating = (item for item in passages if item.key in stated)
            passages = list(islice((*stating, *passages), 1))
        if most is None:
            return facts, passages
        room, fitting = most * CHARACTERS, set[str]()
        for item in sorted((*facts, *passages), key=lambda item: -item.score):
            size = len(self._tell(item))
            if size <= room:
                room -= size
                fitting.add(item.key)
        return tuple([i for i in items if i.key in fitting] for items in (facts, passages))  # type: ignore[return-value]

    def to_dict(self) -> dict[str, Any]:
        """The retrieval as plain values."""
        return asdict(self)


def _list_page(item: Item) -> list[str]:
    """The page of the first evidence, of sources that have pages."""
    return [f"(page {place.page})" for place in item.evidence[:1] if place.page]


def list_pieces(retrieval: Retrieval) -> Iterator[tuple[str, dict[str, Any]]]:
    """Facts, then passages: each text, and its id, layer, score, title, sources and places."""
    for item in (*retrieval.facts, *retrieval.passages):
        about = {
            "id": item.key,
            "layer": item.layer,
            "score": item.score,
            "title": retrieval.titles.get(item.key),
            "sources": sorted({place.source for place in item.evidence}),
            "places": [(place.source, place.start, place.end) for place in item.evidence],
        }
        yield item.told if item.layer != "text" else item.text, about


@one_thread
def retrieve(
    question: str,
    snapshot: Snapshot,
    *,
    facts: int = 10,
    passages: int = 8,
    candidates: Sequence[str] = (),
) -> Retrieval:
    """At most `facts` facts and `passages` passages for a question; no model is asked.

    Multi-hop: from the first passages and facts it continues to passages about the things that they
    name. With `candidates`, it adds up to `passages` more that contain an option and the question's
    names. The question is embedded once; equal snapshots and arguments give equal results.

    Raises:
        InputError: the question or a candidate is empty, too long or no text, a number is
            negative or no integer, or the snapshot is none.
    """
    for name, value in (("facts", facts), ("passages", passages)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InputError(f"{name} = {cut_value(value)}: pass a whole number, 0 or more")
    asked = analyse(question, snapshot, candidates)
    stated = state_items(rank_facts(asked)[:facts], snapshot)
    starts = tuple(item for item in stated if item.score >= LEAST)[:CARRIED]
    near, paths = retrieve_passages(asked, passages, starts)
    documents = {place.document_id for item in near for place in item.evidence}
    known = snapshot.titles(documents)
    titles = {
        i.key: known[p.document_id] for i in near for p in i.evidence if p.document_id in known
    }
    names = tuple(dict.fromkeys(asked.linked.names))
    return Retrieval(asked.text, stated, near, paths, names, titles)


def retrieve_passages(
    asked: QuestionAnalysis, k: int, carried: Sequence[Item]
) -> tuple[tuple[Item, ...], tuple[Connection, ...]]:
    """The k best passages, up to k more for options if there are any, and their connections.

    `carried`: statements of the layers above, which are also starts of hops.
    """
    ranked, paths = find_connected(asked, k, facts=[item.text for item in carried])
    items = [replace(item, score=rate_relevance(item.score)) for item in ranked]
    if asked.candidates:
        from kpyramid.query.choices import find_for_options  # loaded for choice questions only

        items += find_for_options(asked, k, without={item.key for item in items})
    keys = {item.text: item.key for item in reversed(carried)}
    return tuple(items), tuple(_connect(key, path, keys) for key, path in paths.items())


def rate_relevance(score: float) -> float:
    """The chance that a passage answers, from its score among passages."""
    return 1 / (1 + math.exp(SLOPE * (MIDDLE - score)))


def _is_shared(name: str, texts: Sequence[str]) -> bool:
    """Whether three or more passages contain a name, which then does not connect two of them."""
    words = f" {join_words(name)} "
    return sum(words in text for text in texts) > 2


def _connect(target: str, path: Path, facts: Mapping[str, str]) -> Connection:
    return Connection(path.start.key or facts.get(path.start.text), path.name, target)
