"""A model that names proposals and condenses facts, for the loopback server and for fake askers."""

import json
import re
from typing import Any

from tests import class_reader
from tests.rows import read_bodies

_LINE = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)

ALIASES = {"laboured for": "employer", "was an employee of": "employer"}
"""Wordings that say what a property of the general ontology says already, by its label."""
PARTS = {"formerly employed by": "employer"}
"""Wordings that say a part of it."""
MEANINGS = read_bodies("pyramid_model.meanings")
"""Wordings that the model holds for the same, whatever it should."""


def answer(body: dict[str, Any]) -> str:
    """Replies to naming and condensation; other tasks as `class_reader` answers."""
    name = body["response_format"]["json_schema"]["name"]
    material = body["messages"][-1]["content"]
    if name == "naming":
        return write_names(material)
    if name == "condensation":
        return write_groups(material)
    if name == "summary":
        return write_statements(material)
    return class_reader.answer(body)


def write_names(material: str) -> str:
    """A name made of a proposal's first wording, and the verdicts of `ALIASES` and `PARTS`."""
    known, _, asked = material.partition("\n\nProposal ")
    numbers = {text.partition(" (")[0]: int(number) for number, text in _LINE.findall(known)}
    rows = []
    for block in asked.split("\n\nProposal "):
        number = int(block.partition(":")[0])
        wording = block.partition("Wordings: ")[2].partition("\n")[0].partition(";")[0]
        verdict = "same" if wording in ALIASES else "part" if wording in PARTS else "new"
        entry = numbers.get({**ALIASES, **PARTS}.get(wording, ""))
        rows.append(
            {
                "proposal": number,
                "thought": f"All of them say {wording} of somebody.",
                "verdict": verdict if entry else "new",
                "existing": entry,
                "name": make_name(wording),
                "definition": f"What the texts say with the words {wording!r} of somebody.",
            }
        )
    return json.dumps({"proposals": rows})


def write_statements(material: str) -> str:
    """Of each group the facts of its first wording in a sentence, where there are several."""
    rows = []
    for block in material.split("Group ")[1:]:
        facts = [(int(n), *text.split(" | ")) for n, text in _LINE.findall(block)]
        _, head, wording, _ = facts[0]
        said = [(number, tail) for number, _, verb, tail in facts if verb == wording]
        told = f"{head} {wording} {' and '.join(tail for _, tail in said)}"
        rows.append(
            {
                "group": int(block.partition(":")[0]),
                "thought": f"{len(said)} facts have one wording.",
                "statement": told if len(said) > 1 else "",
                "facts": [number for number, _ in said] if len(said) > 1 else [],
            }
        )
    return json.dumps({"groups": rows})


def make_name(wording: str) -> str:
    """The standard name that the model gives a wording."""
    return " ".join(["known", *wording.split()[:4]])


def write_groups(material: str) -> str:
    """The facts of a set whose wordings have one meaning, the first of them the best."""
    rows = []
    for block in material.split("Set ")[1:]:
        groups: dict[str, list[int]] = {}
        for number, text in _LINE.findall(block):
            wording = text.split(" | ")[1]
            groups.setdefault(MEANINGS.get(wording, wording), []).append(int(number))
        same = [{"members": g, "best": g[0]} for g in groups.values() if len(g) > 1]
        thought = f"{len(groups)} meanings stand in this set."
        rows.append({"set": int(block.partition(":")[0]), "thought": thought, "same": same})
    return json.dumps({"sets": rows})
