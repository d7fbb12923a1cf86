"""Files that a library converts to Markdown: their formats, and the process that converts them.

kreuzberg and calamine read untrusted bytes in native code, so in a child process with limits.
"""

import io
import json
import re
import resource
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kpyramid.documents.blocks import list_letters
from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.tables import write_cell

CONVERTED: Mapping[str, str] = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".pdf": "application/pdf",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rst": "text/x-rst",
    ".tex": "application/x-latex",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Endings of the files that are converted, with their media types."""
CONVERTER = "kreuzberg"
EXTRA = "pip install 'kpyramid[files]'"


class Sheet(NamedTuple):
    """A sheet of a workbook: its cells as texts, formulas by the values that are stored."""

    name: str
    is_hidden: bool
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Converted:
    """A file as Markdown with the title and language that it states, or the reason of a failure.

    A workbook has `sheets` instead. `pages`: the letters and digits of each page or slide.
    """

    text: str = ""
    title: str | None = None
    language: str | None = None
    reason: str | None = None
    detail: str = ""
    sheets: Sequence[Sheet] = ()
    pages: Sequence[str] = ()


Convert = Callable[[Sequence[SourceFile], int], Mapping[str, Converted]]
"""Converts files: the results by path; files larger than the second argument are not converted."""


_FEW_ROWS = 5
"""A table of a PDF with at most so many rows is read as a paragraph: of 40 pages with three lines
of prose 21 were converted to tables, with five lines 1, with six and more none."""


_ITEM = re.compile(rb"([ ]*)((?:[-*+]|#\.|\d{1,3}[.)]|\(?\w\))[ ]+)\S")
_ROLE = re.compile(
    rb"(?::(pep|rfc|[a-z][a-z:+-]{0,30}):)?`([^`<\n]{1,200}?)\s*(?:<[^>`\n]{0,200}>)?`(?(1)|__?)"
    rb"|(?<=\w)_(?=[\s.,;:)]|$)"
)


def _read_role(role: re.Match[bytes]) -> bytes:
    number = (role[1] or b"") in {b"pep", b"rfc"} and (role[2] or b"").isdigit()
    return role[1].upper() + b" " + role[2] if number else role[2] or b""


_FIELDS = re.compile(rb"\A(?:[A-Za-z][\w-]{0,30}: .*\n(?:[ \t]+\S.*\n){0,9}){2,40}(?=\n)")
"""Fields at the head of a document, "Title: X", one per line."""
_PAIRS = re.compile(rb"(?<=\n\n)(?:(?:\*\*)?[A-Z][\w -]{0,40}:(?:\*\*)? .*\n){2,40}(?=\n)")
"""Lines of keys and values between blank lines."""


_ROWS = rb"(?:(?![ \t]*\n).+\n)+?"
_COLUMNS = re.compile(
    rb"^(=+(?: +=+)+) *\n" + _ROWS + rb"\1 *\n(?:" + _ROWS + rb"\1 *\n)?", re.MULTILINE
)
"""A simple table: rows between lines that mark the columns."""


def _widen_columns(table: re.Match[bytes]) -> bytes:
    """The table with columns as wide as their cells in bytes, by which the converter cuts them.

    A table with cells over several columns stays as it is.
    """
    starts = [mark.start() for mark in re.finditer(rb"=+", table[1])]
    lines = table[0].decode(errors="replace").splitlines()
    if any(line[at - 1 : at].strip() for line in lines for at in starts[1:]):
        return table[0]  # a cell spans columns
    rows = [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for line in lines
    ]
    widths = [max(len(cell.encode()) for cell in column) for column in zip(*rows, strict=True)]

    def pad(cell: str, width: int) -> str:
        words = cell[:1] * width if cell[:1] == "=" else cell
        return words + " " * (width - len(words.encode()))

    return "".join("  ".join(map(pad, row, widths)) + "\n" for row in rows).encode()


def mend_rst(source: bytes) -> bytes:
    """RST with each item and field on one line, and roles and links replaced by their text.

    Blank lines separate the fields, and the columns of tables are wide enough.
    """
    lines: list[bytes] = []
    indent = 0
    source = source.replace(b"\r\n", b"\n")
    if head := _FIELDS.match(source):
        fields = re.sub(rb"\n[ \t]+", b" ", head[0]).replace(b"\n", b"\n\n")
        source = fields + source[head.end() :]
    source = _COLUMNS.sub(_widen_columns, source)
    source = _PAIRS.sub(lambda pairs: pairs[0].replace(b"\n", b"\n\n"), source)
    for line in _ROLE.sub(_read_role, source).split(b"\n"):
        item = _ITEM.match(line)
        if item is None and indent and line[:indent].isspace() and line[indent:].strip():
            lines[-1] += b" " + line.strip()
        else:
            indent = len(item[1] + item[2]) if item else 0
            lines.append(line)
    return b"\n".join(lines)


def serve(memory_bytes: int) -> None:
    """Converts the files on standard input, one after the other, until it ends.

    A file is a line of JSON with `ending` and `size`, then its bytes; the reply on standard output
    is a line of JSON with the fields of `Converted`.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        data = sys.stdin.buffer.read(asked["size"])
        try:
            is_workbook = asked["ending"] == ".xlsx"
            reply = _read_workbook(data) if is_workbook else _convert(asked["ending"], data)
        except ModuleNotFoundError as e:
            reply = {"reason": "needs_extra", "detail": f"{e.name} is missing: {EXTRA}"}
        except MemoryError:
            reply = {"reason": "too_large", "detail": "it takes more memory than a file may"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _convert(ending: str, data: bytes) -> dict[str, Any]:
    from kreuzberg import (
        ExtractionConfig,
        KreuzbergError,
        PageConfig,
        PdfConfig,
        extract_bytes_sync,
    )

    options: dict[str, Any] = {
        "use_cache": False,
        "disable_ocr": True,  # its models would be fetched
        "enable_quality_processing": False,
        "output_format": "markdown",
        "pages": PageConfig(
            extract_pages=True, insert_page_markers=True, marker_format=f"\n\n{_PAGE}\n\n"
        ),
        "pdf_options": PdfConfig(extract_images=False, extract_metadata=True),
    }
    if ending == ".tex":
        data = _clean_tex(data.decode(errors="replace")).encode()
    elif ending == ".rst":
        data = mend_rst(data)
    try:
        result = extract_bytes_sync(data, CONVERTED[ending], config=ExtractionConfig(**options))
    except KreuzbergError as e:
        return _fail(e)
    first, *slides = result.content.split(_PAGE)  # a page of PDF is given by itself
    stated, text = result.metadata, "".join([first, *slides])
    pages = [page["content"] for page in result.pages or ()] or slides
    for table in result.tables:
        if len(table.cells) <= _FEW_ROWS and ending == ".pdf":
            words = " ".join(cell for row in table.cells for cell in row if cell)
            text = text.replace(table.markdown.strip(), words)
    if ending == ".tex":
        text = _TEX_FIELDS.sub("", text)
    return {
        "text": text,
        "title": stated.get("title") or None,
        "language": stated.get("language") or None,
        "pages": [*map(list_letters, pages)],
    }


_PAGE = "\ue000page\ue001"
"""Marks the beginning of a slide; no text has these characters."""


def _fail(error: Exception) -> dict[str, Any]:
    return {"reason": "unconvertible", "detail": " ".join(str(error).split())[:300]}


def _read_workbook(data: bytes) -> dict[str, Any]:
    """The sheets; the value of a merged cell is repeated in each of its rows."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = []
        for stated in book.sheets_metadata:
            if stated.typ != SheetTypeEnum.WorkSheet:
                continue
            is_hidden = stated.visible != SheetVisibleEnum.Visible
            sheet = book.get_sheet_by_name(stated.name)
            rows = [] if is_hidden else sheet.to_python(skip_empty_area=False)
            for (top, left), (bottom, _) in (sheet.merged_cell_ranges or ()) if rows else ():
                for row in rows[top + 1 : bottom + 1]:
                    row[left] = rows[top][left]
            cells = [[write_cell(value) for value in row] for row in rows]
            sheets.append(Sheet(stated.name, is_hidden, cells))
    except CalamineError as e:
        return _fail(e)
    return {"sheets": sheets}


_TEX_COMMENT = re.compile(r"(?<!\\)%.*")
_TEX_UNREAD = re.compile(
    r"~?\\(?:cite\w*|label|eqref|pageref|bibliography\w*)\*?(?:\[[^\]\n]{0,80}\]){0,2}\{[^{}\n]{0,400}\}"
)
_TEX_ACCENT = re.compile(r"\\([`'^\"~=.uvHck])(?:\{([A-Za-z])\}|([A-Za-z]))")
_TEX_MARKS = dict(
    zip(
        "`'^\"~=.uvHck",
        "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328",
        strict=True,
    )
)
_TEX_FIELDS = re.compile(r"\A(?:\*\*(?:title|author|date)\*\*: .*\n+)+")


def _clean_tex(text: str) -> str:
    """A text of TeX without comments and references, its accents as letters."""

    def accent(match: re.Match[str]) -> str:
        mark, letter = match[1], match[2] or match[3]
        if match[3] and mark.isalpha():
            return match[0]  # the beginning of a command
        return unicodedata.normalize("NFC", letter + _TEX_MARKS[mark])

    plain = _TEX_UNREAD.sub("", _TEX_COMMENT.sub("", text))
    return _TEX_ACCENT.sub(accent, plain).replace("~", " ")
