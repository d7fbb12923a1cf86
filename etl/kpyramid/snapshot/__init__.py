"""A published snapshot opened for reading: scope, tables, index, evidence, SPARQL.

Imports storage, ontology and embeddings; imported by `query` and the pipeline.
"""

from typing import Literal

Form = Literal[
    "folder",
    "tar",
    "site",
    "turtle",
    "jsonld",
    "nquads",
    "graphml",
    "neo4j",
    "jsonl",
    "duckdb",
    "lance",
]
"""Forms of export; named here, where nothing heavy is loaded."""
