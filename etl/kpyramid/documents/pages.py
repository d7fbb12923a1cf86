"""Pages: the visible text of HTML and of Markdown."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from kpyramid.documents.labels import RefusedError, names_labels

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


# Markdown to HTML.

_DEEPEST = 100
"""Levels of Markdown's quotes and lists; two to three frames of Python's thousand go to each."""
_CONTAINERS = {"blockquote_open", "list_item_open"}


def render_markdown(text: str, *, html: bool = True) -> str:
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
