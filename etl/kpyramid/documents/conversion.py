"""Files that a library converts to Markdown: which there are, and the process that converts them.

kreuzberg reads untrusted bytes in native code, so it runs in a child process with limits.
"""

import json
import re
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kpyramid.documents.corpus import SourceFile

CONVERTED: Mapping[str, str] = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".pdf": "application/pdf",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rst": "text/x-rst",
}
"""Endings of the files that are converted, with their media types."""
CONVERTER = "kreuzberg"
EXTRA = "pip install 'kpyramid[files]'"


@dataclass(frozen=True, slots=True)
class Converted:
    """A file as Markdown, with the title and the language that it states; or why it is none."""

    text: str = ""
    title: str | None = None
    language: str | None = None
    reason: str | None = None
    detail: str = ""


Convert = Callable[[Sequence[SourceFile], int], Mapping[str, Converted]]
"""What becomes of files, by path; those of more than so many bytes are left as they are."""


_FEW_ROWS = 5
"""Lines of a page that are taken for a table: of 40 pages of three lines of prose 21 were, of five
one, of six and more none. So few rows are read as a paragraph."""


_ITEM = re.compile(rb"([ ]*)((?:[-*+]|#\.|\d{1,3}[.)]|\(?\w\))[ ]+)\S")
_ROLE = re.compile(
    rb"(?::(pep|rfc|[a-z][a-z:+-]{0,30}):)?`([^`<\n]{1,200}?)\s*(?:<[^>`\n]{0,200}>)?`(?(1)|__?)"
    rb"|(?<=\w)_(?=[\s.,;:)]|$)"
)


def _read_role(role: re.Match[bytes]) -> bytes:
    number = (role[1] or b"") in {b"pep", b"rfc"} and (role[2] or b"").isdigit()
    return role[1].upper() + b" " + role[2] if number else role[2] or b""


def mend_rst(source: bytes) -> bytes:
    """RST with each list item in a line, without roles and marks of links, which become text."""
    lines: list[bytes] = []
    indent = 0
    for line in _ROLE.sub(_read_role, source).replace(b"\r\n", b"\n").split(b"\n"):
        item = _ITEM.match(line)
        if item is None and indent and line[:indent].isspace() and line[indent:].strip():
            lines[-1] += b" " + line.strip()
        else:
            indent = len(item[1] + item[2]) if item else 0
            lines.append(line)
    return b"\n".join(lines)


def serve(memory_bytes: int) -> None:
    """Converts what stands on standard input, file after file, until it ends.

    A file is a line of JSON, `ending` and `size`, and its bytes; the reply a line of JSON with the
    fields of `Converted`.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    from kreuzberg import ExtractionConfig, KreuzbergError, PdfConfig, extract_bytes_sync

    options: dict[str, Any] = {
        "use_cache": False,
        "disable_ocr": True,  # its models would be fetched
        "enable_quality_processing": False,
        "output_format": "markdown",
        "pdf_options": PdfConfig(extract_images=False, extract_metadata=True),
    }
    config = ExtractionConfig(**options)
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        data = sys.stdin.buffer.read(asked["size"])
        data = mend_rst(data) if asked["ending"] == ".rst" else data
        try:
            found = extract_bytes_sync(data, CONVERTED[asked["ending"]], config=config)
            stated, text = found.metadata, found.content
            for table in found.tables:
                if len(table.cells) <= _FEW_ROWS and asked["ending"] == ".pdf":
                    words = " ".join(cell for row in table.cells for cell in row if cell)
                    text = text.replace(table.markdown.strip(), words)
            reply = {
                "text": text,
                "title": stated.get("title") or None,
                "language": stated.get("language") or None,
            }
        except KreuzbergError as e:
            reply = {"reason": "unconvertible", "detail": " ".join(str(e).split())[:300]}
        except MemoryError:
            reply = {"reason": "too_large", "detail": "it takes more memory than a file may"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
