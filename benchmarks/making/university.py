"""An invented university in the form of the graph that PolyRAG's authors released.

40 departments, 1,500 members of staff, 17 properties whose ranges are strings, many wordings of
each with a long tail, ends that a tagger types as it pleases, and a quarter of all facts that no
property of the ontology ever stated. All names are made of invented syllables.
"""

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STAFF = 1_500
DEPARTMENTS = 40
BASE = "http://university.example/"

TAGS: Mapping[str, tuple[tuple[str, float], ...]] = {
    # What a tagger calls the ends of each kind.
    "person": (("PERSON", 0.9), ("NOUN", 0.1)),
    "department": (("ORG", 0.8), ("NOUN", 0.2)),
    "university": (("ORG", 0.9), ("GPE", 0.1)),
    "journal": (("ORG", 0.5), ("WORK_OF_ART", 0.2), ("NOUN", 0.3)),
    "topic": (("NOUN", 0.7), ("ORG", 0.3)),
    "course": (("NOUN", 0.5), ("WORK_OF_ART", 0.3), ("ORG", 0.2)),
    "position": (("NOUN", 0.9), ("PERSON", 0.1)),
    "degree": (("NOUN", 0.6), ("ORG", 0.2), ("WORK_OF_ART", 0.2)),
    "society": (("ORG", 0.9), ("NOUN", 0.1)),
    "award": (("WORK_OF_ART", 0.4), ("ORG", 0.3), ("NOUN", 0.3)),
    "place": (("GPE", 0.5), ("FAC", 0.3), ("NOUN", 0.2)),
    "contact": (("LITERAL", 0.8), ("NOUN", 0.2)),
    "number": (("LITERAL", 1.0),),
    "programme": (("NOUN", 0.6), ("ORG", 0.4)),
    "agency": (("ORG", 0.9), ("NOUN", 0.1)),
    "firm": (("ORG", 0.9), ("PERSON", 0.1)),
}


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


STATED = tuple(
    Stated(
        row.get("label", ""),
        *(row[name] for name in ("domain", "value", "per_subject", "wordings")),
    )
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["stated"]
)
HEADS = {"person": "PERSON", "department": "ORG", "course": "NOUN"}
LINKS = ("also", "currently", "recently", "regularly", "now", "mainly", "frequently", "jointly",
         "often", "actively", "successfully", "widely")  # fmt: skip
RARE = 0.12
"""Share of facts with a wording that has an adverb more."""
ONSETS = "b d f g h k l m n p r s t v z br dr gr kl pl st tr".split()
VOWELS = "a e i o u ai ou ea".split()
CODAS = "l n r s t m nd rk lt".split()
TOPICS = ("materials welding logistics algebra hydrology genetics robotics pricing taxation optics "
          "nursing linguistics painting soils catalysis imaging networks control acoustics "
          "statistics ethics tourism banking marketing drama law surgery fibres polymers "
          "combustion").split()  # fmt: skip


@dataclass(frozen=True)
class InventedFact:
    """A fact with the types that a tagger gives its ends, and what it states."""

    head: str
    head_type: str
    wording: str
    tail: str
    tail_type: str
    stated: Stated


def list_facts(seed: int) -> Iterator[InventedFact]:
    """The facts of one invented university."""
    chance = random.Random(seed)  # noqa: S311
    pools = {kind: [make_name(kind, chance) for _ in range(_size(kind))] for kind in TAGS}
    for stated in STATED:
        weights = [1.0 / (at + 1) for at in range(len(stated.wordings))]
        for subject in pools[stated.domain]:
            count = int(stated.per_subject + chance.random())
            for value in chance.sample(pools[stated.value], count):
                wording = chance.choices(stated.wordings, weights)[0]
                if chance.random() < RARE:
                    first, _, rest = wording.partition(" ")
                    wording = f"{first} {chance.choice(LINKS)} {rest}".strip()
                kinds, shares = zip(*TAGS[stated.value], strict=True)
                tag = chance.choices(kinds, shares)[0]
                yield InventedFact(subject, HEADS[stated.domain], wording, value, tag, stated)


def _size(kind: str) -> int:
    return {"person": STAFF, "department": DEPARTMENTS, "number": 12}.get(kind, 300)


def make_name(kind: str, chance: random.Random) -> str:
    """An invented name of a kind."""

    def word() -> str:
        return "".join(chance.choice(part) for part in (ONSETS, VOWELS, CODAS)).capitalize() + (
            chance.choice(("", "en", "a", "son", "ic"))
        )

    topic = chance.choice(TOPICS)
    match kind:
        case "person":
            return f"{word()} {word()}"
        case "department":
            return f"Department of {word()} {topic.capitalize()}"
        case "university":
            return f"University of {word()}"
        case "journal":
            return f"{word()} Journal of {topic.capitalize()}"
        case "topic":
            return f"{word().lower()} {topic}"
        case "course":
            return f"{topic.capitalize()} of {word()}"
        case "position":
            return (
                f"{chance.choice(('Associate', 'Assistant', 'Full', 'Adjunct'))} {word()} Professor"
            )
        case "degree":
            return f"PhD in {word()} {topic.capitalize()}"
        case "society":
            return f"{word()} Society of {topic.capitalize()}"
        case "award":
            return f"{word()} Prize"
        case "place":
            return f"{word()} Building" if chance.random() < 0.4 else word()
        case "contact":
            return f"{word().lower()}@{word().lower()}.example"
        case "number":
            return f"{chance.randint(1, 30)} credits"
        case "programme":
            return f"Master of {word()} {topic.capitalize()}"
        case "agency":
            return f"{word()} Research Council"
    return f"{word()} {word()} Ltd"


CLASSES = ("person", "department", "course")


def write_turtle(typed: bool) -> str:
    """The ontology: three classes, and the properties with string ranges; `typed`: NER labels."""
    lines = [
        "@prefix : <" + BASE + "> . @prefix owl: <http://www.w3.org/2002/07/owl#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .",
        "@prefix kp: <https://w3id.org/kpyramid/core#> .",
        "<" + BASE.rstrip("/") + "> a owl:Ontology .",
    ]
    labels = {"person": "PERSON", "department": "ORG"} if typed else {}
    for name in CLASSES:
        kinds = f' ; kp:entityType "{labels[name]}"' if name in labels else ""
        lines.append(f':{name.capitalize()} a owl:Class ; rdfs:label "{name}"@en{kinds} .')
    for stated in filter(lambda one: one.label, STATED):
        local = stated.label.replace(" ", "_")
        lines.append(
            f':{local} a owl:DatatypeProperty ; rdfs:label "{stated.label}"@en ; '
            f"rdfs:domain :{stated.domain.capitalize()} ; rdfs:range xsd:string ."
        )
    return "\n".join(lines)
