"""HTML to its visible text, in one pass and without a tree: time and memory grow with the page.

A tree would cost a kilobyte per tag, and Beautiful Soup searches all `<br>` so far at each end
tag. Elements nest as their tags say: an end tag closes all that was opened since its start.
"""

from collections import Counter
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser


def _list_tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_BLOCKS = _list_tags(
    "address article aside blockquote br dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6 "
    "header hr li main nav ol p pre section table td th tr ul"
)
_UNREAD = _list_tags("script style template noscript head")
_EMPTY = _list_tags(
    "area base basefont bgsound br col command embed frame hr image img input isindex keygen link "
    "menuitem meta nextid param source spacer track wbr"
)
"""Elements that have no content and need no end tag."""
_HEAD = _list_tags("base link meta noscript script style template title")
"""What may stand in a head; text or another tag ends it, for its end tag may be left out."""


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, its first `<title>` and `<h1>`, and the language it declares."""

    text: str
    title: str | None
    heading: str | None
    language: str | None


def read_page(source: str) -> Page:
    """The visible text: inline tags vanish, blocks become lines, runs of white space one space."""
    reader = _PageReader()
    # Behind the last `>` no tag can end; the parser would search for it at every `<` there.
    end = source.rfind(">") + 1
    reader.feed(source[:end])
    reader.close()
    reader.handle_data(unescape(source[end:]))
    reader.close_all()
    return Page(
        "\n".join(reader.lines),
        _join_words(reader.captions.get("title")),
        _join_words(reader.captions.get("h1")),
        reader.language,
    )


def _join_words(parts: list[str] | None) -> str | None:
    return None if parts is None else " ".join("".join(parts).split())


class _PageReader(HTMLParser):
    """Collects lines while the parser goes through the page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.captions: dict[str, list[str]] = {}
        self.language: str | None = None
        self._line: list[str] = []
        self._open: list[str] = []
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
        if tag in _BLOCKS:
            self._end_line()
        if tag in _EMPTY:
            return
        self._open.append(tag)
        self._count[tag] += 1
        self._unread += tag in _UNREAD
        if tag in {"title", "h1"} and tag not in self.captions and self._caption is None:
            self._caption = self.captions[tag] = []
            self._caption_depth = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        # counted, because a search for a tag that is not open would go through all open ones
        if self._count[tag]:
            while self._close_last() != tag:
                pass

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
        while self._open:
            self._close_last()
        self._end_line()

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
        if self._count["pre"]:
            self.lines += filter(None, map(str.strip, text.splitlines()))
        elif words := text.split():
            self.lines.append(" ".join(words))
