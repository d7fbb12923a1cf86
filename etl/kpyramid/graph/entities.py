"""Entity resolution (f_dis): which names, in which documents, denote one entity.

Names that differ in case, marks, spaces or articles are one. A shorter form belongs to the one
fuller name that it can stand for, and only with evidence: the same document, rare features that
both share, the use of the corpus elsewhere, alike contexts. In doubt two names stay two.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, cast

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.graph.names import (
    STATES,
    Name,
    Shortening,
    is_contained,
    is_local,
    is_lone,
    is_possible,
    is_safe,
    list_short_forms,
    list_sought_forms,
    may_differ_in_type,
    parse_name,
)
from kpyramid.graph.relations import Union
from kpyramid.keys import content_id

# What a corpus says of each name, by document.

UNKNOWN = "NOUN"
"""The type of a mention that the entity recogniser does not know; any other type outvotes it."""

_SHARE = 0.2
"""Share of a name's typed mentions from which a type is one of its types."""

_NAMING = frozenset("call dub know name nickname".split())
"""Verbs that give a thing another name, which is no neighbour."""

Feature = tuple[str, str]
"""A neighbour's key, or a side and the relation there."""


@dataclass(frozen=True, slots=True)
class Use:
    """One name as one fact uses it: at which side, of which relation, with what other name."""

    name: str
    document: str
    type: str
    side: str
    relation: str
    other: str
    is_title: bool = False
    """Whether it is the title of the document, which names what that is about; no fact's name.

    `other` is then the whole title, which may tell the name from its namesakes.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """All that is known of the wordings with one key, by document and in all documents.

    `common`: most mentions have no type.
    `rank`: fuller names come first; a short form belongs to a name of smaller rank only.
    """

    name: Name
    common: bool
    types: frozenset[str]
    types_in: Mapping[str, frozenset[str]]
    features: frozenset[Feature]
    features_in: Mapping[str, frozenset[Feature]]
    rank: tuple[bool, int, int, int, str]


def gather_entries(uses: Iterable[Use]) -> dict[str, Entry]:
    """The entries by key, the fullest names first."""
    by_key: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        by_key[parse_name(use.name).key].append(use)
    shared: dict[object, Any] = {}
    entries = (_read_entry(key, own, shared) for key, own in by_key.items())
    return {entry.name.key: entry for entry in sorted(entries, key=lambda entry: entry.rank)}


def _read_entry(key: str, uses: Iterable[Use], shared: dict[object, Any]) -> Entry:
    """What the uses of one key say; equal sets of types and equal features are one object."""
    names: Counter[str] = Counter()
    votes: Counter[str] = Counter()
    types: dict[str, Counter[str]] = defaultdict(Counter)
    features: dict[str, set[Feature]] = defaultdict(set)
    for use in uses:
        names[use.name] += 1
        votes[use.type] += 1
        types[use.document][use.type] += 1
        found = features[use.document]
        if not use.is_title and _NAMING.isdisjoint(use.relation.split()):
            for feature in (("neighbour", parse_name(use.other).key), (use.side, use.relation)):
                found.add(shared.setdefault(feature, feature))

    def share(found: frozenset[str]) -> frozenset[str]:
        return cast("frozenset[str]", shared.setdefault(found, found))

    everywhere = share(_list_types(votes))
    features_in = {document: frozenset(found) for document, found in features.items()}
    name = _judge_name(key, names)
    return Entry(
        name=name,
        common=2 * votes[UNKNOWN] > votes.total(),
        types=everywhere,
        types_in={d: share(_list_types(counts)) or everywhere for d, counts in types.items()},
        features=frozenset().union(*features_in.values())
        if len(features_in) > 1
        else next(iter(features_in.values())),
        features_in=features_in,
        rank=(name.foreign, -len(name.bare), -len(name.words), -len(key), key),
    )


def vote_type(types: Mapping[str, int]) -> str:
    """The most frequent type that says more than `NOUN`; ties go by alphabet."""
    named = [name for name in types if name != UNKNOWN]
    return min(named, key=lambda name: (-types[name], name)) if named else UNKNOWN


def _list_types(votes: Mapping[str, int]) -> frozenset[str]:
    """The types that say something and have their share of the votes that do."""
    known = votes.keys() - {UNKNOWN}
    if len(known) < 2:
        return frozenset(known)
    least = _SHARE * sum(votes[name] for name in known)
    return frozenset(name for name in known if votes[name] >= least)


def _judge_name(key: str, counts: Mapping[str, int]) -> Name:
    """The most frequent wording's parts; proper when most uses are and none is all small."""
    name = parse_name(min(counts, key=lambda text: (-counts[text], -len(text), text)))
    proper = sum(count for text, count in counts.items() if parse_name(text).proper)
    common = len(name.words) == 1 and any(text.islower() for text in counts)
    return replace(name, key=key, proper=2 * proper > sum(counts.values()) and not common)


# Fuller names that a short form can stand for.

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
    return [
        found
        for found, full in _list_fuller(entry, list_sought_forms(entry.name), index, corpus)
        if _agree(entry, types, full, found.by)
        and (full.types & types or _depends(entry, full, found.by))
    ]


def _agree(entry: Entry, types: frozenset[str], full: Entry, by: Shortening) -> bool:
    if by.how == "number":
        return entry.common and full.common
    return is_possible(entry.name, types, full.name, full.types, by)


def list_containing(entry: Entry, corpus: Corpus) -> list[Candidate]:
    """The fuller names that begin or end with this one; none when there are too many."""
    return [
        found
        for found, full in _list_fuller(entry, [" ".join(entry.name.bare)], corpus.index, corpus)
        if is_contained(entry.name, full.name, found.by)
    ]


def _list_fuller(
    entry: Entry, forms: Iterable[str], index: Index, corpus: Corpus
) -> list[tuple[Candidate, Entry]]:
    """Fuller names with one of the forms, but those that a fact joins to the name."""
    found = [index.get(form, ()) for form in forms]
    if any(len(names) > BUCKET for names in found):
        return []
    fuller = [(other, corpus.entries[other.key]) for names in found for other in names]
    return [
        (other, full)
        for other, full in fuller
        if full.rank < entry.rank and not _is_beside(entry, full, other.by, corpus)
    ]


def weigh_shared(own: frozenset[Feature], full: Entry, corpus: Corpus) -> float:
    """How much common features say: one that only these two names have counts 1."""
    shared = sorted(own & full.features)
    return sum(1.0 / max(1, corpus.bearers[feature] - 1) for feature in shared)


def _depends(short: Entry, full: Entry, by: Shortening) -> bool:
    """Without types, last words are a short form only if they never stand without the whole."""
    return by.how != "front" or short.features_in.keys() <= full.features_in.keys()


def _is_beside(short: Entry, full: Entry, by: Shortening, corpus: Corpus) -> bool:
    """Whether a fact joins both names, so that they are two things unless they share a lot."""
    if by.how in _RESTATING or ("neighbour", full.name.key) not in short.features:
        return False
    return weigh_shared(short.features, full, corpus) < _SAME


# Contexts: the vectors of what is said of a name.

_MOST = 32
"""Statements of one name that are looked at; more would cost and change little."""
_LEAST = 3
"""Statements that make a context."""

Place = tuple[str, str]
"""A key and a document."""


def gather_contexts(uses: Iterable[Use], wanted: Collection[Place]) -> dict[Place, set[str]]:
    """What is said of each name in each document, without the name itself."""
    statements: dict[Place, set[str]] = defaultdict(set)
    if not wanted:
        return statements
    for use in uses:
        place = (parse_name(use.name).key, use.document)
        if place in wanted:
            parts = (use.relation, use.other) if use.side == "head" else (use.other, use.relation)
            statements[place].add(" ".join(parts))
    return statements


def embed_contexts(
    statements: Mapping[Place, Collection[str]], embedder: Embedder
) -> dict[Place, Matrix]:
    """The mean vector, of unit length, of each context that says enough."""
    said = {place: _sample(texts) for place, texts in statements.items() if len(texts) >= _LEAST}
    vectors = embedder.embed([text for place in sorted(said) for text in said[place]])
    ends = accumulate(len(said[place]) for place in sorted(said))
    return {
        place: _scale(vectors[end - len(said[place]) : end].mean(axis=0))
        for place, end in zip(sorted(said), ends, strict=True)
    }


def compare_contexts(
    pairs: Sequence[tuple[str, str]], uses: Iterable[Use], embedder: Embedder
) -> dict[tuple[str, str], float]:
    """The cosine of the contexts of two keys; a pair with too little said of either is left out.

    The mean of all names compared is taken off: what all names of the corpus have in common
    says nothing.
    """
    wanted = {key for pair in pairs for key in pair}
    statements: dict[Place, set[str]] = defaultdict(set)
    uses = [use for use in uses if parse_name(use.name).key in wanted]
    places = {(parse_name(use.name).key, use.document) for use in uses}
    for (key, _), texts in gather_contexts(uses, places).items():
        statements[key, ""] |= texts
    vectors = embed_contexts(statements, embedder)
    if not vectors:
        return {}
    common = np.mean(np.stack(list(vectors.values())), axis=0)
    contexts = {key: _scale(vector - common) for (key, _), vector in vectors.items()}
    return {
        (one, other): float(contexts[one] @ contexts[other])
        for one, other in pairs
        if one in contexts and other in contexts
    }


def _sample(texts: Iterable[str]) -> list[str]:
    """At most so many, chosen by hash: the same in every order and corpus."""
    return sorted(texts, key=lambda text: content_id("context", text))[:_MOST]


def _scale(vector: Matrix) -> Matrix:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


# Homonyms: things of one name in unrelated documents.

_STRANGE = 0.15
"""Cosine of contexts below which two documents may speak of two persons: the median of contexts
drawn at random; of one person's contexts it is less in about one of thirty."""
_RARE = 2
"""Names that may have a feature for it to join documents."""
_LOCATED = "locate in"
_DOCUMENTS = 64
"""A name in more documents than this is somebody whom all know."""


def split_homonyms(
    corpus: Corpus,
    places: Mapping[str, Sequence[str]],
    titles: Mapping[Place, str],
    uses: Iterable[Use],
    embedder: Embedder,
) -> dict[Place, str]:
    """A label for each place whose thing is not the one that the name alone denotes.

    `places`: for each key, the documents where it stands for itself. `titles`: the whole titles of
    the documents that one names. A lone name is one thing per document, unless documents share a
    rare feature. A person's full name is one person unless contexts differ as much as those of
    any two names. Where titles or states tell things of one name apart, documents without either
    mean the one thing that is by far the most frequent, or none of them.
    """
    entries = corpus.entries
    shared = {
        key: sorted(documents)
        for key, documents in places.items()
        if 1 < len(documents) <= _DOCUMENTS
    }
    uses = list(uses)
    told, marks = _list_told(shared, titles, uses)
    lone = {key for key in shared if is_lone(entries[key].name, entries[key].types)}
    lone -= told | {key for key, _ in titles}
    persons = {key for key in shared if "PERSON" in entries[key].types} - lone - told
    full = {key for key in persons if len(entries[key].name.bare) > 1}
    statements = gather_contexts(uses, {(key, d) for key in full for d in shared[key]})
    vectors = embed_contexts(statements, embedder)

    labels: dict[Place, str] = {}
    for key in sorted(lone | full | told):
        marked = marks if key in told else vectors
        known = [d for d in shared[key] if key in lone or (key, d) in marked]

        def is_near(one: str, other: str, key: str = key) -> bool:
            if key in told:
                (title, state), (another, abroad) = marks[key, one], marks[key, other]
                return title == another if title and another else state == abroad != ""
            if _share_rare(entries[key], one, other, corpus.bearers):
                return True
            return key in full and float(vectors[key, one] @ vectors[key, other]) >= _STRANGE

        groups = _group_documents(known, is_near)
        sizes = [len(group) for group in groups]
        plain = len(known) == len(shared[key]) or key in full or sizes[0] >= _USUAL * sizes[1]
        for group in groups[plain:]:
            labels.update({(key, d): f"{key} in {group[0]}" for d in group})
    return labels


def _list_told(
    shared: Mapping[str, Sequence[str]], titles: Mapping[Place, str], uses: Iterable[Use]
) -> tuple[set[str], dict[Place, tuple[str, str]]]:
    """Names that different titles or states tell apart; title and state, or "", by place."""
    states: dict[Place, set[str]] = defaultdict(set)
    for use in uses:
        if use.side == "head" and use.relation.startswith(_LOCATED):
            state = parse_name(use.other)
            if state.words in STATES:
                states[parse_name(use.name).key, use.document].add(state.key)
    told = set()
    marks = {}
    for key, documents in shared.items():
        found = {}
        for document in documents:
            title = titles.get((key, document), "")
            state = parse_name(title.rpartition(",")[2])
            in_ = {state.key} if state.words in STATES else states.get((key, document), set())
            if title or len(in_) == 1:
                found[key, document] = (title, min(in_) if len(in_) == 1 else "")
        if any(len({mark[at] for mark in found.values()} - {""}) > 1 for at in (0, 1)):
            told.add(key)
            marks.update(found)
    return told, marks


def _group_documents(
    documents: Sequence[str], is_near: Callable[[str, str], bool]
) -> list[list[str]]:
    """Documents that speak of one thing, the largest group first."""
    joined = Union(documents, lambda document: document)
    for place, one in enumerate(documents):
        for other in documents[:place]:
            if is_near(one, other):
                joined.join(one, other)
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        groups[joined.find(document)].append(document)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def _share_rare(entry: Entry, one: str, other: str, bearers: Mapping[Feature, int]) -> bool:
    shared = entry.features_in[one] & entry.features_in[other]
    return any(bearers[feature] <= _RARE for feature in shared)


# Entity clusters.

_EVIDENCE = 0.5
"""Weight of shared features that counts: two that another name has too, or one rarer."""
_LEAD = 4.0
"""How many times the evidence for any other fuller name the evidence for one must be."""
_USUAL = 2
"""Documents that use a short form for one entity, and none for another, show the usage."""
_SIMILARITY = 0.3
"""Cosine of contexts from which two names may denote one thing."""
_MARGIN = 0.1
"""By how much any other fuller name must be less similar."""

Links = dict[Place, str]
"""The fuller name's key, for a short form's key in a document."""


def resolve_names(uses: Iterable[Use], embedder: Embedder) -> dict[tuple[str, str], str]:
    """The cluster of each (name, document); a cluster is called by the key of its fullest name.

    Time and memory are linear in the uses: names meet only through equal forms, and a form that
    more than a fixed number of names share is not used.
    """
    uses = list(uses)
    corpus = read_corpus(uses)
    links: Links = {}
    titles = {(parse_name(use.name).key, use.document): use.other for use in uses if use.is_title}
    _link_within_documents(corpus, links)
    _link_across_documents(corpus, links, titles)
    _link_companions(corpus, uses, embedder, links)
    alone = {
        key: [document for document in entry.features_in if (key, document) not in links]
        for key, entry in corpus.entries.items()
    }
    stated = [use for use in uses if not use.is_title]
    apart = split_homonyms(corpus, alone, titles, stated, embedder)
    clusters = {}
    for use in uses:
        full = _follow(links, parse_name(use.name).key, use.document)
        clusters[use.name, use.document] = apart.get((full, use.document), full)
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


def _link_across_documents(corpus: Corpus, links: Links, titles: Collection[Place]) -> None:
    """Links short forms whose documents do not hold the fuller name.

    A document whose title is the short form shows its usage by itself.
    """
    usual: dict[str, Counter[str]] = defaultdict(Counter)
    for (short, document), full in links.items():
        usual[short][full] += _USUAL if (short, document) in titles else 1
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
    """Links names to a longer name of their documents that contains them.

    Either only one other name of the corpus contains the name, which never occurs without it; or
    the contexts of both are alike, and those of any other name that contains it are not.
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
    """The one cluster whose names share rare features with these, or stand in a fact with them."""
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
