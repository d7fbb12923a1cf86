"""Stage condense on planted graphs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kpyramid.condensation.asking import Bars, Condensed
from kpyramid.condensation.types import Neighbourhood
from kpyramid.embeddings.port import Embedder
from kpyramid.keys import content_id
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CondenseSettings
from kpyramid.stages import condense
from kpyramid.stages.tables import build_table
from tests.planted import MemoEmbedder, Statement, general_schema

READS = ("entities", "relations", "triples", "proposals")
Words = tuple[str, str, str]


@dataclass
class Condensation:
    """What the stage was given and made, in words."""

    tables: dict[str, pa.Table]
    made: dict[str, pa.Table]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.made["condensed"].to_pylist())

    def _say(self, row: dict[str, Any]) -> Words:
        names = {r["entity_id"]: r["name"] for r in self.tables["entities"].to_pylist()}
        verbs = {r["relation_id"]: r["name"] for r in self.tables["relations"].to_pylist()}
        tail = names[row["tail_id"]] if row["tail_id"] else row["literal"]
        return names[row["head_id"]], verbs[row["relation_id"]], tail

    @property
    def merged(self) -> dict[Words, dict[Words, str]]:
        """What each condensed fact stands for beside its own words, and why."""
        triple = {r["triple_id"]: self._say(r) for r in self.tables["triples"].to_pylist()}
        return {
            self._say(row): {
                triple[key]: how
                for key, how in zip(row["derived_from"], row["how"], strict=True)
                if how != "kept"
            }
            for row in self.rows
        }

    @property
    def anchors(self) -> dict[Words, str | None]:
        """The property that each condensed fact is near to, by its last word."""
        return {self._say(r): r["anchor"] and r["anchor"].rpartition("#")[2] for r in self.rows}

    @property
    def contradictions(self) -> list[tuple[str, set[Words]]]:
        words = {row["condensed_id"]: self._say(row) for row in self.rows}
        rows = self.made["contradictions"].to_pylist()
        return [(row["kind"], {words[key] for key in row["condensed_ids"]}) for row in rows]


class YesSayer:
    """A model that holds all facts of a neighbourhood for the same, unless barred."""

    def __init__(self) -> None:
        self.asked: list[Neighbourhood] = []

    def condense(self, neighbourhoods: Sequence[Neighbourhood], bars: Bars) -> Condensed:
        self.asked = list(neighbourhoods)
        merged = [
            (other.key, found.statements[0].key)
            for found in neighbourhoods
            for other in found.statements[1:]
            if not bars(found.statements[0], other)
        ]
        return Condensed(tuple(merged), ())


def state(statements: Iterable[Statement]) -> dict[str, pa.Table]:
    """The tables of a graph that states exactly this; `resolve` would unite some of it."""
    entities, relations, triples = {}, {}, {}
    for head, head_type, wording, tail, tail_type in statements:
        ends = {head: head_type} | ({tail: tail_type} if tail_type != "LITERAL" else {})
        for name, kind in ends.items():
            entities[name] = {
                "entity_id": content_id("entity", name),
                "name": name,
                "type": kind,
                "surface_forms": [name],
                "mentions": [],
            }
        said = relations.setdefault(wording, {"support": 0})
        relations[wording] = {
            "relation_id": content_id("relation", wording),
            "name": wording,
            "inverse_of": None,
            "surface_forms": [wording],
            "support": said["support"] + 1,
        }
        triples[head, wording, tail] = {
            "triple_id": content_id("triple", head, wording, tail),
            "head_id": content_id("entity", head),
            "relation_id": content_id("relation", wording),
            "tail_id": None if tail_type == "LITERAL" else content_id("entity", tail),
            "literal": tail if tail_type == "LITERAL" else None,
            "confidence": 0.9,
            "raw_triple_ids": [],
        }
    made = {"entities": entities, "relations": relations, "triples": triples, "proposals": {}}
    return {name: build_table(name, rows.values()) for name, rows in made.items()}


def condense_statements(
    statements: Iterable[Statement],
    *,
    schema: Schema | None = None,
    embedder: Embedder | None = None,
    condenser: YesSayer | None = None,
    **options: float,
) -> Condensation:
    """The condensed graph of some statements, with the general ontology and the real model."""
    tables = state(statements)
    made = condense.run(
        *(tables[name] for name in READS),
        settings=CondenseSettings(**options),  # type: ignore[arg-type]
        schema=schema or general_schema(),
        embedder=embedder or MemoEmbedder(),
        condenser=condenser,  # type: ignore[arg-type]
    )
    return Condensation(tables, made)
