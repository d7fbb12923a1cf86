"""Pages: the visible text of HTML and of Markdown, and its blocks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from html import unescape
from html.parser import HTMLParser
from itertools import takewhile

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from kpyramid.documents.blocks import PROSE, Block, Kind, classify_labels, is_sentence
from kpyramid.documents.cleaning import normalise_text
from kpyramid.documents.labels import RefusedError, names_labels
from kpyramid.documents.sentences import Span

# HTML to its visible text.

_HEADINGS = tuple(f"h{level}" for level in range(1, 7))
_BLOCKS = frozenset(
    (
        "address article aside blockquote caption dd div dl dt figcaption footer form header hr li "
        "main nav ol p pre section table td th tr ul"
    ).split()
).union(_HEADINGS)
_UNREAD = frozenset("script style svg template noscript head".split())
_UNSEEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.I)
_EMPTY = frozenset(
    (
        "area base basefont bgsound br col command embed frame hr image img input isindex keygen "
        "link menuitem meta nextid param source spacer track wbr"
    ).split()
)
"""Elements that have no content and need no end tag."""
_HEAD = frozenset("base link meta noscript script style template title".split())
"""Elements allowed in a head; text or another tag ends it, because its end tag is optional."""
_FURNITURE = frozenset("aside button dialog nav select".split())
_FURNITURE_OF_PAGES = frozenset("footer header".split())
"""Furniture where it belongs to the page, not to an article or a section."""
_FURNITURE_ROLES = frozenset("banner complementary contentinfo navigation search".split())
_CONTENT = frozenset("article blockquote main section".split())
_STATING = frozenset("body head html meta".split())
"""Elements that describe the whole page."""
_NAMING = frozenset("http-equiv itemprop name property".split())
_CODE, _STRONG = frozenset("code kbd pre samp tt".split()), frozenset("b strong".split())
_LISTS = frozenset("dl ol table ul".split())
_PARTS = {"li": "li", "dt": "dt", "dd": "dt", "tr": "tr", "td": "td", "th": "td"}
"""Parts of lists and tables: each ends where the next begins, because end tags are optional."""
_NOTES = re.compile(r"(?:^|[\s_-])(?:footnotes?|endnotes?|rearnotes?)(?:$|[\s_-])", re.I)
_BREAK = "\0"
"""Replaces `<br>` in an unfinished line; no page has this character."""
_CODE_START, _CODE_END = "\ufdd0", "\ufdd1"
"""Enclose inline code in an unfinished line; no text uses these noncharacters."""
_CODED = re.compile(f"[{_CODE_START}{_CODE_END}]")
_COLOURED = re.compile(rf"{_CODE_END}(\s*){_CODE_START}")
"""Between two parts of a code, each in a tag of its own."""
_NOTE_MARK = re.compile(
    r"\[[^\[\]]{1,40}\]|\(?(?:\d{1,3}|[a-z]|[ivx]{2,4}|[*†‡§¶#]+)"
    r"(?:\s?[,;–-]\s?(?:\d{1,3}|[a-z])){0,9}\)?|TM|SM"
)
_POWER = re.compile(r"[-−+]\d{1,2}|[02-9]|\d\d|[nkm]")
_BASE = re.compile(r"(?:^|[^\w.,])(?:10|2|[A-Za-z])$")
_UNIT = re.compile(r"(?:^|[^\w])[kcdhnμµ]?(?:m|ft|yd|mi|in|s)$")
_LONGEST_MARK = 40
_SQUARE = {"2": "²", "3": "³"}


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, its blocks, its `<title>`, its main heading, and its language."""

    text: str
    blocks: tuple[Block, ...]
    title: str | None
    heading: str | None
    language: str | None


def read_page(source: str) -> Page:
    """The visible text: inline tags are removed, runs of white space become one space.

    A blank line separates blocks, a line end the rows of a table, a tab their cells.
    Where a page marks its `<main>` part, or its navigation, headers and footers, only the main
    text is read; all of it where nothing is left, or where a tag of such a part is never closed.
    """
    reader = _PageReader()
    source = _CODED.sub("", source)
    # After the last `>` no tag can end; the parser would search for it at every `<` there.
    end = source.rfind(">") + 1
    reader.feed(source[:end])
    reader.close()
    reader.handle_data(unescape(source[end:]))
    reader.close_all()
    text, blocks = _join_lines(_label_lines(_join_terms(reader.choose_lines())))
    headings = [line for line in reader.lines if (line.kind, line.level) == ("heading", 1)]
    is_first = len(headings) == 1 or headings[:1] == reader.lines[:1]
    heading = headings[0].text if headings and is_first else None
    heading = _find_stated(reader.lines) or heading
    return Page(text, blocks, reader.title, heading, reader.language)


def _find_stated(lines: Sequence["_Line"]) -> str | None:
    """The value of a field `title` above all headings; None beside a `name`: it is a person's."""
    head = takewhile(lambda line: line.kind != "heading", lines)
    pairs = (line.text.partition(": ") for line in head if line.kind == "pair")
    stated = {key.casefold(): value for key, _, value in pairs}
    return None if "name" in stated else stated.get("title")


@dataclass(slots=True)
class _Line:
    """A future block; `lead`: its first words in bold; `is_term`: whether it is a `<dt>`."""

    text: str
    kind: Kind
    level: int
    is_main: bool
    is_furniture: bool
    lead: str = ""
    is_term: bool = False
    row: int = 0
    column: int = 0
    codes: tuple[Span, ...] = ()


def _join_terms(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Joins each `<dd>` to the `<dt>` before it, as `Key: value`, unless it is a sentence."""
    terms: list[_Line] = []
    key = ""
    for line in lines:
        if line.is_term:
            line.kind = "paragraph"
            terms.append(line)
            continue
        if terms:
            key = ", ".join(term.text.rstrip(" :") for term in terms)
        if line.kind != "pair" or is_sentence(line.text) or not 0 < len(key) <= _LONGEST_KEY:
            yield from terms
            line.kind = "paragraph" if line.kind == "pair" else line.kind
        else:
            line.text = f"{key}: {line.text}"
        terms.clear()
        yield line
    yield from terms


_LONGEST_KEY = 100
"""The most characters of a key, which is repeated before each of its values."""


def _label_lines(lines: Iterator[_Line]) -> list[_Line]:
    """The lines; paragraphs and items that are pairs or speakers' turns get that kind."""
    listed = list(lines)
    labelled = [line for line in listed if line.kind in {"item", "paragraph"}]
    given = ((line.text, bool(line.lead) and _is_label(line)) for line in labelled)
    for line, label in zip(labelled, classify_labels(given), strict=True):
        if label is not None:
            line.kind = label[0]
    return listed


def _is_label(line: _Line) -> bool:
    marks = (":", " — ", " – ", " - ") if line.kind == "item" else ":"
    return line.lead.endswith(":") or line.text.startswith(marks, len(line.lead))


def _join_lines(lines: Sequence[_Line]) -> tuple[str, tuple[Block, ...]]:
    """The text of lines, and the block of each."""
    parts: list[str] = []
    blocks: list[Block] = []
    position = 0
    for line in lines:
        if blocks:
            last = blocks[-1]
            in_table = last.kind == line.kind == "cell" and last.row <= line.row
            follows = line.column > last.column or line.row > last.row
            parted = "\n\n" if not (in_table and follows) else "\t\n"[line.row > last.row]
            parts.append(parted)
            position += len(parted)
        parts.append(line.text)
        end = position + len(line.text)
        blocks.append(Block(line.kind, position, end, line.level, line.row, line.column))
        for code in line.codes if line.kind in PROSE else ():
            blocks.append(Block("inline_code", position + code.start, position + code.end))
        position = end
    return "".join(parts), tuple(blocks)


def _refuse_labels(tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
    """Checks that no attribute or field of an element has a name that is nearly `access`.

    Raises:
        RefusedError: `bad_access`; one has, and a page has no field for labels.
    """
    for name, value in attrs:
        field = (value or "") if name in _NAMING else name.removeprefix("data-")
        if names_labels(field):
            detail = (
                f"its <{tag}> has {field!r}: a page has no labels; write a row of .jsonl for it"
            )
            raise RefusedError("bad_access", detail)


@dataclass(slots=True)
class _Cell:
    """A cell of a table, with the indices `first` to `end` of its lines."""

    row: int
    column: int
    is_header: bool
    first: int
    high: int
    end: int = -1


@dataclass(slots=True)
class _List:
    """An open list or table: the depths of its open parts, and the cells of a table."""

    parts: dict[str, int] = field(default_factory=dict)
    cells: list[_Cell] = field(default_factory=list)
    row: int = -1
    column: int = 0
    taken: dict[int, int] = field(default_factory=dict)
    """For each column that a cell of an earlier row spans, the row where the cell ends."""
    is_layout: bool = False

    def open_cell(self, attrs: dict[str, str | None], *, is_header: bool, line: int) -> None:
        """Places a cell in the next free column of the row."""
        self.row = max(self.row, 0)
        while self.taken.get(self.column, 0) > self.row:
            self.column += 1
        wide, high = (_read_span(attrs.get(name)) for name in ("colspan", "rowspan"))
        self.cells.append(_Cell(self.row, self.column, is_header, line, high))
        if high > 1:
            for column in range(self.column, min(self.column + wide, _MOST_REACHING)):
                self.taken[column] = self.row + high
        self.column += wide


_MOST_REACHING = 100
"""The columns in which cells may span rows; each row iterates over them."""
_LONGEST_REACHING = 100
"""The most characters of a cell that are repeated in the rows that it spans."""
_MOST_LINES, _MOST_LETTERS = 3, 600
"""A cell with more lines and letters is a part of a page whose layout is a table."""


def _read_span(value: str | None) -> int:
    return min(max(int(value), 1), 1000) if value and value.isdecimal() and len(value) < 9 else 1


class _PageReader(HTMLParser):
    """Collects lines in one pass without a tree: time and memory are linear in the page.

    A tree would cost a kilobyte per tag, and Beautiful Soup searches all `<br>` so far at each end
    tag. An end tag closes all elements that were opened since its start tag.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[_Line] = []
        self.title: str | None = None
        self.language: str | None = None
        self._line: list[str] = []
        self._lead: str | None = None
        self._is_code = True
        self._raised: int | None = None
        self._open: list[str] = []
        self._marks: list[tuple[bool, bool, bool]] = []
        self._furniture = self._unread = self._notes = self._coded = self._strong = 0
        self._is_torn = False
        self._count: Counter[str] = Counter()
        self._lists: list[_List] = []
        self._title: list[str] | None = None
        self._has_root = False
        self._endless: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HEAD:
            self._leave_head()
        named = dict(attrs)
        if tag == "html" and not self._has_root:
            self._has_root = True
            self.language = named.get("lang")
        if tag in _STATING:
            _refuse_labels(tag, attrs)
        if tag in _BLOCKS:
            self._end_line()
            if self._open and self._open[-1] == "p":  # its end tag may be left out
                self._close_last()
        if tag == "br" and not self._unread:
            self._line.append(_BREAK)
        if tag in _EMPTY:
            return
        if self._lists and tag in _PARTS:
            self._end_part(self._lists[-1], _PARTS[tag])
        role = (named.get("role") or "").lower()
        kinds = f"{role} {named.get('class') or ''} {named.get('epub:type') or ''}"
        note = _NOTES.search(kinds) is not None and tag in _BLOCKS
        aside = (tag in _FURNITURE and not note) or role in _FURNITURE_ROLES
        if tag in _FURNITURE_OF_PAGES:
            aside = not any(self._count[content] for content in _CONTENT)
        hidden = "hidden" in named or (named.get("aria-hidden") or "").lower() == "true"
        hidden |= bool(_UNSEEN.search(named.get("style") or ""))
        unseen = tag in _UNREAD or (hidden and tag not in _STATING)  # a script may show a page
        if tag == "title" and self.title is None and not self._count["svg"]:
            self._title = []
        self._open.append(tag)
        self._marks.append((aside, unseen, note))
        self._furniture += aside
        self._unread += unseen
        self._notes += note
        self._coded += tag in _CODE
        self._strong += tag in _STRONG
        self._count[tag] += 1
        if tag == "sup" and self._raised is None:
            self._raised = len(self._line)
        if tag in _LISTS:
            if tag == "table" and self._lists and self._count["td"] + self._count["th"]:
                self._lists[-1].is_layout = True
            self._lists.append(_List(is_layout=role in {"none", "presentation"}))
        elif self._lists and tag in _PARTS:
            listed = self._lists[-1]
            listed.parts[_PARTS[tag]] = len(self._open)
            if tag == "tr":
                listed.row, listed.column = listed.row + 1, 0
            elif tag in {"td", "th"}:
                is_header = tag == "th" or self._count["thead"] > 0
                listed.open_cell(named, is_header=is_header, line=len(self.lines))

    def _end_part(self, listed: _List, part: str) -> None:
        depth = listed.parts.get(part, 0)
        if 0 < depth <= len(self._open) and _PARTS.get(self._open[depth - 1]) == part:
            while len(self._open) >= depth:
                self._is_torn |= self._marks[-1][0]
                self._close_last()

    def handle_endtag(self, tag: str) -> None:
        # counted, because a search for a tag that is not open would visit all open elements
        if self._count[tag]:
            while self._open[-1] != tag:
                self._is_torn |= self._marks[-1][0]
                self._close_last()
            self._close_last()

    def handle_data(self, data: str) -> None:
        is_blank = data.isspace()
        if not is_blank:
            self._leave_head()
        if self._title is not None:
            self._title.append(data)
        if not self._unread:
            if self._coded and not is_blank and not self._count["pre"]:
                words = data.strip()
                data = data.replace(words, f"{_CODE_START}{words}{_CODE_END}")
            self._line.append(data)
            self._is_code &= is_blank or self._coded > 0
            if not is_blank and not self._strong:
                self._lead = self._lead or ""

    def parse_comment(self, i: int, report: bool = True) -> int:
        """The comment's end; after a comment without end no further ends are searched."""
        end = -1 if "comment" in self._endless else super().parse_comment(i, report)
        if end < 0:
            self._endless.add("comment")
        return end

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """The end of `<![…]>`; a malformed one, at which the parser would stop, is a comment."""
        try:
            end = -1 if "section" in self._endless else super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)
        if end < 0:
            self._endless.add("section")
        return end

    def close_all(self) -> None:
        """Closes the elements that the page left open."""
        self._is_torn |= any(aside for aside, *_ in self._marks)
        while self._open:
            self._close_last()
        self._end_line()

    def choose_lines(self) -> list[_Line]:
        """The lines of the main text."""
        content = [] if self._is_torn else [line for line in self.lines if not line.is_furniture]
        main = [line for line in content if line.is_main]
        return main or content or self.lines

    def _leave_head(self) -> None:
        if self._open and self._open[-1] == "head":
            self._close_last()

    def _close_last(self) -> None:
        tag = self._open[-1]
        if tag in _BLOCKS:
            self._end_line()
        elif tag == "title" and self._title is not None:
            self.title, self._title = " ".join("".join(self._title).split()), None
        elif tag == "sup" and self._count["sup"] == 1 and self._raised is not None:
            self._line[self._raised :] = self._lower(self._line[self._raised :], self._raised)
            self._raised = None
        elif tag in _STRONG and self._lead is None:
            self._lead = _CODED.sub("", " ".join("".join(self._line).split())) or None
        if self._lists and tag in {"td", "th"} and self._lists[-1].cells:
            self._lists[-1].cells[-1].end = len(self.lines)
        elif self._lists and tag in _LISTS:
            listed = self._lists.pop()
            if tag == "table" and self._is_data(listed):
                self._join_cells(listed)
        self._open.pop()
        aside, unseen, note = self._marks.pop()
        self._furniture -= aside
        self._unread -= unseen
        self._notes -= note
        self._coded -= tag in _CODE
        self._strong -= tag in _STRONG
        self._count[tag] -= 1

    def _lower(self, raised: list[str], first: int) -> list[str]:
        """Superscript as plain text: a note's sign is removed, a power gets a caret.

        `first`: the index of its first part in the line.
        """
        words = "".join(raised).strip()
        base = "".join(part[-12:] for part in self._line[max(first - 4, 0) : first])[-12:]
        if len(words) > _LONGEST_MARK:
            return raised
        if words in _SQUARE and _UNIT.search(base):
            return [_SQUARE[words]]
        if _POWER.fullmatch(words) and _BASE.search(base):
            return ["^", words.replace("−", "-")]
        return [] if _NOTE_MARK.fullmatch(words) else raised

    def _is_data(self, table: _List) -> bool:
        """Whether a table has rows and columns of values; else it is the layout of a page."""
        headed = any(cell.is_header for cell in table.cells)
        rows = table.row + 1
        columns = max((cell.column + 1 for cell in table.cells), default=0)
        if table.is_layout or rows * columns < 2 or (not headed and 1 in {rows, columns}):
            return False
        for cell in table.cells:
            lines = self.lines[cell.first : cell.end]
            letters = sum(len(line.text) for line in lines)
            if any(line.kind == "heading" for line in lines):
                return False
            if len(lines) > _MOST_LINES and letters > _MOST_LETTERS:
                return False
        return True

    def _join_cells(self, table: _List) -> None:
        """Joins the lines of each cell; the first rows of header cells are the header.

        The words of a cell that spans rows are repeated in each of them.
        """
        rows: dict[int, bool] = {}
        for cell in table.cells:
            filled = cell.end > cell.first
            rows[cell.row] = rows.get(cell.row, True) and (cell.is_header or not filled)
        header = next((row for row in range(table.row + 1) if not rows.get(row, True)), table.row)
        lines: list[_Line] = []
        reaching: list[tuple[int, int, int, _Line]] = []
        start = position = table.cells[0].first

        def repeat(row: int, column: int) -> None:
            while reaching and reaching[0][:2] < (row, column):
                below, beside, last, line = heappop(reaching)
                lines.append(replace(line, row=below))
                if below < last:
                    heappush(reaching, (below + 1, beside, last, line))

        for cell in table.cells:
            repeat(cell.row, cell.column)
            lines += self.lines[position : cell.first]
            position = cell.end
            if inside := self.lines[cell.first : cell.end]:
                mark = " " if cell.is_header else "; "
                text = mark.join(" ".join(line.text.split()) for line in inside)
                places = (inside[0].is_main, inside[0].is_furniture)
                level = int(cell.row < header)
                line = _Line(text, "cell", level, *places, row=cell.row, column=cell.column)
                lines.append(line)
                last = min(cell.row + cell.high - 1, header - 1 if level else table.row)
                is_near = cell.column < _MOST_REACHING and len(text) <= _LONGEST_REACHING
                if last > cell.row and is_near:
                    heappush(reaching, (cell.row + 1, cell.column, last, line))
        repeat(table.row + 1, 0)
        self.lines[start:] = [*lines, *self.lines[position:]]

    def _end_line(self) -> None:
        if self._unread:
            return  # invisible elements do not separate the text around them
        raw, lead, is_code = "".join(self._line), self._lead or "", self._is_code
        raw = _COLOURED.sub(r"\1", raw)
        self._line.clear()
        self._raised, self._lead, self._is_code = None, None, True
        if not raw.strip(" \n\t\0"):
            return
        kind, level = self._find_kind(is_code=is_code)
        place = (self._count["main"] > 0, self._furniture > 0)
        for text in _split_breaks(raw, kind):
            text, codes = _read_codes(normalise_text(text))
            if text:
                line = _Line(text, kind, level, *place, lead, self._is_in("dt"), codes=codes)
                self.lines.append(line)
            lead = ""

    def _find_kind(self, *, is_code: bool) -> tuple[Kind, int]:
        """The kind of the line that ends, and the level of a heading or an item."""
        count = self._count
        if count["pre"]:
            return "code", 0
        for level, tag in enumerate(_HEADINGS, 1):
            if count[tag]:
                return "heading", level
        if count["caption"] or count["figcaption"]:
            return "caption", 0
        if self._notes:
            return "footnote", 0
        if self._is_in("dt") or self._is_in("dd"):
            return "pair", 0
        if is_code:
            return "code", 0
        if count["li"]:
            return "item", count["ul"] + count["ol"]
        return ("quotation" if count["blockquote"] else "paragraph"), 0

    def _is_in(self, tag: str) -> bool:
        """Whether a part of that tag is open in the innermost list."""
        depth = self._lists[-1].parts.get(_PARTS[tag], 0) if self._lists else 0
        return 0 < depth <= len(self._open) and self._open[depth - 1] == tag


def _read_codes(marked: str) -> tuple[str, tuple[Span, ...]]:
    """The text without the marks around inline code, and the span of each code."""
    marks = [mark.start() - number for number, mark in enumerate(_CODED.finditer(marked))]
    return _CODED.sub("", marked), tuple(map(Span, marks[::2], marks[1::2]))


def _split_breaks(raw: str, kind: Kind) -> Iterator[str]:
    """The texts of a block; `<br>` separates them unless the next line continues the sentence."""
    if kind == "code":
        yield "\n".join(line.rstrip() for line in raw.replace(_BREAK, "\n").split("\n")).strip("\n")
        return
    if kind == "heading":
        raw = raw.replace(_BREAK, " ")
    held: list[str] = []
    for line in raw.split(_BREAK):
        words = " ".join(line.split())
        goes_on = (
            held and words and (words.lstrip(_CODE_START)[0].islower() or held[-1][-1] in ",-–")
        )
        if held and not goes_on:
            yield " ".join(held)
            held.clear()
        if words:
            held.append(words)
    if held:
        yield " ".join(held)


# Markdown to HTML.

_DEEPEST = 100
"""Levels of Markdown's quotes and lists; each takes two or three of Python's 1,000 frames."""
_CONTAINERS = {"blockquote_open", "list_item_open"}
_NOTE_SIGN = re.compile(r"\[\^[^\s\[\]^]{1,40}\]")
_UNDEFINED = re.compile(r"\[([^\[\]]+)\]\[[^\[\]]*\]")
"""A link to a reference that the text does not define: `[Voting Power][]`."""
_HYPHENS = re.compile(r"(?<=\w)--{1,2}(?=\w|\s)")
"""Hyphens typed for a dash between words: `Monday--Thursday`."""
_BOLD = re.compile(r"\s*(\*\*|__)[^*_]+\1\s*")
_NOTE_TEXT = re.compile(r" {0,3}\[\^[^\s\[\]^]{1,40}\]:[ \t]*")


def render_markdown(text: str, *, html: bool = True) -> str:
    """The HTML of a Markdown text; `html`: whether its tags are read as tags, not as words.

    Raises:
        RefusedError: `too_deep`; the parser silently drops text nested below its limit.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST, "html": html})
    parser.enable("table")
    parser.inline.ruler.before("link", "note", _skip_note_sign)
    parser.block.ruler.before("reference", "note", _read_note, {"alt": ["paragraph"]})
    notes: dict[str, object] = {}
    tokens = parser.parse(text, notes)
    for token in tokens:
        if token.type in _CONTAINERS and token.level + 1 >= _DEEPEST:
            line = token.map[0] + 1 if token.map else 1
            detail = f"quotes and lists nested deeper than {_DEEPEST} levels at line {line}"
            raise RefusedError("too_deep", detail)
        if token.type != "inline":
            continue
        if "\n" in token.content:
            _break_before_labels(token)
        for child in (c for c in token.children or () if c.type == "text"):
            words = _UNDEFINED.sub(r"\1", child.content)
            child.content = _HYPHENS.sub(lambda dash: "–—"[len(dash[0]) - 2], words)
    return str(parser.renderer.render(tokens, parser.options, notes))


def _break_before_labels(inline: Token) -> None:
    """Breaks a paragraph before each line that is a pair or a turn, and after a bold one."""
    lines = inline.content.replace("**", "").replace("__", "").split("\n")
    labels = classify_labels((line, False) for line in lines)[1:]
    bold = map(_BOLD.fullmatch, inline.content.split("\n"))
    breaks = iter([*zip(bold, labels, strict=False)])
    for child in inline.children or ():
        if child.type in {"softbreak", "hardbreak"} and any(next(breaks, ())):
            child.type = "hardbreak"


def _skip_note_sign(state: StateInline, silent: bool) -> bool:
    """Skips the sign of a footnote, `[^1]`, which is no part of a sentence."""
    sign = _NOTE_SIGN.match(state.src, state.pos)
    if sign is not None:
        state.pos = sign.end()
    return sign is not None


def _read_note(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Reads the text of a footnote, `[^1]: ...`, up to a blank line or the next footnote."""
    sign = _NOTE_TEXT.match(state.src, state.bMarks[start], state.eMarks[start])
    if sign is None or silent:
        return sign is not None
    last = start + 1
    while last < end and not (
        state.isEmpty(last) or _NOTE_TEXT.match(state.src, state.bMarks[last], state.eMarks[last])
    ):
        last += 1
    state.push("paragraph_open", "p", 1).attrs["role"] = "doc-footnote"
    inline = state.push("inline", "", 0)
    inline.content = state.src[sign.end() : state.eMarks[last - 1]].strip()
    inline.children = []
    state.push("paragraph_close", "p", -1)
    state.line = last
    return True
