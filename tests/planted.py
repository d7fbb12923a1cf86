"""Graphs with a planted truth, and the stages complete and condense run on them."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kpyramid.completion.corrections import Corrections
from kpyramid.completion.decisions import Decisions, parse_decisions
from kpyramid.completion.types import (
    Completion,
    GraphLayer,
    Layers,
    OntologyLayer,
    Phrases,
    Proposal,
)
from kpyramid.condensation.condenser import Bars, Condensed
from kpyramid.condensation.graph import Neighbourhood
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.keys import content_id
from kpyramid.numerics.moments import Moments
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema, write_schema
from kpyramid.pipeline.stages import complete, condense, induce, resolve
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.pipeline.wiring import load_schema
from kpyramid.settings import MINILM, CompleteSettings, CondenseSettings, EmbedSettings, Settings
from kpyramid.storage.columns import encode
from kpyramid.storage.identity import identify_embedding
from tests.conftest import open_remembering

Statement = tuple[str, str, str, str, str]
"""Head, its type, relation, tail, its type."""


@dataclass
class MemoEmbedder:
    """The real model, each text embedded once per test run."""

    name: str = MINILM

    def embed(self, texts: Sequence[str]) -> Matrix:
        return _open_model().embed(texts)


class WordEmbedder:
    """A text's vector counts its words: texts are alike when they share words."""

    name = "words"

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                vectors[row, zlib.crc32(word.encode()) % 512] += 1
        scaled: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled


@cache
def _open_model() -> Embedder:
    return open_remembering(MINILM, identify_embedding(EmbedSettings()).files)


@cache
def general_schema() -> Schema:
    return load_schema(Settings())


@dataclass(frozen=True)
class Held:
    """Tables in memory as a `Former`."""

    tables: Mapping[str, pa.Table]

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        return self.tables[table].select([*columns])

    def read_schema(self) -> str:
        return write_schema(general_schema())


NOTHING = {"title": None, "language": "en", "metadata": [], "access": [], "licence": None}
FACT = {"negated": False, "modality": None, "attribution": None, "qualifiers": []}


def plant(statements: Iterable[Statement], former: Any = None) -> dict[str, pa.Table]:
    """All tables up to `triples` of a corpus that states exactly this, a chunk per statement."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("documents", "chunks", "claims", "mentions", "raw_triples")
    }
    for number, (head, head_type, relation, tail, tail_type) in enumerate(statements):
        text = f"{head} {relation} {tail}"
        whole = {"start": 0, "end": len(text)}
        document = {"document_id": content_id("doc", number, text)}
        chunk = {"chunk_id": content_id("chunk", document["document_id"], 0, len(text))}
        claim = {"claim_id": content_id("claim", chunk["chunk_id"], text)} | chunk
        start = len(text) - len(tail)
        head_span = {"start": 0, "end": len(head)}
        tail_span = {"start": start, "end": len(text)}
        file = {"source": f"{number}.txt", "text": text, "sha256": "0" * 64}
        rows["documents"].append(NOTHING | document | file)
        rows["chunks"].append(
            chunk | document | whole | {"text": text, "tokens": len(text.split())}
        )
        stated = {"text": text, "spans": [whole], "predicate": None, "arguments": []}
        rows["claims"].append(claim | stated | {"producer": "rules"})
        for side, words, kind, span in (
            ("head", head, head_type, head_span),
            ("tail", tail, tail_type, tail_span),
        ):
            mention = {"mention_id": content_id("mention", claim["claim_id"], side)}
            rows["mentions"].append(claim | mention | {"text": words, "type": kind} | span)
        raw = {"raw_triple_id": content_id("raw", claim["claim_id"])}
        spans = {"head_span": head_span, "tail_span": tail_span}
        spans["relation_span"] = {"start": len(head) + 1, "end": start - 1}
        words = {"head": head, "relation": relation, "tail": tail}
        surely = {"confidence": 0.9, "producer": "rules"}
        rows["raw_triples"].append(claim | raw | words | spans | FACT | surely)
    tables = {name: build_table(name, made) for name, made in rows.items()}
    made = resolve.run(
        *pick(tables, "documents", "mentions", "raw_triples", "chunks"),
        embedder=MemoEmbedder(),
        former=former,
        disambiguator=None,
        min_confidence=0.0,
        corrections=Corrections(),
    )
    return tables | {name: table for name, table in made.items() if name != "rejects"}


def pick(tables: dict[str, pa.Table], *names: str) -> list[pa.Table]:
    """Some tables, in order."""
    return [tables[name] for name in names]


INDUCE = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples"),
)
COMPLETE = (
    *("documents", "chunks", "claims", "raw_triples"),
    *("entities", "relations", "triples", "instances", "proposals"),
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
PLAYERS: list[Statement] = [(person, "PERSON", "is a", "chess player", "NOUN") for person in PEOPLE]
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


def run_induce(
    tables: dict[str, pa.Table], schema: Schema | None = None, **ports: Any
) -> dict[str, pa.Table]:
    """Stage induce by rules."""
    usual = {
        **dict.fromkeys(("former", "drafting", "reader", "inducer", "cascade")),
        **{"shapes": (), "min_confidence": 0.0, "corrections": Corrections()},
        "annotator": lambda texts: ["" for _ in texts],
        "embedder": MemoEmbedder(),
    }
    given = {**usual, "schema": schema or general_schema(), **ports}
    return induce.run(*pick(tables, *INDUCE), **given)


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
    induced = run_induce(tables, schema)
    tables |= {name: induced[name] for name in ("instances", "proposals")}
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
        ones, words = np.ones(len(texts), np.int64), encode(texts).words
        return Phrases(words, ones, points, zeros, zeros, Moments.of(points))

    phrase_of = [place[f"{h} {w}"] for h, w in zip(graph.heads, graph.wordings, strict=True)]
    return Completion(
        measure=lambda: Layers(fill(texts), fill([]), np.ones(2) / 2),
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


READS = ("entities", "relations", "triples", "proposals", "chunks", "raw_triples")
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


def state(
    statements: Iterable[Statement], times: Mapping[Words, str] = MappingProxyType({})
) -> dict[str, pa.Table]:
    """The tables of a graph that states exactly this; `resolve` would unite some of it.

    `times`: those that qualify facts.
    """
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
            "qualifiers": [("time", at)] if (at := times.get((head, wording, tail))) else [],
            "confidence": 0.9,
            "raw_triple_ids": [],
        }
    made = {"entities": entities, "relations": relations, "triples": triples, "proposals": {}}
    made |= {"chunks": {}, "raw_triples": {}}
    return {name: build_table(name, rows.values()) for name, rows in made.items()}


def condense_statements(
    statements: Iterable[Statement],
    *,
    schema: Schema | None = None,
    embedder: Embedder | None = None,
    condenser: YesSayer | None = None,
    times: Mapping[Words, str] = MappingProxyType({}),
    **options: float,
) -> Condensation:
    """The condensed graph of some statements, with the general ontology and the real model."""
    tables = state(statements, times)
    made = condense.run(
        *(tables[name] for name in READS),
        settings=CondenseSettings(**options),  # type: ignore[arg-type]
        schema=schema or general_schema(),
        embedder=embedder or MemoEmbedder(),
        former=None,
        condenser=condenser,  # type: ignore[arg-type]
        summariser=None,
    )
    return Condensation(tables, made)
