"""Completion and condensation in a report: what was proposed, what was merged and what clashes.

Asked of a snapshot's tables in SQL.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.keys import JsonValue
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema
from kpyramid.snapshot.graph import name_source, open_database

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

Row = dict[str, Any]

_STATES = ("accepted", "open", "alias", "rejected")
_MOST_PROPOSALS, _MOST_EXAMPLES = 25, 3
_MOST_MERGES, _MOST_PARTS = 12, 6
_MOST_CONTRADICTIONS = 20
_LONGEST = 320
"""Characters of a sentence that are shown."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@contextmanager
def open_tables(folder: Path) -> "Iterator[Database]":
    """The tables of a snapshot's folder, by their names, and `derivations`: a row per triple.

    Raises:
        IntegrityError: one is missing or damaged.
    """
    with open_database() as database:
        for path in sorted((folder / "tables").glob("*.parquet")):
            source = name_source(database, path.stem, path)
            database.execute(f"CREATE VIEW {path.stem} AS FROM {source}")
        database.execute(
            "CREATE VIEW derivations AS SELECT unnest(derived_from) AS triple_id, condensed_id, "
            "unnest(how) AS how FROM condensed"
        )
        yield database


def select_rows(database: "Database", query: str, **given: object) -> list[Row]:
    """The rows of a query, each by the names of its columns; `$name` stands for what is given."""
    rows: list[Row] = database.sql(query, params=given or None).to_arrow_table().to_pylist()
    return rows


def name_term(iri: str | None, schema: Schema) -> str | None:
    """The label of a class or property, else the words that its IRI ends with.

    The class of all things is `anything`, a datatype `xsd:gYear`.
    """
    if iri is None or iri == THING:
        return iri and "anything"
    if iri.startswith(XSD):
        return f"xsd:{iri.removeprefix(XSD)}"
    term = schema.class_by_iri.get(iri) or schema.property_by_iri.get(iri)
    return term.label if term else _CAMEL.sub(" ", re.split(r"[#/]", iri)[-1])


def describe_completion(database: "Database", schema: Schema) -> dict[str, JsonValue]:
    """Both layers in figures, the region in phrases, the proposals by state with examples."""
    counts = "SELECT count(*)::BIGINT AS phrases, coalesce(sum(facts), 0)::BIGINT AS facts"
    layers = {
        layer: select_rows(database, f"{counts} FROM phrases WHERE layer = $layer", layer=layer)[0]
        for layer in ("graph", "ontology")
    }
    (region,) = select_rows(database, f"{counts} FROM phrases WHERE region")
    explained = select_rows(database, "SELECT explained FROM layers ORDER BY layer LIMIT 1")
    shares = [round(share, 4) for share in explained[0]["explained"]] if explained else []
    rows = select_rows(database, "FROM proposals ORDER BY round, score DESC, proposal_id")
    by_state = {state: [row for row in rows if row["state"] == state] for state in _STATES}
    shown = {state: own[:_MOST_PROPOSALS] for state, own in by_state.items()}
    examples = {
        row["proposal_id"]: row["triple_ids"][:_MOST_EXAMPLES]
        for own in shown.values()
        for row in own
    }
    evidence = find_evidence(database, {key for keys in examples.values() for key in keys})
    return {
        "layers": layers,
        "dimensions": len(shares),
        "explained": round(sum(shares), 4),
        "region": region,
        "rounds": max((row["round"] for row in rows), default=0),
        "counts": {state: len(own) for state, own in by_state.items() if own},
        "proposals": {
            state: [
                {
                    **{name: value for name, value in row.items() if name != "triple_ids"},
                    **{
                        name: name_term(row[name], schema)
                        for name in ("domain", "range", "inverse_of", "splits")
                    },
                    "existing": name_term(row["iri"], schema) if state == "alias" else None,
                    "examples": [evidence[key] for key in examples[row["proposal_id"]]],
                }
                for row in own
            ]
            for state, own in shown.items()
        },
    }


def describe_condensation(database: "Database", schema: Schema) -> dict[str, JsonValue]:
    """How many facts became how many and how, the merges that say most, contradictions."""
    (counts,) = select_rows(
        database,
        "SELECT coalesce(sum(len(derived_from)), 0)::BIGINT AS triples, count(*) AS condensed, "
        "count(*) FILTER (len(derived_from) > 1) AS merged_into, count(anchor) AS anchored "
        "FROM condensed",
    )
    how = select_rows(database, "SELECT how, count(*) AS n FROM derivations GROUP BY how")
    clashes = select_rows(database, "FROM contradictions ORDER BY contradiction_id")
    shown = clashes[:_MOST_CONTRADICTIONS]
    sides = _read_facts(database, [key for row in shown for key in row["condensed_ids"]])
    return {
        **counts,
        "how": {row["how"]: row["n"] for row in sorted(how, key=lambda row: str(row["how"]))},
        "merges": _describe_merges(database, schema),
        "contradictions": len(clashes),
        "contradicting": [
            {
                "kind": row["kind"],
                "anchor": name_term(row["anchor"], schema),
                "detail": row["detail"],
                "sides": [
                    {"condensed_id": key, **sides[key]["parts"][0]} for key in row["condensed_ids"]
                ],
            }
            for row in shown
        ],
    }


def _describe_merges(database: "Database", schema: Schema) -> list[Row]:
    """The merges of most different wordings; of merges of the same wordings the first."""
    chosen = select_rows(
        database,
        "SELECT min(condensed_id) AS condensed_id FROM (SELECT condensed_id, "
        "list_sort(list(DISTINCT relation_id)) AS wordings FROM derivations "
        "JOIN triples USING (triple_id) GROUP BY condensed_id HAVING count(*) > 1) "
        "GROUP BY wordings ORDER BY len(wordings) DESC, condensed_id LIMIT $most",
        most=_MOST_MERGES,
    )
    keys = [row["condensed_id"] for row in chosen]
    facts = _read_facts(database, keys, _MOST_PARTS)
    return [
        {
            "condensed_id": key,
            "fact": facts[key]["parts"][0]["fact"],
            "qualifiers": write_qualifiers(facts[key]["qualifiers"]),
            "anchor": name_term(facts[key]["anchor"], schema),
            "facts": len(facts[key]["derived_from"]),
            "from": facts[key]["parts"],
        }
        for key in keys
    ]


def _read_facts(database: "Database", keys: Sequence[str], most: int = 1) -> dict[str, Row]:
    """Condensed facts by key; `parts`: the first triples of each with how each came in.

    What was kept comes first.
    """
    rows = select_rows(
        database, "FROM condensed WHERE condensed_id IN (SELECT unnest($keys))", keys=[*keys]
    )
    parts = {
        row["condensed_id"]: sorted(
            zip(row["derived_from"], row["how"], strict=True),
            key=lambda pair: (pair[1] != "kept", pair[1], pair[0]),
        )[:most]
        for row in rows
    }
    evidence = find_evidence(database, {key for pairs in parts.values() for key, _ in pairs})
    for row in rows:
        own = parts[row["condensed_id"]]
        row["parts"] = [{"how": how, "triple_id": key, **evidence[key]} for key, how in own]
    return {row["condensed_id"]: row for row in rows}


def find_evidence(database: "Database", triple_ids: Collection[str]) -> Mapping[str, Row]:
    """Triples in words by id, each with the text of its surest statement and its source.

    `qualifiers` say when, where and how it holds; `confidence`, how surely it was read; `places`,
    how many statements it has.
    """
    rows = select_rows(database, _EVIDENCE, keys=sorted(triple_ids))
    return {
        row["triple_id"]: {
            "fact": [row["head"], row["relation"], row["tail"]],
            "qualifiers": write_qualifiers(row["qualifiers"]),
            "confidence": row["confidence"],
            "sentence": shorten(row["text"], _LONGEST, placeholder=" …"),
            "source": row["source"],
            "places": row["places"],
        }
        for row in rows
    }


_EVIDENCE = """
WITH wanted AS (FROM triples WHERE triple_id IN (SELECT unnest($keys))),
stated AS (SELECT triple_id, unnest(raw_triple_ids) AS raw_triple_id FROM wanted),
places AS (SELECT claim_id, unnest(spans) AS span FROM claims)
SELECT DISTINCT ON (triple_id) triple_id, heads.name AS head, relations.name AS relation,
    coalesce(tails.name, wanted.literal) AS tail, wanted.qualifiers, wanted.confidence,
    substring(documents.text, span.start + 1, span."end" - span.start) AS text, source,
    len(raw_triple_ids) AS places
FROM wanted JOIN stated USING (triple_id)
JOIN raw_triples USING (raw_triple_id)
JOIN places USING (claim_id)
JOIN chunks USING (chunk_id)
JOIN documents USING (document_id)
JOIN entities AS heads ON heads.entity_id = wanted.head_id
JOIN relations USING (relation_id)
LEFT JOIN entities AS tails ON tails.entity_id = wanted.tail_id
ORDER BY triple_id, raw_triples.confidence DESC, raw_triple_id, span.start
"""
