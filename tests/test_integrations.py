"""A snapshot as retriever and tools of other libraries, through these libraries themselves."""

import pytest

from kpyramid.query import TOOLS
from tests.tiny_pyramid import open_tiny

pytestmark = pytest.mark.needs("integrations")

QUESTION = "When was the Harlow Brewing Company founded?"


def test_langchain_retrieves_facts_then_passages() -> None:
    from kpyramid.integrations.langchain import PyramidRetriever

    documents = PyramidRetriever(snapshot=open_tiny(), facts=2, passages=1).invoke(QUESTION)
    assert [one.metadata["layer"] for one in documents] == ["graph", "graph", "text"]
    assert "1871" in documents[0].page_content
    assert documents[0].metadata["sources"] == ["mill.txt"]


def test_langchain_calls_the_tools() -> None:
    from kpyramid.integrations.langchain import list_tools

    listed = {tool.name: tool for tool in list_tools(open_tiny())}
    assert [*listed] == [*TOOLS]
    assert "John Harlow" in listed["retrieve"].invoke({"question": QUESTION})
    assert "person" in listed["find"].invoke({"class_name": "persn"})
    assert "valid" in listed["retrieve"].invoke({"facts": 1000})
    assert listed["find"].args["class_name"]["type"] == "string"


def test_haystack_retrieves_in_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")  # read when it is loaded
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner

    from kpyramid.integrations.haystack import PyramidRetriever

    pipeline = Pipeline()
    pipeline.add_component("pyramid", PyramidRetriever(open_tiny(), facts=2, passages=1))
    pipeline.add_component("joined", DocumentJoiner(sort_by_score=False))
    pipeline.connect("pyramid.documents", "joined.documents")
    documents = pipeline.run({"pyramid": {"query": QUESTION}})["joined"]["documents"]
    assert [one.meta["layer"] for one in documents] == ["graph", "graph", "text"]
    assert "1871" in documents[0].content
    assert documents[0].meta["sources"] == ["mill.txt"]


def test_llama_index_retrieves_facts_then_passages() -> None:
    from kpyramid.integrations.llama_index import PyramidRetriever

    nodes = PyramidRetriever(open_tiny(), facts=2, passages=1).retrieve(QUESTION)
    assert [node.metadata["layer"] for node in nodes] == ["graph", "graph", "text"]
    assert "1871" in nodes[0].get_content()
    assert nodes[0].score == nodes[0].node.metadata["score"]


def test_llama_index_reads_the_graph_and_cannot_change_it() -> None:
    from llama_index.core.graph_stores.types import TRIPLET_SOURCE_KEY

    from kpyramid.integrations.llama_index import PyramidGraphStore

    store = PyramidGraphStore(open_tiny())
    (harlow,) = store.get(ids=["John Harlow"])
    assert store.get(ids=[harlow.id, "nobody"]) == [harlow]
    facts = store.get_triplets(entity_names=["John Harlow"])
    assert facts and all(harlow.id in (head.id, tail.id) for head, _, tail in facts)
    (one, *_) = facts
    assert store.get_triplets(ids=[harlow.id], relation_names=[one[1].label])
    assert store.get_triplets(ids=[harlow.id], properties={"id": one[1].properties["id"]}) == [one]
    assert one in store.get_triplets(relation_names=[one[1].label])
    assert store.get_triplets(properties={"id": one[1].properties["id"]}) == [one]
    assert store.get(properties={"id": harlow.id}) == [harlow]
    wider = store.get_rel_map([harlow], depth=2)
    assert wider[: len(facts)] == facts and len(wider) > len(facts)
    assert len(store.get_rel_map([harlow], limit=1)) == 1
    (passage,) = store.get_llama_nodes([one[1].properties[TRIPLET_SOURCE_KEY]])
    assert one[1].properties["sentence"] in passage.get_content()
    assert store.structured_query("SELECT ?s WHERE { ?s a ?class }")
    with pytest.raises(NotImplementedError, match="does not change"):
        store.upsert_nodes([harlow])
