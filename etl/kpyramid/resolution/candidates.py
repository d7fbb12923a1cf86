"""Which fuller names a short form can stand for, by words, types and use."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kpyramid.resolution.entries import Entry, Feature, Use, gather_entries
from kpyramid.resolution.shortening import (
    Shortening,
    is_contained,
    is_possible,
    list_short_forms,
    list_sought_forms,
)

BUCKET = 64
"""Fuller names looked at for one short form; one that fits more names is nobody's."""

_SAME = 3.0
"""Weight of shared features that outweighs a fact in which both names stand."""
_RESTATING = frozenset({"acronym", "frame", "order", "script"})
"""Forms that a text may give beside the fuller name: `the United Nations is called UN`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fuller name, and how a form follows from it."""

    key: str
    by: Shortening


Index = Mapping[str, Sequence[Candidate]]
"""The names behind each form."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """All names, the fullest first.

    `bearers`: how many names have each feature. `forms`: the short forms of each name that other
    names have. `index`: the names behind each such form.
    """

    entries: Mapping[str, Entry]
    bearers: Mapping[Feature, int]
    forms: Mapping[str, Sequence[tuple[str, Candidate]]]
    index: Index


def read_corpus(uses: Iterable[Use]) -> Corpus:
    """What the uses say of each name."""
    entries = gather_entries(uses)
    bearers = Counter(feature for entry in entries.values() for feature in entry.features)
    sought = {key: set(list_sought_forms(entry.name)) for key, entry in entries.items()}
    seekers = Counter(form for forms in sought.values() for form in forms)
    forms = {}
    for key, entry in entries.items():
        own = sought[key]
        found = [
            (form, Candidate(key, Shortening(how, dropped)))
            for form, how, dropped in list_short_forms(entry.name)
            if seekers[form] > (form in own)
        ]
        if found:
            forms[key] = found
    return Corpus(entries, bearers, forms, index_forms(entries, forms))


def index_forms(keys: Iterable[str], forms: Mapping[str, Sequence[tuple[str, Candidate]]]) -> Index:
    """The given names behind each of their forms."""
    index: dict[str, list[Candidate]] = defaultdict(list)
    for key in keys:
        for form, candidate in forms.get(key, ()):
            index[form].append(candidate)
    return index


def find_candidates(
    entry: Entry, types: frozenset[str], index: Index, corpus: Corpus
) -> list[Candidate]:
    """Fuller names that the name, with these types, can stand for; none when too many fit."""
    candidates = []
    for form in list_sought_forms(entry.name):
        found = index.get(form, ())
        if len(found) > BUCKET:
            return []
        for other in found:
            full = corpus.entries[other.key]
            if (
                full.rank < entry.rank
                and is_possible(entry.name, types, full.name, full.types, other.by)
                and (full.types & types or _depends(entry, full, other.by))
                and not _is_beside(entry, full, other.by, corpus)
            ):
                candidates.append(other)
    return candidates


def list_containing(entry: Entry, corpus: Corpus) -> list[Candidate]:
    """The fuller names that begin or end with this one; none when there are too many."""
    found = corpus.index.get(" ".join(entry.name.bare), ())
    if len(found) > BUCKET:
        return []
    containing = []
    for other in found:
        full = corpus.entries[other.key]
        if (
            full.rank < entry.rank
            and is_contained(entry.name, full.name, other.by)
            and not _is_beside(entry, full, other.by, corpus)
        ):
            containing.append(other)
    return containing


def weigh_shared(own: frozenset[Feature], full: Entry, corpus: Corpus) -> float:
    """How much common features say: one that only these two names have counts 1."""
    shared = sorted(own & full.features)
    return sum(1.0 / max(1, corpus.bearers[feature] - 1) for feature in shared)


def _depends(short: Entry, full: Entry, by: Shortening) -> bool:
    """Without types, last words are a short form only if they never stand without the whole."""
    return by.how != "front" or short.features_in.keys() <= full.features_in.keys()


def _is_beside(short: Entry, full: Entry, by: Shortening, corpus: Corpus) -> bool:
    """A fact says something of both, so they are two things; unless they share a lot."""
    if by.how in _RESTATING or ("neighbour", full.name.key) not in short.features:
        return False
    return weigh_shared(short.features, full, corpus) < _SAME
