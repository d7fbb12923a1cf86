"""One reader per file format: bytes to records, each with its source."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from bs4 import BeautifulSoup
from bs4.element import PreformattedString
from markdown_it import MarkdownIt

from kpyramid.keys import content_id
from kpyramid.settings import IngestSettings
from kpyramid.sources.decode import RefusedError, check_text, decode_bytes

_BLOCKS = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "tr",
    "ul",
]
_UNREAD = ["script", "style", "template", "noscript", "head"]
_MARKDOWN = {"maxNesting": 100}
"""Levels of quotes and lists; the preset drops what lies deeper than 20 without a word."""


@dataclass(frozen=True, slots=True)
class Record:
    """One document as its source states it."""

    source: str
    text: str
    title: str | None = None
    language: str | None = None
    licence: str | None = None
    access: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One file or record that cannot become a document."""

    source: str
    reason: str
    detail: str


Reader = Callable[[str, bytes, IngestSettings], Iterator[Record | Refusal]]


def read_records(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    """The records of one file, the format told by its ending; each has text or is a refusal."""
    ending = "." + path.rpartition(".")[2].lower() if "." in path else ""
    reader = _READERS.get(ending)
    if reader is None:
        known = " ".join(sorted(_READERS))
        yield Refusal(path, "unknown_format", f"ending {ending or 'none'}; read are {known}")
        return
    seen: dict[str, int] = {}
    try:
        for record in reader(path, data, settings):
            count = seen[record.source] = seen.get(record.source, 0) + 1
            yield _check(record, settings, "" if count == 1 else f"~{count}")
    except RefusedError as e:
        yield Refusal(path, e.reason, e.detail)


def _check(record: Record | Refusal, settings: IngestSettings, twin: str) -> Record | Refusal:
    source = record.source + twin
    if isinstance(record, Refusal):
        return Refusal(source, record.reason, record.detail)
    try:
        text = check_text(record.text)
        title = check_text(record.title).strip() if record.title else None
    except RefusedError as e:
        return Refusal(source, e.reason, e.detail)
    if not text.strip():
        return Refusal(source, "empty", "no text in it")
    size = len(text.encode())
    if size > settings.max_document_bytes:
        detail = f"{size} bytes, ingest.max_document_bytes is {settings.max_document_bytes}"
        return Refusal(source, "too_large", detail)
    return Record(
        source, text, title or None, record.language, record.licence, record.access, record.metadata
    )


def _read_text(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    yield Record(path, decode_bytes(data, settings.fallback_encoding))


def _read_markdown(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    page = MarkdownIt("commonmark", _MARKDOWN).render(
        decode_bytes(data, settings.fallback_encoding)
    )
    soup = BeautifulSoup(page, "html.parser")
    heading = soup.find("h1")
    yield Record(path, _flatten_page(soup), heading.get_text() if heading else None)


def _read_html(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    soup = BeautifulSoup(decode_bytes(data, settings.fallback_encoding, html=True), "html.parser")
    title = soup.title.get_text() if soup.title else None
    language = soup.html.get("lang") if soup.html else None
    yield Record(path, _flatten_page(soup), title, language if isinstance(language, str) else None)


def _flatten_page(soup: BeautifulSoup) -> str:
    """The visible text: inline tags vanish, blocks become lines, runs of white space one space."""
    for tag in soup.find_all(_UNREAD):
        tag.decompose()
    for text in soup.find_all(string=True):
        if isinstance(text, PreformattedString):  # comment, doctype, processing instruction
            text.extract()
        elif text.find_parent("pre") is None:
            text.replace_with(" ".join(f"|{text}|".split())[1:-1])
    for tag in soup.find_all(_BLOCKS):
        tag.insert_before("\n")
        tag.insert_after("\n")
    lines = (line.strip() for line in soup.get_text().splitlines())
    return "\n".join(line for line in lines if line)


def _read_jsonl(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    text = decode_bytes(data, settings.fallback_encoding)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as e:
            yield Refusal(f"{path}#line{number}", "bad_json", f"line {number}: {e}")
            continue
        if isinstance(row, dict):
            yield _make_record(path, number, row, settings)
        else:
            detail = f"line {number} holds {type(row).__name__}, not an object with a text field"
            yield Refusal(f"{path}#line{number}", "bad_record", detail)


def _read_csv(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    csv.field_size_limit(2**31 - 1)
    text = decode_bytes(data, settings.fallback_encoding)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            extra = row.pop(None, None)
            if extra is not None:
                detail = f"line {reader.line_num} has more cells than the header"
                yield Refusal(f"{path}#line{reader.line_num}", "bad_record", detail)
            else:
                yield _make_record(path, reader.line_num, row, settings)
    except csv.Error as e:
        line = reader.reader.line_num
        yield Refusal(f"{path}#line{line}", "bad_csv", f"line {line}: {e}; the rest is unread")


def _read_parquet(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    try:
        rows = pq.read_table(pa.BufferReader(data)).to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        raise RefusedError("bad_parquet", str(e)) from e
    for number, row in enumerate(rows, 1):
        yield _make_record(path, number, row, settings)


def _make_record(
    path: str, number: int, row: Mapping[str, object], settings: IngestSettings
) -> Record | Refusal:
    """A record from a row of named fields; what has no place of its own is metadata.

    Without an id field the source is named by the row's content, so that inserting a row
    above does not rename the ones below. `number` places a row that has no valid name.
    """
    try:
        check_text(_as_text(dict(row)))
    except RefusedError as e:
        return Refusal(f"{path}#line{number}", e.reason, f"line {number}: {e.detail}")
    fields = {name: value for name, value in row.items() if value is not None}
    identifier = _take(fields, settings.id_fields)
    plain = {name: _as_text(value) for name, value in fields.items()}
    source = f"{path}#{identifier or content_id('row', plain)}"
    names = [name for name in settings.text_fields if name in fields]
    if not names:
        detail = f"no field {' or '.join(settings.text_fields)}; it has {', '.join(sorted(row))}"
        return Refusal(source, "no_text_field", f"{detail}. Set ingest.text_fields")
    text = _as_text(fields.pop(names[0]))
    title = _take(fields, settings.title_fields)
    language = _take(fields, ("language", "lang"))
    licence = _take(fields, ("licence", "license"))
    access = fields.pop("access", ())
    labels = access if isinstance(access, list | tuple) else str(access).split(",")
    return Record(
        source,
        text,
        title,
        language,
        licence,
        tuple(sorted({str(label).strip() for label in labels} - {""})),
        {name: _as_text(fields[name]) for name in sorted(fields)},
    )


def _take(fields: dict[str, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in fields:
            return _as_text(fields.pop(name))
    return None


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


_READERS: Mapping[str, Reader] = {
    ".txt": _read_text,
    ".md": _read_markdown,
    ".html": _read_html,
    ".htm": _read_html,
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
