"""Notebooks, mail, JATS, AsciiDoc and wikitext, each as the HTML of its page."""

import email
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from email.policy import default as policy
from html import escape
from itertools import islice
from typing import Any, NamedTuple
from xml.parsers import expat

from kpyramid.documents.cleaning import CLOSING
from kpyramid.documents.labels import RefusedError, names_labels, read_labels
from kpyramid.documents.pages import render_markdown


class Markup(NamedTuple):
    """The HTML of a page, its title and its access labels."""

    html: str
    title: str | None = None
    access: tuple[str, ...] = ()


# Notebooks.


def read_notebook(text: str) -> Markup:
    """The page of a notebook: Markdown cells, fenced code cells; outputs of code are left out.

    Raises:
        RefusedError: `bad_notebook`; `bad_access`.
    """
    try:
        notebook = json.loads(text)
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
        about = [cell.get("metadata") for cell in notebook["cells"]]
        access = read_labels({**notebook.get("metadata", {}), "cells": about})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        if isinstance(e, RefusedError):
            raise
        detail = f"no notebook of format 4: {type(e).__name__} {e}"
        raise RefusedError("bad_notebook", detail[:300]) from e
    parts = [
        source if kind == "markdown" else f"{_FENCE}\n{source}\n{_FENCE}"
        for kind, source in cells
        if source.strip() and kind in {"markdown", "code"}
    ]
    return Markup(render_markdown("\n\n".join(parts)), access=access)


_FENCE = "`" * 12


# Mail.


class Mail(NamedTuple):
    """A message: its page, its headers by lower-case name, and the names of its attachments."""

    page: Markup
    headers: dict[str, str]
    attached: list[str]


_FROM = re.compile(rb"^From [^\n]*\n", re.MULTILINE)
_STATED = ("Date", "From", "To", "Message-ID")


def split_mailbox(data: bytes) -> Iterator[bytes]:
    """The messages of a file in mbox format."""
    for message in _FROM.split(data.replace(b"\r\n", b"\n"))[1:]:
        yield re.sub(rb"(?m)^>(>*From )", rb"\1", message)


def read_mail(data: bytes) -> Mail:
    """The plain text of a message, else its HTML; quoted lines become quotations of Markdown.

    Raises:
        RefusedError: `bad_mail`, `undecodable`; `bad_access` for a header that is nearly `access`.
    """
    try:
        message = email.message_from_bytes(data, policy=policy)
        assert isinstance(message, EmailMessage)
        for name in message.keys():  # noqa: SIM118
            if names_labels(name):
                detail = f"the header {name!r}: mail has no labels; write a row of .jsonl for it"
                raise RefusedError("bad_access", detail)
        body = message.get_body(("plain", "html"))
        content = body.get_content(errors="strict") if body is not None else ""
        attached = [part.get_filename() or "without name" for part in message.iter_attachments()]
        headers = {name.lower(): str(message[name]).strip() for name in _STATED if message[name]}
        subject = message["Subject"]
    except (UnicodeError, LookupError) as e:
        raise RefusedError("undecodable", str(e)) from e
    except RefusedError:
        raise
    except (ValueError, TypeError, AttributeError, IndexError, RecursionError) as e:
        raise RefusedError("bad_mail", f"{type(e).__name__}: {e}"[:300]) from e
    is_html = body is not None and body.get_content_subtype() == "html"
    title = _REPLY.sub("", str(subject)).strip() if subject else None
    if not is_html:
        content = content.replace("\r\n", "\n").partition("\n-- \n")[0]
        content = _SIGNED.sub(lambda match: _LINE.sub("\n\n", match[0]), content)
        content = render_markdown(content, html=False)
    return Mail(Markup(content, title or None), headers, attached)


_SIGNED = re.compile(
    rf"(?<=\n)(?:{CLOSING.pattern})(?:\n(?!>|On .*:$)[^\n]{{0,80}})+$", re.I | re.M
)
"""The line that ends a letter with the short lines after it: a name, a role, a firm."""
_LINE = re.compile(r"\n(?![a-z][^@\n]*$)", re.MULTILINE)
"""A line end before a line that does not go on in small letters."""
_REPLY = re.compile(r"\A\s*(?:(?:re|fwd?|aw|wg)\s*:\s*)+", re.IGNORECASE)


# JATS.

_JATS = {
    **{tag: tag for tag in "p table thead tbody tr td th caption sup sub".split()},
    **dict.fromkeys(("sec", "abstract"), "section"),
    **{"list": "ul", "list-item": "li", "def-list": "dl", "term": "dt", "def": "dd"},
    **{"disp-quote": "blockquote", "code": "pre", "preformat": "pre", "title": "h"},
}
_JATS_UNREAD = frozenset("back ref-list table-wrap-foot tex-math mml:math label".split())
_JATS_TEXTS = frozenset("abstract body".split())


def read_jats(data: bytes) -> Markup:
    """The title, abstract, sections, tables and captions of an article, without references.

    Raises:
        RefusedError: `other_xml`; `bad_xml`; `bad_access` for a name that is nearly `access`.
    """
    article = _Article()
    parser = expat.ParserCreate()
    parser.StartElementHandler = article.open
    parser.EndElementHandler = article.close
    parser.CharacterDataHandler = article.add
    try:
        parser.Parse(data, True)
    except expat.ExpatError as e:
        raise RefusedError("bad_xml", str(e)) from e
    title = " ".join("".join(article.title).split())
    return Markup("".join(article.parts), title or None)


class _Article:
    """Collects the page of an article tag by tag, without a tree."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []
        self._inside: Counter[str] = Counter()

    def open(self, tag: str, attrs: dict[str, str]) -> None:
        if not self._open and tag != "article":
            detail = f"the root is <{tag}>: of XML only JATS articles are read; save it as .html"
            raise RefusedError("other_xml", detail)
        self._refuse_labels(tag, *attrs)
        kind = "unread" if tag in _JATS_UNREAD or attrs.get("ref-type") == "bibr" else tag
        kind = "text" if tag in _JATS_TEXTS else kind
        self._open.append(kind)
        self._inside[kind] += 1
        spans = "".join(f' {k}="{escape(v)}"' for k, v in attrs.items() if k.endswith("span"))
        self._write(f"<{self._name(tag)}{spans}>" if tag in _JATS else "")

    def _refuse_labels(self, *names: str) -> None:
        for name in filter(names_labels, names):
            detail = f"the article says {name!r}, and has no labels: write a row of .jsonl for it"
            raise RefusedError("bad_access", detail)

    def close(self, tag: str) -> None:
        self._write(f"</{self._name(tag)}>" if tag in _JATS else "")
        self._inside[self._open.pop()] -= 1

    def add(self, data: str) -> None:
        if self._inside["article-title"] and not self._inside["unread"]:
            self.title.append(data)
        if self._inside["meta-name"]:
            self._refuse_labels(data)
        self._write(escape(data))

    def _name(self, tag: str) -> str:
        name = _JATS[tag]
        return f"h{min(self._inside['sec'] + 1, 6)}" if name == "h" else name

    def _write(self, text: str) -> None:
        if self._inside["text"] and not self._inside["unread"]:
            self.parts.append(text)


# AsciiDoc.

_ADOC = (
    (re.compile(r"^(={1,6}) (?=\S)"), lambda m: "#" * len(m[1]) + " "),
    (re.compile(r"^(\*{1,5}|\.{1,5}) (?=\S)"), lambda m: "  " * (len(m[1]) - 1) + "- "),
    (re.compile(r"(?<!\w)(?:https?:|link:|xref:)\S{1,300}\[([^\]\n]{1,200})\]"), lambda m: m[1]),
    (re.compile(r"^(NOTE|TIP|IMPORTANT|WARNING|CAUTION): "), lambda _: ""),
)
_ADOC_FENCE = re.compile(r"^(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|/{4,})$")
_ADOC_UNREAD = re.compile(
    r"^(?:\[.*\]|:[\w!-]+:.*|//.*|(?:include|image|ifdef|ifndef|endif)::.*|\+)$"
)
_ADOC_ATTRIBUTE = re.compile(r":([\w!-]+):")


def read_asciidoc(text: str) -> Markup:
    """The page with headings, lists, tables and code blocks, without comments and attributes.

    Raises:
        RefusedError: `bad_access` for an attribute that is nearly named `access`.
    """
    lines: list[str] = []
    fence = ""
    cells: list[str] | None = None
    for line in text.split("\n"):
        delimiter = _ADOC_FENCE.match(line.rstrip())
        if fence or (delimiter and delimiter[1][0] in "-./"):
            if not fence and delimiter:
                fence = delimiter[1]
                lines.append("" if fence[0] == "/" else _FENCE)
            elif line.rstrip() == fence:
                lines.append("" if fence[0] == "/" else _FENCE)
                fence = ""
            elif fence[0] != "/":
                lines.append(line)
        elif line.startswith("|==="):
            lines += _write_rows(cells) if cells is not None else []
            cells = [] if cells is None else None
        elif cells is not None:
            cells.append(line)
        elif (attribute := _ADOC_ATTRIBUTE.match(line)) and names_labels(attribute[1]):
            raise RefusedError("bad_access", f"{line.strip()!r}: labels are not read from AsciiDoc")
        elif not delimiter and not _ADOC_UNREAD.match(line):
            for pattern, change in _ADOC:
                line = pattern.sub(change, line)
            lines.append(escape(line, quote=False))
    return Markup(render_markdown("\n".join(lines)))


def _write_rows(lines: Sequence[str]) -> list[str]:
    """The rows of a table in HTML; the first is the header, and all have its number of cells."""
    rows = [[escape(c.strip()) for c in line.split("|")[1:]] for line in lines if "|" in line]
    if not rows:
        return []
    width, flat = len(rows[0]), [cell for row in rows for cell in row]
    parts = ["", "<table>"]
    for start in range(0, len(flat), width):
        tag = "td" if start else "th"
        parts.append(
            "<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in flat[start : start + width]) + "</tr>"
        )
    return [*parts, "</table>", ""]


# Wikitext.

_WIKITEXT = re.compile(
    r"\[\[[^\[\]\n]{1,200}\]\]|^==+ ?[^=\n]{1,200}==+$|\'{3}|^\{\{\w", re.MULTILINE
)
_MOST_SIGNS = 6
_NAMESPACE = re.compile(r":?[^\W\d_]+:\S")
_LIST_MARKS = frozenset("*#:;")


def is_wikitext(text: str) -> bool:
    """Whether a text is clearly wikitext, by its links, headings, bold names and templates."""
    signs = [match[0][:2] for match in islice(_WIKITEXT.finditer(text[:20_000]), 200)]
    return len(signs) >= _MOST_SIGNS and "[[" in signs and len({*signs}) > 1


def read_wikitext(text: str) -> Markup:
    """The page without links, references and files; an infobox becomes a list of pairs.

    The title is the first name in bold letters.
    """
    import mwparserfromhell
    from mwparserfromhell.nodes import (
        ExternalLink,
        Heading,
        HTMLEntity,
        Tag,
        Template,
        Text,
        Wikilink,
    )

    parts: list[str] = ["<p>"]
    title: list[str] = []
    is_item = False

    def write(node: Any) -> None:
        nonlocal is_item
        if isinstance(node, Text):
            words = escape(str(node))
            if is_item and "\n" in words:
                words, is_item = words.replace("\n", "</li>\n", 1), False
            parts.append(words.replace("\n\n", "</p><p>"))
        elif isinstance(node, HTMLEntity):
            parts.append(escape(node.normalize()))
        elif isinstance(node, Heading):
            write_all(node.title, f"h{node.level}")
        elif isinstance(node, Wikilink):
            if not _NAMESPACE.match(str(node.title)):
                write_all(node.text if node.text is not None else node.title)
        elif isinstance(node, ExternalLink):
            write_all(node.title)
        elif isinstance(node, Template):
            pairs = [param for param in node.params if param.showkey]
            if len(pairs) > 2:
                parts.append("</p><dl>")
                for pair in pairs:
                    start = len(parts)
                    parts.append(f"<dt>{escape(str(pair.name).strip())}</dt>")
                    write_all(pair.value, "dd")
                    if not any(part.strip() for part in parts[start + 2 : -1]):
                        del parts[start:]
                parts.append("</dl><p>")
            elif node.params and not pairs:
                write_all(node.params[-1].value)
        elif isinstance(node, Tag):
            tag = str(node.tag).strip().lower()
            if node.wiki_markup in _LIST_MARKS:
                parts.append("<li>" if not is_item else "")
                is_item = True
            elif tag not in {"ref", "gallery", "math", "style", "references"}:
                if tag == "b" and not title and node.wiki_markup:
                    title.append(node.contents.strip_code())
                write_all(node.contents, tag if tag.isalnum() else "")

    def write_all(code: Any, tag: str = "") -> None:
        parts.append(f"<{tag}>" if tag else "")
        for node in code.nodes if code is not None else ():
            write(node)
        parts.append(f"</{tag}>" if tag else "")

    write_all(mwparserfromhell.parse(text))
    return Markup("".join(parts), title[0] if title else None)
