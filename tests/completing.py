"""Stage complete on planted graphs, with the real proposals or with given ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kpyramid.completion.decisions import Decisions, parse_decisions
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer, Phrases, Proposal
from kpyramid.numerics.moments import Moments
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings
from kpyramid.stages import complete, induce
from tests.planted import MemoEmbedder, Statement, general_schema, pick, plant

INDUCE = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples"),
)
COMPLETE = (
    *("documents", "chunks", "claims", "raw_triples"),
    *("entities", "relations", "triples", "instances"),
)
GENERAL = "https://w3id.org/kpyramid/general#"
PERSON, PLACE = GENERAL + "Person", GENERAL + "PopulatedPlace"
PEOPLE = ["Ada Byron", "Bela Kiss", "Carl Orme", "Dora Lind", "Egon Ray", "Fay Moss", "Gus Hale"]
TOWNS = ["Arnstadt", "Bergen", "Coimbra", "Durham", "Evora", "Ferrara", "Ghent"]
KNOWN: list[Statement] = [
    (person, "PERSON", "was born in", town, "GPE")
    for person, town in zip(PEOPLE, TOWNS, strict=True)
]
MISSING: list[Statement] = [
    (loser, "PERSON", "lost the chess match against", winner, "PERSON")
    for loser, winner in zip(PEOPLE, PEOPLE[1:] + PEOPLE[:1], strict=True)
]
VILLAGES: list[Statement] = [(town, "GPE", "is a", "small village", "NOUN") for town in TOWNS]


@dataclass
class Completed:
    """What the stage was given and made."""

    tables: dict[str, pa.Table]
    made: dict[str, pa.Table]
    schema: Schema

    @property
    def proposals(self) -> list[dict[str, Any]]:
        return list(self.made["proposals"].to_pylist())

    def find(self, label: str) -> dict[str, Any]:
        (found,) = [row for row in self.proposals if row["label"] == label]
        return found

    @property
    def grown(self) -> Schema:
        return adopt_proposals(self.schema, self.proposals)

    @property
    def names(self) -> dict[str, str]:
        return {r["entity_id"]: r["name"] for r in self.tables["entities"].to_pylist()}

    def list_values(self, iri: str) -> set[tuple[str, str]]:
        """Subject and value of the instances of a property that completion made."""
        return {
            (self.names[r["subject_id"]], self.names.get(r["object_id"], r["literal"]))
            for r in self.made["instances"].to_pylist()
            if r["property_iri"] == iri
        }

    def list_members(self, iri: str) -> set[str]:
        """The individuals that completion found to be of a class."""
        return {
            self.names[r["subject_id"]]
            for r in self.made["instances"].to_pylist()
            if r["class_iri"] == iri and r["property_iri"] is None
        }


def run_induce(tables: dict[str, pa.Table], schema: Schema | None = None) -> dict[str, pa.Table]:
    """Stage induce by rules."""
    return induce.run(
        *pick(tables, *INDUCE),
        schema=schema or general_schema(),
        shapes=(),
        embedder=MemoEmbedder(),
        annotator=lambda texts: ["" for _ in texts],
        reader=None,
        inducer=None,
    )


def run_complete(
    statements: Iterable[Statement],
    *,
    decisions: str = "",
    schema: Schema | None = None,
    embedder: Any = None,
    **options: Any,
) -> Completed:
    """Stages induce and complete on a planted graph."""
    tables = plant(statements)
    schema = schema or general_schema()
    tables["instances"] = run_induce(tables, schema)["instances"]
    made = complete.run(
        *pick(tables, *COMPLETE),
        settings=CompleteSettings(**{"region_share": 0.8, **options}),
        schema=schema,
        shapes=(),
        decisions=parse_decisions(decisions, "proposals.toml") if decisions else NONE,
        embedder=embedder or MemoEmbedder(),
        namer=None,
    )
    return Completed(tables, made, schema)


NONE = Decisions((), "no decisions file")


def suggest(label: str, *wordings: str, **changes: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A property from person to person, supported by all facts that say one of the wordings."""
    values: dict[str, Any] = {
        "kind": "property",
        "label": label,
        "definition": f"That {label}.",
        "domain": PERSON,
        "range": PERSON,
        "phrases": wordings or (label,),
        "score": 0.5,
        "agreement": 1.0,
    }
    return values | changes, wordings or (label,)


@dataclass
class Scripted:
    """Stands in for `propose`: round by round what a test says, at last nothing."""

    rounds: Sequence[Sequence[tuple[dict[str, Any], tuple[str, ...]]]]
    seen: list[OntologyLayer] = field(default_factory=list)

    def __call__(self, graph: GraphLayer, ontology: OntologyLayer, **_: object) -> Completion:
        said = self.rounds[len(self.seen)] if len(self.seen) < len(self.rounds) else ()
        self.seen.append(ontology)
        proposals = tuple(
            Proposal(
                **values,
                facts=tuple(
                    place
                    for place, (wording, tail) in enumerate(
                        zip(graph.wordings, graph.tails, strict=True)
                    )
                    if wording in wordings or f"{wording} {tail}" in wordings
                ),
            )
            for values, wordings in said
        )
        return make_completion(graph, proposals)


def make_completion(graph: GraphLayer, proposals: tuple[Proposal, ...]) -> Completion:
    """A space of one point per fact, with nothing measured."""
    texts = sorted({f"{h} {w}" for h, w in zip(graph.heads, graph.wordings, strict=True)})
    place = {text: index for index, text in enumerate(texts)}

    def fill(texts: list[str]) -> Phrases:
        zeros = np.zeros(len(texts))
        points = np.zeros((len(texts), 2))
        return Phrases(
            texts, np.ones(len(texts), np.int64), points, zeros, zeros, Moments.of(points)
        )

    phrase_of = [place[f"{h} {w}"] for h, w in zip(graph.heads, graph.wordings, strict=True)]
    return Completion(
        graph=fill(texts),
        ontology=fill([]),
        explained=np.ones(2) / 2,
        phrase_of=np.array(phrase_of, np.int64),
        sign=np.zeros(len(texts), np.int64),
        log_magnitude=np.zeros(len(texts)),
        region=np.zeros(len(texts), bool),
        proposals=proposals,
    )


def use_script(
    monkeypatch: pytest.MonkeyPatch, *rounds: Sequence[tuple[dict[str, Any], tuple[str, ...]]]
) -> Scripted:
    """Has the stage take these proposals, round by round."""
    scripted = Scripted(rounds)
    monkeypatch.setattr(complete, "propose", scripted)
    return scripted
