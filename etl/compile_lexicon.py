"""Compiles the lexicon of relation meanings into the one table that the package loads.

    python etl/compile_lexicon.py

reads `etl/kpyramid/graph/synonyms/lexicon/*.toml`, whose form `README.md` there describes, and
writes `lexicon.tsv` beside them; the same declarations give the same bytes. Parsing the wordings
takes over a second, loading the table a tenth of that. Lines, in the order of the declarations:

    m  NAME  HEAD TAIL  UP  CONTRARIES  SYMMETRIC   a meaning
    s  KEY   SENSE ...                              a wording's key (`Frame.key`)

A SENSE is `NAME:FLAGS:QUALITIES`; flags are `t` turned, `n` negated, `w` weak; qualities are
separated by commas.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from kpyramid.graph.synonyms.lexicon import TABLE
from kpyramid.graph.synonyms.meaning import read_frame
from kpyramid.graph.synonyms.words import KINDS_OF_ENDS, PREPOSITIONS

FIELDS = frozenset("ends say back role attr up contrary symmetric".split())

Declared = dict[str, dict[str, str | bool]]


def read_declarations(folder: Path) -> Declared:
    """The tables of all files, by name of the meaning.

    Raises:
        SystemExit: a declaration is wrong; the message names the meaning and the field.
    """
    declared: Declared = {}
    for path in sorted(folder.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text("utf-8")).items():
            if name in declared or not table.keys() <= FIELDS:
                raise SystemExit(f"{path.name}: [{name}] is declared twice or has unknown fields")
            declared[name] = table
    for name, table in declared.items():
        ends = str(table.get("ends", "- -")).replace("|", " ").split()
        named = {*str(table.get("up", "")).replace("~", "").split()}
        unknown = (named | {*str(table.get("contrary", "")).split()}) - declared.keys()
        unknown |= {*ends} - {"-", *KINDS_OF_ENDS}
        if unknown or len(str(table.get("ends", "- -")).split()) != 2:
            raise SystemExit(f"lexicon: [{name}] names unknown meanings or ends: {sorted(unknown)}")
    return declared


def write_table(declared: Declared) -> str:
    """The lines of the table."""
    lines = []
    for name, table in declared.items():
        ends = str(table.get("ends", "- -"))
        fields = (str(table.get(field, "")) for field in ("up", "contrary"))
        lines.append("\t".join(["m", name, ends, *fields, "1" if table.get("symmetric") else ""]))
    senses: dict[str, dict[tuple[str, bool, frozenset[str]], str]] = defaultdict(dict)
    for name, table in declared.items():
        for wording, turned in list_wordings(table):
            frame = read_frame(wording.rstrip("!"))
            if not frame.key:
                raise SystemExit(f"lexicon: [{name}] {wording!r} has no word with a meaning")
            weak = wording.endswith("!")
            back = turned != frame.turned and not table.get("symmetric")
            flags = "t" * back + "n" * frame.negated + "w" * weak
            known, place = senses[frame.key], (name, frame.negated, frame.qualities)
            if place not in known or known[place].split(":")[1].endswith("w"):
                known[place] = f"{name}:{flags}:{','.join(sorted(frame.qualities))}"
    lines += ("\t".join(["s", key, *found.values()]) for key, found in senses.items())
    return "\n".join(lines) + "\n"


def list_wordings(table: Mapping[str, str | bool]) -> Iterator[tuple[str, bool]]:
    """Each wording of a declaration, and whether it reads from tail to head."""
    for name, turned in (("say", False), ("back", True)):
        yield from ((wording + mark, turned) for wording, mark in expand_field(table, name))
    for name, turned in (("role", False), ("attr", True)):
        for noun, mark in expand_field(table, name):
            with_preposition = noun.split()[-1] in PREPOSITIONS
            yield f"is the {noun}" + ("" if with_preposition else " of") + mark, turned
            if not with_preposition or noun.endswith(" of"):
                yield f"has the {noun.removesuffix(' of')}{mark}", not turned


def expand_field(table: Mapping[str, str | bool], name: str) -> Iterator[tuple[str, str]]:
    """The wordings of a field's patterns, and the mark `!` of a weak one."""
    for pattern in filter(None, map(str.strip, re.split(r"[;\n]", str(table.get(name, ""))))):
        mark = "!" if pattern.endswith("!") else ""
        yield from ((wording, mark) for wording in expand(pattern.rstrip("!")))


def expand(pattern: str) -> Iterator[str]:
    """The wordings of a pattern: `is [a] part|piece of` → `is a part of`, `is piece of` ..."""
    choices = []
    for token in re.findall(r"\[[^\]]*\]|\S+", pattern):
        optional = token.startswith("[")
        parts = token.strip("[]").split("|")
        choices.append([*parts, ""] if optional else parts)
    for chosen in product(*choices):
        yield " ".join(part for part in chosen if part)


if __name__ == "__main__":
    TABLE.write_text(write_table(read_declarations(TABLE.parent)), "utf-8")
