"""File formats: bytes decoded, records read from each format, bad files and rows refused."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import PurePosixPath

import pyarrow as pa

from kpyramid.documents.blocks import Block, number_pages
from kpyramid.documents.cleaning import mend_text, normalise_text
from kpyramid.documents.conversion import CONVERTED, EXTRA, Converted, Sheet
from kpyramid.documents.corpus import Corpus, Unread
from kpyramid.documents.labels import (
    FIELD,
    RefusedError,
    cut_front_matter,
    read_labels,
    refuse_fields,
)
from kpyramid.documents.markup import (
    Markup,
    is_wikitext,
    read_asciidoc,
    read_jats,
    read_mail,
    read_notebook,
    read_wikitext,
    split_mailbox,
)
from kpyramid.documents.pages import read_page, render_markdown
from kpyramid.documents.tables import (
    Row,
    make_row,
    name_columns,
    read_cells,
    write_statements,
    write_tables,
)
from kpyramid.errors import InputError
from kpyramid.keys import content_id
from kpyramid.settings import IngestSettings
from kpyramid.storage.contracts import open_table

# Bytes to text.

_MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.I)
_NO_CHARSET = tuple("utf-16 utf-32 utf-7 idna punycode unicode-escape raw-unicode-escape".split())
"""Codecs of Python that no readable page uses; browsers also read such names as UTF-8."""
_WIDER = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **{"iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874"},
    **{"gb2312": "gbk", "shift-jis": "cp932", "euc-kr": "cp949"},
}
"""The encodings that browsers use for names of charsets, by the Encoding Standard of WHATWG."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.02
"""Share of control characters from which a file counts as binary; real text has next to none."""


def decode_bytes(data: bytes, fallback: str | None, *, html: bool = False) -> str:
    r"""The text, with `\\n` as the only line ending.

    A byte order mark decides. Else a charset that an HTML page declares; a page whose declaration
    can be read byte by byte is not UTF-16, whatever it says. Else strict UTF-8, else the fallback
    encoding. Nothing is guessed: that would put wrong characters into every fact.

    Raises:
        RefusedError: `binary`; `undecodable`, with the offset of the first bad byte.
    """
    encoding = _find_encoding(data, html=html)
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError) as e:
        text = _decode_fallback(data, fallback, e)
    return check_text(text)


def check_text(text: str) -> str:
    r"""The text with `\\n` as the only line ending, when it is text.

    Raises:
        RefusedError: `binary` for NUL or many control characters, `undecodable` for half of a
            surrogate pair.
    """
    control = len(_CONTROL.findall(text))
    if "\x00" in text or control > _MOST_CONTROL * len(text):
        raise RefusedError(
            "binary", f"{control} control characters in {len(text)}: this is no text"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise RefusedError("undecodable", f"lone surrogate at character {e.start}") from e
    return normalise_text(text)


def _find_encoding(data: bytes, *, html: bool) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    declared = _DECLARED.search(data[:4096]) if html else None
    name = declared[1].decode("ascii") if declared else "utf-8"
    return "utf-8" if _find_codec(name).startswith(_NO_CHARSET) else _widen(name)


def _widen(name: str) -> str:
    return _WIDER.get(_find_codec(name), name)


def _find_codec(name: str) -> str:
    try:
        return codecs.lookup(name).name.replace("_", "-")
    except LookupError:
        return name


def _decode_fallback(data: bytes, fallback: str | None, cause: Exception) -> str:
    if b"\x00" in data[:4096]:
        raise RefusedError("binary", "NUL bytes: this is no text") from cause
    if fallback is not None:
        try:
            return data.decode(_widen(fallback))
        except (UnicodeError, LookupError) as e:
            raise RefusedError("undecodable", f"not UTF-8, and as {fallback}: {e}") from e
    where = f" at byte {cause.start}" if isinstance(cause, UnicodeDecodeError) else ""
    raise RefusedError(
        "undecodable",
        f"not valid {getattr(cause, 'encoding', 'text')}{where}; convert it to UTF-8, or name "
        "its encoding in ingest.fallback_encoding",
    ) from cause


# Records of files: one reader per format.

TEXT_FIELDS = ("text", "content", "body")
"""Fields of a record that usually hold its text; the first of them is read."""
_LANGUAGE, _LICENCE = ("language", "lang"), ("licence", "license")
DATA = (".jsonld", ".nq", ".nt", ".trig", ".ttl")
"""Formats of RDF data."""
_AT_ONCE = {".txt", ".md", ".html", ".htm", *CONVERTED, *DATA}
"""Formats whose file is parsed as a whole, so that its size is checked before."""


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
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One file or record that cannot become a document."""

    source: str
    reason: str
    detail: str


def group_unread(refusals: Iterable[Refusal]) -> list[Unread]:
    """The refusals grouped by reason and file ending, the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for refusal in refusals:
        kind = refusal.reason, name_ending(refusal.source.partition("#")[0])
        groups.setdefault(kind, []).append((refusal.source, refusal.detail))
    unread = [Unread(*kind, tuple(sorted(rows))) for kind, rows in sorted(groups.items())]
    return sorted(unread, key=lambda kind: -len(kind.refused))


def require_readable(corpus: Corpus, *, converts: bool) -> None:
    """Checks that the corpus has a file whose name is of a readable format.

    Raises:
        InputError: there is none; the message says for each format what to do.
    """
    refusals = []
    for path, digest in corpus.files:
        why = corpus.problems.get(path, "not readable")
        unread = Refusal(path, "unreadable", why) if digest is None else None
        refused = unread or refuse_format(path, converts=converts)
        if refused is None:
            return
        refusals.append(refused)
    listed = "\n".join(f"  {kind}" for kind in group_unread(refusals))
    raise InputError(
        f"corpus {corpus.root}: none of its {len(refusals)} files can be read, so nothing was "
        f"built:\n{listed}"
    )


Reader = Callable[[str, bytes, IngestSettings], Iterator[Record | Refusal]]
ParseData = Callable[
    [str, str, str],
    tuple[Iterable[tuple[str, str, str, str, str]], Iterable[tuple[str, str]]],
]
"""The statements of a text of RDF, and what is none with reasons, by path, text and language."""


def name_ending(path: str) -> str:
    """The ending of a file's name, such as `.pdf`, in lower case; empty without one."""
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2].lower() if "." in name else ""


def refuse_format(path: str, *, converts: bool) -> Refusal | None:
    """The refusal of a file by its name alone; None where its format can be read.

    `converts`: whether the library that converts files is installed.
    """
    ending = name_ending(path)
    if ending in CONVERTED:
        detail = f"{ending} files are read with an extra: {EXTRA}"
        return None if converts else Refusal(path, "needs_extra", detail)
    if ending in _READERS or ending in DATA:
        return None
    known = " ".join(sorted([*_READERS, *CONVERTED, *DATA]))
    advice = _ADVICE.get(ending, "convert it, or move it out of the corpus")
    detail = f"ending {ending or 'none'}: {advice}. Read are {known}"
    return Refusal(path, "unknown_format", detail)


_ADVICE = {
    **dict.fromkeys(
        (".zip", ".tar", ".gz", ".tgz", ".zst", ".bz2", ".xz", ".7z"), "unpack it in the corpus"
    ),
    **dict.fromkeys((".doc", ".odt", ".rtf"), "save it as .docx"),
    ".ppt": "save it as .pptx",
    **dict.fromkeys((".xls", ".ods"), "save it as .xlsx"),
    **dict.fromkeys(
        (".owl", ".rdf"),
        "`kpyramid ontology import` writes what it says of individuals as N-Quads, which are read",
    ),
    ".log": "what a program logs is no prose: leave it out, or name it .txt",
}


def read_records(
    path: str,
    data: bytes,
    settings: IngestSettings,
    taken: dict[str, int] | None = None,
    converted: Converted | None = None,
    parse_data: ParseData | None = None,
) -> Iterator[Record | Refusal]:
    """The records of one file in the format of its ending; each has text or is a refusal.

    `taken`: the sources of the corpus so far; new ones are added, and each is unique.
    `converted`: the result for a file that a library converts. `parse_data`: reads RDF.
    """
    ending = name_ending(path)
    refused = refuse_format(path, converts=converted is not None)
    if refused is not None:
        yield refused
        return
    taken = {} if taken is None else taken
    try:
        if ending in _AT_ONCE:
            _check_size(len(data), settings)
        if ending == ".rst":
            refuse_fields(data.decode(errors="replace"))
        if parse_data is not None and ending in DATA:
            records = _read_data(path, data, settings, parse_data)
        elif converted is not None:
            records = _read_converted(path, converted, settings)
        else:
            records = _READERS[ending](path, data, settings)
        for record in records:
            yield _check(replace(record, source=_name_source(record.source, taken)), settings)
    except RefusedError as e:
        yield Refusal(path, e.reason, e.detail)


def _name_source(source: str, taken: dict[str, int]) -> str:
    """The source, with the first free suffix where it is in use: `a`, `a~2`, `a~3`."""
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
        if not record.access:
            cells = (block.start for block in record.blocks if block.kind == "cell")
            refuse_fields(text[: next(cells, None)])
            if settings.require_access:
                detail = f"no field {FIELD!r}, and ingest.require_access is set"
                raise RefusedError("no_access", detail)
    except RefusedError as e:
        return Refusal(record.source, e.reason, e.detail)
    return replace(record, text=text, title=title or None)


def _check_size(size: int, settings: IngestSettings) -> None:
    if size > settings.max_document_bytes:
        detail = f"{size} bytes, ingest.max_document_bytes is {settings.max_document_bytes}"
        raise RefusedError("too_large", detail)


def _read_text(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    text = decode_bytes(data, settings.fallback_encoding)
    refuse_fields(text)
    if is_wikitext(text):
        yield _make_page(path, _read_wikitext(text))
    else:
        yield Record(path, mend_text(text))


def _read_markdown(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    text, row = cut_front_matter(decode_bytes(data, settings.fallback_encoding))
    page = read_page(render_markdown(mend_text(text)))
    fields = {n: value for n, value in row.items() if value and n != FIELD}
    record = _fill_record(path, page.text, fields, settings)
    title = record.title or page.heading
    yield replace(record, title=title, access=read_labels(row), blocks=page.blocks)


def _fill_record(
    source: str, text: str, fields: dict[str, object], settings: IngestSettings
) -> Record:
    """A record with the title, language and licence among fields; the others are its metadata."""
    title = _take(fields, settings.title_fields)
    language, licence = _take(fields, _LANGUAGE), _take(fields, _LICENCE)
    metadata = {name: _as_text(fields[name]) for name in sorted(fields)}
    return Record(source, text, title, language, licence, metadata=metadata)


def _read_converted(
    path: str, converted: Converted, settings: IngestSettings
) -> Iterator[Record | Refusal]:
    if converted.reason is not None:
        raise RefusedError(converted.reason, converted.detail)
    if converted.sheets:
        yield from _read_sheets(path, converted.sheets, settings)
        return
    text = check_text(converted.text)
    if not text.strip():
        raise RefusedError("empty", "no text in it; if it is scanned, recognise its text first")
    refuse_fields(text)
    page = read_page(render_markdown(mend_text(text), html=False))
    title = converted.title or page.heading
    blocks = page.blocks
    if converted.pages:
        blocks = tuple(number_pages(page.text, blocks, converted.pages))
    yield Record(path, page.text, title, converted.language, blocks=blocks)


def _read_markup(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    ending = name_ending(path)
    text = decode_bytes(data, settings.fallback_encoding, html=ending in {".html", ".htm"})
    refuse_fields(text)
    yield _make_page(path, _MARKUP[ending](text))


def _read_wikitext(text: str) -> Markup:
    if find_spec("mwparserfromhell") is None:
        raise RefusedError("needs_extra", f"wikitext is read with an extra: {EXTRA}")
    return read_wikitext(text)


_MARKUP: Mapping[str, Callable[[str], Markup]] = {
    ".html": Markup,
    ".htm": Markup,
    ".ipynb": read_notebook,
    ".adoc": read_asciidoc,
    ".asciidoc": read_asciidoc,
    ".wiki": _read_wikitext,
}


def _read_jats(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    yield _make_page(path, read_jats(data))


def _read_data(
    path: str, data: bytes, settings: IngestSettings, parse: ParseData
) -> Iterator[Record | Refusal]:
    text = decode_bytes(data, settings.fallback_encoding)
    statements, left = parse(path, text, settings.language)
    for graph, table in write_statements(statements):
        source = f"{path}#{graph}" if graph else path
        place = f"{source}#statements{table.first}-{table.last}"
        yield Record(place, table.text, blocks=table.blocks)
    for reason, detail in left:
        yield Refusal(f"{path}#{reason}", reason, detail)


def _read_mailbox(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    for number, message in enumerate(split_mailbox(data), 1):
        for record in _read_mail(f"{path}#{number}", message, settings):
            if isinstance(record, Record) and "message-id" in record.metadata:
                identifier = record.metadata["message-id"].strip("<>")
                yield replace(record, source=f"{path}#{identifier}")
            else:
                yield record


def _read_mail(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    try:
        mail = read_mail(data)
        yield replace(_make_page(path, mail.page), metadata=mail.headers)
    except RefusedError as e:
        yield Refusal(path, e.reason, e.detail)
        return
    for name in mail.attached:
        yield Refusal(f"{path}#{name}", "attachment", f"{name!r} is attached: save it as a file")


def _make_page(path: str, page: Markup) -> Record:
    read = read_page(page.html)
    title = page.title or read.title or read.heading
    return Record(path, read.text, title, read.language, access=page.access, blocks=read.blocks)


def _read_jsonl(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    """The objects of the lines; the first with a text field decides that they are no table."""
    lines = _list_objects(path, decode_bytes(data, settings.fallback_encoding))
    columns: set[str] = set()
    head: list[tuple[int, Mapping[str, object]] | Refusal] = []
    for row in lines:
        head.append(row)
        columns.update(() if isinstance(row, Refusal) else row[1])
        if not columns.isdisjoint(settings.text_fields or TEXT_FIELDS):
            break
    yield from _read_rows(path, columns, chain(head, lines), settings)


def _list_objects(path: str, text: str) -> Iterator[tuple[int, Mapping[str, object]] | Refusal]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}#line{number}"
        try:
            row = json.loads(line, object_pairs_hook=_make_object)
        except (ValueError, RecursionError) as e:
            detail = "nested too deep" if isinstance(e, RecursionError) else str(e)
            yield Refusal(place, "bad_json", f"line {number}: {detail}")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            detail = f"line {number} holds {type(row).__name__}, not an object"
            yield Refusal(place, "bad_record", detail)


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a repeated key is refused, because its first value would be lost."""
    repeated = _find_repeated([name for name, _ in pairs])
    if repeated is not None:
        raise ValueError(f"the key {repeated!r} comes twice in one object")
    return dict(pairs)


def _find_repeated(names: Sequence[str]) -> str | None:
    """The first name that is repeated; None if all are distinct."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _read_json(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    text = decode_bytes(data, settings.fallback_encoding)
    try:
        content = json.loads(text, object_pairs_hook=_make_object)
    except (ValueError, RecursionError) as e:
        detail = "nested too deep" if isinstance(e, RecursionError) else str(e)
        raise RefusedError("bad_json", detail) from e
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        is_record = len(lists) != 1 or not lists[0] or not isinstance(lists[0][0], dict)
        above = {} if is_record else {n: v for n, v in content.items() if v is not lists[0]}
        if read_labels(above):
            raise RefusedError("bad_access", f"{FIELD!r} stands above the rows: write it in each")
        content = [content] if is_record else lists[0]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise RefusedError("bad_json", "neither an object nor an array of objects")
    columns = {name for row in content for name in row}
    yield from _read_rows(path, columns, enumerate(content, 1), settings)


def _read_csv(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    csv.field_size_limit(2**31 - 1)
    text = decode_bytes(data, settings.fallback_encoding)
    delimiter = "\t" if name_ending(path) == ".tsv" else _find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)

    def list_rows() -> Iterator[tuple[int, Sequence[str]] | Refusal]:
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as e:
            line = reader.line_num
            yield Refusal(f"{path}#line{line}", "bad_csv", f"line {line}: {e}; the rest is unread")

    yield from _read_grid(path, "#line", list_rows(), settings)


def _find_delimiter(text: str) -> str:
    """The comma, unless the header has none and the first lines agree in another delimiter.

    Raises:
        RefusedError: `bad_csv`; several delimiters are possible.
    """
    lines = [line for line in text[:_HEAD].split("\n")[:_SNIFFED] if line.strip()]
    if not lines or "," in lines[0]:
        return ","
    fitting = []
    for delimiter in ";\t|":
        rows = list(csv.reader(lines, delimiter=delimiter))
        if delimiter in lines[0] and len({len(row) for row in rows}) == 1:
            fitting.append(delimiter)
    if len(fitting) > 1:
        raise RefusedError("bad_csv", f"cells may end at any of {fitting!r}: use one of them")
    return fitting[0] if fitting else ","


_HEAD, _SNIFFED = 100_000, 20
"""Characters and lines of a file from which the delimiter is detected."""


def _read_sheets(
    path: str, sheets: Sequence[Sheet], settings: IngestSettings
) -> Iterator[Record | Refusal]:
    for sheet in sheets:
        place = f"{path}#{sheet.name}"
        if sheet.is_hidden:
            yield Refusal(place, "hidden_sheet", f"the sheet {sheet.name!r} is hidden")
        else:
            yield from _read_grid(place, "!", enumerate(sheet.rows, 1), settings)


def _read_grid(
    path: str,
    mark: str,
    given: Iterable[tuple[int, Sequence[str]] | Refusal],
    settings: IngestSettings,
) -> Iterator[Record | Refusal]:
    """The rows below the header, the first row of several cells; `mark` precedes row numbers."""
    left = (row for row in given if isinstance(row, Refusal) or any(row[1]))
    head = list(islice(left, _SNIFFED))
    widest = max((len(row[1]) for row in head if not isinstance(row, Refusal)), default=1)
    columns: list[str] = []
    while head and not columns:
        row = head.pop(0)
        if isinstance(row, Refusal):
            yield row
        elif sum(map(bool, row[1])) < min(2, widest) and head:
            above = " ".join(row[1]).strip()
            refuse_fields(above.lstrip("#%/ "), row[0] - 1)
            yield Refusal(f"{path}{mark}{row[0]}", "above_header", above)
        else:
            columns = name_columns(row[1])
    repeated = _find_repeated(columns)
    if repeated is not None:
        detail = f"the header has the column {repeated!r} twice"
        yield Refusal(path, "bad_header", detail)
        return

    def list_rows() -> Iterator[tuple[int, Mapping[str, object]] | Refusal]:
        for row in chain(head, left):
            if isinstance(row, Refusal):
                yield row
                continue
            number, cells = row
            place = f"{path}{mark}{number}"
            if len(cells) > len(columns) and any(cells[len(columns) :]):
                yield Refusal(place, "bad_record", f"line {number} has more cells than the header")
            elif FIELD in columns[len(cells) :]:
                detail = f"line {number} ends before the column 'access'"
                yield Refusal(place, "bad_access", detail)
            else:
                yield number, dict(zip(columns, cells, strict=False))

    yield from _read_rows(path, columns, list_rows(), settings)


def _read_rows(
    path: str,
    columns: Collection[str],
    rows: Iterable[tuple[int, Mapping[str, object]] | Refusal],
    settings: IngestSettings,
) -> Iterator[Record | Refusal]:
    """A record per row where a column is a text field; else the rows as tables."""
    if not {*columns}.isdisjoint(settings.text_fields or TEXT_FIELDS):
        for row in rows:
            yield row if isinstance(row, Refusal) else _make_record(path, *row, settings)
        return
    refused: list[Refusal] = []
    nested: set[str] = set()

    def list_cells() -> Iterator[Row]:
        for row in rows:
            if isinstance(row, Refusal):
                refused.append(row)
                continue
            try:
                check_text(_as_text(dict(row[1])))
                labels = read_labels(row[1])
                cells, left = read_cells({n: v for n, v in row[1].items() if n != FIELD})
                longest = max(cells, key=lambda name: len(cells[name]), default="")
                if longest and len(cells[longest]) > _LONGEST_CELL:
                    detail = f"{longest!r} is a text: name it in ingest.text_fields"
                    raise RefusedError("no_text_field", detail)
                refused.extend(
                    Refusal(f"{path}#{name}", "nested_value", "objects in lists are no cells")
                    for name in left
                    if name not in nested
                )
                nested.update(left)
                yield make_row(row[0], cells, labels, settings.columns)
            except RefusedError as e:
                detail = f"line {row[0]}: {e.detail}"
                refused.append(Refusal(f"{path}#line{row[0]}", e.reason, detail))

    title = _name_table(path)
    for table in write_tables(list_cells(), settings.columns):
        source = f"{path}#rows{table.first}-{table.last}"
        yield Record(source, table.text, title, access=table.access, blocks=table.blocks)
    yield from refused


def _name_table(path: str) -> str | None:
    """What the rows of a file count, by its name or its sheet's: "Costs by year"; else None."""
    file, _, sheet = path.partition("#")
    words = re.sub(r"[-_\s]+", " ", sheet or PurePosixPath(file).stem)
    counts = re.fullmatch(r"[A-Za-z ]+ by [A-Za-z ]+", words)
    return words[0].upper() + words[1:] if counts else None


_LONGEST_CELL = 1000
"""Characters; what is longer is a text."""


def _read_parquet(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record | Refusal]:
    try:
        file = open_table(data)
        repeated = _find_repeated(file.schema_arrow.names)
        if repeated is not None:
            raise RefusedError("bad_parquet", f"the file has the column {repeated!r} twice")
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        raise RefusedError("bad_parquet", str(e)) from e
    try:
        rows = table.cast(pa.schema([field.with_type(_hold(field.type)) for field in table.schema]))
        rows = rows.to_pylist()
    except UnicodeDecodeError as e:
        raise RefusedError("bad_parquet", str(e)) from e
    except _UNHELD:
        yield from _read_rows(path, table.column_names, _list_parquet_rows(path, table), settings)
        return
    yield from _read_rows(path, table.column_names, enumerate(rows, 1), settings)


_UNHELD = (ValueError, OverflowError, pa.ArrowException)
"""Errors of Arrow at a value that Python cannot represent: fractions of a microsecond, years beyond
9999, durations of millions of years, unknown time zones."""


def _hold(kind: pa.DataType) -> pa.DataType:
    """The type in microseconds: Arrow converts nanoseconds to objects of pandas if installed."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_hold(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        wrap = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return wrap(kind.value_field.with_type(_hold(kind.value_type)))
    return kind


def _list_parquet_rows(
    path: str, table: pa.Table
) -> Iterator[tuple[int, dict[str, object]] | Refusal]:
    """Reads each row by itself; rows with a value that Python cannot represent are refused."""
    for number in range(table.num_rows):
        row = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            try:
                row[name] = column.slice(number, 1).cast(_hold(column.type))[0].as_py()
            except _UNHELD as e:
                detail = f"row {number + 1}: the {column.type} in column {name!r}: {e}"
                yield Refusal(f"{path}#line{number + 1}", "bad_record", detail)
                break
        else:
            yield number + 1, row


def _make_record(
    path: str, number: int, row: Mapping[str, object], settings: IngestSettings
) -> Record | Refusal:
    """A record from a row of named fields; other fields become metadata.

    Without an id field the source is named by the row's content, so that inserting a row
    does not rename those below it. `number` names a row that has no valid name.
    """
    try:
        check_text(_as_text(dict(row)))
        # A text may be JSON with any fields.
        texts = [n for n in _name_texts(settings, row) if isinstance(row.get(n), str)]
        access = read_labels({n: value for n, value in row.items() if n not in texts})
    except RefusedError as e:
        return Refusal(f"{path}#line{number}", e.reason, f"line {number}: {e.detail}")
    fields = {n: value for n, value in row.items() if value is not None and n != FIELD}
    identifier = _take(fields, settings.id_fields)
    plain = {name: _as_text(value) for name, value in fields.items()}
    source = f"{path}#{identifier or content_id('row', plain)}"
    names = _name_texts(settings, fields)
    if not names:
        wanted = " or ".join(settings.text_fields or TEXT_FIELDS)
        detail = f"no field {wanted}; it has {', '.join(sorted(row))}"
        return Refusal(source, "no_text_field", f"{detail}. Set ingest.text_fields")
    try:
        text = "\n\n".join(_read_paragraphs(name, fields.pop(name)) for name in names)
    except RefusedError as e:
        return Refusal(source, e.reason, e.detail)
    return replace(_fill_record(source, text, fields, settings), access=access)


def _name_texts(settings: IngestSettings, row: Mapping[str, object]) -> list[str]:
    """The fields with a row's text: all that the settings name, else the first usual one."""
    named = [name for name in settings.text_fields or TEXT_FIELDS if row.get(name) is not None]
    return named if settings.text_fields else named[:1]


def _read_paragraphs(name: str, value: object) -> str:
    """The text of a field; the texts of a list are paragraphs.

    Raises:
        RefusedError: `bad_record`; the value is neither a text nor a list of texts.
    """
    given = value if isinstance(value, list | tuple) else [value]
    parts = [part for part in given if isinstance(part, str)]
    if len(parts) < len(given):
        detail = f"the field {name!r} holds {_as_text(value)[:100]}, which is no text"
        raise RefusedError("bad_record", f"{detail}: name fields of texts in ingest.text_fields")
    return "\n\n".join(_unquote(part) for part in parts if part.strip())


def _unquote(text: str) -> str:
    """The text of a field that is quoted as in CSV, with doubled quotation marks."""
    if '""' in text and (quoted := _QUOTED.fullmatch(text)):
        return quoted[1].replace('""', '"')
    return text


_QUOTED = re.compile(r'\s*"((?:[^"]|"")*+)"?\s*')


def _take(fields: dict[str, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in fields:
            return _as_text(fields.pop(name))
    return None


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except RecursionError as e:  # a value that can be parsed may be too deep to be written
        raise RefusedError("bad_json", "nested too deep") from e


_READERS: Mapping[str, Reader] = {
    ".txt": _read_text,
    ".md": _read_markdown,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".eml": _read_mail,
    ".mbox": _read_mailbox,
    ".xml": _read_jats,
    **dict.fromkeys(_MARKUP, _read_markup),
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}
