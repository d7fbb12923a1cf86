"""What the ontology lacked: the wordings that most facts use where the graph is denser."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.units import says_something
from kpyramid.extraction.normal import normalise_relation
from kpyramid.keys import JsonValue
from kpyramid.reporting.tables import Row, SnapshotTables, to_numpy
from kpyramid.reporting.words import Words

_MOST = 15


@dataclass(frozen=True, slots=True)
class Lacking:
    """What things of one kind are said to do, and the ontology has no property for.

    `nats`: mean of the logarithm of how much denser the graph is than the ontology at its phrases.
    `example`: a triple. `proposal`: id, label and state of what was proposed for it, if anything.
    """

    kind: str
    wording: str
    facts: int
    nats: float
    example: str
    proposal: tuple[str, str, str] | None

    def describe(self) -> dict[str, JsonValue]:
        return {
            "kind": self.kind,
            "wording": self.wording,
            "facts": self.facts,
            "nats": round(self.nats, 4),
            "proposal": list(self.proposal) if self.proposal else None,
        }


def list_lacking(tables: SnapshotTables, words: Words, proposals: Iterable[Row]) -> list[Lacking]:
    """The wordings by type of head of the region's facts, where the graph is denser, by facts.

    Left out are wordings without a meaning of their own, as `has`, and those of properties that
    the ontology had.
    """
    facts = _read_region(tables)
    facts = facts.filter(pc.greater(facts["nats"], 0.0))
    groups = (
        facts.group_by(["type", "wording"], use_threads=False)
        .aggregate([([], "count_all"), ("nats", "mean"), ("triple_id", "min")])
        .sort_by([("count_all", "descending"), ("wording", "ascending"), ("type", "ascending")])
    )
    proposed = {
        normalise_relation(phrase).key: (row["proposal_id"], row["label"], row["state"])
        for row in reversed(list(proposals))
        for phrase in row["phrases"]
    }
    found: list[Lacking] = []
    for batch in groups.to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            if len(found) == _MOST:
                return found
            form = normalise_relation(row["wording"])
            known = form.key not in proposed and words.states_property(form.key)
            if known or not says_something(form):
                continue
            found.append(
                Lacking(
                    words.name_type(row["type"]),
                    row["wording"],
                    row["count_all"],
                    row["nats_mean"],
                    row["triple_id_min"],
                    proposed.get(form.key),
                )
            )
    return found


def _read_region(tables: SnapshotTables) -> pa.Table:
    """Per fact of the region its id, the type of its head, its wording and its nats."""
    scored = tables.read("priorities", ("triple_id", "phrase_id", "region"))
    scored = scored.filter(scored["region"])
    phrases = tables.read("phrases", ("phrase_id", "log_graph", "log_ontology"))
    nats = pc.subtract(phrases["log_graph"], phrases["log_ontology"]).combine_chunks()
    triples = tables.read("triples", ("triple_id", "head_id", "relation_id"))
    triples = triples.take(_find(scored["triple_id"], triples["triple_id"]))
    entities = tables.read("entities", ("entity_id", "type"))
    relations = tables.read("relations", ("relation_id", "name"))
    return pa.table(
        {
            "triple_id": scored["triple_id"],
            "nats": nats.take(_find(scored["phrase_id"], phrases["phrase_id"])),
            "type": entities["type"].take(_find(triples["head_id"], entities["entity_id"])),
            "wording": relations["name"].take(
                _find(triples["relation_id"], relations["relation_id"])
            ),
        }
    )


def _find(values: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.Array:
    """Where each value stands among the keys."""
    found = pc.index_in(values.combine_chunks(), keys.combine_chunks())
    return pa.array(to_numpy(found), pa.int64())
