"""A model that reads plain sentences, for the loopback server: it answers every task's prompt."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.loopback import answer_by_schema

_SENTENCE = re.compile(
    r"(?P<head>[A-Z]\w*(?: [A-Z]\w*)*) (?P<relation>[a-z]+(?: [a-z]+)*) (?P<tail>[^.]+)\."
)


def answer(body: dict[str, Any]) -> str:
    """The claims, entities and triples of `Name verb phrase something.`, sentence by sentence."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    material = body["messages"][-1]["content"]
    if "same" in schema:
        return json.dumps({"same": []})
    rows = list(read(material))
    if set(schema) == {"claims"}:
        return json.dumps({"claims": [{"evidence": row[3], "claim": row[3]} for row in rows]})
    if set(schema) == {"entities"}:
        return json.dumps({"entities": sorted({name for row in rows for name in row[0:3:2]})})
    if set(schema) == {"triples"}:
        triples = [{"head": h, "relation": r, "tail": t} for h, r, t, _ in rows]
        return json.dumps({"triples": triples})
    if set(schema) != {"entities", "claims"}:
        return answer_by_schema(body)
    entities = dict.fromkeys(name for head, _, tail, _ in rows for name in (head, tail))
    claims = [
        {
            "evidence": sentence,
            "claim": sentence,
            "triples": [{"head": head, "relation": relation, "tail": tail}],
        }
        for head, relation, tail, sentence in rows
    ]
    return json.dumps({"entities": [e.replace(",", "") for e in entities], "claims": claims})


def read(material: str) -> Iterator[tuple[str, str, str, str]]:
    """Head, relation, tail and the whole sentence."""
    for found in _SENTENCE.finditer(material.partition("Text: ")[2] or material):
        yield found["head"], found["relation"], found["tail"].strip(), found[0]
