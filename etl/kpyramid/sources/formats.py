"""One reader per file format: bytes to records, each with its source."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq
from markdown_it import MarkdownIt

from kpyramid.keys import content_id
from kpyramid.settings import IngestSettings
from kpyramid.sources.decode import RefusedError, check_text, decode_bytes
from kpyramid.sources.pages import read_page

_DEEPEST = 100
"""Levels of Markdown's quotes and lists; two to three frames of Python's thousand go to each."""
_CONTAINERS = {"blockquote_open", "list_item_open"}
_ACCESS = "access"
_MOST_SHOWN = 100
_ONE_DOCUMENT = {".txt", ".md", ".html", ".htm"}
"""Formats whose file is one document, so that its size is known before it is parsed."""


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


def read_records(
    path: str, data: bytes, settings: IngestSettings, taken: dict[str, int] | None = None
) -> Iterator[Record | Refusal]:
    """The records of one file, the format told by its ending; each has text or is a refusal.

    `taken` holds the sources that the corpus has so far; new ones are added, none comes twice.
    """
    ending = "." + path.rpartition(".")[2].lower() if "." in path else ""
    reader = _READERS.get(ending)
    if reader is None:
        known = " ".join(sorted(_READERS))
        yield Refusal(path, "unknown_format", f"ending {ending or 'none'}; read are {known}")
        return
    taken = {} if taken is None else taken
    try:
        if ending in _ONE_DOCUMENT:
            _check_size(len(data), settings)
        for record in reader(path, data, settings):
            yield _check(replace(record, source=_name_source(record.source, taken)), settings)
    except RefusedError as e:
        yield Refusal(path, e.reason, e.detail)


def _name_source(source: str, taken: dict[str, int]) -> str:
    """The source, or with the first free suffix when it is taken: `a`, `a~2`, `a~3`."""
    name = source
    while name in taken:
        # counting on from the last suffix keeps a million equal names linear
        taken[source] += 1
        name = f"{source}~{taken[source]}"
    taken[name] = 1
    return name


def _check(record: Record | Refusal, settings: IngestSettings) -> Record | Refusal:
    if isinstance(record, Refusal):
        return record
    try:
        text = check_text(record.text)
        title = check_text(record.title).strip() if record.title else None
        if not text.strip():
            raise RefusedError("empty", "no text in it")
        _check_size(len(text.encode()), settings)
    except RefusedError as e:
        return Refusal(record.source, e.reason, e.detail)
    return replace(record, text=text, title=title or None)


def _check_size(size: int, settings: IngestSettings) -> None:
    if size > settings.max_document_bytes:
        detail = f"{size} bytes, ingest.max_document_bytes is {settings.max_document_bytes}"
        raise RefusedError("too_large", detail)


def _read_text(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    yield Record(path, decode_bytes(data, settings.fallback_encoding))


def _read_markdown(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    page = read_page(_render_markdown(decode_bytes(data, settings.fallback_encoding)))
    yield Record(path, page.text, page.heading)


def _render_markdown(text: str) -> str:
    """The HTML of a Markdown text.

    Raises:
        RefusedError: `too_deep`; the parser drops what lies below its limit without a word.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST})
    notes: dict[str, object] = {}
    tokens = parser.parse(text, notes)
    for token in tokens:
        if token.type in _CONTAINERS and token.level + 1 >= _DEEPEST:
            line = token.map[0] + 1 if token.map else 1
            detail = f"quotes and lists nested deeper than {_DEEPEST} levels at line {line}"
            raise RefusedError("too_deep", detail)
    return str(parser.renderer.render(tokens, parser.options, notes))


def _read_html(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    page = read_page(decode_bytes(data, settings.fallback_encoding, html=True))
    yield Record(path, page.text, page.title, page.language)


def _read_jsonl(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    text = decode_bytes(data, settings.fallback_encoding)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _read_line(path, number, line, settings)
        except RecursionError:
            # what can be parsed may still be too deep to be written as metadata
            detail = f"line {number}: nested too deep"
            yield Refusal(f"{path}#line{number}", "bad_json", detail)
        except ValueError as e:
            yield Refusal(f"{path}#line{number}", "bad_json", f"line {number}: {e}")


def _read_line(path: str, number: int, line: str, settings: IngestSettings) -> Record | Refusal:
    row = json.loads(line, object_pairs_hook=_make_object)
    if isinstance(row, dict):
        return _make_record(path, number, row, settings)
    detail = f"line {number} holds {type(row).__name__}, not an object with a text field"
    return Refusal(f"{path}#line{number}", "bad_record", detail)


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a key that comes twice is refused, for the first value would be lost."""
    repeated = _find_repeated([name for name, _ in pairs])
    if repeated is not None:
        raise ValueError(f"the key {repeated!r} comes twice in one object")
    return dict(pairs)


def _find_repeated(names: Sequence[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _read_csv(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    csv.field_size_limit(2**31 - 1)
    text = decode_bytes(data, settings.fallback_encoding)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        repeated = _find_repeated(reader.fieldnames or [])
        if repeated is not None:
            yield Refusal(path, "bad_csv", f"the header has the column {repeated!r} twice")
            return
        for row in reader:
            extra = row.pop(None, None)
            if extra is not None:
                detail = f"line {reader.line_num} has more cells than the header"
                yield Refusal(f"{path}#line{reader.line_num}", "bad_record", detail)
            elif _ACCESS in row and row[_ACCESS] is None:
                detail = f"line {reader.line_num} ends before the column 'access'"
                yield Refusal(f"{path}#line{reader.line_num}", "bad_access", detail)
            else:
                yield _make_record(path, reader.line_num, row, settings)
    except csv.Error as e:
        line = reader.reader.line_num
        yield Refusal(f"{path}#line{line}", "bad_csv", f"line {line}: {e}; the rest is unread")


def _read_parquet(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        rows = file.read(use_threads=False).to_pylist()
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
        access = read_labels(row)
    except RefusedError as e:
        return Refusal(f"{path}#line{number}", e.reason, f"line {number}: {e.detail}")
    fields = {n: value for n, value in row.items() if value is not None and n != _ACCESS}
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
    return Record(
        source,
        text,
        title,
        language,
        licence,
        access,
        {name: _as_text(fields[name]) for name in sorted(fields)},
    )


def read_labels(row: Mapping[str, object]) -> tuple[str, ...]:
    """The access labels of a row, sorted; none where the field is missing, null or empty.

    A row without labels is everybody's to read. So what was meant as a label and cannot be read
    as one is never taken for none.

    Raises:
        RefusedError: `bad_access`; a field is all but named `access`, or its value is neither
            labels in a list nor labels with commas between.
    """
    for name in row:
        if name != _ACCESS and name.strip().strip("\ufeff").casefold() == _ACCESS:
            detail = f"labels are read from the field 'access', not from {name!r}"
            raise RefusedError("bad_access", f"{detail}: rename it, whatever it holds")
    value = row.get(_ACCESS)
    if value is None or value == "" or (isinstance(value, list | tuple) and not value):
        return ()
    given = value if isinstance(value, list | tuple) else [value]
    labels = value.split(",") if isinstance(value, str) else [_as_label(each) for each in given]
    if not all(label.strip() for label in labels) or labels[0].strip()[0] in "[{":
        detail = f"access = {str(value)[:_MOST_SHOWN]!r} names no label, or not only labels"
        raise RefusedError(
            "bad_access",
            f"{detail}: write a list of texts, or texts with commas between; nothing for a "
            "document that everybody may read",
        )
    return tuple(sorted({label.strip() for label in labels}))


def _as_label(value: object) -> str:
    """A text, or a number that is one; empty for what is no label."""
    is_label = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_label else ""


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
