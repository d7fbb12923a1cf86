"""Entity clusters: which wordings, in which documents, denote one entity (`f_dis`).

Names that differ in case, marks, spaces or articles are one. A shorter form belongs to the one
fuller name that it can stand for, and only with evidence: the same document, rare neighbours
that both share, or the use of the corpus elsewhere. In doubt two names stay two.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kpyramid.resolution.names import Name, parse_name
from kpyramid.resolution.shortening import (
    UNKNOWN,
    Shortening,
    is_local,
    is_possible,
    is_safe,
    list_short_forms,
    list_sought_forms,
)

_EVIDENCE = 0.5
"""Sum over shared features of 1 / (names that have the feature - 1) that counts."""
_LEAD = 4.0
"""How many times the evidence for any other fuller name the evidence for one must be."""
_USUAL = 2
"""Documents that use a short form for one entity, and none for another, show the usage."""
_SHARE = 0.2
"""Share of a name's typed mentions from which a type is one of its types."""
_BUCKET = 64
"""Fuller names looked at for one short form; one that fits more names is nobody's."""


@dataclass(frozen=True, slots=True)
class Use:
    """One name as one fact uses it: at which side, of which relation, with what other name."""

    name: str
    document: str
    type: str
    side: str
    relation: str
    other: str


Feature = tuple[str, str]
"""A neighbour's key, or a side and the relation there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """All that is known of the wordings with one key, by document and in all documents."""

    name: Name
    types: frozenset[str]
    types_in: Mapping[str, frozenset[str]]
    features: frozenset[Feature]
    features_in: Mapping[str, frozenset[Feature]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fuller name that a short one may stand for."""

    key: str
    by: Shortening


Place = tuple[str, str]
"""A key and a document."""
Links = dict[Place, str]
"""The fuller name's key, for a short form in a document."""


def resolve_names(uses: Iterable[Use]) -> dict[tuple[str, str], str]:
    """The cluster of each (name, document); a cluster is called by the key of its fullest name.

    Time and memory are linear in the uses: names meet only through equal forms, and a form that
    more than a fixed number of names share is not used.
    """
    uses = list(uses)
    entries = _gather_entries(uses)
    bearers = Counter(feature for entry in entries.values() for feature in entry.features)
    links = _link_within_documents(entries, bearers)
    _link_across_documents(entries, bearers, links)
    return {
        (use.name, use.document): _follow(links, (parse_name(use.name).key, use.document))
        for use in uses
    }


def vote_type(types: Mapping[str, int]) -> str:
    """The most frequent type that says more than `NOUN`; ties go by alphabet."""
    named = [name for name in types if name != UNKNOWN]
    return min(named, key=lambda name: (-types[name], name)) if named else UNKNOWN


def _gather_entries(uses: Iterable[Use]) -> dict[str, Entry]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    features: dict[str, dict[str, set[Feature]]] = defaultdict(lambda: defaultdict(set))
    for use in uses:
        key = parse_name(use.name).key
        names[key][use.name] += 1
        types[key][use.document][use.type] += 1
        features[key][use.document] |= {
            ("neighbour", parse_name(use.other).key),
            (use.side, use.relation),
        }
    entries = {}
    for key in sorted(names):
        everywhere = _list_types(sum(types[key].values(), Counter()))
        entries[key] = Entry(
            name=_judge_name(names[key]),
            types=everywhere,
            types_in={d: _list_types(votes) or everywhere for d, votes in types[key].items()},
            features=frozenset().union(*features[key].values()),
            features_in={d: frozenset(found) for d, found in features[key].items()},
        )
    return entries


def _list_types(votes: Mapping[str, int]) -> frozenset[str]:
    """The types that say something and have their share of the votes that do."""
    known = {name: count for name, count in votes.items() if name != UNKNOWN}
    return frozenset(n for n, count in known.items() if count >= _SHARE * sum(known.values()))


def _judge_name(counts: Mapping[str, int]) -> Name:
    """The most frequent wording's parts; proper when most uses are and none is all small."""
    name = parse_name(min(counts, key=lambda text: (-counts[text], -len(text), text)))
    proper = sum(count for text, count in counts.items() if parse_name(text).proper)
    common = len(name.words) == 1 and any(text.islower() for text in counts)
    return replace(name, proper=2 * proper > sum(counts.values()) and not common)


def _rank(entry: Entry) -> tuple[bool, int, int, int, str]:
    """Fuller names come first; links lead from a later to an earlier name only."""
    name = entry.name
    return name.foreign, -len(name.bare), -len(name.words), -len(name.key), name.key


def _link_within_documents(entries: Mapping[str, Entry], bearers: Mapping[Feature, int]) -> Links:
    """Short forms that one fuller name of their document explains, and no other there."""
    order = sorted(entries, key=lambda key: _rank(entries[key]))
    by_document: dict[str, list[str]] = defaultdict(list)
    for key in order:
        for document in entries[key].features_in:
            by_document[document].append(key)
    links: Links = {}
    for document in sorted(by_document):
        index = _index_forms(by_document[document], entries)
        for short in by_document[document]:
            clusters: dict[str, list[Candidate]] = defaultdict(list)
            for found in _find_candidates(short, document, index, entries):
                clusters[_follow(links, (found.key, document))].append(found)
            clusters.pop(short, None)
            chosen = _choose(short, document, clusters, entries, bearers)
            if chosen is None and len(clusters) == 1:
                (chosen,) = clusters
            if chosen is not None:
                links[short, document] = chosen
    return links


def _link_across_documents(
    entries: Mapping[str, Entry], bearers: Mapping[Feature, int], links: Links
) -> None:
    """Adds links of short forms whose documents do not hold the fuller name."""
    usual: dict[str, Counter[str]] = defaultdict(Counter)
    for (short, _), full in links.items():
        usual[short][full] += 1
    order = sorted(entries, key=lambda key: _rank(entries[key]))
    index = _index_forms(order, entries)
    for short in order:
        entry = entries[short]
        for document in sorted(entry.features_in):
            if (short, document) in links:
                continue
            clusters: dict[str, list[Candidate]] = defaultdict(list)
            for found in _find_candidates(short, document, index, entries):
                full = entries[found.key]
                if not is_local(found.by, full.types):
                    for place in full.features_in:
                        clusters[_follow(links, (found.key, place))].append(found)
            clusters.pop(short, None)
            chosen = _choose(short, document, clusters, entries, bearers)
            if chosen is None and len(clusters) == 1:
                ((cluster, candidates),) = clusters.items()
                used = usual[short][cluster] >= _USUAL and len(usual[short]) == 1
                safe = any(is_safe(entry.name, entries[c.key].name, c.by) for c in candidates)
                chosen = cluster if used or safe else None
            if chosen is not None:
                links[short, document] = chosen


def _choose(
    short: str,
    document: str,
    clusters: Mapping[str, Sequence[Candidate]],
    entries: Mapping[str, Entry],
    bearers: Mapping[Feature, int],
) -> str | None:
    """The one cluster that shares rare features with the short form in this document."""
    own = entries[short].features_in[document]
    weights = {
        cluster: max(_weigh(own & entries[key].features, bearers) for key in {c.key for c in found})
        for cluster, found in clusters.items()
    }
    strongest = max(weights, key=lambda cluster: (weights[cluster], cluster), default=None)
    if strongest is None or weights[strongest] < _EVIDENCE:
        return None
    others = max((w for cluster, w in weights.items() if cluster != strongest), default=0.0)
    return strongest if weights[strongest] >= _LEAD * others else None


def _weigh(shared: frozenset[Feature], bearers: Mapping[Feature, int]) -> float:
    return sum(1.0 / max(1, bearers[feature] - 1) for feature in sorted(shared))


def _follow(links: Mapping[Place, str], place: Place) -> str:
    """The fullest name of a place; links lead to ever fuller names, so there is an end."""
    key, document = place
    while (key, document) in links:
        key = links[key, document]
    return key


def _index_forms(
    keys: Iterable[str], entries: Mapping[str, Entry]
) -> dict[str, list[Candidate]]:
    index: dict[str, list[Candidate]] = defaultdict(list)
    for key in keys:
        for form, by in list_short_forms(entries[key].name):
            index[form].append(Candidate(key, by))
    return index


def _find_candidates(
    short: str,
    document: str,
    index: Mapping[str, Sequence[Candidate]],
    entries: Mapping[str, Entry],
) -> list[Candidate]:
    """Fuller names that the short one can stand for; none when its form fits too many."""
    entry = entries[short]
    candidates = []
    for form in list_sought_forms(entry.name):
        found = index.get(form, ())
        if len(found) > _BUCKET:
            return []
        for other in found:
            full = entries[other.key]
            if (
                _rank(full) < _rank(entry)
                and is_possible(
                    entry.name, entry.types_in[document], full.name, full.types, other.by
                )
                and (full.types & entry.types_in[document] or _depends(entry, full, other.by))
            ):
                candidates.append(other)
    return candidates


def _depends(short: Entry, full: Entry, by: Shortening) -> bool:
    """Without types, last words are a short form only if they never stand without the whole."""
    return by.how != "front" or short.features_in.keys() <= full.features_in.keys()
