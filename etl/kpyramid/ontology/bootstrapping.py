"""A first ontology of a field, cut from WordNet and, if given, a ConceptNet dump."""

import difflib
import gzip
import re
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyoxigraph as ox

from kpyramid.documents.words import lemmatise
from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import write_axioms
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, find_nearest_common
from kpyramid.ontology.turtle import make_iri

# WordNet read from its own files: `index.*` and `data.*`, as Debian lays them.

_NEAR_WORDS = 5


_T = TypeVar("_T")


class Pointer(NamedTuple):
    """A link to the synset `key` of a part of speech, from word `source` to word `target`.

    Words count from 1; 0 stands for all of them.
    """

    symbol: str
    key: str
    part: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Synset:
    """One meaning: its words, the most usual first, its gloss and pointers.

    `field` is the number of its lexicographer file, such as 17 for natural objects.
    """

    key: str
    field: int
    words: tuple[str, ...]
    gloss: str
    pointers: tuple[Pointer, ...]

    def find(self, *symbols: str) -> list[str]:
        """The keys of the nouns that pointers of these kinds lead to, in their order."""
        return [p.key for p in self.pointers if p.symbol in symbols and p.part == "n"]


def parse_synset(line: str) -> Synset:
    """The synset of a line of `data.*`; IndexError or ValueError where it is broken."""
    head, _, gloss = line.partition("|")
    parts = head.split()
    index = 4 + 2 * int(parts[3], 16)
    pointers = []
    for first in range(index + 1, index + 1 + 4 * int(parts[index]), 4):
        symbol, key, part, ends = parts[first : first + 4]
        pointers.append(Pointer(symbol, key, part, int(ends[:2], 16), int(ends[2:], 16)))
    words = tuple(word.replace("_", " ") for word in parts[4:index:2])
    return Synset(parts[0], int(parts[1]), words, gloss.strip(), tuple(pointers))


def parse_senses(line: str) -> tuple[str, list[str]]:
    """The lemma of a line of `index.*` and the keys of its meanings, the most frequent first.

    IndexError or ValueError where the line is broken.
    """
    parts = line.split()
    keys = parts[6 + int(parts[3]) :]
    if len(keys) != int(parts[2]):
        raise ValueError("the number of synsets")
    return parts[0], keys


def list_entries(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a WordNet file after its licence."""
    return (line for line in lines if not line.startswith("  "))


class WordNet:
    """Nouns by word and by key; keys are WordNet's offsets of synsets.

    `licence`: the beginning of its files, which every copy must contain.
    """

    def __init__(self, folder: Path) -> None:
        """Reads a folder.

        Raises:
            InputError: the folder has no noun files.
        """
        self._data, self._index = folder / "data.noun", folder / "index.noun"
        lines, senses = map(_read_nouns, (self._data, self._index))
        head = (line.strip().partition(" ")[2].strip() for line in lines if line[:2] == "  ")
        self.licence = "\n".join(head).strip()
        self._lines = {line[:8]: line for line in list_entries(lines)}
        self._senses = {line.partition(" ")[0]: line for line in list_entries(senses)}

    def find_senses(self, word: str) -> list[Synset]:
        """The meanings of a noun, the most frequent first.

        Raises:
            InputError: WordNet does not have the word; names words that are near.
        """
        *words, last = word.lower().split() or [""]
        lemma = "_".join([*words, last])
        for form in (lemma, "_".join([*words, lemmatise(last)])):
            if line := self._senses.get(form):
                keys = _parse(parse_senses, line, f"{self._index}: the line of {form!r}")[1]
                return [self.read(key) for key in keys]
        close = [w for w in self._senses if w[:1] == lemma[:1]]
        near = difflib.get_close_matches(lemma, close, n=_NEAR_WORDS, cutoff=0.7)
        hint = f"; near it are {', '.join(near).replace('_', ' ')}" if near else ""
        raise InputError(f"WordNet has no noun {word!r}{hint}")

    def read(self, key: str) -> Synset:
        """The synset of a key.

        Raises:
            InputError: it is not there, or its line is broken.
        """
        if key not in self._lines:
            raise InputError(f"{self._data}: no synset {key}; the files do not belong together")
        return _parse(parse_synset, self._lines[key], f"{self._data}: the line of synset {key}")


def _parse(parse: Callable[[str], _T], line: str, place: str) -> _T:
    try:
        return parse(line)
    except (IndexError, ValueError) as e:
        raise InputError(f"{place} is broken: {e}") from e


def _read_nouns(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").split("\n")[:-1]
    except FileNotFoundError as e:
        raise InputError(
            f"{path}: no such file; install WordNet (on Debian the package wordnet-base), "
            "or name the folder of its database files with --wordnet"
        ) from e
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: not UTF-8, so not WordNet's file: {e}") from e


# The cut: classes below one meaning of a word.

BASE = "https://w3id.org/kpyramid/bootstrap/"
"""A cut's namespace is this, then the name of its topmost class, then #."""
MOST_CLASSES = 5000
"""More classes than this are not reviewable; WordNet below "disease" has 606."""
_MOST_EXAMPLES = 5


class Relation(NamedTuple):
    """A kind of link as a property: its name and label, phrases that state it, a question.

    In the question `<X>` stands for the domain. `links`: WordNet's pointer, ConceptNet's relation.
    """

    name: str
    label: str
    phrases: list[str]
    question: str
    links: list[str]
    inverse: str | None = None


@cache
def load_relations() -> Mapping[str, Relation]:
    """The properties that a cut may have, by name and by each of their links."""
    rows = tomllib.loads(Path(__file__).with_name("relations.toml").read_text("utf-8"))
    relations = [Relation(name, **row) for name, row in rows.items()]
    return {key: each for each in relations for key in (each.name, *each.links)}


# The entity recogniser's labels for the instances of WordNet's lexicographer files:
# artifact, communication, event, group, location, object, person.
_ENTITY_TYPES = {
    **{6: "FAC PRODUCT", 10: "LAW WORK_OF_ART", 11: "EVENT", 14: "NORP ORG", 15: "GPE LOC"},
    **{17: "LOC", 18: "PERSON"},
}
# Animal, body, food, plant, state (diseases), substance: no recogniser knows their instances.
_COMMON_NOUNS = frozenset({5, 8, 13, 20, 26, 27})


@dataclass
class Cut:
    """Classes by key, the topmost first; links by relation as (key, key or None, in words).

    Keys stand for IRIs to come. `levels` count from the topmost; `instances` and `deeper` count
    what was left out: individuals, and meanings below the depth.
    """

    notices: list[str]
    concepts: dict[str, OntologyClass] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    links: defaultdict[str, list[tuple[str, str | None, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    instances: int = 0
    deeper: int = 0

    def find_common(self, keys: Iterable[str | None]) -> str | None:
        """The nearest concept above all of these; None if one is outside or they share none."""
        inside = {*keys}
        nearest = find_nearest_common(filter(None, inside), lambda key: self.concepts[key].parents)
        return None if None in inside else nearest

    def check_size(self, count: int) -> None:
        """Passes while a person can review the number of classes.

        Raises:
            InputError: they are too many.
        """
        if count > MOST_CLASSES:
            raise InputError(
                f"over {MOST_CLASSES} classes, which nobody reviews; take a narrower word, or "
                "fewer levels with --depth"
            )


def cut_wordnet(wordnet: WordNet, top: Synset, *, depth: int) -> Cut:
    """The meanings below one, at most `depth` levels, with WordNet's links between them.

    Raises:
        InputError: over `MOST_CLASSES` meanings, or WordNet's files are broken or lead in a circle.
    """
    cut = Cut([wordnet.licence], levels={top.key: 0})
    order = [top]
    for synset in order:  # grows as it goes; a meaning that is reached again is known
        below = [key for key in synset.find("~") if key not in cut.levels]
        if cut.levels[synset.key] == depth:
            cut.deeper += len(below)
            continue
        cut.levels |= dict.fromkeys(below, cut.levels[synset.key] + 1)
        order += map(wordnet.read, dict.fromkeys(below))
        cut.check_size(len(order))
    for synset in order:
        label, *others = synset.words
        types = _ENTITY_TYPES.get(synset.field, "") if synset == top else ""
        parents = [key for key in synset.find("@") if key in cut.levels and synset != top]
        definition = re.split(r";\s*\"", synset.gloss)[0].strip().rstrip(".;:").strip()
        cut.concepts[synset.key] = OntologyClass(
            synset.key,
            label,
            tuple(word for word in others if word != label),
            f"{definition[:1].upper()}{definition[1:]}." if definition else "",
            tuple(parents),
            tuple(types.split()),
            synset.field in _COMMON_NOUNS,
        )
        cut.instances += len(synset.find("~i"))
        for pointer in synset.pointers:
            relation = load_relations().get(pointer.symbol)
            if relation and pointer.part == "n":
                known = pointer.key if pointer.key in cut.levels else None
                words = f"{label}, {wordnet.read(pointer.key).words[0]}"
                cut.links[relation.name].append((synset.key, known, words))
    try:
        TopologicalSorter({key: c.parents for key, c in cut.concepts.items()}).prepare()
    except CycleError as e:
        circle = ", ".join(cut.concepts[key].label for key in e.args[1])
        raise InputError(f"WordNet's meanings {circle} lie below each other; fetch it again") from e
    return cut


def build_schema(cut: Cut, *, title: str) -> Schema:
    """The cut as a schema, with one property for each kind of link.

    IRIs are made from labels; of two equal ones the later gets its key appended.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key, concept in cut.concepts.items():
        name = _name_class(concept.label) or f"C{_name_class(key)}"
        names[key] = f"{name}-{_name_class(key)}" if name.lower() in taken else name
        taken.add(names[key].lower())
    base = f"{BASE}{next(iter(names.values()))}#"
    iris: dict[str | None, str] = {None: n.THING, **{k: base + name for k, name in names.items()}}
    classes = [
        replace(concept, iri=iris[key], parents=tuple(iris[parent] for parent in concept.parents))
        for key, concept in cut.concepts.items()
    ]
    advice = "Cut from word nets, to be reviewed: classes that are wrong or not needed go."
    stated = [
        (n.LABEL, ox.Literal(f"{title}: a first ontology", language="en")),
        (n.COMMENT, ox.Literal(advice, language="en")),
        *((n.DCT + "license", ox.Literal(notice)) for notice in cut.notices),
    ]
    header = make_iri(base.removesuffix("#"))
    axioms = write_axioms(ox.Triple(header, make_iri(p), text) for p, text in stated)
    return Schema(base, tuple(classes), tuple(_list_properties(cut, base, iris)), axioms)


def _name_class(label: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", label))


def _list_properties(
    cut: Cut, base: str, iris: Mapping[str | None, str]
) -> Iterator[OntologyProperty]:
    ends = {
        name: tuple(iris[cut.find_common(keys)] for keys in [*zip(*links, strict=True)][:2])
        for name, links in sorted(cut.links.items())
    }
    for name, (domain, reach) in ends.items():
        relation = load_relations()[name]
        # Inverses swap their ends; where links lead outside on both sides, they do not.
        mirrored = ends.get(relation.inverse or "") == (reach, domain)
        shown = "; ".join(words for _, _, words in cut.links[name][:_MOST_EXAMPLES])
        question = relation.question.replace("<X>", f"<{domain.rpartition('#')[2]}>")
        yield OntologyProperty(
            iri=base + name,
            label=relation.label,
            alt_labels=tuple(relation.phrases),
            comment=f"Stated of these, first the one it is said of: {shown}.",
            domain=domain,
            range=reach,
            inverse_of=f"{base}{relation.inverse}" if mirrored else None,
            competency_question=question,
        )


# A ConceptNet dump that the user has, merged into a cut.

LICENCE = (
    "Classes and relations marked as ConceptNet's were taken from ConceptNet 5, "
    "https://conceptnet.io, available under the Creative Commons Attribution-ShareAlike 4.0 "
    "licence, https://creativecommons.org/licenses/by-sa/4.0/."
)
_ENGLISH = "/c/en/"
_LEAST_WEIGHT = 1.0
_MOST_WORDS = 3
"""Most words of a class's name; longer terms are half sentences that a volunteer typed."""
_LONGEST_LINE = 1_000_000
_WEIGHT = re.compile(r'"weight":\s*([0-9]+(?:\.[0-9]+)?)')
_COLUMNS = 5

Watch = Callable[[Iterable[str]], Iterable[str]]
Assertion = tuple[str, str, str]


def merge_conceptnet(cut: Cut, path: Path, *, depth: int, watch: Watch) -> int:
    """Adds the dump's assertions on the cut; returns the number of new classes.

    The dump is a table of assertions separated by tabs: the assertion's address, the relation, the
    start, the end, and details as JSON with the weight. Only English is read, and only what at
    least one contributor stood by (weight 1). It is streamed twice and never held in memory;
    `watch` passes its lines on and may count them.

    Raises:
        InputError: the file cannot be read as a dump, or too many classes come together.
    """
    below: defaultdict[str, set[str]] = defaultdict(set)
    for _, child, parent in _read_assertions(path, {"/r/IsA"}, watch):
        below[parent].add(child)
    words = [(c.label, key) for key, c in cut.concepts.items()]
    words += [(alt, key) for key, c in cut.concepts.items() for alt in c.alt_labels]
    by_label = {word.lower(): key for word, key in reversed(words)}
    queue = sorted(by_label, key=lambda label: (cut.levels[by_label[label]], label))
    before = len(cut.concepts)
    for term in queue:  # grows as it goes
        level = cut.levels[by_label[term]] + 1
        for child in sorted(below.get(term, ())):
            if child in by_label or level > depth or len(child.split()) > _MOST_WORDS:
                continue
            key, comment = f"conceptnet {child}", f"ConceptNet: {child} is a {term}."
            cut.concepts[key] = OntologyClass(key, child, (), comment, (by_label[term],))
            cut.levels[key], by_label[child] = level, key
            queue.append(child)
            cut.check_size(len(cut.concepts))
    names = {link: each.name for link, each in load_relations().items() if link[:3] == "/r/"}
    links = dict.fromkeys(
        row for row in _read_assertions(path, {*names}, watch) if row[1] in by_label
    )
    for relation, start, end in links:
        ends = by_label[start], by_label.get(end), f"{start}, {end}"
        cut.links[names[relation]].append(ends)
    added = len(cut.concepts) - before
    if added or links:
        cut.notices.append(LICENCE)
    return added


def _read_assertions(path: Path, relations: set[str], watch: Watch) -> Iterator[Assertion]:
    """Relation, start and end of the English assertions of these relations, as plain words."""
    good = bad = 0
    for line in watch(_read_dump(path)):
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


def _read_dump(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; name ConceptNet's assertions, as .csv or .csv.gz")
    with path.open("rb") as file:
        opener = gzip.open if file.read(2) == b"\x1f\x8b" else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace", newline="") as lines:
            while line := lines.readline(_LONGEST_LINE):
                yield line.rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise InputError(f"{path}: broken gzip: {e}; fetch the dump again") from e


def _read_term(node: str) -> str:
    return node.removeprefix(_ENGLISH).partition("/")[0].replace("_", " ")
