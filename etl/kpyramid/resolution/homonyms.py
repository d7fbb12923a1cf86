"""Homonyms: persons of one name in documents that have nothing to do with each other."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from kpyramid.embeddings.port import Embedder
from kpyramid.resolution.candidates import Corpus
from kpyramid.resolution.contexts import embed_contexts, gather_contexts
from kpyramid.resolution.entries import Entry, Feature, Use

_STRANGE = 0.15
"""Cosine of contexts below which two documents may speak of two persons: the median of contexts
drawn at random; of one person's contexts it is less in about one of thirty."""
_RARE = 2
"""Names that may have a feature for it to join documents."""
_DOCUMENTS = 64
"""A name in more documents than this is somebody whom all know."""

Place = tuple[str, str]
"""A key and a document."""


def split_homonyms(
    corpus: Corpus,
    places: Mapping[str, Sequence[str]],
    shared_surnames: Iterable[str],
    uses: Iterable[Use],
    embedder: Embedder,
) -> dict[Place, str]:
    """A label for each place whose person is not the one that the name alone denotes.

    `places`: for each key, the documents where it stands for itself. A lone surname that several
    persons bear is one person per document, unless documents share a rare feature. A full name
    is one person unless contexts differ as much as those of any two names.
    """
    persons = {
        key: sorted(documents)
        for key, documents in places.items()
        if 1 < len(documents) <= _DOCUMENTS and "PERSON" in corpus.entries[key].types
    }
    surnames = {key for key in shared_surnames if key in persons}
    full = {
        key for key in persons if key not in surnames and len(corpus.entries[key].name.bare) > 1
    }
    said = gather_contexts(uses, {(key, d) for key in full for d in persons[key]})
    vectors = embed_contexts(said, embedder)

    labels: dict[Place, str] = {}
    for key in sorted(surnames | full):
        known = [d for d in persons[key] if key in surnames or (key, d) in vectors]

        def is_near(one: str, other: str, key: str = key) -> bool:
            if key in surnames:
                return False
            return float(vectors[key, one] @ vectors[key, other]) >= _STRANGE

        groups = _group_documents(known, corpus.entries[key], corpus.bearers, is_near)
        for group in groups[1:]:
            labels.update({(key, d): f"{key} in {group[0]}" for d in group})
    return labels


def _group_documents(
    documents: Sequence[str],
    entry: Entry,
    bearers: Mapping[Feature, int],
    is_near: Callable[[str, str], bool],
) -> list[list[str]]:
    """Documents that speak of one person, the largest group first."""
    parent = {document: document for document in documents}

    def find(document: str) -> str:
        while parent[document] != document:
            document = parent[document]
        return document

    for place, one in enumerate(documents):
        for other in documents[:place]:
            shared = entry.features_in[one] & entry.features_in[other]
            if any(bearers[f] <= _RARE for f in shared) or is_near(one, other):
                ends = (find(one), find(other))
                parent[max(ends)] = min(ends)
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        groups[find(document)].append(document)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))
