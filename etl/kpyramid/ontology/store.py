"""The ontology's instances: written as N-Triples, and queried together with the schema."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.sandbox import QueryChild
from kpyramid.ontology.sparql import load_store, run_query
from kpyramid.ontology.turtle import make_iri

__all__ = [
    "InstanceStatement",
    "OntologyStore",
    "entity_iri",
    "parse_literal",
    "write_instances",
]


@dataclass(frozen=True, slots=True)
class InstanceStatement:
    """An instance of a class, and with `property_iri` its value: `object_iri` or `literal`.

    `source_iri` is the chunk that supports it: the subject is derived from it (PROV-O).
    """

    subject_iri: str
    property_iri: str | None
    class_iri: str
    object_iri: str | None
    literal: str | None
    datatype: str | None
    subject_label: str
    object_label: str | None = None
    source_iri: str | None = None


def entity_iri(entity_id: str) -> str:
    """The IRI of an entity or a chunk, made of its id alone: labels change, with any character."""
    return n.ENTITY + quote(entity_id, safe="")


def write_instances(rows: Iterable[InstanceStatement]) -> str:
    """Sorted N-Triples, each line once: types, labels and values of all instances.

    Raises:
        InputError: a row has a property but not exactly one value, a literal without datatype,
            or an IRI that is none.
    """
    lines = {f"{triple} .\n" for row in rows for triple in _list_triples(row)}
    return "".join(sorted(lines))


def _list_triples(row: InstanceStatement) -> Iterator[ox.Triple]:
    subject, label = make_iri(row.subject_iri), make_iri(n.LABEL)
    yield ox.Triple(subject, make_iri(n.RDF_TYPE), make_iri(row.class_iri))
    yield ox.Triple(subject, label, ox.Literal(row.subject_label))
    if row.object_iri is not None and row.object_label is not None:
        yield ox.Triple(make_iri(row.object_iri), label, ox.Literal(row.object_label))
    if row.source_iri is not None:
        yield ox.Triple(subject, make_iri(n.DERIVED_FROM), make_iri(row.source_iri))
    value = _make_value(row)
    if row.property_iri is not None and value is not None:
        yield ox.Triple(subject, make_iri(row.property_iri), value)
    elif row.property_iri is not None or value is not None:
        raise InputError(
            f"instance {row.subject_iri}: a property needs exactly one value, an object or a "
            f"literal with its datatype, and a value needs a property; correct the row {row}"
        )


def _make_value(row: InstanceStatement) -> ox.NamedNode | ox.Literal | None:
    """The one value; None for none, two, or a literal without datatype."""
    if row.object_iri is not None and row.literal is None:
        return make_iri(row.object_iri)
    if row.object_iri is None and row.literal is not None and row.datatype is not None:
        return ox.Literal(row.literal, datatype=make_iri(row.datatype))
    return None


class OntologyStore:
    """Schema and instances as one graph, to be queried; close it, or use it in a `with`."""

    def __init__(
        self,
        schema_turtle: str,
        instances_nt: str,
        *,
        seconds: float = 10.0,
        memory_bytes: int = 2**30,
    ) -> None:
        """Opens nothing yet.

        `seconds` and `memory_bytes`, on top of the data's own, bound each query of `select`.
        """
        self._texts = schema_turtle, instances_nt
        self._child = QueryChild(
            schema_turtle, instances_nt, seconds=seconds, memory_bytes=memory_bytes
        )

    @cached_property
    def _store(self) -> ox.Store:
        return load_store(*self._texts)

    def select(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """At most `limit` solutions of a query from outside, run in a child process.

        Values are IRIs or lexical forms; unbound variables are left out; ASK gives one row,
        `{"ask": "true"}` or `{"ask": "false"}`. Without ORDER BY the order is not defined.

        Raises:
            InputError: the query is malformed, neither SELECT nor ASK, names other data
                (SERVICE, FROM), or was stopped at its time or memory limit.
        """
        return self._child.select(query, _check_limit(limit))

    def select_trusted(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The same for a query that our own code built, in this process and unchecked.

        Raises:
            InputError: the query is malformed, or neither SELECT nor ASK.
        """
        return run_query(self._store, query, _check_limit(limit))

    def close(self) -> None:
        """Ends the child process, if there is one."""
        self._child.close()

    def __enter__(self) -> "OntologyStore":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_limit(limit: int) -> int:
    if limit < 1:
        raise InputError(f"SPARQL query: limit {limit}; ask for at least 1 row")
    return limit
