"""A first ontology of a field, cut from word nets: classes below one meaning of a word."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import write_axioms
from kpyramid.ontology.bootstrapping.wordnet import Synset, WordNet
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.ontology.turtle import make_iri

BASE = "https://w3id.org/kpyramid/bootstrap/"
"""A cut's namespace is this, the name of its topmost class and #."""
MOST_CLASSES = 5000
"""More than that nobody reviews; WordNet below "disease" has 606."""
_MOST_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of link as a property: its name and label, phrases that state it, a question."""

    name: str
    label: str
    phrases: tuple[str, ...]
    question: str
    inverse: str | None = None


RELATIONS = {
    relation.name: relation
    for relation in (
        Relation(
            "partOf",
            "part of",
            ("is part of", "is a part of", "belongs to"),
            "What is <X> part of?",
            "hasPart",
        ),
        Relation(
            "hasPart",
            "has part",
            ("has as a part", "includes", "consists of"),
            "What are the parts of <X>?",
            "partOf",
        ),
        Relation(
            "memberOf",
            "member of",
            ("is a member of", "belongs to"),
            "What is <X> a member of?",
            "hasMember",
        ),
        Relation(
            "hasMember",
            "has member",
            ("has as a member", "is made up of"),
            "What are the members of <X>?",
            "memberOf",
        ),
        Relation(
            "madeOf",
            "made of",
            ("is made of", "is made from", "consists of"),
            "What is <X> made of?",
            "materialOf",
        ),
        Relation(
            "materialOf",
            "material of",
            ("is the material of", "is a substance of"),
            "What is made of <X>?",
            "madeOf",
        ),
        Relation("usedFor", "used for", ("is used for", "is used to"), "What is <X> used for?"),
        Relation(
            "locatedAt",
            "located at",
            ("is located in", "is found in", "lies in"),
            "Where is <X> found?",
        ),
        Relation(
            "locatedNear", "located near", ("is near", "is located near"), "What is <X> near?"
        ),
        Relation("causes", "causes", ("causes", "leads to", "results in"), "What does <X> cause?"),
        Relation(
            "createdBy", "created by", ("is created by", "was made by"), "By whom was <X> made?"
        ),
    )
}
"""The properties a cut may have, by name; `<X>` stands for the domain."""

_POINTERS = {
    "#p": "partOf",
    "%p": "hasPart",
    "#m": "memberOf",
    "%m": "hasMember",
    "#s": "materialOf",
    "%s": "madeOf",
}
# What the entity recogniser calls the instances of a field, by WordNet's lexicographer file:
# artifact, communication, event, group, location, object, person.
_ENTITY_TYPES: Mapping[int, tuple[str, ...]] = {
    6: ("FAC", "PRODUCT"),
    10: ("LAW", "WORK_OF_ART"),
    11: ("EVENT",),
    14: ("NORP", "ORG"),
    15: ("GPE", "LOC"),
    17: ("LOC",),
    18: ("PERSON",),
}
# Animal, body, food, plant, state (diseases), substance: no recogniser knows their instances.
_COMMON_NOUNS = frozenset({5, 8, 13, 20, 26, 27})


@dataclass
class Concept:
    """A class to be, with the keys of the concepts above it."""

    label: str
    synonyms: tuple[str, ...] = ()
    comment: str = ""
    parents: list[str] = field(default_factory=list)
    entity_types: tuple[str, ...] = ()
    common_nouns: bool = False


@dataclass
class Cut:
    """Concepts by key, the topmost first; links by relation as (key, key or None, in words).

    `instances` and `deeper` count what was left: single things, and meanings below the depth.
    """

    root: str
    concepts: dict[str, Concept]
    links: dict[str, list[tuple[str, str | None, str]]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    instances: int = 0
    deeper: int = 0

    def link(self, relation: str, start: str, end: str | None, words: str) -> None:
        """Notes a link from a concept of the cut to another one, or to something outside."""
        self.links.setdefault(relation, []).append((start, end, words))


def cut_wordnet(wordnet: WordNet, top: Synset, *, depth: int) -> Cut:
    """The meanings below one, at most `depth` levels, with what WordNet links them by.

    Raises:
        InputError: over `MOST_CLASSES` meanings, or WordNet's files are broken.
    """
    levels = {top.key: 0}
    order = [top]
    cut = Cut(top.key, {}, notices=[wordnet.licence])
    for synset in order:  # grows as it goes; a meaning that is reached again is known
        for key in synset.find("~"):
            if key in levels:
                continue
            if levels[synset.key] == depth:
                cut.deeper += 1
                continue
            levels[key] = levels[synset.key] + 1
            order.append(wordnet.read(key))
        check_size(len(order))
    for synset in order:
        cut.concepts[synset.key] = Concept(
            label=synset.words[0],
            synonyms=synset.words[1:],
            comment=_read_definition(synset.gloss),
            parents=[key for key in synset.find("@") if key in levels and synset != top],
            entity_types=_ENTITY_TYPES.get(synset.field, ()) if synset == top else (),
            common_nouns=synset.field in _COMMON_NOUNS,
        )
        cut.instances += len(synset.find("~i"))
        for symbol, name in _POINTERS.items():
            for key in synset.find(symbol):
                words = f"{synset.words[0]}, {wordnet.read(key).words[0]}"
                cut.link(name, synset.key, key if key in levels else None, words)
    return cut


def check_size(count: int) -> None:
    """Nothing, as long as a person can review so many classes.

    Raises:
        InputError: they are too many.
    """
    if count > MOST_CLASSES:
        raise InputError(
            f"over {MOST_CLASSES} classes, which nobody reviews; take a narrower word, or fewer "
            "levels with --depth"
        )


def _read_definition(gloss: str) -> str:
    """The gloss without its examples, as a sentence."""
    definition = re.split(r";\s*\"", gloss)[0].strip().rstrip(".;:").strip()
    return f"{definition[:1].upper()}{definition[1:]}." if definition else ""


def build_schema(cut: Cut, *, title: str) -> Schema:
    """The cut as a schema: circles of parents opened, one property for each kind of link."""
    _open_circles(cut.concepts)
    root = _name_class(cut.concepts[cut.root].label) or "Root"
    base = f"{BASE}{root}#"
    iris = _choose_iris(cut, base)
    classes = [
        OntologyClass(
            iri=iris[key],
            label=concept.label,
            alt_labels=tuple(s for s in concept.synonyms if s != concept.label),
            comment=concept.comment,
            parents=tuple(iris[parent] for parent in concept.parents),
            entity_types=concept.entity_types,
            common_nouns=concept.common_nouns,
        )
        for key, concept in cut.concepts.items()
    ]
    properties = _list_properties(cut, base, iris)
    header = make_iri(base.removesuffix("#"))
    said = [
        (n.LABEL, f"{title}: a first ontology"),
        (n.COMMENT, "Cut from word nets, to be reviewed: classes that are wrong or not needed go."),
        *((n.DCT + "license", notice) for notice in cut.notices),
    ]
    triples = [
        ox.Triple(
            header, make_iri(p), ox.Literal(text, language="en") if i < 2 else ox.Literal(text)
        )
        for i, (p, text) in enumerate(said)
    ]
    return Schema(base, tuple(classes), tuple(properties), write_axioms(triples))


def _open_circles(concepts: Mapping[str, Concept]) -> None:
    """Leaves out each parent that leads back to the concept itself."""
    done: set[str] = set()
    for first in concepts:
        path: dict[str, None] = {}
        stack: list[tuple[str, bool]] = [(first, False)]
        while stack:
            key, leave = stack.pop()
            if leave:
                del path[key]
                done.add(key)
            elif key not in done and key not in path:
                path[key] = None
                concept = concepts[key]
                concept.parents = [p for p in dict.fromkeys(concept.parents) if p not in path]
                stack.append((key, True))
                stack += [(parent, False) for parent in concept.parents]


def _choose_iris(cut: Cut, base: str) -> dict[str, str]:
    """An IRI for each concept, by its label; where two have the same, the later takes its key."""
    iris: dict[str, str] = {}
    taken: set[str] = set()
    for key, concept in cut.concepts.items():
        name = _name_class(concept.label) or f"C{_name_class(key)}"
        if name.lower() in taken:
            name = f"{name}-{_name_class(key)}"
        taken.add(name.lower())
        iris[key] = base + name
    return iris


def _name_class(label: str) -> str:
    parts = re.findall(r"[A-Za-z0-9]+", label)
    return "".join(part[:1].upper() + part[1:] for part in parts)


def _list_properties(cut: Cut, base: str, iris: Mapping[str, str]) -> list[OntologyProperty]:
    ends = {
        name: (
            _find_common(cut, (s for s, _, _ in links)),
            _find_common(cut, (e for _, e, _ in links)),
        )
        for name, links in cut.links.items()
    }
    properties = []
    for name, (start, end) in sorted(ends.items()):
        relation = RELATIONS[name]
        domain, reach = (iris[key] if key else n.THING for key in (start, end))
        # Inverses swap their ends; where links lead outside on both sides, they do not.
        mirrored = relation.inverse and ends.get(relation.inverse) == (end, start)
        examples = [words for _, _, words in cut.links[name][:_MOST_EXAMPLES]]
        shown = "; ".join(examples)
        properties.append(
            OntologyProperty(
                iri=base + name,
                label=relation.label,
                alt_labels=relation.phrases,
                comment=f"Stated of these, first the one it is said of: {shown}.",
                domain=domain,
                range=reach,
                inverse_of=base + relation.inverse if mirrored and relation.inverse else None,
                competency_question=relation.question.replace(
                    "<X>", f"<{domain.rpartition('#')[2]}>"
                ),
            )
        )
    return properties


def _find_common(cut: Cut, keys: Iterable[str | None]) -> str | None:
    """The nearest concept above all of these; None if one is outside or they share none."""
    climbs = []
    for key in dict.fromkeys(keys):
        if key is None:
            return None
        above = {key: 0}
        queue = [key]
        for current in queue:  # grows as it goes
            for parent in cut.concepts[current].parents:
                if parent not in above:
                    above[parent] = above[current] + 1
                    queue.append(parent)
        climbs.append(above)
    common = set.intersection(*({*climb} for climb in climbs)) if climbs else set()
    distance = {key: sum(climb[key] for climb in climbs) for key in common}
    return min(sorted(distance), key=lambda key: distance[key], default=None)
