"""Entity clusters: which wordings, in which documents, denote one entity (`f_dis`).

Names that differ in case, marks, spaces or articles are one. A shorter form belongs to the one
fuller name that it can stand for, and only with evidence: the same document, rare features that
both share, the use of the corpus elsewhere, the same company. In doubt two names stay two.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kpyramid.embeddings.port import Embedder
from kpyramid.resolution.candidates import (
    BUCKET,
    Candidate,
    Corpus,
    find_candidates,
    index_forms,
    list_containing,
    read_corpus,
    weigh_shared,
)
from kpyramid.resolution.contexts import compare_contexts
from kpyramid.resolution.entries import Entry, Feature, Use
from kpyramid.resolution.homonyms import split_homonyms
from kpyramid.resolution.names import parse_name
from kpyramid.resolution.shortening import is_local, is_safe, may_differ_in_type

_EVIDENCE = 0.5
"""Weight of shared features that counts: two that another name has too, or one rarer."""
_LEAD = 4.0
"""How many times the evidence for any other fuller name the evidence for one must be."""
_USUAL = 2
"""Documents that use a short form for one entity, and none for another, show the usage."""
_SIMILARITY = 0.3
"""Cosine of contexts from which two names keep the same company."""
_MARGIN = 0.1
"""By how much any other fuller name must be less similar."""

Links = dict[tuple[str, str], str]
"""The fuller name's key, for a short form's key in a document."""


def resolve_names(uses: Iterable[Use], embedder: Embedder) -> dict[tuple[str, str], str]:
    """The cluster of each (name, document); a cluster is called by the key of its fullest name.

    Time and memory are linear in the uses: names meet only through equal forms, and a form that
    more than a fixed number of names share is not used.
    """
    uses = list(uses)
    corpus = read_corpus(uses)
    links: Links = {}
    _link_within_documents(corpus, links)
    _link_across_documents(corpus, links)
    _link_companions(corpus, uses, embedder, links)
    alone = {
        key: [document for document in entry.features_in if (key, document) not in links]
        for key, entry in corpus.entries.items()
    }
    surnames = _list_shared_surnames(corpus, links)
    homonyms = split_homonyms(corpus, alone, surnames, uses, embedder)
    clusters = {}
    for use in uses:
        full = _follow(links, parse_name(use.name).key, use.document)
        clusters[use.name, use.document] = homonyms.get((full, use.document), full)
    return clusters


def _link_within_documents(corpus: Corpus, links: Links) -> None:
    """Links short forms that one fuller name of their document explains, and no other there."""
    by_document: dict[str, list[str]] = defaultdict(list)
    for key, entry in corpus.entries.items():
        for document in entry.features_in:
            by_document[document].append(key)
    for document in sorted(by_document):
        index = index_forms(by_document[document], corpus.forms)
        if not index:
            continue
        for short in by_document[document]:
            entry = corpus.entries[short]
            types = entry.types_in[document]
            candidates = find_candidates(entry, types, index, corpus)
            clusters: dict[str, set[str]] = defaultdict(set)
            for found in candidates:
                clusters[_follow(links, found.key, document)].add(found.key)
            clusters.pop(short, None)
            if not clusters:
                continue
            if len(clusters) == 1 and _is_typed(entry, candidates, types, corpus):
                links[short, document] = min(clusters)
            else:
                chosen = _choose(entry.features_in[document], clusters, corpus)
                if chosen is not None:
                    links[short, document] = chosen


def _is_typed(
    entry: Entry, candidates: Iterable[Candidate], types: frozenset[str], corpus: Corpus
) -> bool:
    """The types agree wherever two first letters are all that the names have in common."""
    return all(
        found.by.how != "acronym"
        or types & corpus.entries[found.key].types
        or (len(entry.name.key) > 2 and not (types and corpus.entries[found.key].types))
        for found in candidates
    )


def _link_across_documents(corpus: Corpus, links: Links) -> None:
    """Links short forms whose documents do not hold the fuller name."""
    usual: dict[str, Counter[str]] = defaultdict(Counter)
    for (short, _), full in links.items():
        usual[short][full] += 1
    roots: dict[str, set[str]] = {}
    for short, entry in corpus.entries.items():
        by_types: dict[frozenset[str], list[str]] = defaultdict(list)
        for document in sorted(entry.features_in):
            if (short, document) not in links:
                by_types[entry.types_in[document]].append(document)
        for types, documents in by_types.items():
            candidates = [
                found
                for found in find_candidates(entry, types, corpus.index, corpus)
                if not is_local(found.by, corpus.entries[found.key].types)
            ]
            clusters: dict[str, set[str]] = defaultdict(set)
            for found in candidates:
                for root in roots[found.key]:
                    clusters[root].add(found.key)
            clusters.pop(short, None)
            if not clusters:
                continue
            certain = len(clusters) == 1 and (
                _is_usual(usual[short], clusters)
                or any(is_safe(entry.name, corpus.entries[c.key].name, c.by) for c in candidates)
            )
            for document in documents:
                chosen = (
                    min(clusters)
                    if certain
                    else _choose(entry.features_in[document], clusters, corpus)
                )
                if chosen is not None:
                    links[short, document] = chosen
        roots[short] = {_follow(links, short, document) for document in entry.features_in}


def _is_usual(usual: Counter[str], clusters: Mapping[str, object]) -> bool:
    """Documents enough use the short form for this cluster, and none for another."""
    return usual.keys() == clusters.keys() and usual.total() >= _USUAL


def _link_companions(corpus: Corpus, uses: Sequence[Use], embedder: Embedder, links: Links) -> None:
    """Links names that stand within another name of their documents and keep its company.

    Either only one other name of the corpus contains the name, which never occurs without it;
    or the contexts of both are alike, and those of any other name that contains it are not.
    """
    rivals: dict[str, list[str]] = {}
    for short, entry in corpus.entries.items():
        documents = [d for d in entry.features_in if (short, d) not in links]
        containing = list_containing(entry, corpus)
        clusters = {
            _follow(links, found.key, document)
            for found in containing
            for document in documents
            if document in corpus.entries[found.key].features_in
        } - {short}
        if not clusters:
            continue
        if len(clusters) == 1 and all(_is_dependent(entry, c, corpus) for c in containing):
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
        for document in corpus.entries[short].features_in:
            if document in corpus.entries[full].features_in:
                links.setdefault((short, document), full)


def _is_dependent(entry: Entry, found: Candidate, corpus: Corpus) -> bool:
    full = corpus.entries[found.key]
    return entry.features_in.keys() <= full.features_in.keys() and may_differ_in_type(
        entry.types, full.types, found.by
    )


def _choose(
    own: frozenset[Feature], clusters: Mapping[str, Iterable[str]], corpus: Corpus
) -> str | None:
    """The one cluster whose names share rare features with these, or are said to be the same."""
    weights = {
        cluster: max(
            weigh_shared(own, corpus.entries[key], corpus) + (("neighbour", key) in own)
            for key in keys
        )
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


def _list_shared_surnames(corpus: Corpus, links: Links) -> Iterator[str]:
    """Single names that are the last word of several persons' names."""
    for key, entry in corpus.entries.items():
        if len(entry.name.bare) != 1:
            continue
        bearing = [
            found.key
            for found in corpus.index.get(entry.name.bare[0], ())[:BUCKET]
            if found.by.how == "front" and "PERSON" in corpus.entries[found.key].types
        ]
        persons = {_follow(links, full, min(corpus.entries[full].features_in)) for full in bearing}
        if len(persons) > 1:
            yield key
