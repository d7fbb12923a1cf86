"""Graphs with a planted truth: what the text says is known exactly, for completion and the like."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.port import Matrix
from kpyramid.identity import MINILM, identify_embedding
from kpyramid.keys import content_id
from kpyramid.ontology.schema import Schema
from kpyramid.ports import load_schema
from kpyramid.settings import EmbedSettings, Settings
from kpyramid.stages import resolve
from kpyramid.stages.tables import build_table

Statement = tuple[str, str, str, str, str]
"""Head, its type, relation, tail, its type."""


@dataclass
class MemoEmbedder:
    """The real model, each text embedded once per test run."""

    name: str = MINILM

    def embed(self, texts: Sequence[str]) -> Matrix:
        return _model().embed([]) if not texts else _stack(texts)


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


def _stack(texts: Sequence[str]) -> Matrix:
    return np.stack([_embed_one(text) for text in texts])


@cache
def _embed_one(text: str) -> Matrix:
    return _model().embed([text])[0]


@cache
def _model() -> OnnxEmbedder:
    files = identify_embedding(EmbedSettings()).files
    return OnnxEmbedder(MINILM, files["model.onnx"], files["tokenizer.json"])


@cache
def general_schema() -> Schema:
    return load_schema(Settings())


def plant(statements: Iterable[Statement]) -> dict[str, pa.Table]:
    """All tables up to `triples` of a corpus that states exactly this, a chunk per statement."""
    documents, chunks, claims, mentions, raws = [], [], [], [], []
    for number, (head, head_type, relation, tail, tail_type) in enumerate(statements):
        text = f"{head} {relation} {tail}"
        document_id = content_id("doc", number, text)
        chunk_id = content_id("chunk", document_id, 0, len(text))
        claim_id = content_id("claim", chunk_id, text)
        tail_start = len(text) - len(tail)
        spans = {"head": (0, len(head)), "tail": (tail_start, len(text))}
        documents.append(
            {
                "document_id": document_id,
                "source": f"{number}.txt",
                "title": None,
                "text": text,
                "language": "en",
                "metadata": [],
                "access": [],
                "licence": None,
                "sha256": "0" * 64,
            }
        )
        chunks.append(
            {
                "chunk_id": chunk_id,
                "document_id": document_id,
                "start": 0,
                "end": len(text),
                "text": text,
                "tokens": len(text.split()),
            }
        )
        claims.append(
            {
                "claim_id": claim_id,
                "chunk_id": chunk_id,
                "text": text,
                "spans": [{"start": 0, "end": len(text)}],
                "predicate": None,
                "arguments": [],
                "producer": "rules",
            }
        )
        for side, words, kind in (("head", head, head_type), ("tail", tail, tail_type)):
            mentions.append(
                {
                    "mention_id": content_id("mention", claim_id, side),
                    "claim_id": claim_id,
                    "chunk_id": chunk_id,
                    "text": words,
                    "type": kind,
                    "start": spans[side][0],
                    "end": spans[side][1],
                }
            )
        raws.append(
            {
                "raw_triple_id": content_id("raw", claim_id),
                "claim_id": claim_id,
                "chunk_id": chunk_id,
                "head": head,
                "relation": relation,
                "tail": tail,
                **{f"{s}_span": {"start": a, "end": b} for s, (a, b) in spans.items()},
                "relation_span": {"start": len(head) + 1, "end": tail_start - 1},
                "negated": False,
                "modality": None,
                "attribution": None,
                "qualifiers": [],
                "confidence": 0.9,
                "producer": "rules",
            }
        )
    tables = {
        "documents": build_table("documents", documents),
        "chunks": build_table("chunks", chunks),
        "claims": build_table("claims", claims),
        "mentions": build_table("mentions", mentions),
        "raw_triples": build_table("raw_triples", raws),
    }
    made = resolve.run(
        tables["mentions"],
        tables["raw_triples"],
        tables["chunks"],
        embedder=MemoEmbedder(),
        disambiguator=None,
    )
    return tables | {name: table for name, table in made.items() if name != "rejects"}


def pick(tables: dict[str, pa.Table], *names: str) -> list[pa.Table]:
    """Some tables, in order."""
    return [tables[name] for name in names]
