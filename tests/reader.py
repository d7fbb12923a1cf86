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
    if set(schema) != {"entities", "facts"}:
        return answer_by_schema(body)
    names = dict.fromkeys(name for head, _, tail, _ in rows for name in (head, tail))
    number = {name: place for place, name in enumerate(names, 1)}
    lines = material.splitlines()
    facts = [
        [number[head], relation, number[tail], cited]
        for head, relation, tail, sentence in rows
        for cited in [next((n.partition("|")[0] for n in lines if sentence in n), 0)]
    ]
    entities = [[place, name, "other"] for name, place in number.items()]
    return json.dumps({"entities": entities, "facts": facts})


def read(material: str) -> Iterator[tuple[str, str, str, str]]:
    """Head, relation, tail and the whole sentence."""
    for found in _SENTENCE.finditer(re.split(r"Text:\s", material, maxsplit=1)[-1]):
        yield found["head"], found["relation"], found["tail"].strip(), found[0]
