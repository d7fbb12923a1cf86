"""Choice questions: their options, how many of them are wanted, passages that say one of them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from kpyramid.documents.values import find_values
from kpyramid.documents.words import Name, find_name, read_name, split_words
from kpyramid.query.analysis import ASKING, QuestionAnalysis, link_text
from kpyramid.query.types import Item
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot

_GENERIC = 0.5
"""Share of the candidates from which a word that they have in common tells none apart."""
_SHORTEST = 3
"""Letters of a word that stands for a name by itself."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An option: its name in all forms, and the entities that it can be."""

    name: Name
    entities: frozenset[str]


def read_candidates(texts: Sequence[str], snapshot: Snapshot) -> list[Candidate]:
    """Candidates with the names that the pyramid knows them by."""
    entities = [_link_whole(text, snapshot) for text in texts]
    forms = snapshot.surface_forms([e for ids in entities for e in ids])
    aliases = [[form for entity in ids for form in forms.get(entity, ())] for ids in entities]
    return [
        Candidate(name, frozenset(ids))
        for name, ids in zip(read_names(texts, aliases), entities, strict=True)
    ]


def read_names(texts: Sequence[str], aliases: Sequence[Collection[str]]) -> list[Name]:
    """The names of candidates, each also by the words that only it has.

    What most candidates share ("language" of "German language") tells none of them apart.
    """
    names = [read_name(text, forms) for text, forms in zip(texts, aliases, strict=True)]
    counts: dict[str, int] = {}
    for name in names:
        for word in {word for form, _ in name.forms[:1] for word in form}:
            counts[word] = counts.get(word, 0) + 1
    generic = {word for word, count in counts.items() if count > _GENERIC * len(names) > 1}
    return [_add_distinctive(name, generic, counts) for name in names]


def _add_distinctive(name: Name, generic: set[str], counts: dict[str, int]) -> Name:
    full = name.forms[0][0] if name.forms else ()
    forms = dict(name.forms)
    kept = tuple(word for word in full if word not in generic)
    if kept and kept != full:
        forms.setdefault(kept, 0.8)
    last = full[-1:]
    if len(full) > 1 and len(last[0]) >= _SHORTEST and counts[last[0]] == 1 and last[0].isalpha():
        forms.setdefault(last, 0.5)
    return Name(name.text, tuple(forms.items()), name.value)


def _link_whole(text: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The entities that a text as a whole names."""
    linked = link_text(text, snapshot)
    whole = len(linked.names) == 1 and join_words(linked.names[0]) == join_words(text)
    return linked.entities if whole else ()


# How many things a question asks for.

Number = Literal["one", "several", "any"]

_AUXILIARY = re.compile(
    r"(?P<one>is|was|has|does)|(?P<several>are|were|have|do)|did|can|could|will"
)
_PLURALS = frozenset("people children men women media data".split())
_SINGULAR = ("ss", "us", "is", "series", "species")


def read_number(text: str) -> Number:
    """Whether a wording asks for one thing or several; `any` when it leaves that open.

    By the verb that agrees with what is asked for, else by the noun: "which books did".
    """
    asking = ASKING.search(text)
    if not asking:
        return "any"
    if asking.group().casefold() in {"when", "how"}:
        return "one"
    words = re.findall(r"[\w'’]+", text[asking.end() :].casefold())
    if words[:1] == ["of"]:  # which of these has
        words = words[2:]
    verb = next((i for i, word in enumerate(words) if _AUXILIARY.fullmatch(word)), None)
    agreeing = _AUXILIARY.fullmatch(words[verb]) if verb is not None else None
    if verb == 0 and (words[0] not in {"is", "was", "are", "were"}):
        asks_of_these = text[asking.end() :].lstrip().startswith("of ")
        agreeing = agreeing if asks_of_these else None  # what does it make, whom has he met
        return _read_verb(agreeing) or "any"
    if asking.group().casefold() in {"who", "where"}:
        return (_read_verb(agreeing) if verb == 0 else None) or "any"
    number = _read_verb(agreeing)
    if number == "several" or not words:
        return number or "any"
    # "Which people was it founded by": the verb may agree with something else.
    noun = words[(verb or 1) - 1]
    if noun in _PLURALS:
        return "several"
    return "several" if noun.endswith("s") and not noun.endswith(_SINGULAR) else "one"


def _read_verb(verb: re.Match[str] | None) -> Number | None:
    if verb is None:
        return None
    return "one" if verb["one"] else "several" if verb["several"] else None


# Option-aware retrieval: passages that say an option together with what the question names.

LOOKED = 10
"""Passages looked at for an option."""
SAID = 0.5
"""How surely a passage must say an option, and how much of what the question names."""


def find_for_options(
    asked: QuestionAnalysis, k: int, *, without: Collection[str] = ()
) -> list[Item]:
    """At most k passages that say an option and what the question names, best first.

    The best one of each option comes before the second of any. `without` are keys of passages
    that are known already.
    """
    snapshot = asked.snapshot
    named = " ".join(name.text for name in asked.names) or " ".join(
        word.plain for word in asked.content
    )
    candidates = read_candidates(asked.candidates, snapshot)
    ranked: list[tuple[int, float, str]] = []
    for text, candidate in zip(asked.candidates, candidates, strict=True):
        keys = [key for key, _ in snapshot.words(f"{named} {text}", LOOKED, "chunks")]
        said = measure_said(asked, candidate, keys, snapshot)
        if not said:
            continue
        cosines = snapshot.vectors_of(list(said), "chunks") @ asked.vector
        scores = {key: said[key] + c for key, c in zip(said, cosines.tolist(), strict=True)}
        order = sorted(scores, key=lambda key: (-scores[key], key))
        ranked += [(place, -scores[key], key) for place, key in enumerate(order)]
    known = set(without)
    found: dict[str, float] = {}
    for _, score, key in sorted(ranked):
        if key not in known:
            found.setdefault(key, -score)
    return [
        Item(key, place.text, "text", score, (place,))
        for key, score in list(found.items())[:k]
        for place in snapshot.evidence(key)
    ]


def measure_said(
    asked: QuestionAnalysis, candidate: Candidate, keys: list[str], snapshot: Snapshot
) -> dict[str, float]:
    """How far each of those passages says both that say both, 0 to 1."""
    wanted = asked.named or frozenset(word.stem for word in asked.content)
    said = {}
    for key, text in zip(keys, snapshot.texts_of(keys, "chunks"), strict=True):
        words = split_words(text)
        share = len(wanted & {word.stem for word in words}) / max(len(wanted), 1)
        if share < SAID:
            continue
        values = find_values(text) if candidate.name.value is not None else []
        places = find_name(candidate.name, words, values)
        if places and places[0].strength >= SAID:
            said[key] = share * places[0].strength
    return said
