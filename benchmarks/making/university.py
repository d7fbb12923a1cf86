"""Invented worlds in the form of the graph that PolyRAG's authors released: facts and ontology.

Each is declared by a file: `university.toml`, and `hospitals.toml`, which nothing was tuned on. All
names are made of invented syllables.
"""

import random
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

BASE = "http://invented.example/"
LINKS = ("also", "currently", "recently", "regularly", "now", "mainly", "frequently", "jointly",
         "often", "actively", "successfully", "widely")  # fmt: skip
RARE = 0.12
"""Share of facts with a wording that has an adverb more."""
ONSETS = "b d f g h k l m n p r s t v z br dr gr kl pl st tr".split()
VOWELS = "a e i o u ai ou ea".split()
CODAS = "l n r s t m nd rk lt".split()
ENDINGS = ("", "en", "a", "son", "ic")


@dataclass(frozen=True)
class Stated:
    """What a kind of fact joins, how often a subject has one, and how it is worded.

    `label` is a property's; empty of what the ontology never had.
    """

    label: str
    domain: str
    value: str
    per_subject: float
    wordings: Sequence[str]


@dataclass(frozen=True)
class World:
    """A declared world: the form, number and tags of each kind of end, and what is stated.

    `object_ranges`: whether a property of things of a class has that class as range, else a string.
    """

    kinds: Mapping[str, Mapping[str, Any]]
    topics: Sequence[str]
    stated: Sequence[Stated]
    object_ranges: bool

    @property
    def labels(self) -> Mapping[str, str]:
        """The tag of the things of each class, empty where it has none."""
        return {name: kind["class"] for name, kind in self.kinds.items() if "class" in kind}


@cache
def load_world(name: str = "university") -> World:
    """The world of a file beside this one."""
    read = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    rows = [Stated(**{"label": "", **row}) for row in read["stated"]]
    return World(read["kinds"], read["topics"].split(), rows, read["object_ranges"])


@dataclass(frozen=True)
class InventedFact:
    """A fact with the types that a tagger gives its ends, and what it states.

    `plain` is its wording without the adverb that some have more.
    """

    head: str
    head_type: str
    wording: str
    tail: str
    tail_type: str
    stated: Stated
    plain: str


def list_facts(seed: int, world: World) -> Iterator[InventedFact]:
    """The facts of one invented world."""
    chance = random.Random(seed)  # noqa: S311
    pools = {
        name: [make_name(kind["form"], world.topics, chance) for _ in range(kind["count"])]
        for name, kind in world.kinds.items()
    }
    for stated in world.stated:
        weights = [1.0 / (at + 1) for at in range(len(stated.wordings))]
        tags = world.kinds[stated.value]["tags"]
        for subject in pools[stated.domain]:
            count = int(stated.per_subject + chance.random())
            for value in chance.sample(pools[stated.value], count):
                plain = wording = chance.choices(stated.wordings, weights)[0]
                if chance.random() < RARE:
                    first, _, rest = wording.partition(" ")
                    wording = f"{first} {chance.choice(LINKS)} {rest}".strip()
                (tag,) = chance.choices(list(tags), list(tags.values()))
                head_type = world.labels[stated.domain] or "NOUN"
                yield InventedFact(subject, head_type, wording, value, tag, stated, plain)


def make_name(form: str, topics: Sequence[str], chance: random.Random) -> str:
    """An invented name of a form."""
    name = form
    while "{" in name:
        before, _, rest = name.partition("{")
        part, _, rest = rest.partition("}")
        drawn = ["".join(map(chance.choice, (ONSETS, VOWELS, CODAS))) + chance.choice(ENDINGS)]
        drawn += [chance.choice(topics), str(chance.randint(1, 30))]
        text = drawn[("word", "topic", "number").index(part.lower())]
        name = before + (text.capitalize() if part[0].isupper() else text) + rest
    return name


def list_labels(fact: InventedFact, world: World) -> Collection[str]:
    """The properties that a fact states: of any row with its wording and the kinds of its ends.

    Where ranges are strings, whatever the kind of its value.
    """
    return {
        row.label
        for row in world.stated
        if fact.plain in row.wordings
        and row.domain == fact.stated.domain
        and (row.value == fact.stated.value or not world.object_ranges)
    } | {fact.stated.label}


def write_turtle(typed: bool, world: World) -> str:
    """The ontology: classes, and the properties; `typed`: classes have NER labels."""
    lines = [
        "@prefix : <" + BASE + "> . @prefix owl: <http://www.w3.org/2002/07/owl#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        "@prefix kp: <https://w3id.org/kpyramid/core#> .",
        "<" + BASE.rstrip("/") + "> a owl:Ontology .",
    ]
    for name, label in world.labels.items():
        kinds = f' ; kp:entityType "{label}"' if typed and label else ""
        lines.append(f':{name.capitalize()} a owl:Class ; rdfs:label "{name}"@en{kinds} .')
    for row in {row.label: row for row in world.stated if row.label}.values():
        local = row.label.replace(" ", "_")
        is_object = world.object_ranges and row.value in world.labels
        kind = "ObjectProperty" if is_object else "DatatypeProperty"
        lines.append(
            f':{local} a owl:{kind} ; rdfs:label "{row.label}"@en ; '
            f"rdfs:domain :{row.domain.capitalize()} ; "
            f"rdfs:range {f':{row.value.capitalize()}' if is_object else 'xsd:string'} ."
        )
    return "\n".join(lines)
