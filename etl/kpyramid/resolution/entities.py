"""Entity clusters: which wordings, in which documents, denote one entity (`f_dis`).

Names that differ in case, marks, spaces or articles are one. A shorter form belongs to the one
fuller name that it can stand for, and only with evidence: the same document, rare features that
both share, the use of the corpus elsewhere, the same company. In doubt two names stay two.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kpyramid.embeddings.port import Embedder
from kpyramid.resolution.contexts import compare_contexts
from kpyramid.resolution.entries import Entry, Feature, Use, gather_entries, weigh_shared
from kpyramid.resolution.names import parse_name
from kpyramid.resolution.shortening import (
    Shortening,
    is_contained,
    is_local,
    is_possible,
    is_safe,
    list_short_forms,
    list_sought_forms,
    may_differ_in_type,
)

_EVIDENCE = 0.5
"""Weight of shared features that counts: two that two other names have too, or one rarer."""
_LEAD = 4.0
"""How many times the evidence for any other fuller name the evidence for one must be."""
_USUAL = 2
"""Documents that use a short form for one entity, and none for another, show the usage."""
_SIMILARITY = 0.3
"""Cosine of contexts from which two names keep the same company."""
_MARGIN = 0.1
"""By how much any other fuller name must be less similar."""
_BUCKET = 64
"""Fuller names looked at for one short form; one that fits more names is nobody's."""

Place = tuple[str, str]
"""A key and a document."""
Links = dict[Place, str]
"""The fuller name's key, for a short form in a document."""
Index = Mapping[str, Sequence["Candidate"]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fuller name, and how a form follows from it."""

    key: str
    by: Shortening


def resolve_names(uses: Iterable[Use], embedder: Embedder) -> dict[tuple[str, str], str]:
    """The cluster of each (name, document); a cluster is called by the key of its fullest name.

    Time and memory are linear in the uses: names meet only through equal forms, and a form that
    more than a fixed number of names share is not used.
    """
    uses = list(uses)
    entries = gather_entries(uses)
    bearers = Counter(feature for entry in entries.values() for feature in entry.features)
    index = _index_forms(entries, entries)
    links: Links = {}
    _link_within_documents(entries, bearers, links)
    _link_across_documents(entries, bearers, index, links)
    _link_companions(entries, index, uses, embedder, links)
    return {
        (use.name, use.document): _follow(links, parse_name(use.name).key, use.document)
        for use in uses
    }


def _link_within_documents(
    entries: Mapping[str, Entry], bearers: Mapping[Feature, int], links: Links
) -> None:
    """Links short forms that one fuller name of their document explains, and no other there."""
    by_document: dict[str, list[str]] = defaultdict(list)
    for key, entry in entries.items():
        for document in entry.features_in:
            by_document[document].append(key)
    for document in sorted(by_document):
        index = _index_forms(by_document[document], entries)
        for short in by_document[document]:
            types = entries[short].types_in[document]
            clusters: dict[str, set[str]] = defaultdict(set)
            for found in _find_candidates(entries[short], types, index, entries):
                clusters[_follow(links, found.key, document)].add(found.key)
            clusters.pop(short, None)
            chosen = next(iter(clusters)) if len(clusters) == 1 else None
            if clusters and chosen is None:
                chosen = _choose(entries[short].features_in[document], clusters, entries, bearers)
            if chosen is not None:
                links[short, document] = chosen


def _link_across_documents(
    entries: Mapping[str, Entry], bearers: Mapping[Feature, int], index: Index, links: Links
) -> None:
    """Links short forms whose documents do not hold the fuller name."""
    usual: dict[str, Counter[str]] = defaultdict(Counter)
    for (short, _), full in links.items():
        usual[short][full] += 1
    roots: dict[str, set[str]] = {}
    for short, entry in entries.items():
        by_types: dict[frozenset[str], list[str]] = defaultdict(list)
        for document in sorted(entry.features_in):
            if (short, document) not in links:
                by_types[entry.types_in[document]].append(document)
        for types, documents in by_types.items():
            candidates = [
                found
                for found in _find_candidates(entry, types, index, entries)
                if not is_local(found.by, entries[found.key].types)
            ]
            clusters: dict[str, set[str]] = defaultdict(set)
            for found in candidates:
                for root in roots[found.key]:
                    clusters[root].add(found.key)
            clusters.pop(short, None)
            if not clusters:
                continue
            certain = len(clusters) == 1 and (
                (
                    len(usual[short]) == 1
                    and usual[short].keys() == clusters.keys()
                    and usual[short].total() >= _USUAL
                )
                or any(is_safe(entry.name, entries[c.key].name, c.by) for c in candidates)
            )
            for document in documents:
                chosen = next(iter(clusters)) if certain else None
                if chosen is None:
                    chosen = _choose(entry.features_in[document], clusters, entries, bearers)
                if chosen is not None:
                    links[short, document] = chosen
        roots[short] = {_follow(links, short, document) for document in entry.features_in}


def _link_companions(
    entries: Mapping[str, Entry],
    index: Index,
    uses: Sequence[Use],
    embedder: Embedder,
    links: Links,
) -> None:
    """Links names that stand within another name of their documents and keep its company.

    Either only one other name of the corpus contains the name, which never occurs without it;
    or the contexts of both are alike, and those of any other name that contains it are not.
    """
    rivals: dict[str, list[str]] = {}
    for short, entry in entries.items():
        documents = [d for d in entry.features_in if (short, d) not in links]
        containing = _list_containing(entry, index, entries)
        clusters = {
            _follow(links, found.key, document)
            for found in containing
            for document in documents
            if document in entries[found.key].features_in
        } - {short}
        if not clusters:
            continue
        if len({c.key for c in containing}) == 1 and _is_dependent(entry, containing[0], entries):
            links.update(dict.fromkeys(((short, d) for d in documents), min(clusters)))
        else:
            rivals[short] = sorted(clusters)
    pairs = [(short, full) for short, fulls in rivals.items() for full in fulls]
    cosines = compare_contexts(pairs, uses, embedder)
    for short, fulls in rivals.items():
        alike = sorted(((cosines.get((short, full), -1.0), full) for full in fulls), reverse=True)
        best, full = alike[0]
        if best < _SIMILARITY or (len(alike) > 1 and best - alike[1][0] < _MARGIN):
            continue
        for document in entries[short].features_in:
            if document in entries[full].features_in:
                links.setdefault((short, document), full)


def _list_containing(entry: Entry, index: Index, entries: Mapping[str, Entry]) -> list[Candidate]:
    """The names that begin or end with this one; none when there are too many."""
    found = index.get(" ".join(entry.name.bare), ())
    if len(found) > _BUCKET:
        return []
    return [
        other
        for other in found
        if entries[other.key].rank < entry.rank
        and is_contained(entry.name, entries[other.key].name, other.by)
        and ("neighbour", other.key) not in entry.features
    ]


def _is_dependent(entry: Entry, found: Candidate, entries: Mapping[str, Entry]) -> bool:
    full = entries[found.key]
    return entry.features_in.keys() <= full.features_in.keys() and may_differ_in_type(
        entry.types, full.types, found.by
    )


def _choose(
    own: frozenset[Feature],
    clusters: Mapping[str, Iterable[str]],
    entries: Mapping[str, Entry],
    bearers: Mapping[Feature, int],
) -> str | None:
    """The one cluster whose names share rare features with these."""
    weights = {
        cluster: max(weigh_shared(own, entries[key].features, bearers) for key in keys)
        for cluster, keys in clusters.items()
    }
    strongest = max(weights, key=lambda cluster: (weights[cluster], cluster))
    others = max((w for cluster, w in weights.items() if cluster != strongest), default=0.0)
    enough = weights[strongest] >= max(_EVIDENCE, _LEAD * others)
    return strongest if enough else None


def _follow(links: Links, key: str, document: str) -> str:
    """The fullest name of a place; links lead to ever smaller ranks, so there is an end."""
    while (key, document) in links:
        key = links[key, document]
    return key


def _index_forms(keys: Iterable[str], entries: Mapping[str, Entry]) -> Index:
    index: dict[str, list[Candidate]] = defaultdict(list)
    for key in keys:
        for form, by in list_short_forms(entries[key].name):
            index[form].append(Candidate(key, by))
    return index


def _find_candidates(
    entry: Entry, types: frozenset[str], index: Index, entries: Mapping[str, Entry]
) -> list[Candidate]:
    """Fuller names that the name, with these types, can stand for; none when too many fit."""
    candidates = []
    for form in list_sought_forms(entry.name):
        found = index.get(form, ())
        if len(found) > _BUCKET:
            return []
        for other in found:
            full = entries[other.key]
            if (
                full.rank < entry.rank
                and is_possible(entry.name, types, full.name, full.types, other.by)
                and (full.types & types or _depends(entry, full, other.by))
            ):
                candidates.append(other)
    return candidates


def _depends(short: Entry, full: Entry, by: Shortening) -> bool:
    """Without types, last words are a short form only if they never stand without the whole."""
    return by.how != "front" or short.features_in.keys() <= full.features_in.keys()
