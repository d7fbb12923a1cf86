"""Entity resolution (f_dis): which names, in which documents, denote one entity.

Names that differ in case, marks, spaces or articles are one. A shorter form belongs to the one
fuller name that it can stand for, and only with evidence: the same document, rare features that
both share, the use of the corpus elsewhere. In doubt two names stay two.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, compress
from typing import Any, NamedTuple

import numpy as np

from kpyramid.documents.words import IS_A
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.graph.names import (
    LINKS,
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
from kpyramid.graph.relations import Codes, Numbers, Union
from kpyramid.keys import content_id

# What a corpus says of each name, by document.

UNKNOWN = "NOUN"
"""The type of a mention that the entity recogniser does not know; any other type outvotes it."""

THING = "THING"
"""The type of one word that its document says to be no person: a planet is no short form of one."""

_SHARE = 0.2
"""Share of a name's typed mentions from which a type is one of its types."""

_NAMING = frozenset("call dub know name nickname".split())
"""Verbs that give a thing another name, which is no neighbour."""

_HELD = 8192
"""Entries that are held at a time."""

Feature = tuple[str, str]
"""A neighbour's key, or a side and the relation there."""
Place = tuple[str, str]
"""A key and a document."""


class Use(NamedTuple):
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


class Uses:
    """The uses of each key: columns of numbers, and objects while they are looked at."""

    def __init__(self, uses: Iterable[Use]) -> None:
        names: Codes[str] = Codes()
        words: list[Codes[Any]] = [names, *(Codes() for _ in Use._fields[1:])]
        words[Use._fields.index("other")] = names
        columns = [array("i") for _ in words]
        for use in uses:
            for column, codes, word in zip(columns, words, use, strict=True):
                column.append(codes[word])
        self._codes: Codes[str] = Codes()
        key_of = np.array([self._codes[parse_name(name).key] for name in names], dtype=np.int32)
        self._names, self._key_of = names, key_of
        self._keys = [*self._codes]
        self._sides, self._relations = words[3:5]
        listed = {id(codes): [*codes] for codes in words}
        self._words = [listed[id(codes)] for codes in words]
        self._columns = [np.array(column) for column in columns]
        self._own = key_of[self._columns[0]]
        self._order = np.argsort(self._own, kind="stable")
        numbers = np.arange(len(self._keys) + 1)
        self._ends = np.searchsorted(self._own, numbers, sorter=self._order)
        _, _, _, side, relation, other, title = self._columns
        naming = [not _NAMING.isdisjoint(words.split()) for words in self._relations]
        plain = (title == words[6].get(False, -1)) & ~np.array(naming, dtype=bool)[relation]
        own = self._own[plain].astype(np.int64)
        self._neighbours = _count_owners(own, key_of[other[plain]], len(self._keys))
        said = relation[plain] * len(self._sides) + side[plain]
        self._said = _count_owners(own, said, len(self._relations) * len(self._sides))

    def __iter__(self) -> Iterator[str]:
        """The keys that are used; others are those of neighbours."""
        return compress(self._keys, np.diff(self._ends).tolist())

    def __getitem__(self, key: str) -> list[Use]:
        return [*self._take(self._find(key))]

    def _find(self, key: str) -> Numbers:
        number = self._codes[key]
        return self._order[self._ends[number] : self._ends[number + 1]]

    def judge(self, key: str) -> Name:
        """The parts of the name that the wordings of a key are."""
        names = self._words[0]
        own = self._columns[0][self._find(key)].tolist()
        return _judge_name(key, Counter(names[name] for name in own))

    def find_key(self, name: str) -> str:
        """The key of a name or a neighbour's."""
        number = int(self._key_of[self._names[name]])
        return self._keys[number]

    def walk_places(self) -> Iterator[Place]:
        """Key and document of each use, in their order."""
        documents = self._words[1]
        for number, document in zip(self._own, self._columns[1], strict=True):
            yield self._keys[number], documents[document]

    def list_documents(self) -> Iterator[tuple[str, list[str]]]:
        """Each key with its documents, in order."""
        documents = self._words[1]
        for key in self:
            own = self._columns[1][self._find(key)].tolist()
            yield key, sorted({documents[document] for document in own})

    def list_titles(self) -> Iterator[Use]:
        """Those that are titles."""
        return self._take(np.flatnonzero(np.array(self._words[6])[self._columns[6]]))

    def list_said(self, beginning: str) -> Iterator[Use]:
        """Those whose relation begins so."""
        found = [relation.startswith(beginning) for relation in self._words[4]]
        return self._take(np.flatnonzero(np.array(found, dtype=bool)[self._columns[4]]))

    def count_bearers(self, feature: Feature) -> int:
        """How many keys have a feature."""
        where, what = feature
        if where == "neighbour":
            return int(self._neighbours[self._codes[what]])
        return int(self._said[self._relations[what] * len(self._sides) + self._sides[where]])

    def _take(self, rows: Numbers) -> Iterator[Use]:
        columns = (
            map(words.__getitem__, column[rows].tolist())
            for words, column in zip(self._words, self._columns, strict=True)
        )
        return map(Use._make, zip(*columns, strict=True))


def _count_owners(owners: Numbers, values: Numbers, most: int) -> Numbers:
    """How many different owners each value has; values are less than `most`."""
    pairs = np.unique(owners * max(1, most) + values)
    return np.bincount(pairs % max(1, most), minlength=most)


def _read_entry(uses: Uses, key: str) -> Entry:
    """What the uses of one key say."""
    name = uses.judge(key)
    votes: Counter[str] = Counter()
    types: dict[str, Counter[str]] = defaultdict(Counter)
    features: dict[str, set[Feature]] = defaultdict(set)
    lone = len(name.words) == 1
    things = {(u.document, label) for u in uses[key] if lone and (label := _find_kind(u))}
    for use in uses[key]:
        typed = use.type == "PERSON" and (use.document, THING) in things
        untyped = use.type == UNKNOWN and any((use.document, t) in things for t in (THING, UNKNOWN))
        kind = THING if typed or untyped else use.type
        votes[kind] += 1
        types[use.document][kind] += 1
        found = features[use.document]
        if not use.is_title and _NAMING.isdisjoint(use.relation.split()):
            found |= {("neighbour", uses.find_key(use.other)), (use.side, use.relation)}
    everywhere = _list_types(votes)
    features_in = {document: frozenset(found) for document, found in features.items()}
    return Entry(
        name=name,
        common=2 * votes[UNKNOWN] > votes.total(),
        types=everywhere,
        types_in={document: _list_types(own) or everywhere for document, own in types.items()},
        features=frozenset().union(*features_in.values()),
        features_in=features_in,
        rank=_rank(name),
    )


def _find_kind(use: Use) -> str | None:
    """THING where the fact says that the name is of a kind of things, UNKNOWN of an open kind."""
    if use.relation != IS_A or use.side != "head" or use.is_title:
        return None
    words = parse_name(use.other).words
    end = next((at for at, word in enumerate(words) if at and word in LINKS), len(words))
    label = find_kind_label(words[end - 1]) if end else "PERSON"
    return None if label == "PERSON" else UNKNOWN if label is None else THING


def _rank(name: Name) -> tuple[bool, int, int, int, str]:
    return name.foreign, -len(name.bare), -len(name.words), -len(name.key), name.key


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


class Corpus:
    """All names: `keys` are theirs, the fullest first, and `read` gives the entry of one.

    `forms`: the short forms of each name that other names have. `index`: the names behind each
    such form. `seekers`: the names that may be a short form of one of these.
    """

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.read = lru_cache(_HELD)(lambda key: _read_entry(uses, key))
        self.keys = sorted(uses, key=lambda key: _rank(uses.judge(key)))
        counts = Counter(
            form for key in self.keys for form in {*list_sought_forms(uses.judge(key))}
        )
        self.forms: dict[str, Sequence[tuple[str, Candidate]]] = {}
        for key in self.keys:
            name = uses.judge(key)
            own = {*list_sought_forms(name)}
            found = [
                (form, Candidate(key, Shortening(how, dropped)))
                for form, how, dropped in list_short_forms(name)
                if counts[form] > (form in own)
            ]
            if found:
                self.forms[key] = found
        del counts
        self.index = index_forms(self.keys, self.forms)
        self.seekers = {key for key in self.keys if self._may_seek(uses.judge(key))}

    def _may_seek(self, name: Name) -> bool:
        forms = (*list_sought_forms(name), " ".join(name.bare))
        return any(form in self.index for form in forms)


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
    fuller = [(other, corpus.read(other.key)) for names in found for other in names]
    return [
        (other, full)
        for other, full in fuller
        if full.rank < entry.rank and not _is_beside(entry, full, other.by, corpus)
    ]


def weigh_shared(own: frozenset[Feature], full: Entry, corpus: Corpus) -> float:
    """How much common features say: one that only these two names have counts 1."""
    shared = sorted(own & full.features)
    return sum(1.0 / max(1, corpus.uses.count_bearers(feature) - 1) for feature in shared)


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


def gather_contexts(uses: Iterable[Use]) -> dict[str, set[str]]:
    """What is said of a name in each document, without the name itself."""
    statements: dict[str, set[str]] = defaultdict(set)
    for use in uses:
        parts = (use.relation, use.other) if use.side == "head" else (use.other, use.relation)
        statements[use.document].add(" ".join(parts))
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
    shared: Mapping[str, Sequence[str]],
    titles: Mapping[Place, str],
    embedder: Embedder,
) -> dict[Place, str]:
    """A label for each place whose thing is not the one that the name alone denotes.

    `shared`: for each key of several documents, those where it stands for itself, in order.
    `titles`: the whole titles of the documents that one names. A lone name is one thing per
    document, unless documents share a rare feature. A person's full name is one person unless
    contexts differ as much as those of any two names. Where titles or states tell things of one
    name apart, documents without either mean the one thing that is by far the most frequent, or
    none of them.
    """
    read, uses = corpus.read, corpus.uses
    told, marks = _list_told(shared, titles, uses)
    plain = shared.keys() - told
    lone = {key for key in plain if is_lone(read(key).name, read(key).types)}
    lone -= {key for key, _ in titles}
    full = {key for key in plain if "PERSON" in read(key).types and len(read(key).name.bare) > 1}
    statements = {
        (key, document): texts
        for key in full
        for document, texts in gather_contexts(u for u in uses[key] if not u.is_title).items()
        if document in shared[key]
    }
    vectors = embed_contexts(statements, embedder)

    labels: dict[Place, str] = {}
    for key in sorted(lone | full | told):
        marked = marks if key in told else vectors
        known = [d for d in shared[key] if key in lone or (key, d) in marked]

        def is_near(one: str, other: str, key: str = key) -> bool:
            if key in told:
                (title, state), (another, abroad) = marks[key, one], marks[key, other]
                return title == another if title and another else state == abroad != ""
            if _share_rare(read(key), one, other, uses):
                return True
            return key in full and float(vectors[key, one] @ vectors[key, other]) >= _STRANGE

        groups = _group_documents(known, is_near)
        sizes = [len(group) for group in groups]
        usual = len(known) == len(shared[key]) or key in full or sizes[0] >= _USUAL * sizes[1]
        for group in groups[usual:]:
            labels.update({(key, d): f"{key} in {group[0]}" for d in group})
    return labels


def _list_told(
    shared: Mapping[str, Sequence[str]], titles: Mapping[Place, str], uses: Uses
) -> tuple[set[str], dict[Place, tuple[str, str]]]:
    """Names that different titles or states tell apart; title and state, or "", by place."""
    states: dict[Place, set[str]] = defaultdict(set)
    for use in uses.list_said(_LOCATED):
        if use.side == "head":
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


def _share_rare(entry: Entry, one: str, other: str, uses: Uses) -> bool:
    shared = entry.features_in[one] & entry.features_in[other]
    return any(uses.count_bearers(feature) <= _RARE for feature in shared)


# Entity clusters.

_EVIDENCE = 0.5
"""Weight of shared features that counts: two that another name has too, or one rarer."""
_LEAD = 4.0
"""How many times the evidence for any other fuller name the evidence for one must be."""
_USUAL = 2
"""Documents that use a short form for one entity, and none for another, show the usage."""

Links = dict[Place, str]
"""The fuller name's key, for a short form's key in a document."""


def resolve_names(uses: Iterable[Use], embedder: Embedder) -> list[str]:
    """The cluster of each use; a cluster is called by the key of its fullest name.

    Time and memory are linear in the uses: names meet only through equal forms, and a form that
    more than a fixed number of names share is not used.
    """
    corpus = Corpus(Uses(uses))
    links: Links = {}
    titles = {(parse_name(t.name).key, t.document): t.other for t in corpus.uses.list_titles()}
    _link_within_documents(corpus, links)
    _link_across_documents(corpus, links, titles)
    _link_companions(corpus, links)
    alone = (
        (key, [d for d in documents if (key, d) not in links])
        for key, documents in corpus.uses.list_documents()
    )
    shared = {key: found for key, found in alone if 1 < len(found) <= _DOCUMENTS}
    apart = split_homonyms(corpus, shared, titles, embedder)
    clusters = []
    for key, document in corpus.uses.walk_places():
        full = _follow(links, key, document)
        clusters.append(apart.get((full, document), full))
    return clusters


def _link_within_documents(corpus: Corpus, links: Links) -> None:
    """Links short forms that one fuller name of their document explains, and no other there."""
    by_document: dict[str, list[str]] = defaultdict(list)
    for key in corpus.keys:
        if key in corpus.forms or key in corpus.seekers:
            for document in corpus.read(key).features_in:
                by_document[document].append(key)
    for document in sorted(by_document):
        index = index_forms(by_document[document], corpus.forms)
        if not index:
            continue
        for short in filter(corpus.seekers.__contains__, by_document[document]):
            entry = corpus.read(short)
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
        or types & corpus.read(found.key).types
        or (len(entry.name.key) > 2 and not (types and corpus.read(found.key).types))
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
    for short in corpus.keys:
        if short not in corpus.forms and short not in corpus.seekers:
            continue
        entry = corpus.read(short)
        by_types: dict[frozenset[str], list[str]] = defaultdict(list)
        for document in sorted(entry.features_in):
            if (short, document) not in links:
                by_types[entry.types_in[document]].append(document)
        for types, documents in by_types.items():
            candidates = [
                found
                for found in find_candidates(entry, types, corpus.index, corpus)
                if not is_local(found.by, corpus.read(found.key).types)
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
                or any(is_safe(entry.name, corpus.read(c.key).name, c.by) for c in candidates)
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


def _link_companions(corpus: Corpus, links: Links) -> None:
    """Links names to the one longer name that contains them, without which they never occur."""
    for short in filter(corpus.seekers.__contains__, corpus.keys):
        entry = corpus.read(short)
        documents = [d for d in entry.features_in if (short, d) not in links]
        containing = list_containing(entry, corpus)
        clusters = {
            _follow(links, found.key, document)
            for found in containing
            for document in documents
            if document in corpus.read(found.key).features_in
        } - {short}
        if len(clusters) == 1 and all(_is_dependent(entry, c, corpus) for c in containing):
            links.update(dict.fromkeys(((short, d) for d in documents), min(clusters)))


def _is_dependent(entry: Entry, found: Candidate, corpus: Corpus) -> bool:
    full = corpus.read(found.key)
    return entry.features_in.keys() <= full.features_in.keys() and may_differ_in_type(
        entry.types, full.types, found.by
    )


def _choose(
    own: frozenset[Feature], clusters: Mapping[str, Iterable[str]], corpus: Corpus
) -> str | None:
    """The one cluster whose names share rare features with these, or stand in a fact with them."""
    weights = {
        cluster: max(
            weigh_shared(own, corpus.read(key), corpus) + (("neighbour", key) in own)
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
