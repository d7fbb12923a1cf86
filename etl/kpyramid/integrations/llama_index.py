"""A snapshot as retriever and property graph of LlamaIndex (`pip install llama-index-core`)."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from llama_index.core.graph_stores import types
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode

from kpyramid.errors import InputError
from kpyramid.query.retrieval import list_pieces, retrieve
from kpyramid.snapshot.individuals import find_entities
from kpyramid.snapshot.snapshot import Snapshot


class PyramidRetriever(BaseRetriever):
    """The facts that are relevant to a question, then the passages, each as a node."""

    def __init__(self, snapshot: Snapshot, *, facts: int = 5, passages: int = 5) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._facts, self._passages = facts, passages

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retrieved = retrieve(
            query_bundle.query_str, self._snapshot, facts=self._facts, passages=self._passages
        )
        return [
            NodeWithScore(node=TextNode(text=text, id_=about["id"], metadata=about), score=score)
            for text, about in list_pieces(retrieved)
            for score in (about["score"],)
        ]


Names = list[str] | None
Fields = dict[str, Any] | None


class Thing(types.EntityNode):
    """An entity or a value; its id is the entity's, or the value itself, as names may be shared."""

    @property
    def id(self) -> str:
        return str(self.properties.get("id", self.name))


class PyramidGraphStore(types.PropertyGraphStore):
    """The graph of a snapshot, read-only: things by id or name, facts with their sentence."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def get(self, properties: Fields = None, ids: Names = None) -> list[types.LabelledNode]:
        """The things with these ids or names, or all, filtered by properties."""
        kinds, names = self._snapshot.types, self._snapshot.names
        keys = names if ids is None else self._link(ids)
        things = [_make_thing(key, names[key], kinds[key]) for key in keys]
        wanted = (properties or {}).items()
        return [thing for thing in things if wanted <= thing.properties.items()]

    def get_triplets(
        self,
        entity_names: Names = None,
        relation_names: Names = None,
        properties: Fields = None,
        ids: Names = None,
    ) -> list[types.Triplet]:
        """The facts of things, or all, filtered by relations and properties."""
        if entity_names is None and ids is None:
            facts = self._snapshot.table("condensed")["condensed_id"].to_pylist()
        else:
            facts = self._snapshot.facts_about(self._link([*(entity_names or ()), *(ids or ())]))
        wanted = (properties or {}).items()
        return [
            fact
            for fact in map(self._read, facts)
            if (not relation_names or fact[1].label in relation_names)
            and wanted <= fact[1].properties.items()
        ]

    def get_rel_map(
        self, graph_nodes: Any, depth: int = 2, limit: int = 30, ignore_rels: Names = None
    ) -> list[types.Triplet]:
        """The first facts around things, the nearest first."""
        collected: dict[str, types.Triplet] = {}
        near = [node.id for node in graph_nodes]
        for _ in range(depth):
            facts = {key: self._read(key) for key in self._snapshot.facts_about(near, limit)}
            collected |= {key: fact for key, fact in facts.items() if key not in collected}
            near = [end.id for fact in facts.values() for end in (fact[0], fact[2])]
        wanted = (fact for fact in collected.values() if fact[1].label not in (ignore_rels or ()))
        return [*wanted][:limit]

    def get_llama_nodes(self, node_ids: list[str]) -> list[BaseNode]:
        """The passages that facts name as their source."""
        return [
            TextNode(id_=key, text=place.text, metadata={"source": place.source})
            for key in node_ids
            for place in self._snapshot.evidence(key)
        ]

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        """The rows of a SPARQL query, as `Snapshot.sparql` gives them."""
        return self._snapshot.sparql(query)

    def vector_query(self, query: Any, **kwargs: Any) -> NoReturn:
        """Not offered: `PyramidRetriever` compares by the snapshot's own vectors."""
        raise NotImplementedError("use PyramidRetriever: vectors of another model are not compared")

    def upsert_nodes(self, *_: Any, **__: Any) -> NoReturn:
        """Never: a snapshot does not change."""
        raise NotImplementedError("a snapshot does not change: `kpyramid build` makes the next one")

    upsert_relations = delete = upsert_nodes

    def _link(self, names: Iterable[str]) -> list[str]:
        keys: dict[str, None] = {}
        for name in names:
            with suppress(InputError):  # nothing has that name
                keys |= dict.fromkeys(find_entities(name, self._snapshot))
        return [*keys]

    def _read(self, key: str) -> types.Triplet:
        fact = self._snapshot.read_fact(key)
        about: dict[str, Any] = {"id": key, "standard": fact.standard}
        for place in self._snapshot.evidence(key)[:1]:
            about |= {"sentence": place.text, "source": place.source}
            about |= {
                "start": place.start,
                "end": place.end,
                types.TRIPLET_SOURCE_KEY: place.chunk_id,
            }
        head = _make_thing(fact.head_id, fact.head, fact.head_type)
        tail = _make_thing(fact.tail_id or fact.tail, fact.tail, fact.tail_type)
        ids = {"source_id": head.id, "target_id": tail.id}
        return head, types.Relation(label=fact.relation, properties=about, **ids), tail


def _make_thing(key: str, name: str, kind: str) -> Thing:
    return Thing(name=name, label=kind, properties={"id": key})
