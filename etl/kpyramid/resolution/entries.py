"""What a corpus says of each name: its wordings, types, neighbours and relations, by document."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kpyramid.resolution.names import Name, parse_name

UNKNOWN = "NOUN"
"""The type of a mention that the entity recogniser does not know; any other type outvotes it."""

_SHARE = 0.2
"""Share of a name's typed mentions from which a type is one of its types."""

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


@dataclass(frozen=True, slots=True)
class Entry:
    """All that is known of the wordings with one key, by document and in all documents.

    `rank`: fuller names come first; a short form belongs to a name of smaller rank only.
    """

    name: Name
    types: frozenset[str]
    types_in: Mapping[str, frozenset[str]]
    features: frozenset[Feature]
    features_in: Mapping[str, frozenset[Feature]]
    rank: tuple[bool, int, int, int, str]


def gather_entries(uses: Iterable[Use]) -> dict[str, Entry]:
    """The entries by key, the fullest names first."""
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
    entries = []
    for key in names:
        votes: Counter[str] = Counter()
        for counts in types[key].values():
            votes.update(counts)
        everywhere = _list_types(votes)
        name = _judge_name(key, names[key])
        entry = Entry(
            name=name,
            types=everywhere,
            types_in={d: _list_types(counts) or everywhere for d, counts in types[key].items()},
            features=frozenset().union(*features[key].values()),
            features_in={d: frozenset(found) for d, found in features[key].items()},
            rank=(name.foreign, -len(name.bare), -len(name.words), -len(key), key),
        )
        entries.append(entry)
    return {entry.name.key: entry for entry in sorted(entries, key=lambda entry: entry.rank)}


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
