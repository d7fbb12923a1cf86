"""Ingest: files of the corpus become documents."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.conversion import CONVERTED, Convert
from kpyramid.documents.corpus import SourceFile, Unread
from kpyramid.documents.formats import Record, Refusal, group_unread, name_ending, read_records
from kpyramid.keys import content_id, hash_bytes
from kpyramid.ontology.importing.data import read_data
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject
from kpyramid.settings import IngestSettings
from kpyramid.storage.erasure import Erased, hash_source
from kpyramid.storage.items import split_by_size

_ERASED = "it was erased: remove it from the corpus"
_MOST_FILES, _MOST_BYTES = 256, 2**26
"""Files, and their bytes, that are held while they are converted in parallel."""


def run(
    *,
    corpus: Iterable[SourceFile],
    converter: Convert | None,
    erased: Erased,
    settings: IngestSettings,
) -> dict[str, pa.Table]:
    """`documents`, one row per record, and `rejects`, one per file or record refused.

    Without a `converter`, files that need conversion are refused.
    """
    documents: list[Row] = []
    rejects: list[Row] = []
    taken: dict[str, int] = {}
    some = split_by_size(corpus, lambda f: len(f.data), weight=_MOST_BYTES, count=_MOST_FILES)
    for files in some:
        packed = [file for file in files if name_ending(file.path) in CONVERTED]
        gone = {file.path for file in packed if erased.holds(file.path, "")}
        packed = [file for file in packed if file.path not in gone]
        converted = converter(packed, settings.max_document_bytes) if converter and packed else {}
        for file in files:
            if file.problem is not None:
                rejects.append(make_reject("ingest", "unreadable", file.path, file.problem))
                continue
            if file.path in gone:
                # not even converted: what it says would be kept in a cache
                rejects.append(make_reject("ingest", "erased", hash_source(file.path), _ERASED))
                continue
            records = 0
            given = (file.path, file.data, settings, taken, converted.get(file.path), read_data)
            for record in read_records(*given):
                records += 1
                if isinstance(record, Refusal):
                    refused = (record.reason, record.source, record.detail)
                    rejects.append(make_reject("ingest", *refused))
                    continue
                document = _make_document(record, settings)
                if erased.holds(record.source, document["sha256"]):
                    key = document["document_id"]  # a source may be a name as well
                    rejects.append(make_reject("ingest", "erased", key, _ERASED))
                else:
                    documents.append(document)
            if records == 0:
                rejects.append(make_reject("ingest", "empty", file.path, "no record in it"))
    return {
        "documents": build_table("documents", documents),
        "rejects": build_rejects(rejects),
    }


def list_unread(rejects: pa.Table) -> list[Unread]:
    """The files and records that became no document, from the rejects of a run."""
    refused = rejects.filter(pc.equal(rejects["stage"], "ingest"))
    columns = (refused[name].to_pylist() for name in ("row_key", "reason", "detail"))
    return group_unread(Refusal(*row) for row in zip(*columns, strict=True))


def _make_document(record: Record, settings: IngestSettings) -> Row:
    return {
        "document_id": content_id("doc", record.source, record.title, record.text),
        "source": record.source,
        "title": record.title,
        "text": record.text,
        "blocks": [block._asdict() for block in record.blocks] or None,
        "language": record.language or settings.language,
        "metadata": sorted(record.metadata.items()),
        "access": list(record.access),
        "licence": record.licence,
        "sha256": hash_bytes(record.text.encode()),
    }
