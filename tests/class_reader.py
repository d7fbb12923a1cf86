"""A model that induces, for the loopback server: it finds values by one pattern per property."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests import reader

_NAME = r"[A-Z]\w*(?: (?:of )?[A-Z]\w*)*"
_PATTERNS = {
    "birth place": rf"[Bb]irth place of (?P<subject>{_NAME}): (?P<value>{_NAME})",
    "birth year": rf"[Bb]irth year of (?P<subject>{_NAME}): (?P<value>\d{{4}})",
}
"""By the labels of the general ontology: words that no rule of ours reads."""


def answer(body: dict[str, Any]) -> str:
    """The values of the properties that the schema offers; other tasks as `reader` answers."""
    offered = list_offered(body)
    if offered is None:
        return reader.answer(body)
    text = body["messages"][-1]["content"].partition("Text: ")[2].rpartition("\n</data-")[0]
    return json.dumps({"values": list(read(text, offered))})


def list_offered(body: dict[str, Any]) -> list[str] | None:
    """The properties that a request of induction asks for; None of another task."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    if set(schema) != {"values"}:
        return None
    offered: list[str] = schema["values"]["items"]["properties"]["property"]["enum"]
    return offered


def read(text: str, offered: list[str]) -> Iterator[dict[str, str]]:
    """The values that the patterns find, sentence by sentence."""
    for sentence in re.findall(r"[^.]+\.", text):
        for name in offered:
            for found in re.finditer(_PATTERNS.get(name, "$."), sentence):
                yield {"evidence": sentence.strip(), "property": name, **found.groupdict()}
