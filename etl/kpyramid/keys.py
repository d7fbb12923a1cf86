"""Content keys: equal ingredients give equal keys, any change gives another."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from json.encoder import JSONEncoder, encode_basestring
from json.encoder import c_make_encoder as encoder  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, TypeAlias

JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)

ID_DIGITS = 20
"""Hex digits of an id: 80 bits, a collision chance below 1e-11 for a million rows of a table."""


def to_plain(value: Any) -> Any:
    """A value in JSON's types, at any depth: dataclasses and objects with `to_dict` as mappings."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(name): to_plain(each) for name, each in value.items()}
    return [to_plain(each) for each in value] if isinstance(value, list | tuple) else value


_WRITE = encoder(None, JSONEncoder().default, encode_basestring, None, ":", ",", True, False, False)
"""Sorted keys, no skipped keys, no NaN; `JSONEncoder` makes it anew for each value."""


def canonical_json(value: JsonValue) -> bytes:
    """One byte form per value: sorted keys, no spaces, UTF-8, no NaN."""
    return "".join(_WRITE(value, 0)).encode("utf-8")


def hash_value(value: JsonValue) -> str:
    """The sha256 of a value's canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def hash_bytes(data: bytes) -> str:
    """The sha256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes, as 64 hex digits, read in pieces.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_id(kind: str, *parts: JsonValue) -> str:
    """A row's id: a short prefix for its kind, then the hash of its content.

    Parts are joined as canonical JSON, so ("ab", "c") and ("a", "bc") differ.
    """
    return f"{kind}-{hash_value([kind, *parts])[:ID_DIGITS]}"
