"""owlready2 in a process of its own: individuals are read back, and HermiT is called by its API."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import ask_function
from kpyramid.ontology.sparql import shut_doors
from kpyramid.ontology.validation.parts import Unjudged

if TYPE_CHECKING:
    from owlready2 import World

_MEMORY = 2 * 2**30
_BYTES_OF_A_WORLD = 30
"""Memory of owlready2, and of what is compared, per byte of N-Triples, with a margin."""
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -XX:+ExitOnOutOfMemoryError"
_ANY = f'<urn:x> <{n.LABEL}> "x" .\n'
_MOST_NAMED = 5
_LONG = 19
"""Digits of an integer from which on it is written as a decimal."""
_INTEGERS = {"gYear", "int", "integer", "long", "nonNegativeInteger", "positiveInteger"}
_Values = defaultdict[tuple[str, str], set[object]]


# The gate `readable`: what OWL tools read of the individuals is what was written.


def judge_reading(ontology_nt: str, left: Unjudged, *, seconds: float) -> str:
    """`pass` if owlready2 loads the ontology and reads all values of individuals as written.

    Classes, labels and values of properties are compared, with datatypes that OWL lacks as those
    that stand for them. Only the parts of the instances that are `left` are judged.
    """
    if find_spec("owlready2") is None:
        return "not run: owlready2 is not installed"
    lines = (x for x in ontology_nt.split("\n") if x.partition(" ")[0] not in left.subjects)
    given = {
        # Of annotations with these names owlready2 would run the Python.
        "ontology": "\n".join(line for line in lines if n.OWLREADY not in line),
        "parts": {key: "\n".join(part) for key, part in left.left.items()},
    }
    nothing: tuple[object, str] = {"counts": {}, "wrong": []}, ""
    try:
        call = f"{__name__}:serve", given
        answer, end = ask_function(*call, seconds=seconds) if left.left else nothing
    except TimeoutError:
        return (
            f"not run: owlready2 was stopped after {seconds:g} seconds; raise "
            "publish.reasoner_seconds to give it more"
        )
    if not isinstance(answer, dict):
        return f"not run: owlready2 ended {end}"
    if wrong := answer["wrong"]:
        shown = "; ".join(wrong[:_MOST_NAMED])
        return (
            f"fail: owlready2 reads {len(wrong)} values otherwise than they were written: {shown}"
        )
    made = {key: count.encode() for key, count in answer["counts"].items()}
    left.keep(made)
    counts = (map(int, count.split()) for count in (*left.known.values(), *made.values()))
    values, individuals = map(sum, zip(*counts, strict=True))
    return f"pass: {values:,} values of {individuals:,} individuals"


def serve() -> None:
    """Reads an ontology and parts of it as JSON from stdin, and writes what differs as JSON."""
    from owlready2 import OwlReadyOntologyParsingError

    text = sys.stdin.buffer.read()
    given = json.loads(text)
    _load(_ANY)  # this and the next line import all that will be needed
    datetime.strptime("1999", "%Y")
    shut_doors(_MEMORY + _BYTES_OF_A_WORLD * len(text))
    try:
        reply = _judge(given["ontology"], given["parts"])
    except OwlReadyOntologyParsingError as e:
        reply = {"counts": {}, "wrong": [f"it cannot be loaded: {e}"]}
    sys.stdout.write("\n" + json.dumps(reply) + "\n")


def _judge(ontology_nt: str, parts: Mapping[str, str]) -> dict[str, object]:
    """The numbers of values and of individuals of each part, and in words what differs."""
    listed = {key: _list_written(text) for key, text in parts.items()}
    counts = {
        key: f"{sum(map(len, part.values()))} {len({subject for subject, _ in part})}"
        for key, part in listed.items()
    }
    written = _Values(set, {pair: v for part in listed.values() for pair, v in part.items()})
    return {"counts": counts, "wrong": _compare(_load(ontology_nt), written)}


def _compare(world: "World", written: _Values) -> list[str]:
    """What differs, in words."""
    read = _Values(set)
    for number, prop in enumerate([*world.properties()]):
        prop.python_name = f"property_{number}"  # `iri` and `label` are attributes of owlready2's
    for subject, predicate in written:
        read[subject, predicate] = _read(world, subject, predicate)
    individuals = sorted({subject for subject, _ in written})
    for individual in map(world.__getitem__, individuals):
        for prop in individual.get_properties() if individual is not None else ():
            if (individual.iri, prop.iri) not in written and prop.iri not in _OTHERS:
                read[individual.iri, prop.iri] = _read(world, individual.iri, prop.iri)
    inverse = {(subject, value) for (subject, _), values in written.items() for value in values}
    wrong = []
    for (subject, predicate), seen in sorted(read.items()):
        given = written.get((subject, predicate), set())
        # owlready2 gives the values of inverse properties, too.
        more = {value for value in seen - given if (value, subject) not in inverse}
        if more or given - seen:
            shown = f"{sorted(map(str, seen))} for {sorted(map(str, given))}"
            wrong.append(f"<{subject}> <{predicate}>: {shown}")
    return wrong


_OTHERS = {n.LABEL, n.DERIVED_FROM, n.QUOTED_FROM, n.PROV_VALUE}


def _load(text: str) -> "World":
    import owlready2

    world = owlready2.World()
    world.get_ontology("urn:kpyramid:read").load(only_local=True, fileobj=BytesIO(text.encode()))
    return world


def _list_written(instances_nt: str) -> _Values:
    """The values of each individual by property, as Python has them; classes by their IRIs."""
    written = _Values(set)
    quads = [*ox.parse(instances_nt, format=ox.RdfFormat.N_TRIPLES)]
    named = {quad.subject for quad in quads if quad.predicate.value == n.LABEL}
    for quad in quads:
        predicate = quad.predicate.value
        if quad.subject in named and not predicate.startswith((n.PROV, n.DCT)):
            values = written[quad.subject.value, predicate]
            values |= {_make_value(quad.object)} - {n.THING}  # of which everything is
    return written


def _make_value(term: Any) -> object:
    if isinstance(term, ox.NamedNode):
        return term.value
    text, kind = term.value, term.datatype.value.removeprefix(n.XSD)
    if kind in ("decimal", "double", "float"):
        return float(text)
    if kind in _INTEGERS:
        is_long = kind.endswith("nteger") and len(text.lstrip("-")) >= _LONG
        return float(text) if is_long else int(text)
    if kind == "boolean":
        return text in ("true", "1")
    return datetime.fromisoformat(text).isoformat() if kind == "date" else text


def _read(world: "World", subject: str, predicate: str) -> set[object]:
    from owlready2 import label  # a property of the ontology may have the same name

    individual, prop = world[subject], label if predicate == n.LABEL else world[predicate]
    if individual is None:
        return set()
    if predicate == n.RDF_TYPE:
        return {kind.iri for kind in individual.is_a if kind.iri != n.THING}
    return set() if prop is None else {*_list_values(prop[individual])}


def _list_values(values: Any) -> Iterator[object]:
    for value in values:
        if isinstance(value, datetime):
            yield value.isoformat()
        else:
            yield getattr(value, "iri", value)


# HermiT by its API.


def classify(text: str, java: str, heap: int, *, seconds: float) -> tuple[list[str] | None, str]:
    """The IRIs of classes that can have no instance, None of an inconsistent text; or an error.

    `heap`: MiB.

    Raises:
        TimeoutError: HermiT and its parent were stopped after `seconds`.
    """
    given = {"text": text, "java": java, "heap": heap}
    answer, end = ask_function(f"{__name__}:serve_hermit", given, seconds=seconds)
    if not isinstance(answer, dict):
        return None, f"owlready2 ended {end}"
    return answer["empty"], answer["error"]


def serve_hermit() -> None:
    """Reads a text as JSON from stdin, calls HermiT, and writes a line of JSON."""
    import owlready2
    from owlready2 import reasoning

    given = json.loads(sys.stdin.buffer.read())
    os.environ["JAVA_TOOL_OPTIONS"] = _JAVA
    owlready2.JAVA_EXE, reasoning.JAVA_MEMORY = given["java"], given["heap"]
    reply: dict[str, object] = {"empty": None, "error": ""}
    try:
        world = _load(given["text"])
        owlready2.sync_reasoner_hermit(world, debug=0)
        empty = (c.iri for c in world.inconsistent_classes())
        reply["empty"] = sorted(iri for iri in empty if not iri.startswith(n.OWL))
    except owlready2.OwlReadyInconsistentOntologyError:
        pass
    except (owlready2.OwlReadyJavaError, owlready2.OwlReadyOntologyParsingError) as e:
        reply["error"] = str(e)
    sys.stdout.write("\n" + json.dumps(reply) + "\n")
