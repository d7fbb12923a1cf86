"""File formats: bytes decoded, records read from each format, bad files and rows refused."""

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
from markdown_it import MarkdownIt

from kpyramid.documents.blocks import Block
from kpyramid.documents.conversion import CONVERTED, EXTRA, Converted
from kpyramid.documents.corpus import Corpus
from kpyramid.documents.labels import (
    FIELD,
    RefusedError,
    cut_front_matter,
    names_labels,
    read_labels,
    refuse_fields,
)
from kpyramid.errors import InputError
from kpyramid.keys import content_id
from kpyramid.settings import IngestSettings

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
"""Codecs of Python that no readable page is written in; browsers take such names for UTF-8 too."""
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
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _find_encoding(data: bytes, *, html: bool) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    declared = _DECLARED.search(data[:4096]) if html else None
    name = declared[1].decode("ascii") if declared else "utf-8"
    return "utf-8" if _find_codec(name).startswith(_NO_CHARSET) else name


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
            return data.decode(fallback)
        except (UnicodeError, LookupError) as e:
            raise RefusedError("undecodable", f"not UTF-8, and as {fallback}: {e}") from e
    where = f" at byte {cause.start}" if isinstance(cause, UnicodeDecodeError) else ""
    raise RefusedError(
        "undecodable",
        f"not valid {getattr(cause, 'encoding', 'text')}{where}; convert it to UTF-8, or name "
        "its encoding in ingest.fallback_encoding",
    ) from cause


# HTML to its visible text.

_BLOCKS = frozenset(
    (
        "address article aside blockquote br dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6 "
        "header hr li main nav ol p pre section table td th tr ul"
    ).split()
)
_UNREAD = frozenset("script style template noscript head".split())
_EMPTY = frozenset(
    (
        "area base basefont bgsound br col command embed frame hr image img input isindex keygen "
        "link menuitem meta nextid param source spacer track wbr"
    ).split()
)
"""Elements that have no content and need no end tag."""
_HEAD = frozenset("base link meta noscript script style template title".split())
"""What may stand in a head; text or another tag ends it, for its end tag may be left out."""
_FURNITURE = frozenset("aside button dialog nav select".split())
_FURNITURE_OF_PAGES = frozenset("footer header".split())
"""Furniture too where it is the page's own, not that of an article or of a section."""
_FURNITURE_ROLES = frozenset("banner complementary contentinfo navigation search".split())
_CONTENT = frozenset("article blockquote main section".split())
_STATING = frozenset("body head html meta".split())
"""Elements that say something of the whole page."""
_NAMING = frozenset("http-equiv itemprop name property".split())


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, its first `<title>` and `<h1>`, and the language it declares."""

    text: str
    title: str | None
    heading: str | None
    language: str | None


def read_page(source: str) -> Page:
    """The visible text: inline tags vanish, blocks become lines, runs of white space one space.

    Of a page that marks its `<main>` part, or its navigation, headers and footers, only the main
    text; all of it where nothing else is left, or where a tag of such a part is never closed.
    """
    reader = _PageReader()
    # Behind the last `>` no tag can end; the parser would search for it at every `<` there.
    end = source.rfind(">") + 1
    reader.feed(source[:end])
    reader.close()
    reader.handle_data(unescape(source[end:]))
    reader.close_all()
    return Page(
        "\n".join(reader.choose_lines()),
        _join_words(reader.captions.get("title")),
        _join_words(reader.captions.get("h1")),
        reader.language,
    )


def _join_words(parts: list[str] | None) -> str | None:
    return None if parts is None else " ".join("".join(parts).split())


def _refuse_labels(tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
    """Passes when an element neither has an attribute nor is a field that is nearly `access`.

    Raises:
        RefusedError: `bad_access`; a page has no field for labels.
    """
    for name, value in attrs:
        field = (value or "") if name in _NAMING else name.removeprefix("data-")
        if names_labels(field):
            detail = (
                f"its <{tag}> has {field!r}: a page has no labels; write a row of .jsonl for it"
            )
            raise RefusedError("bad_access", detail)


class _PageReader(HTMLParser):
    """Collects lines in one pass without a tree: time and memory grow with the page.

    A tree would cost a kilobyte per tag, and Beautiful Soup searches all `<br>` so far at each end
    tag. Elements nest as their tags say: an end tag closes all that was opened since its start.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[tuple[str, bool, bool]] = []
        self.captions: dict[str, list[str]] = {}
        self.language: str | None = None
        self._line: list[str] = []
        self._open: list[str] = []
        self._is_furniture: list[bool] = []
        self._furniture, self._is_torn = 0, False
        self._count: Counter[str] = Counter()
        self._unread = 0
        self._caption: list[str] | None = None
        self._caption_depth = 0
        self._has_root = False
        self._endless: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HEAD:
            self._leave_head()
        if tag == "html" and not self._has_root:
            self._has_root = True
            self.language = dict(attrs).get("lang")
        if tag in _STATING:
            _refuse_labels(tag, attrs)
        if tag in _BLOCKS:
            self._end_line()
        if tag in _EMPTY:
            return
        roles = dict(attrs).get("role") or ""
        aside = tag in _FURNITURE or roles.lower() in _FURNITURE_ROLES
        if tag in _FURNITURE_OF_PAGES:
            aside = not any(self._count[content] for content in _CONTENT)
        self._open.append(tag)
        self._is_furniture.append(aside)
        self._furniture += aside
        self._count[tag] += 1
        self._unread += tag in _UNREAD
        if tag in {"title", "h1"} and tag not in self.captions and self._caption is None:
            self._caption = self.captions[tag] = []
            self._caption_depth = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        # counted, because a search for a tag that is not open would go through all open ones
        if self._count[tag]:
            while self._open[-1] != tag:
                self._is_torn |= self._is_furniture[-1]
                self._close_last()
            self._close_last()

    def handle_data(self, data: str) -> None:
        if not data.isspace():
            self._leave_head()
        if self._caption is not None:
            self._caption.append(data)
        if not self._unread:
            self._line.append(data)

    def parse_comment(self, i: int, report: bool = True) -> int:
        """The comment's end; once one has none, those after it are not searched for theirs."""
        end = -1 if "comment" in self._endless else super().parse_comment(i, report)
        if end < 0:
            self._endless.add("comment")
        return end

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """The end of `<![…]>`; where the parser would stop at an odd one, it is a comment."""
        try:
            end = -1 if "section" in self._endless else super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)
        if end < 0:
            self._endless.add("section")
        return end

    def close_all(self) -> None:
        """Close what the page left open."""
        self._is_torn |= any(self._is_furniture)
        while self._open:
            self._close_last()
        self._end_line()

    def choose_lines(self) -> list[str]:
        """The lines of the main text."""
        kept = [] if self._is_torn else [line for line in self._lines if not line[2]]
        main = [line for line in kept if line[1]]
        return [text for text, _, _ in main or kept or self._lines]

    def _leave_head(self) -> None:
        if self._open and self._open[-1] == "head":
            self._close_last()

    def _close_last(self) -> str:
        tag = self._open[-1]
        if tag in _BLOCKS:
            self._end_line()
        if self._caption is not None and len(self._open) == self._caption_depth:
            self._caption = None
        self._open.pop()
        self._furniture -= self._is_furniture.pop()
        self._count[tag] -= 1
        self._unread -= tag in _UNREAD
        return tag

    def _end_line(self) -> None:
        if self._unread:
            return  # nothing in there can be seen, so it does not part the text around it
        text = "".join(self._line)
        self._line.clear()
        if self._caption is not None:
            self._caption.append("\n")
        place = (self._count["main"] > 0, self._furniture > 0)
        if self._count["pre"]:
            self._lines += [(line.strip(), *place) for line in text.splitlines() if line.strip()]
        elif words := text.split():
            self._lines.append((" ".join(words), *place))


# Records of files: one reader per format.

_DEEPEST = 100
"""Levels of Markdown's quotes and lists; two to three frames of Python's thousand go to each."""
_CONTAINERS = {"blockquote_open", "list_item_open"}
_LANGUAGE, _LICENCE = ("language", "lang"), ("licence", "license")
_ONE_DOCUMENT = {".txt", ".md", ".html", ".htm", *CONVERTED}
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
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One file or record that cannot become a document."""

    source: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Files or records of one ending that were refused for one reason, each with its detail."""

    reason: str
    ending: str
    refused: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        named = ", ".join(source for source, _ in self.refused[:_MOST_NAMED])
        more = f" and {rest} more" if (rest := len(self.refused) - _MOST_NAMED) > 0 else ""
        reason = self.reason.replace("_", " ")
        kind = f"{len(self.refused)} {self.ending or 'without ending'}, {reason}"
        return f"{kind}: {named}{more}. {self.refused[0][1]}"


_MOST_NAMED = 3


def group_unread(refusals: Iterable[Refusal]) -> list[Unread]:
    """What was refused by reason and ending, the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one in refusals:
        kind = one.reason, name_ending(one.source.partition("#")[0])
        groups.setdefault(kind, []).append((one.source, one.detail))
    found = [Unread(*kind, tuple(sorted(rows))) for kind, rows in sorted(groups.items())]
    return sorted(found, key=lambda one: -len(one.refused))


def require_readable(corpus: Corpus, *, converts: bool) -> None:
    """Passes when there is a file that may be read, by its name.

    Raises:
        InputError: there is none; says of each kind what to do.
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


def name_ending(path: str) -> str:
    """The ending of a file's name, such as `.pdf`, in lower case; empty without one."""
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2].lower() if "." in name else ""


def refuse_format(path: str, *, converts: bool) -> Refusal | None:
    """Why a file of that name cannot be read whatever it holds; None where it may be.

    `converts`: whether the library that converts files is installed.
    """
    ending = name_ending(path)
    if ending in CONVERTED:
        detail = f"{ending} files are read with an extra: {EXTRA}"
        return None if converts else Refusal(path, "needs_extra", detail)
    if ending in _READERS:
        return None
    known = " ".join(sorted([*_READERS, *CONVERTED]))
    advice = _ADVICE.get(ending, "convert it, or move it out of the corpus")
    detail = f"ending {ending or 'none'}: {advice}. Read are {known}"
    return Refusal(path, "unknown_format", detail)


_ADVICE = {
    **dict.fromkeys(
        (".zip", ".tar", ".gz", ".tgz", ".zst", ".bz2", ".xz", ".7z"), "unpack it in the corpus"
    ),
    **dict.fromkeys((".doc", ".odt", ".rtf"), "save it as .docx"),
    ".ppt": "save it as .pptx",
    ".json": "write an object a line and name it .jsonl",
    **dict.fromkeys((".xls", ".xlsx", ".ods", ".tsv"), "save it as .csv"),
}


def read_records(
    path: str,
    data: bytes,
    settings: IngestSettings,
    taken: dict[str, int] | None = None,
    converted: Converted | None = None,
) -> Iterator[Record | Refusal]:
    """The records of one file, the format told by its ending; each has text or is a refusal.

    `taken` holds the sources that the corpus has so far; new ones are added, none comes twice.
    `converted`: what became of a file that is not read as it is.
    """
    ending = name_ending(path)
    refused = refuse_format(path, converts=converted is not None)
    if refused is not None:
        yield refused
        return
    taken = {} if taken is None else taken
    try:
        if ending in _ONE_DOCUMENT:
            _check_size(len(data), settings)
        if ending == ".rst":
            refuse_fields(data.decode(errors="replace"))
        records = (
            _READERS[ending](path, data, settings)
            if converted is None
            else _read_converted(path, converted)
        )
        for record in records:
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
    text = decode_bytes(data, settings.fallback_encoding)
    refuse_fields(text)
    yield Record(path, text)


def _read_markdown(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    text, row = cut_front_matter(decode_bytes(data, settings.fallback_encoding))
    page = read_page(_render_markdown(text))
    fields = {n: value for n, value in row.items() if value and n != FIELD}
    title = _take(fields, settings.title_fields) or page.heading
    language, licence = _take(fields, _LANGUAGE), _take(fields, _LICENCE)
    metadata = {name: _as_text(fields[name]) for name in sorted(fields)}
    yield Record(path, page.text, title, language, licence, read_labels(row), metadata)


def _read_converted(path: str, converted: Converted) -> Iterator[Record]:
    if converted.reason is not None:
        raise RefusedError(converted.reason, converted.detail)
    text = check_text(converted.text)
    if not text.strip():
        raise RefusedError("empty", "no text in it; if it is scanned, recognise its text first")
    refuse_fields(text)
    page = read_page(_render_markdown(text, html=False))
    yield Record(path, page.text, converted.title or page.heading, converted.language)


def _render_markdown(text: str, *, html: bool = True) -> str:
    """The HTML of a Markdown text; `html`: whether tags in it are tags, not words.

    Raises:
        RefusedError: `too_deep`; the parser drops what lies below its limit without a word.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST, "html": html})
    if not html:
        parser.enable("table")
    notes: dict[str, object] = {}
    tokens = parser.parse(text, notes)
    for token in tokens:
        if token.type in _CONTAINERS and token.level + 1 >= _DEEPEST:
            line = token.map[0] + 1 if token.map else 1
            detail = f"quotes and lists nested deeper than {_DEEPEST} levels at line {line}"
            raise RefusedError("too_deep", detail)
    return str(parser.renderer.render(tokens, parser.options, notes))


def _read_html(path: str, data: bytes, settings: IngestSettings) -> Iterator[Record]:
    text = decode_bytes(data, settings.fallback_encoding, html=True)
    refuse_fields(text)
    page = read_page(text)
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
            elif FIELD in row and row[FIELD] is None:
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
        yield from _read_parquet_rows(path, table, settings)
        return
    for number, row in enumerate(rows, 1):
        yield _make_record(path, number, row, settings)


_UNHELD = (ValueError, OverflowError, pa.ArrowException)
"""What Arrow raises at a value that Python has no object for: parts of a microsecond, years beyond
9999, durations of millions of years, unknown time zones."""


def _hold(kind: pa.DataType) -> pa.DataType:
    """The type in microseconds: of nanoseconds Arrow makes objects of pandas, where that is."""
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


def _read_parquet_rows(
    path: str, table: pa.Table, settings: IngestSettings
) -> Iterator[Record | Refusal]:
    """Each row by itself: those with a value that Python cannot hold are refused, others read."""
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
            yield _make_record(path, number + 1, row, settings)


def _make_record(
    path: str, number: int, row: Mapping[str, object], settings: IngestSettings
) -> Record | Refusal:
    """A record from a row of named fields; what has no place of its own is metadata.

    Without an id field the source is named by the row's content, so that inserting a row
    above does not rename the ones below. `number` places a row that has no valid name.
    """
    try:
        check_text(_as_text(dict(row)))
        # A text may be JSON that says anything.
        texts = [n for n in settings.text_fields if isinstance(row.get(n), str)]
        access = read_labels({n: value for n, value in row.items() if n not in texts})
    except RefusedError as e:
        return Refusal(f"{path}#line{number}", e.reason, f"line {number}: {e.detail}")
    fields = {n: value for n, value in row.items() if value is not None and n != FIELD}
    identifier = _take(fields, settings.id_fields)
    plain = {name: _as_text(value) for name, value in fields.items()}
    source = f"{path}#{identifier or content_id('row', plain)}"
    names = [name for name in settings.text_fields if name in fields]
    if not names:
        detail = f"no field {' or '.join(settings.text_fields)}; it has {', '.join(sorted(row))}"
        return Refusal(source, "no_text_field", f"{detail}. Set ingest.text_fields")
    text = _as_text(fields.pop(names[0]))
    title = _take(fields, settings.title_fields)
    language, licence = _take(fields, _LANGUAGE), _take(fields, _LICENCE)
    return Record(
        source,
        text,
        title,
        language,
        licence,
        access,
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
