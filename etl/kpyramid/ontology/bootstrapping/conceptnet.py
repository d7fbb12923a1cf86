"""A ConceptNet dump that the user has, merged into a cut: streamed twice, never loaded.

A dump is a table of assertions separated by tabs: its own address, the relation, the start, the
end, and details as JSON with the weight, as in `/c/en/lake  /c/en/body_of_water`. Only English is
read, and only what one contributor at least stood by (weight 1).
"""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.ontology.bootstrapping.bootstrap import Concept, Cut, check_size

LICENCE = (
    "Classes and relations marked as ConceptNet's were taken from ConceptNet 5, "
    "https://conceptnet.io, available under the Creative Commons Attribution-ShareAlike 4.0 "
    "licence, https://creativecommons.org/licenses/by-sa/4.0/."
)
_LINKS = {
    "/r/PartOf": "partOf",
    "/r/HasA": "hasPart",
    "/r/MadeOf": "madeOf",
    "/r/UsedFor": "usedFor",
    "/r/AtLocation": "locatedAt",
    "/r/LocatedNear": "locatedNear",
    "/r/Causes": "causes",
    "/r/CreatedBy": "createdBy",
}
_ENGLISH = "/c/en/"
_LEAST_WEIGHT = 1.0
_MOST_WORDS = 3
"""Words of a class's name; longer terms are half sentences that a volunteer typed."""
_LONGEST_LINE = 1_000_000
_MOST_PAIRS = 5_000_000
"""Kept while streaming; the full dump has a quarter of a million English IsA assertions."""
_WEIGHT = re.compile(r'"weight":\s*([0-9]+(?:\.[0-9]+)?)')
_COLUMNS = 5

Watch = Callable[[Iterable[str]], Iterable[str]]
Assertion = tuple[str, str, str]


def merge_conceptnet(cut: Cut, path: Path, *, depth: int, watch: Watch) -> int:
    """Adds to the cut what the dump states of it; the number of classes that are new.

    `watch` passes the lines on and may count them.

    Raises:
        InputError: the file cannot be read as a dump, or too many classes come together.
    """
    below: defaultdict[str, set[str]] = defaultdict(set)
    pairs = 0
    for _, child, parent in _read_assertions(path, {"/r/IsA"}, watch):
        if child != parent and child not in below[parent]:
            below[parent].add(child)
            pairs += 1
            if pairs > _MOST_PAIRS:
                raise InputError(f"{path}: over {_MOST_PAIRS} English IsA; is this ConceptNet?")
    by_label = _index_labels(cut)
    added = _add_concepts(cut, by_label, below, depth)
    del below
    seen: set[Assertion] = set()
    for relation, start, end in _read_assertions(path, set(_LINKS), watch):
        if start in by_label and (relation, start, end) not in seen:
            seen.add((relation, start, end))
            cut.link(_LINKS[relation], by_label[start], by_label.get(end), f"{start}, {end}")
    if added or seen:
        cut.notices.append(LICENCE)
    return added


def _index_labels(cut: Cut) -> dict[str, str]:
    """Concepts by their words in small letters; a label goes before a synonym."""
    by_label = {
        synonym.lower(): key for key, c in reversed(cut.concepts.items()) for synonym in c.synonyms
    }
    return by_label | {c.label.lower(): key for key, c in reversed(cut.concepts.items())}


def _add_concepts(
    cut: Cut, by_label: dict[str, str], below: dict[str, set[str]], depth: int
) -> int:
    """The terms below those of the cut, level by level."""
    levels = {label: _find_level(cut, key) for label, key in by_label.items()}
    queue = sorted(levels, key=lambda label: (levels[label], label))
    added = 0
    for term in queue:  # grows as it goes
        for child in sorted(below.get(term, ())):
            if child in by_label or levels[term] >= depth or len(child.split()) > _MOST_WORDS:
                continue
            key = f"conceptnet {child}"
            comment = f"ConceptNet: {child} is a {term}."
            cut.concepts[key] = Concept(child, comment=comment, parents=[by_label[term]])
            by_label[child] = key
            levels[child] = levels[term] + 1
            queue.append(child)
            added += 1
            check_size(len(cut.concepts))
    return added


def _find_level(cut: Cut, key: str) -> int:
    level, seen = 0, {key}
    while key != cut.root and cut.concepts[key].parents:
        key = cut.concepts[key].parents[0]
        if key in seen:
            break
        seen.add(key)
        level += 1
    return level


def _read_assertions(path: Path, relations: set[str], watch: Watch) -> Iterator[Assertion]:
    """Relation, start and end of the English assertions of some relations, as plain words."""
    good = bad = 0
    for line in watch(_read_lines(path)):
        parts = line.split("\t", _COLUMNS - 1)
        if len(parts) < _COLUMNS or not parts[1].startswith("/r/"):
            bad += 1
            if bad > good + 100:
                raise InputError(
                    f"{path}: not ConceptNet's assertions (five columns separated by tabs, "
                    f"the second as /r/IsA); the file has {line[:60]!r}"
                )
            continue
        good += 1
        _, relation, start, end, details = parts
        if relation in relations and start.startswith(_ENGLISH) and end.startswith(_ENGLISH):
            weight = _WEIGHT.search(details)
            if weight is None or float(weight[1]) >= _LEAST_WEIGHT:
                yield relation, _read_term(start), _read_term(end)
    if not good:
        raise InputError(f"{path}: no assertion in it; is this ConceptNet's table of assertions?")


def _read_lines(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; name ConceptNet's assertions, as .csv or .csv.gz")
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise InputError(f"{path}: broken gzip: {e}; fetch the dump again") from e


def _read_term(node: str) -> str:
    return node.removeprefix(_ENGLISH).partition("/")[0].replace("_", " ")
