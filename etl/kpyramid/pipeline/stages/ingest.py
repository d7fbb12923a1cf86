"""Ingest: files of the corpus become documents."""

from collections.abc import Iterable

import pyarrow as pa

from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.formats import Record, Refusal, read_records
from kpyramid.keys import content_id, hash_bytes
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject
from kpyramid.settings import IngestSettings


def run(*, corpus: Iterable[SourceFile], settings: IngestSettings) -> dict[str, pa.Table]:
    """`documents`, one row per record, and `rejects`, one per file or record refused."""
    documents: list[Row] = []
    rejects: list[Row] = []
    taken: dict[str, int] = {}
    for file in corpus:
        if file.problem is not None:
            rejects.append(make_reject("ingest", "unreadable", file.path, file.problem))
            continue
        records = 0
        for record in read_records(file.path, file.data, settings, taken):
            records += 1
            if isinstance(record, Refusal):
                rejects.append(make_reject("ingest", record.reason, record.source, record.detail))
            else:
                documents.append(_make_document(record, settings))
        if records == 0:
            rejects.append(make_reject("ingest", "empty", file.path, "no record in it"))
    return {
        "documents": build_table("documents", documents),
        "rejects": build_rejects(rejects),
    }


def _make_document(record: Record, settings: IngestSettings) -> Row:
    return {
        "document_id": content_id("doc", record.source, record.title, record.text),
        "source": record.source,
        "title": record.title,
        "text": record.text,
        "language": record.language or settings.language,
        "metadata": sorted(record.metadata.items()),
        "access": list(record.access),
        "licence": record.licence,
        "sha256": hash_bytes(record.text.encode()),
    }
