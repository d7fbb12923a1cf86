"""The gate `shapes`: SHACL derived from the schema, and the ontology's own."""

import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import ask_function
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.ontology.sparql import shut_doors
from kpyramid.ontology.turtle import walk
from kpyramid.ontology.validation.repair import Fault

if TYPE_CHECKING:
    from rdflib import Graph
    from rdflib.term import Node

_MOST_NAMED = 5
_MEMORY = 2 * 2**30
_BYTES_OF_A_GRAPH = 50
"""Memory of rdflib and pyshacl per byte of N-Triples, with a margin."""
_ANY_SHAPE = """@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:s> a sh:NodeShape ; sh:targetNode <urn:n> ; sh:message "m" ;
    sh:property [ sh:path <urn:p> ; sh:minCount 1 ; sh:pattern "^a" ; sh:class <urn:c> ] ;
    sh:sparql [ sh:select "SELECT $this { $this ?p ?o }" ] .
"""


class Given(TypedDict):
    """The child's input: schema and instances, and shapes by name."""

    data: list[str]
    shapes: dict[str, str]


class Broken(TypedDict):
    """A violation: its message, and the facts behind it, of which `keep` may stay.

    A fact is subject, predicate and the value's text; with `keep` None one has to leave.
    """

    message: str
    facts: list[tuple[str, str, str]]
    keep: int | None


class Reply(TypedDict, total=False):
    """The child's answer: the number of violations and the first in words, or an error."""

    violations: list[str]
    count: int
    broken: list[Broken]
    error: str


@dataclass(frozen=True, slots=True)
class Shaped:
    """The verdict of the gate, and every violation with its facts."""

    verdict: str
    broken: Sequence[Broken] = ()


# A value of one or two characters is a code in capitals or digits, or careless splitting; brackets
# open before they close, at most two deep: what authors' names and chemical formulas need.
_WORDS = r"^([^a-z\\W_]{2}|.{3,})$"
_DEEP = r"([^{o}{c}]|{o}([^{o}{c}]|{o}[^{o}{c}]*{c})*{c})*"
_BRACKETS = [_DEEP.format(o="\\\\" + o, c="\\\\" + c) for o, c in ("()", "[]", "{}")]


def derive_shapes(schema: Schema) -> str:
    """SHACL in Turtle for each property's subjects and values, the same every time.

    The subject is in the domain, the value in the range; a functional property has one value; a
    string is a word or a code, and its brackets match.
    """
    lines = ["@prefix sh: <http://www.w3.org/ns/shacl#> .\n"]
    for number, prop in enumerate(schema.properties):
        lines += _derive(f"urn:kpyramid:shape:{number}", prop, schema)
    return "".join(lines)


def _derive(name: str, p: OntologyProperty, schema: Schema) -> list[str]:
    target = f"sh:targetSubjectsOf <{p.iri}>"
    shapes: list[str] = []

    def add(kind: str, says: str, message: str) -> None:
        literal = ox.Literal(message)
        shapes.append(
            f"<{name}-{len(shapes)}> a sh:{kind} ; {target} ; {says} ; sh:message {literal} .\n"
        )

    def label(iri: str) -> str:
        c = schema.class_by_iri.get(iri)
        return c.label if c else iri.rpartition("#")[2]

    path = f"sh:path <{p.iri}> ; "
    if p.domain != n.THING:
        message = f"has “{p.label}”, so it must be of class “{label(p.domain)}”"
        add("NodeShape", f"sh:class <{p.domain}>", message)
    kind = "datatype" if p.is_datatype else "class"
    message = f"a value of “{p.label}” must be of {kind} “{label(p.range)}”"
    if not p.is_datatype:
        range_ = "" if p.range == n.THING else f" ; sh:class <{p.range}>"
        add("PropertyShape", f"{path}sh:nodeKind sh:IRI{range_}", message)
    elif p.range == n.RDFS + "Literal":
        add("PropertyShape", f"{path}sh:nodeKind sh:Literal", message)
    else:
        # Which text is a year pyshacl does not know; of other datatypes it does.
        year = ' ; sh:pattern "^[0-9]{4}"' if p.range.startswith(n.XSD + "gYear") else ""
        add("PropertyShape", f"{path}sh:datatype <{p.range}>{year}", message)
    if p.range in (n.XSD + "string", n.RDFS + "Literal") and p.is_datatype:
        message = f"a value of “{p.label}” is one or two characters and no code"
        add("PropertyShape", f'{path}sh:pattern "{_WORDS}" ; sh:flags "s"', message)
        message = f"a value of “{p.label}” has a bracket without its other half"
        for pattern in _BRACKETS:
            add("PropertyShape", f'{path}sh:pattern "^{pattern}$" ; sh:flags "s"', message)
    if p.is_functional:
        message = f"“{p.label}” has more than one value"
        add("PropertyShape", f"{path}sh:maxCount 1", message)
    return shapes


def judge_shapes(
    schema_turtle: str,
    instances_nt: str,
    shapes: Mapping[str, str],
    *,
    seconds: float,
) -> Shaped:
    """`pass`, `fail: why`, or `not run: why`, by pyshacl in a process of its own.

    `shapes`: Turtle texts by the name for messages. Nothing that they or the data refer to is
    fetched, and no JavaScript is run.
    """
    given: Given = {"data": [schema_turtle, instances_nt], "shapes": dict(shapes)}
    try:
        answer, end = ask_function(
            "kpyramid.ontology.validation.shapes:serve", given, seconds=seconds
        )
    except TimeoutError:
        return Shaped(
            f"not run: pyshacl was stopped after {seconds:g} seconds; raise "
            "publish.reasoner_seconds (of `ontology check`: --seconds) to give it more"
        )
    if answer is None:
        return Shaped(f"not run: pyshacl ended, most likely for want of memory, {end}")
    reply = cast("Reply", answer)
    if "error" in reply:
        return Shaped(f"fail: {reply['error']}")
    if not reply["count"]:
        return Shaped("pass")
    verdict = f"fail: {reply['count']} violations: {'; '.join(reply['violations'])}"
    return Shaped(verdict, reply["broken"])


def trace_broken(broken: Sequence[Broken], instances_nt: str) -> list[Fault]:
    """The violations as faults; all facts of a property where none has the reported value."""
    wanted = {(subject, predicate) for b in broken for subject, predicate, _ in b["facts"]}
    by_key: dict[tuple[str, str], list[ox.Triple]] = {key: [] for key in wanted}
    for quad in ox.parse(instances_nt, format=ox.RdfFormat.N_TRIPLES):
        key = getattr(quad.subject, "value", ""), quad.predicate.value
        if key in by_key:
            by_key[key].append(quad.triple)
    faults = []
    for violation in broken:
        facts: dict[ox.Triple, None] = {}
        for subject, predicate, value in violation["facts"]:
            stated = by_key[subject, predicate]
            exact = [t for t in stated if getattr(t.object, "value", "") == value]
            facts |= dict.fromkeys(exact or stated)
        keep = max(len(facts) - 1, 0) if violation["keep"] is None else violation["keep"]
        faults.append(Fault("broken_shape", violation["message"], tuple(facts), keep))
    return faults


def serve() -> None:
    """Reads data and shapes as JSON from stdin; writes one JSON object to stdout."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    given: Given = json.loads(sys.stdin.buffer.read())
    _validate({"data": ["", ""], "shapes": {"": _ANY_SHAPE}})  # imports all that it will need
    shut_doors(_MEMORY + _BYTES_OF_A_GRAPH * sum(map(len, given["data"])))
    try:
        reply = _validate(given)
    except InputError as e:
        reply = {"error": str(e)}
    except MemoryError:
        reply = {"error": f"pyshacl needs more than {_MEMORY >> 20} MiB of memory"}
    sys.stdout.write("\n" + json.dumps(reply) + "\n")


def _validate(given: Given) -> Reply:
    import pyshacl
    import rdflib
    from rdflib import RDFS, SH

    schema, instances = given["data"]
    data, shapes = rdflib.Graph().parse(data=schema, format="turtle"), rdflib.Graph()
    for name, turtle in given["shapes"].items():
        try:
            shapes.parse(data=turtle, format="turtle")
        except Exception as e:  # rdflib's parsers raise bare Exceptions as well
            raise InputError(f"{name} is no Turtle: {_cut(e)}") from e
    data.parse(data=instances, format="nt")
    _lift_parts(shapes)
    try:
        _, report, text = pyshacl.validate(
            data, shacl_graph=shapes, inplace=True, advanced=False, js=False, inference=None
        )
    except Exception as e:  # pyshacl's faults, and those of a query in a shape
        raise InputError(f"the shapes cannot be used: {_cut(e)}") from e
    if not isinstance(report, rdflib.Graph):
        raise InputError(f"the shapes cannot be used: {_cut(text)}")

    def say(node: object) -> str:
        label = data.value(node, RDFS.label) if isinstance(node, rdflib.URIRef) else None
        return str(label or node)

    messages, broken = [], []
    for result in report.subjects(SH.resultSeverity, SH.Violation):
        focus, value = report.value(result, SH.focusNode), report.value(result, SH.value)
        message = min(map(str, report.objects(result, SH.resultMessage)), default="")
        shown = "" if value is None or value == focus else f" (“{say(value)}”)"
        messages.append(f"“{say(focus)}”: {_cut(message)}{shown}")
        broken.append(_find_facts(report, result, shapes, data, _cut(message)))
    broken.sort(key=json.dumps)
    return {"violations": sorted(messages)[:_MOST_NAMED], "count": len(messages), "broken": broken}


_WHOLE = ("path", "closed", "deactivated", "targetNode", "targetSubjectsOf", "targetObjectsOf")
"""What a shape may have that keeps its parts inside it."""


def _lift_parts(shapes: "Graph") -> None:
    """Gives the property shapes of a node shape its target classes, and takes them out of it.

    The results are the same: pyshacl judges the nodes of a target together, but a part of another
    shape node by node, which takes four times as long. A part stays where the whole has a say in
    it, or other shapes refer to either.
    """
    from rdflib import RDF, SH

    if (None, SH.qualifiedValueShapesDisjoint, None) in shapes:
        return
    whole = {SH[name] for name in _WHOLE}
    for shape, part in [*shapes.subject_objects(SH.property)]:
        targets, kinds = ({*shapes.objects(shape, p)} for p in (SH.targetClass, RDF.type))
        stays = whole.intersection(shapes.predicates(shape)) or kinds - {SH.NodeShape}
        is_named = (None, None, shape) in shapes or [*shapes.subjects(None, part)] != [shape]
        if targets and not stays and not is_named:
            shapes.remove((shape, SH.property, part))
            for target in targets:
                shapes.add((part, SH.targetClass, target))


_OF_ALL = ("MaxCount", "QualifiedMaxCount")
_OF_SEVERAL = ("LessThan", "LessThanOrEquals", "Disjoint", "Equals", "SPARQL")
"""Components that judge all values of a property, and those that judge several properties."""


def _find_facts(
    report: "Graph", result: "Node", shapes: "Graph", data: "Graph", message: str
) -> Broken:
    """The facts behind a result: those of its shape's properties, or of its target."""
    from rdflib import SH

    focus, value = report.value(result, SH.focusNode), report.value(result, SH.value)
    path, shape = report.value(result, SH.resultPath), report.value(result, SH.sourceShape)
    kind = str(report.value(result, SH.sourceConstraintComponent)).removeprefix(str(SH))
    kind = kind.removesuffix("ConstraintComponent")
    starts = [shape] if shape else []
    facts: set[tuple[str, str, str]] = set()
    keep: int | None = None
    if kind == "SPARQL" or (path is not None and (value is not None or kind in _OF_ALL)):
        named = [*map(str, walk(starts, lambda node: shapes.objects(node, None)))]
        query = " ".join(named) if kind == "SPARQL" else ""  # it may shorten IRIs by prefixes
        for end in {focus, value} - {None} if query else {focus}:
            for s, p, o in (*data.triples((end, None, None)), *data.triples((None, None, end))):
                name = re.split(r"[#/]", str(p))[-1]
                is_named = name in query if query else str(p) in named
                if is_named and (kind in (*_OF_ALL, *_OF_SEVERAL) or value in (s, o)):
                    facts.add((str(s), str(p), str(o)))
        if kind in _OF_ALL:
            keep = int(str(shapes.value(shape, SH[kind[0].lower() + kind[1:]])))
    if not facts:
        keep = 0
        for target in walk(starts, lambda node: shapes.subjects(None, node)):
            facts |= {
                (str(s), str(p), str(o)) for s, p, o in _find_target(shapes, data, target, focus)
            }
    return {"message": message, "facts": sorted(facts), "keep": keep}


def _find_target(
    shapes: "Graph", data: "Graph", shape: "Node", focus: "Node | None"
) -> "Iterator[tuple[Node, Node, Node]]":
    """The facts that make a node the target of a shape."""
    from rdflib import RDF, RDFS, SH

    for predicate in shapes.objects(shape, SH.targetSubjectsOf):
        yield from data.triples((focus, predicate, None))
    for predicate in shapes.objects(shape, SH.targetObjectsOf):
        yield from data.triples((None, predicate, focus))
    for wanted in [*shapes.objects(shape, SH.targetClass), shape]:
        for narrower in data.transitive_subjects(RDFS.subClassOf, wanted):
            yield from data.triples((focus, RDF.type, narrower))


def _cut(text: object) -> str:
    return " ".join(str(text).split())[:300]
