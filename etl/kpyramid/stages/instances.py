"""From findings of induction to rows of `instances`; induce and complete share it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.extraction.text.sentences import Span
from kpyramid.induction.checking import Candidate
from kpyramid.induction.conflicts import Finding, Loss, merge, settle
from kpyramid.induction.evidence import Place, Sentences
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import Schema
from kpyramid.stages.tables import Row, make_reject


class Places:
    """Makes places of spans: which document a chunk is of, and the sentence around them."""

    def __init__(self, documents: pa.Table, chunks: pa.Table) -> None:
        self.document_of: dict[str, str] = map_column(chunks, "chunk_id", "document_id")
        self.sentences = Sentences(map_column(documents, "document_id", "text"))

    def make(
        self,
        chunk_id: str,
        spans: Sequence[Span],
        ends: tuple[Span | None, Span | None],
        confidence: float,
        producer: str,
        source: str,
    ) -> Place:
        """The sentence or sentences around spans of the document of a chunk."""
        document_id = self.document_of[chunk_id]
        around = self.sentences.cover(document_id, spans)
        text = self.sentences.texts[document_id][around.start : around.end]
        start, end = around.start, around.end
        subject, value = ends
        return Place(
            document_id, chunk_id, start, end, text, subject, value, confidence, producer, source
        )


def make_instances(
    candidates: Iterable[Candidate],
    rules: Rules,
    known: Mapping[str, set[str]] = MappingProxyType({}),
    settled: Iterable[Finding] = (),
) -> tuple[list[Row], list[Loss]]:
    """Rows of `instances` of the candidates that may stand together, and the others' losses.

    Both ends of every value are members of the classes that the property gives them: where no
    other row says so, one is made with the value's evidence. `known`: classes of individuals, and
    `settled`: values, that stand already.
    """
    stay, losses = settle(merge(candidates), rules, known, settled)
    stated: dict[str, set[str]] = defaultdict(set)
    for individual, classes in known.items():
        stated[individual] |= classes
    for finding in stay:
        if finding.prop is None:
            stated[finding.subject_id].add(finding.class_iri)
    entailed: list[Candidate] = []
    for finding in stay:
        for at_object, (individual, class_iri) in enumerate(finding.entailed):
            if (
                finding.prop is None
                or class_iri == THING
                or _is_said(class_iri, stated[individual], rules.schema)
            ):
                continue
            entailed += _list_members(finding, individual, class_iri, at_object=bool(at_object))
    members = _drop_wider(merge(entailed), rules.schema)
    return [_make_row(finding) for finding in [*stay, *members]], losses


def _is_said(class_iri: str, stated: Iterable[str], schema: Schema) -> bool:
    return any(schema.is_subclass(iri, class_iri) for iri in stated)


def _list_members(
    finding: Finding, individual: str, class_iri: str, *, at_object: bool
) -> Iterator[Candidate]:
    for place in finding.places:
        span = place.object if at_object else place.subject
        shown = replace(place, subject=span, object=None)
        yield Candidate(None, class_iri, individual, None, None, None, shown)


def _drop_wider(members: Sequence[Finding], schema: Schema) -> list[Finding]:
    """Without the memberships that a narrower one of the same individual says already."""
    classes: dict[str, set[str]] = defaultdict(set)
    for member in members:
        classes[member.subject_id].add(member.class_iri)
    return [
        member
        for member in members
        if not _is_said(
            member.class_iri,
            (
                iri
                for iri in classes[member.subject_id]
                if not schema.is_subclass(member.class_iri, iri)
            ),
            schema,
        )
    ]


def make_rejects(stage: str, losses: Iterable[Loss], names: Mapping[str, str]) -> list[Row]:
    """A reject for each finding that does not stay."""
    return [_reject(stage, loss, names) for loss in losses]


def _reject(stage: str, loss: Loss, names: Mapping[str, str]) -> Row:
    finding = loss.finding
    detail = " | ".join(
        (
            names[finding.subject_id],
            finding.prop.label if finding.prop else "is a",
            names.get(finding.object_id or "", finding.literal or finding.class_iri),
            loss.detail,
        )
    )
    place = finding.places[0]
    return make_reject(
        stage,
        loss.reason,
        finding.key,
        detail,
        document_id=place.document_id,
        chunk_id=place.chunk_id,
    )


def _make_row(finding: Finding) -> Row:
    best = finding.places[0]
    prop = finding.prop
    return {
        "instance_id": finding.key,
        "class_iri": finding.class_iri,
        "property_iri": prop.iri if prop else None,
        "subject_id": finding.subject_id,
        "object_id": finding.object_id,
        "literal": finding.literal,
        "datatype": prop.range if prop and prop.is_datatype else None,
        "confidence": finding.confidence,
        "chunk_id": best.chunk_id,
        "start": best.start,
        "end": best.end,
        "subject_span": _span(best.subject),
        "object_span": _span(best.object),
        "places": [
            {"chunk_id": p.chunk_id, "start": p.start, "end": p.end} for p in finding.places
        ],
        "triple_ids": sorted({p.source for p in finding.places if p.source.startswith("triple-")}),
        "producer": best.producer,
    }


def _span(span: Span | None) -> dict[str, int] | None:
    return {"start": span.start, "end": span.end} if span else None


def list_known(instances: pa.Table) -> dict[str, set[str]]:
    """The classes of individuals that rows of `instances` state."""
    known: dict[str, set[str]] = defaultdict(set)
    for subject, class_iri in zip(
        instances["subject_id"].to_pylist(), instances["class_iri"].to_pylist(), strict=True
    ):
        known[subject].add(class_iri)
    return known


def read_findings(instances: Iterable[Row], schema: Schema) -> list[Finding]:
    """The values that rows of `instances` state, without their places."""
    return [
        Finding(
            str(row["instance_id"]),
            schema.property_by_iri[str(row["property_iri"])],
            str(row["class_iri"]),
            str(row["subject_id"]),
            None if row["object_id"] is None else str(row["object_id"]),
            None,
            None if row["literal"] is None else str(row["literal"]),
            float(str(row["confidence"])),
            (),
        )
        for row in instances
        if row["property_iri"] is not None
    ]


def state_values(
    rows: Iterable[Row], schema: Schema, names: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Ids and wordings, `subject property value`, of the instances that state a value."""
    valued = [row for row in rows if row["property_iri"] is not None]
    texts = [
        f"{names[str(row['subject_id'])]} "
        f"{schema.property_by_iri[str(row['property_iri'])].label} "
        f"{names[str(row['object_id'])] if row['object_id'] else row['literal']}"
        for row in valued
    ]
    return [str(row["instance_id"]) for row in valued], texts
