"""Entity resolution (f_dis): the entity that each name in each document denotes.

Names that differ only in case, marks, spaces or articles are equal. A shorter form is linked to the
only fuller name that it can stand for, and only with evidence: the same document, shared rare
features, or its usage elsewhere in the corpus. In doubt two names stay apart.
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

# The uses of each name in a corpus, by document.

UNKNOWN = "NOUN"
"""The type of a mention that the recogniser does not tag; any other type outvotes it."""

THING = "THING"
"""The type of a one-word name whose document states that it is no person, such as a planet."""

_SHARE = 0.2
"""Least share of a name's typed mentions for a type to count as one of its types."""

_NAMING = frozenset("call dub know name nickname".split())
"""Verbs that give a thing another name; such a name is no neighbour."""

_HELD, _NAMES = 8192, 1 << 16
"""Entries and names in memory at a time."""

Feature = tuple[str, str]
"""A neighbour's key, or a side and the relation there."""
Place = tuple[str, str]
"""A key and a document."""


class Use(NamedTuple):
    """A name as used by a fact: its side, the relation, and the name at the other end."""

    name: str
    document: str
    type: str
    side: str
    relation: str
    partner: str
    is_title: bool = False
    """Whether it is the document's title, which names the document's subject, not a fact's end.

    `partner` is then the whole title, which may distinguish the name from namesakes.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """Types and features of the wordings with one key, by document and over all documents.

    `common`: most mentions have no type.
    `rank`: fuller names come first; a short form is linked only to a name of smaller rank.
    """

    name: Name
    common: bool
    types: frozenset[str]
    types_in: Mapping[str, frozenset[str]]
    features: frozenset[Feature]
    features_in: Mapping[str, frozenset[Feature]]
    rank: tuple[bool, int, int, int, str]


class Uses:
    """The uses of each key, stored as columns of numbers and read as objects."""

    def __init__(self, uses: Iterable[Use]) -> None:
        names: Codes[str] = Codes()
        words: list[Codes[Any]] = [names, *(Codes() for _ in Use._fields[1:])]
        words[Use._fields.index("partner")] = names
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
        self._owners = key_of[self._columns[0]]
        self._order = np.argsort(self._owners, kind="stable")
        numbers = np.arange(len(self._keys) + 1)
        self._ends = np.searchsorted(self._owners, numbers, sorter=self._order)
        _, _, _, side, relation, partner, title = self._columns
        naming = [not _NAMING.isdisjoint(words.split()) for words in self._relations]
        plain = (title == words[6].get(False, -1)) & ~np.array(naming, dtype=bool)[relation]
        owners = self._owners[plain].astype(np.int64)
        self._neighbours = _count_owners(owners, key_of[partner[plain]], len(self._keys))
        usages = relation[plain] * len(self._sides) + side[plain]
        self._bearers = _count_owners(owners, usages, len(self._relations) * len(self._sides))
        self.judge = lru_cache(_NAMES)(self._judge)

    def __iter__(self) -> Iterator[str]:
        """The keys with uses; the remaining keys are those of neighbours only."""
        return compress(self._keys, np.diff(self._ends).tolist())

    def __getitem__(self, key: str) -> list[Use]:
        return [*self._take(self._find(key))]

    def _find(self, key: str) -> Numbers:
        number = self._codes[key]
        return self._order[self._ends[number] : self._ends[number + 1]]

    def _judge(self, key: str) -> Name:
        """The parts of the name with a key, by its most frequent wording."""
        names = self._words[0]
        numbers = self._columns[0][self._find(key)].tolist()
        return _judge_name(key, Counter(names[name] for name in numbers))

    def find_key(self, name: str) -> str:
        """The key of a name or of a neighbour."""
        number = int(self._key_of[self._names[name]])
        return self._keys[number]

    def walk_places(self) -> Iterator[Place]:
        """Key and document of each use, in their order."""
        documents = self._words[1]
        for number, document in zip(self._owners, self._columns[1], strict=True):
            yield self._keys[number], documents[document]

    def list_documents(self) -> Iterator[tuple[str, list[str]]]:
        """Each key with its documents, in order."""
        documents = self._words[1]
        for key in self:
            numbers = self._columns[1][self._find(key)].tolist()
            yield key, sorted({documents[document] for document in numbers})

    def list_titles(self) -> Iterator[Use]:
        """The uses that are titles."""
        return self._take(np.flatnonzero(np.array(self._words[6])[self._columns[6]]))

    def list_with_relation(self, beginning: str) -> Iterator[Use]:
        """The uses whose relation begins with some words."""
        matches = [relation.startswith(beginning) for relation in self._words[4]]
        return self._take(np.flatnonzero(np.array(matches, dtype=bool)[self._columns[4]]))

    def count_bearers(self, feature: Feature) -> int:
        """The number of keys with a feature."""
        where, what = feature
        if where == "neighbour":
            return int(self._neighbours[self._codes[what]])
        return int(self._bearers[self._relations[what] * len(self._sides) + self._sides[where]])

    def _take(self, rows: Numbers) -> Iterator[Use]:
        columns = (
            map(words.__getitem__, column[rows].tolist())
            for words, column in zip(self._words, self._columns, strict=True)
        )
        return map(Use._make, zip(*columns, strict=True))


def _count_owners(owners: Numbers, values: Numbers, most: int) -> Numbers:
    """The number of different owners of each value below `most`, shape (most,)."""
    pairs = np.unique(owners * max(1, most) + values)
    return np.bincount(pairs % max(1, most), minlength=most)


def _read_entry(uses: Uses, key: str) -> Entry:
    """The entry of a key, from all its uses."""
    name = uses.judge(key)
    votes: Counter[str] = Counter()
    types: dict[str, Counter[str]] = defaultdict(Counter)
    features: dict[str, set[Feature]] = defaultdict(set)
    lone = len(name.words) == 1
    things = {(u.document, label) for u in uses[key] if lone and (label := _find_kind(u))}
    for use in uses[key]:
        typed = use.type == "PERSON" and (use.document, THING) in things
        other = use.type in {UNKNOWN, "ORG"} and (use.document, UNKNOWN) in things
        other = other or (use.type == UNKNOWN and (use.document, THING) in things)
        kind = THING if typed or other else use.type  # the tank engine Anna is not Anna Lee
        votes[kind] += 1
        types[use.document][kind] += 1
        known = features[use.document]
        if not use.is_title and _NAMING.isdisjoint(use.relation.split()):
            known |= {("neighbour", uses.find_key(use.partner)), (use.side, use.relation)}
    everywhere = _list_types(votes)
    features_in = {document: frozenset(known) for document, known in features.items()}
    return Entry(
        name=name,
        common=2 * votes[UNKNOWN] > votes.total(),
        types=everywhere,
        types_in={document: _list_types(tally) or everywhere for document, tally in types.items()},
        features=frozenset().union(*features_in.values()),
        features_in=features_in,
        rank=_rank(name),
    )


def _find_kind(use: Use) -> str | None:
    """THING if the fact states that the name is a kind of thing, UNKNOWN if of an unknown kind."""
    if use.relation != IS_A or use.side != "head" or use.is_title:
        return None
    words = parse_name(use.partner).words
    end = next((i for i, word in enumerate(words) if i and word in LINKS), len(words))
    label = find_kind_label(words[end - 1]) if end else "PERSON"
    return None if label == "PERSON" else UNKNOWN if label is None else THING


def _rank(name: Name) -> tuple[bool, int, int, int, str]:
    return name.foreign, -len(name.bare), -len(name.words), -len(name.key), name.key


def vote_type(types: Mapping[str, int]) -> str:
    """The most frequent type other than `NOUN`, ties in alphabetical order; else `NOUN`."""
    named = [name for name in types if name != UNKNOWN]
    return min(named, key=lambda name: (-types[name], name)) if named else UNKNOWN


def _list_types(votes: Mapping[str, int]) -> frozenset[str]:
    """The types other than `NOUN` with at least `_SHARE` of the votes for such types."""
    known = votes.keys() - {UNKNOWN}
    if len(known) < 2:
        return frozenset(known)
    least = _SHARE * sum(votes[name] for name in known)
    return frozenset(name for name in known if votes[name] >= least)


def _judge_name(key: str, counts: Mapping[str, int]) -> Name:
    """The most frequent wording's parts; proper if most uses are, and no lone word is small."""
    name = parse_name(min(counts, key=lambda text: (-counts[text], -len(text), text)))
    proper = sum(count for text, count in counts.items() if parse_name(text).proper)
    common = len(name.words) == 1 and any(text.islower() for text in counts)
    return replace(name, key=key, proper=2 * proper > sum(counts.values()) and not common)


# Fuller names that a short form can stand for.

BUCKET = 64
"""Most fuller names of a short form; a form that fits more names is linked to none."""

_MOST_ENDED = 2
"""Most names that end in a word which still denotes one of them."""
_SAME = 3.0
"""Weight of shared features that outweighs a fact between both names."""
_RESTATING = frozenset({"acronym", "frame", "order", "script"})
"""Forms that a text may state beside the fuller name: `the United Nations is called UN`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fuller name, and how a form is derived from it."""

    key: str
    by: Shortening


Index = Mapping[str, Sequence[Candidate]]
"""The fuller names with each short form."""


class Corpus:
    """All names of a corpus; `keys`: the fullest first; `read`: returns the entry of a key.

    `forms`: the short forms of each name that other names have. `index`: the names with each such
    form. `seekers`: the names that may be a short form of these.
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
            sought = {*list_sought_forms(name)}
            shortened = [
                (form, Candidate(key, Shortening(how, dropped)))
                for form, how, dropped in list_short_forms(name)
                if counts[form] > (form in sought)
            ]
            if shortened:
                self.forms[key] = shortened
        del counts
        self.index = index_forms(self.keys, self.forms)
        self.seekers = {key for key in self.keys if self._may_seek(uses.judge(key))}

    def _may_seek(self, name: Name) -> bool:
        forms = (*list_sought_forms(name), " ".join(name.bare))
        return any(form in self.index for form in forms)


def index_forms(keys: Iterable[str], forms: Mapping[str, Sequence[tuple[str, Candidate]]]) -> Index:
    """The names of some keys by each of their short forms."""
    index: dict[str, list[Candidate]] = defaultdict(list)
    for key in keys:
        for form, candidate in forms.get(key, ()):
            index[form].append(candidate)
    return index


def find_candidates(
    entry: Entry, types: frozenset[str], index: Index, corpus: Corpus
) -> list[Candidate]:
    """Fuller names that the name, with these types, can stand for; none if too many fit.

    The last word of three names and more, not all of persons, is a name by itself: "Jenkins" beside
    "CI Jenkins", "Staging Jenkins" and "Production Jenkins".
    """
    fuller = _list_fuller(entry, list_sought_forms(entry.name), index, corpus)
    ended = [full for candidate, full in fuller if candidate.by.how == "front"]
    alone = len(ended) > _MOST_ENDED and any("PERSON" not in full.types for full in ended)
    return [
        candidate
        for candidate, full in fuller
        if not (alone and candidate.by.how == "front")
        and _agree(entry, types, full, candidate.by)
        and (full.types & types or _depends(entry, full, candidate.by))
    ]


def _agree(entry: Entry, types: frozenset[str], full: Entry, by: Shortening) -> bool:
    if by.how == "number":
        return entry.common and full.common
    return is_possible(entry.name, types, full.name, full.types, by)


def list_containing(entry: Entry, corpus: Corpus) -> list[Candidate]:
    """The fuller names that begin or end with this name; none if there are too many."""
    return [
        fuller
        for fuller, full in _list_fuller(entry, [" ".join(entry.name.bare)], corpus.index, corpus)
        if is_contained(entry.name, full.name, fuller.by)
    ]


def _list_fuller(
    entry: Entry, forms: Iterable[str], index: Index, corpus: Corpus
) -> list[tuple[Candidate, Entry]]:
    """Fuller names with one of the forms, except those that a fact joins to the name."""
    named = [index.get(form, ()) for form in forms]
    if any(len(names) > BUCKET for names in named):
        return []
    fuller = [(candidate, corpus.read(candidate.key)) for names in named for candidate in names]
    return [
        (candidate, full)
        for candidate, full in fuller
        if full.rank < entry.rank and not _is_beside(entry, full, candidate.by, corpus)
    ]


def weigh_shared(features: frozenset[Feature], full: Entry, corpus: Corpus) -> float:
    """The weight of common features: a feature of only these two names counts 1."""
    shared = sorted(features & full.features)
    return sum(1.0 / max(1, corpus.uses.count_bearers(feature) - 1) for feature in shared)


def _depends(short: Entry, full: Entry, by: Shortening) -> bool:
    """Whether it is no case of last words, or these occur only in documents with the whole name."""
    return by.how != "front" or short.features_in.keys() <= full.features_in.keys()


def _is_beside(short: Entry, full: Entry, by: Shortening, corpus: Corpus) -> bool:
    """Whether a fact joins both names, which are then different unless they share many features."""
    if by.how in _RESTATING or ("neighbour", full.name.key) not in short.features:
        return False
    return weigh_shared(short.features, full, corpus) < _SAME


# Contexts: the vectors of the statements about a name.

_MOST = 32
"""Most statements of a name in a context; more would cost time and change little."""
_LEAST = 3
"""Least statements of a context."""


def gather_contexts(uses: Iterable[Use]) -> dict[str, set[str]]:
    """The statements about a name in each document, without the name itself."""
    statements: dict[str, set[str]] = defaultdict(set)
    for use in uses:
        parts = (use.relation, use.partner) if use.side == "head" else (use.partner, use.relation)
        statements[use.document].add(" ".join(parts))
    return statements


def embed_contexts(
    statements: Mapping[Place, Collection[str]], embedder: Embedder
) -> dict[Place, Matrix]:
    """The mean vector, of unit length, of each context with at least `_LEAST` statements."""
    sampled = {place: _sample(texts) for place, texts in statements.items() if len(texts) >= _LEAST}
    vectors = embedder.embed([text for place in sorted(sampled) for text in sampled[place]])
    ends = accumulate(len(sampled[place]) for place in sorted(sampled))
    return {
        place: _scale(vectors[end - len(sampled[place]) : end].mean(axis=0))
        for place, end in zip(sorted(sampled), ends, strict=True)
    }


def _sample(texts: Iterable[str]) -> list[str]:
    """At most `_MOST` texts, chosen by hash: the same in every order and corpus."""
    return sorted(texts, key=lambda text: content_id("context", text))[:_MOST]


def _scale(vector: Matrix) -> Matrix:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


# Homonyms: different things with the same name in unrelated documents.

_STRANGE = 0.15
"""Cosine of contexts below which two documents may be about different persons: the median of random
pairs of contexts; about one in thirty pairs of the same person's contexts lies below."""
_RARE = 2
"""Most names with a feature for it to join documents."""
_LOCATED = "locate in"
_DOCUMENTS = 64
"""Most documents of a name that may have homonyms; a more frequent name is well known."""


def split_homonyms(
    corpus: Corpus,
    shared: Mapping[str, Sequence[str]],
    titles: Mapping[Place, str],
    embedder: Embedder,
) -> dict[Place, str]:
    """A label for each place whose entity is not the usual one of its name.

    `shared`: for each key of several documents, those where it stands for itself, in order.
    `titles`: the whole title of each document that the name names. A lone name denotes one thing
    per document, unless documents share a rare feature. A person's full name denotes one person
    unless contexts differ as much as those of any two names. Where titles or states distinguish
    namesakes, documents without either mean the by far most frequent one, or none of them.
    """
    read, uses = corpus.read, corpus.uses
    marked_names, marks = _list_marked(shared, titles, uses)
    plain = shared.keys() - marked_names
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
    for key in sorted(lone | full | marked_names):
        marked = marks if key in marked_names else vectors
        known = [d for d in shared[key] if key in lone or (key, d) in marked]

        def is_near(left: str, right: str, key: str = key) -> bool:
            if key in marked_names:
                (title, state), (another, abroad) = marks[key, left], marks[key, right]
                return title == another if title and another else state == abroad != ""
            if _share_rare(read(key), left, right, uses):
                return True
            return key in full and float(vectors[key, left] @ vectors[key, right]) >= _STRANGE

        groups = _group_documents(known, is_near)
        sizes = [len(group) for group in groups]
        usual = len(known) == len(shared[key]) or key in full or sizes[0] >= _USUAL * sizes[1]
        for group in groups[usual:]:
            labels.update({(key, d): f"{key} in {group[0]}" for d in group})
    return labels


def _list_marked(
    shared: Mapping[str, Sequence[str]], titles: Mapping[Place, str], uses: Uses
) -> tuple[set[str], dict[Place, tuple[str, str]]]:
    """Names with different titles or states, and the title and state ("" if none) by place."""
    states: dict[Place, set[str]] = defaultdict(set)
    for use in uses.list_with_relation(_LOCATED):
        if use.side == "head":
            state = parse_name(use.partner)
            if state.words in STATES:
                states[parse_name(use.name).key, use.document].add(state.key)
    marked = set()
    marks = {}
    for key, documents in shared.items():
        by_place = {}
        for document in documents:
            title = titles.get((key, document), "")
            state = parse_name(title.rpartition(",")[2])
            in_ = {state.key} if state.words in STATES else states.get((key, document), set())
            if title or len(in_) == 1:
                by_place[key, document] = (title, min(in_) if len(in_) == 1 else "")
        if any(len({mark[part] for mark in by_place.values()} - {""}) > 1 for part in (0, 1)):
            marked.add(key)
            marks.update(by_place)
    return marked, marks


def _group_documents(
    documents: Sequence[str], is_near: Callable[[str, str], bool]
) -> list[list[str]]:
    """Groups of documents about the same thing, the largest first."""
    joined = Union(documents, lambda document: document)
    for place, left in enumerate(documents):
        for right in documents[:place]:
            if is_near(left, right):
                joined.join(left, right)
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        groups[joined.find(document)].append(document)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def _share_rare(entry: Entry, left: str, right: str, uses: Uses) -> bool:
    shared = entry.features_in[left] & entry.features_in[right]
    return any(uses.count_bearers(feature) <= _RARE for feature in shared)


# Entity clusters.

_EVIDENCE = 0.5
"""Least weight of shared features: two that another name has too, or a rarer one."""
_LEAD = 4.0
"""Least ratio of the evidence for a fuller name to that for any other."""
_USUAL = 2
"""Documents that use a short form for only one entity from which this is its usage."""

Links = dict[Place, str]
"""The fuller name's key, by a short form's key and document."""


def resolve_names(uses: Iterable[Use], embedder: Embedder) -> list[str]:
    """The cluster of each use; a cluster is named by the key of its fullest name.

    Time and memory are linear in the uses: names are compared only through equal forms, and a form
    that more than a fixed number of names share is not used.
    """
    corpus = Corpus(Uses(uses))
    links: Links = {}
    titles = {(parse_name(t.name).key, t.document): t.partner for t in corpus.uses.list_titles()}
    _link_within_documents(corpus, links)
    _link_across_documents(corpus, links, titles)
    _link_companions(corpus, links)
    alone = (
        (key, [d for d in documents if (key, d) not in links])
        for key, documents in corpus.uses.list_documents()
    )
    shared = {key: places for key, places in alone if 1 < len(places) <= _DOCUMENTS}
    apart = split_homonyms(corpus, shared, titles, embedder)
    clusters = []
    for key, document in corpus.uses.walk_places():
        full = _follow(links, key, document)
        clusters.append(apart.get((full, document), full))
    return clusters


def _link_within_documents(corpus: Corpus, links: Links) -> None:
    """Links each short form for which its document has only one fuller name."""
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
            for candidate in candidates:
                clusters[_follow(links, candidate.key, document)].add(candidate.key)
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
    """Whether the types agree with every candidate of which the short form is an acronym."""
    return all(
        candidate.by.how != "acronym"
        or types & corpus.read(candidate.key).types
        or (len(entry.name.key) > 2 and not (types and corpus.read(candidate.key).types))
        for candidate in candidates
    )


def _link_across_documents(corpus: Corpus, links: Links, titles: Collection[Place]) -> None:
    """Links short forms whose documents do not contain the fuller name.

    A document whose title is the short form is enough evidence of its usage.
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
                candidate
                for candidate in find_candidates(entry, types, corpus.index, corpus)
                if not is_local(candidate.by, corpus.read(candidate.key).types)
            ]
            clusters: dict[str, set[str]] = defaultdict(set)
            for candidate in candidates:
                for root in roots[candidate.key]:
                    clusters[root].add(candidate.key)
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
    """Whether enough documents use the short form for this cluster, and none for another."""
    return usual.keys() == clusters.keys() and usual.total() >= _USUAL


def _link_companions(corpus: Corpus, links: Links) -> None:
    """Links names to the only longer name that contains them, without which they never occur."""
    for short in filter(corpus.seekers.__contains__, corpus.keys):
        entry = corpus.read(short)
        documents = [d for d in entry.features_in if (short, d) not in links]
        containing = list_containing(entry, corpus)
        clusters = {
            _follow(links, candidate.key, document)
            for candidate in containing
            for document in documents
            if document in corpus.read(candidate.key).features_in
        } - {short}
        if len(clusters) == 1 and all(_is_dependent(entry, c, corpus) for c in containing):
            links.update(dict.fromkeys(((short, d) for d in documents), min(clusters)))


def _is_dependent(entry: Entry, candidate: Candidate, corpus: Corpus) -> bool:
    full = corpus.read(candidate.key)
    return entry.features_in.keys() <= full.features_in.keys() and may_differ_in_type(
        entry.types, full.types, candidate.by
    )


def _choose(
    features: frozenset[Feature], clusters: Mapping[str, Iterable[str]], corpus: Corpus
) -> str | None:
    """The cluster whose names share by far the most features, or facts, with these; else None."""
    weights = {
        cluster: max(
            weigh_shared(features, corpus.read(key), corpus) + (("neighbour", key) in features)
            for key in keys
        )
        for cluster, keys in clusters.items()
    }
    strongest = max(weights, key=lambda cluster: (weights[cluster], cluster))
    others = max((w for cluster, w in weights.items() if cluster != strongest), default=0.0)
    enough = weights[strongest] >= max(_EVIDENCE, _LEAD * others)
    return strongest if enough else None


def _follow(links: Links, key: str, document: str) -> str:
    """The fullest name of a place; the loop ends because links lead to ever smaller ranks."""
    while (key, document) in links:
        key = links[key, document]
    return key
