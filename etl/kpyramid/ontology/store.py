"""The ontology's instances with their provenance: written as N-Triples, queried with the schema."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import name_blank_nodes
from kpyramid.ontology.sandbox import Child
from kpyramid.ontology.sparql import Data, Reply, Request, Rows, load_store, run_query
from kpyramid.ontology.turtle import make_iri, parse_turtle

# Evidence in PROV-O.

_MOST_HELD = 1 << 13
"""Names and texts of the last lines that stay as they are written."""


@lru_cache(maxsize=_MOST_HELD)
def entity_iri(entity_id: str) -> str:
    """The IRI of an id, which does not depend on labels."""
    return n.ENTITY + quote(entity_id, safe="")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Characters `start` to `end` of a document's text, with the text.

    In RDF a node (RFC 5147, `#char=120,250`) that is quoted from the document; its `prov:value`
    is the text, and individuals are derived from it.

    `source` is what the table `documents` says of where the document came from.
    """

    document_id: str
    start: int
    end: int
    text: str
    source: str
    title: str | None = None

    @property
    def iri(self) -> str:
        """The IRI of these characters of the document."""
        return f"{entity_iri(self.document_id)}#char={self.start},{self.end}"


@lru_cache(maxsize=_MOST_HELD)
def _name(iri: str) -> str:
    """An IRI as N-Triples write it.

    Raises:
        InputError: it is none.
    """
    return str(make_iri(iri))


@lru_cache(maxsize=_MOST_HELD)
def _quote(text: str) -> str:
    return str(ox.Literal(text))


def _describe_quotation(place: Quotation) -> Iterator[str]:
    """Lines about a place: its text, its document, and that document's source."""
    document = _name(entity_iri(place.document_id))
    yield f"<{place.iri}> <{n.PROV_VALUE}> {_quote(place.text)} .\n"
    yield f"<{place.iri}> <{n.QUOTED_FROM}> {document} .\n"
    yield f"{document} <{n.SOURCE}> {_name_source(place.source)} .\n"
    if place.title:
        yield f"{document} <{n.DCT}title> {_quote(place.title)} .\n"


def _name_source(source: str) -> str:
    if source.startswith(("http://", "https://")):
        with suppress(InputError):  # it may only begin like an address
            return _name(source)
    return _quote(source)


def _describe_statement(row: "InstanceStatement") -> Iterator[str]:
    """The statement as a node, an `rdf:Statement`, that is derived from its places.

    These five triples are plain RDF that can be joined with the table `instances`: a graph's name
    would be lost in N-Triples, rdflib cannot read RDF 1.2's triple terms, and the node of an
    `owl:Axiom` has no name.
    """
    if row.instance_id is None:
        return
    node = _name(entity_iri(row.instance_id))
    subject, predicate, value = list_facts(row)[-1]
    yield f"{node} <{n.RDF_TYPE}> <{n.RDF}Statement> .\n"
    yield f"{node} <{n.RDF}subject> {subject} .\n"
    yield f"{node} <{n.RDF}predicate> {predicate} .\n"
    yield f"{node} <{n.RDF}object> {value} .\n"
    for place in row.places:
        yield f"{node} <{n.DERIVED_FROM}> <{place.iri}> .\n"


def write_sorted(triples: Iterable[ox.Triple]) -> str:
    """The triples as N-Triples, sorted, each once."""
    return "".join(sorted({f"{triple} .\n" for triple in triples}))


# Instances.


@dataclass(frozen=True, slots=True)
class InstanceStatement:
    """An instance of a class, and with `property_iri` its value: `object_iri` or `literal`.

    `places` are the sentences that state it, the strongest first; `instance_id` names its node.
    """

    subject_iri: str
    property_iri: str | None
    class_iri: str
    object_iri: str | None
    literal: str | None
    datatype: str | None
    subject_label: str
    object_label: str | None = None
    places: tuple[Quotation, ...] = ()
    instance_id: str | None = None
    confidence: float = 1.0


def state_row(
    row: Mapping[str, Any], names: Mapping[str, str], places: Iterable[Quotation] = ()
) -> InstanceStatement:
    """The statement of a row of the table `instances`; `names` are those of entities, by id."""
    value, same = row["object_id"], "property_iri class_iri literal datatype instance_id confidence"
    return InstanceStatement(
        subject_iri=entity_iri(row["subject_id"]),
        object_iri=entity_iri(value) if value else None,
        subject_label=names[row["subject_id"]],
        object_label=names[value] if value else None,
        places=tuple(places),
        **{name: row[name] for name in same.split()},
    )


def list_facts(row: InstanceStatement) -> list[tuple[str, str, str]]:
    """The statements of a row about its subject: the class, and the value where it has one.

    Each is subject, predicate and object as N-Triples write them.

    Raises:
        InputError: as `write_instances`.
    """
    subject, value = _name(row.subject_iri), _write_value(row)
    facts = [(subject, f"<{n.RDF_TYPE}>", _name(row.class_iri))]
    if row.property_iri is not None and value is not None:
        facts.append((subject, _name(row.property_iri), value))
    return facts


def write_instances(rows: Sequence[InstanceStatement], *, sourced: bool = True) -> str:
    """Sorted N-Triples, each line once: types, labels and values of all instances.

    If `sourced`, each individual is derived (PROV-O) from the strongest place of each statement.

    Raises:
        InputError: a row has a property but not exactly one value, a literal without datatype,
            or an IRI that is none.
    """
    strongest = {place for row in rows for place in row.places[:1]} if sourced else ()
    lines = {line for place in strongest for line in _describe_quotation(place)}
    for row in rows:
        lines.update(_list_lines(row, row.places[:1] if sourced else ()))
    return "".join(sorted(lines))


def write_provenance(rows: Sequence[InstanceStatement]) -> str:
    """Sorted N-Triples with the places of each statement.

    A statement is an `rdf:Statement` under the id of its row in the table `instances`. Places that
    `write_instances` describes are not described again.

    Raises:
        InputError: as above.
    """
    written = {place for row in rows for place in row.places[:1]}
    more = {place for row in rows for place in row.places} - written
    lines = chain(map(_describe_statement, rows), map(_describe_quotation, more))
    return "".join(sorted({*chain.from_iterable(lines)}))


def write_ontology(schema_turtle: str, instances_nt: str) -> str:
    """Schema and instances as one text of sorted N-Triples, for every reader of OWL.

    Individuals are declared, as tools that list them require. `owl:imports` are left out.
    """
    schema = name_blank_nodes(parse_turtle(schema_turtle, source="the schema"))
    individual = f"<{n.RDF_TYPE}> <{n.NAMED_INDIVIDUAL}> .\n"
    lines = [f"{line}\n" for line in instances_nt.split("\n")[:-1]]  # U+2028 ends no line
    named = (line.split(" ", 2)[0] for line in lines if f" <{n.LABEL}> " in line)
    declared = {f"{subject} {individual}" for subject in named}
    stated = {f"{triple} .\n" for triple in schema if triple.predicate.value != n.IMPORTS}
    return "".join(sorted(map(_fit_datatype, {*stated, *lines, *declared})))


_OWL_TYPES = {"gYear": "integer", "gYearMonth": "string", "date": "dateTime"}
"""Datatypes that OWL 2 lacks, with their replacements."""
_OUTSIDE = re.compile(rf"(?:\"\^\^)?<{re.escape(n.XSD)}({'|'.join(_OWL_TYPES)})>( \.\n)$")


_LONG = re.compile(rf"(\"-?\d{{19,}}\"\^\^<{re.escape(n.XSD)})\w*[iI]nteger>( \.\n)$")
"""An integer that may need more than the 64 bits of owlready2, which then loads nothing."""


def _fit_datatype(line: str) -> str:
    """A line of N-Triples with the datatypes of OWL 2, for its value or a range.

    Long integers are decimals, whose values include all integers.
    """

    def fit(match: re.Match[str]) -> str:
        hour = "T00:00:00" if match[1] == "date" else ""
        mark = f'{hour}"^^' if match[0].startswith('"') else ""
        return f"{mark}<{n.XSD}{_OWL_TYPES[match[1]]}>{match[2]}"

    return _LONG.sub(r"\1decimal>\2", _OUTSIDE.sub(fit, line))


def _list_lines(row: InstanceStatement, places: Sequence[Quotation]) -> Iterator[str]:
    """The facts of a row, and of its ends the labels and these places."""
    for subject, predicate, value in list_facts(row):
        yield f"{subject} {predicate} {value} .\n"
    for iri, label in ((row.subject_iri, row.subject_label), (row.object_iri, row.object_label)):
        if iri is not None:
            if label is not None:
                yield f"{_name(iri)} <{n.LABEL}> {_quote(label)} .\n"
            for place in places:
                yield f"{_name(iri)} <{n.DERIVED_FROM}> <{place.iri}> .\n"


def _write_value(row: InstanceStatement) -> str | None:
    """The value of a row with a property; None for a row without.

    Raises:
        InputError: the row has no property but a value, or not exactly one value.
    """
    if row.property_iri is None and row.object_iri is None and row.literal is None:
        return None
    if row.property_iri is not None:
        if row.object_iri is not None and row.literal is None:
            return _name(row.object_iri)
        if row.object_iri is None and row.literal is not None and row.datatype is not None:
            return str(ox.Literal(row.literal, datatype=make_iri(row.datatype)))
    raise InputError(
        f"instance {row.subject_iri}: a property needs exactly one value, an object or a "
        f"literal with its datatype, and a value needs a property; correct the row {row}"
    )


# The graph by its standard relations.

StandardFact = tuple[str, str, str, str | None, str]
"""Id and name of the subject, the relation, the object's id (None: a value) and name or value."""


def write_facts(facts: Iterable[StandardFact]) -> str:
    """Sorted N-Triples of facts by their standard relations, with labels of ends and relations.

    Values are plain strings, as written in the texts.
    """

    def list_triples() -> Iterator[ox.Triple]:
        for subject_id, subject, relation, object_id, value in facts:
            head = make_iri(entity_iri(subject_id))
            predicate = make_iri(n.RELATION + quote(relation, safe=""))
            yield ox.Triple(head, label, ox.Literal(subject))
            yield ox.Triple(predicate, label, ox.Literal(relation))
            if object_id is None:
                yield ox.Triple(head, predicate, ox.Literal(value))
            else:
                tail = make_iri(entity_iri(object_id))
                yield ox.Triple(head, predicate, tail)
                yield ox.Triple(tail, label, ox.Literal(value))

    label = make_iri(n.LABEL)
    return write_sorted(list_triples())


def write_json_ld(turtle: Path, path: Path) -> None:
    """Writes a Turtle file of our own as JSON-LD."""
    triples = ox.parse(path=turtle, format=ox.RdfFormat.TURTLE)
    ox.serialize(triples, path, format=ox.RdfFormat.JSON_LD)


def check_rdf(folder: Path) -> list[str]:
    """The syntax errors in a snapshot's RDF files, each with file and position."""
    forms = {".ttl": ox.RdfFormat.TURTLE, ".nt": ox.RdfFormat.N_TRIPLES}
    problems = []
    for path in sorted((*folder.glob("graph.*"), *(folder / "ontology").glob("*"))):
        if (form := forms.get(path.suffix)) is not None:
            try:
                for _ in ox.parse(path=path, format=form):
                    pass
            except (SyntaxError, ValueError, OSError) as e:
                problems.append(f"{path.relative_to(folder)}: {e}")
    return problems


_LOAD_SECONDS = 300.0
"""Loading our own snapshot is not the query's fault: a million triples take a few seconds."""


class QueryStoppedError(InputError):
    """A query reached its limit of time or memory; its result is unknown."""


@dataclass(eq=False, repr=False)
class OntologyStore:
    """Schema and instances as one graph for queries; close it, or use it in a `with`.

    Facts, if given, are the named graph `kp:graph`. A child process with a copy of it, started by
    the first query from outside, answers one at a time. `seconds` and `memory_bytes`, on top of the
    data's own, bound each.
    """

    schema_turtle: str
    instances_nt: str
    facts_nt: str = ""
    _: KW_ONLY
    seconds: float = 10.0
    memory_bytes: int = 2**30

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._gone: set[str] = set()
        self._child = Child("kpyramid.ontology.sparql:serve")

    @cached_property
    def _store(self) -> ox.Store:
        return load_store(self.schema_turtle, self.instances_nt, self.facts_nt)

    def select(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """At most `limit` solutions of a query from outside, run in a child process.

        Values are IRIs or lexical forms; unbound variables are left out; ASK gives one row,
        `{"ask": "true"}` or `{"ask": "false"}`. Without ORDER BY the order is not defined.

        Raises:
            InputError: the query is malformed, neither SELECT nor ASK, names other data
                (SERVICE, FROM).
            QueryStoppedError: it was stopped at its time or memory limit, or by `stop`.
        """
        limit = _check_limit(limit)
        with self._lock:
            if not self._child.is_running:
                self._gone.clear()
                data = Data(
                    schema=self.schema_turtle,
                    instances=self.instances_nt,
                    facts=self.facts_nt,
                    memory_bytes=self.memory_bytes,
                )
                self._ask(data, _LOAD_SECONDS)
            request = Request(
                query=query, gone="\n".join(self._gone), limit=limit, seconds=self.seconds
            )
            self._gone.clear()
            return self._ask(request, self.seconds)

    def drop(self, lines: Collection[str]) -> None:
        """Removes lines of the instances."""
        if lines:
            with self._lock:
                self._gone |= {*lines}
                kept = (x for x in self.instances_nt.split("\n") if x not in self._gone)
                self.instances_nt = "\n".join(kept)
                self.__dict__.pop("_store", None)

    def _ask(self, message: Data | Request, seconds: float) -> Rows:
        if self._child.is_over:
            raise QueryStoppedError("SPARQL query stopped: so was what asked it; ask again")
        try:
            line = self._child.ask(json.dumps(message).encode("utf-8") + b"\n", seconds)
        except TimeoutError as e:
            raise QueryStoppedError(
                f"SPARQL query stopped after {seconds:g} seconds; join its patterns through "
                "shared variables, or ask for less"
            ) from e
        except EOFError as e:
            raise QueryStoppedError(
                f"SPARQL query stopped: its process ended with {e}, most likely at its memory "
                f"limit of {self.memory_bytes >> 20} MiB; ask for less"
            ) from e
        reply: Reply = json.loads(line)
        if "stopped" in reply:
            raise QueryStoppedError(reply["stopped"])
        if "error" in reply:
            raise InputError(reply["error"])
        return reply["rows"]

    def select_trusted(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The same for a query that our own code built, in this process and unchecked.

        Raises:
            InputError: the query is malformed, or neither SELECT nor ASK.
        """
        return run_query(self._store, query, _check_limit(limit))

    def stop(self) -> None:
        """Ends what `select` runs in another thread; no further query is answered."""
        self._child.stop()

    def close(self) -> None:
        """Ends the child process, if there is one."""
        self._child.close()

    def __enter__(self) -> "OntologyStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_limit(limit: int) -> int:
    if limit < 1:
        raise InputError(f"SPARQL query: limit {limit}; ask for at least 1 row")
    return limit
