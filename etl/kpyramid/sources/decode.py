"""Bytes to text, by one rule.

A byte order mark decides. Else a charset that an HTML page declares; a page whose declaration
can be read byte by byte is not UTF-16, whatever it says. Else strict UTF-8. Else the fallback
encoding of the settings, when there is one. Otherwise the bytes are refused, with the offset of
the first bad one: a guess would put wrong characters into every fact.
"""

import codecs
import re

_MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.I)
_NO_CHARSET = (
    "utf-16",
    "utf-32",
    "utf-7",
    "idna",
    "punycode",
    "unicode-escape",
    "raw-unicode-escape",
)
"""Codecs of Python that no readable page is written in; browsers take such names for UTF-8 too."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.02
"""Share of control characters from which a file counts as binary; real text has next to none."""


class RefusedError(ValueError):
    """These bytes, or this record, cannot become a document; `reason` is short, for counting."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def decode_bytes(data: bytes, fallback: str | None, *, html: bool = False) -> str:
    r"""The text, with `\\n` as the only line ending.

    Raises:
        RefusedError: `binary`, `undecodable`.
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
