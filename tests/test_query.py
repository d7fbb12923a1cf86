"""The query module: which layer answers, what it rests on, and what it refuses."""

from pathlib import Path
from urllib.parse import quote

import pyoxigraph as ox
import pytest

from kpyramid.errors import InputError
from kpyramid.ontology.names import RELATION
from kpyramid.query import STRATEGIES, Snapshot, answer, open_snapshot
from kpyramid.query.decisions import SUFFICIENT
from tests.rows import each_row
from tests.tiny_pyramid import TEXTS


@each_row("question, layer, expected")
def test_polyrag_answers_from_the_highest_layer_that_knows(
    snapshot: Snapshot, question: str, layer: str, expected: str
) -> None:
    found = answer(question, snapshot)
    assert (found.layer, found.text) == (layer, expected)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"direct", "naive", "tools"}))
def test_every_strategy_shows_evidence_of_documents(snapshot: Snapshot, strategy: str) -> None:
    found = answer("Where was Ada Lovelace born?", snapshot, strategy)
    assert found.context and found.evidence and found.trace and found.seconds > 0
    for item in found.evidence:
        assert TEXTS[item.source][item.start : item.end] == item.text
    assert found.evidence[0].source == "ada.txt"


def test_layers_can_be_switched_off_one_by_one(snapshot: Snapshot) -> None:
    question = "Where was Ada Lovelace born?"
    assert answer(question, snapshot, ontology=False).layer == "graph"
    silent = answer(question, snapshot, ontology=False, graph=False)
    assert (silent.layer, silent.text) == ("text", "") and silent.context
    nothing = answer(question, snapshot, ontology=False, graph=False, text=False)
    assert (nothing.layer, nothing.text, nothing.evidence) == (None, "", ())


def test_an_odd_question_gets_no_answer_that_claims_to_be_right(snapshot: Snapshot) -> None:
    for question in (
        *("word " * 500, "¿Dónde nació Ada Lovelace?", "エイダはどこで生まれましたか"),
        *("Где родилась Ада Лавлейс?", "🏔️🏔️ where 🏔️?", "What\x00 is\x1b[31m there?"),
        *("Who founded Atlantis?", "{{ 7 * 7 }} <script>alert(1)</script>", "?", "' OR 1=1 --"),
        *('"} DROP ALL {"', "SERVICE <http://127.0.0.1:9/> { ?s ?p ?o }"),
    ):
        found = answer(question, snapshot)
        assert found.text == "" or found.confidence < SUFFICIENT
        assert found.layer in {"text", None} and found.trace
        assert not any(c in found.question for c in "\x00\x1b")
    for question in ("Who founded Norway?", "What is the capital of Italy?"):
        found = answer(question, snapshot)
        assert found.text == "" and found.choices == ()
        assert found.context and found.layer == "text"
        assert found.confidence < SUFFICIENT


def test_snapshot_gives_tables_sparql_neighbours_and_evidence(snapshot: Snapshot) -> None:
    assert snapshot.table("documents").num_rows == len(TEXTS)
    rows = snapshot.sparql(
        "SELECT ?label WHERE { ?s a <https://w3id.org/kpyramid/general#Person> ; "
        "<http://www.w3.org/2000/01/rdf-schema#label> ?label }"
    )
    assert {"Ada Lovelace", "John Harlow"} <= {row["label"] for row in rows}
    (key, text, cosine), *_ = snapshot.neighbours("birth of Ada Lovelace", 3)
    assert "Ada Lovelace" in text and 0 < cosine <= 1.0001
    assert snapshot.evidence(key)[0].source == "ada.txt"
    assert snapshot.evidence("condensed-unknown") == []
    with pytest.raises(InputError, match="no table 'nope'"):
        snapshot.table("nope")


def test_sparql_asks_the_graph_by_standard_relations(snapshot: Snapshot) -> None:
    rows = snapshot.sparql(
        "SELECT ?name ?relation ?end WHERE { GRAPH kp:graph { ?s ?p ?o . ?s rdfs:label ?name . "
        "?p rdfs:label ?relation . OPTIONAL { ?o rdfs:label ?label } } "
        "BIND(COALESCE(?label, ?o) AS ?end) }"
    )
    condensed = snapshot.table("condensed").to_pylist()
    facts = [fact for fact in condensed if not fact["negated"]]
    names = snapshot.names
    assert {tuple(row.values()) for row in rows} == {
        (
            names[fact["standard_head_id"]],
            fact["standard_relation"],
            names[fact["standard_tail_id"]] if fact["standard_tail_id"] else fact["literal"],
        )
        for fact in facts
    }
    asked = {fact["standard_relation"] for fact in facts}
    for relation in sorted(asked):
        query = f"ASK {{ GRAPH kp:graph {{ ?s rel:{quote(relation)} ?o }} }}"
        assert snapshot.sparql(query) == [{"ask": "true"}]
    exported = ox.parse(path=snapshot.folder / "graph.ttl", format=ox.RdfFormat.TURTLE)
    relations = {quad.predicate.value for quad in exported if RELATION in quad.predicate.value}
    assert relations == {RELATION + quote(relation) for relation in asked}, "as in the export"
    plain = snapshot.sparql("ASK { ?s ?p ?o FILTER STRSTARTS(STR(?p), STR(rel:)) }")
    assert plain == [{"ask": "false"}], "the graph is asked by name alone"


def test_a_snapshot_removed_under_a_reader_is_a_clear_error(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(snapshot.folder, tmp_path / "snapshots" / snapshot.id)
    opened = open_snapshot(snapshot.id, tmp_path)
    shutil.rmtree(tmp_path / "snapshots")
    with pytest.raises(InputError, match=f"snapshot {snapshot.id} is no longer"):
        answer("Where was Ada Lovelace born?", opened)


def test_another_embedding_model_is_refused(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, told in (
        ("minilm-int8", "embedded with minilm-int8"),
        ("mymodel", r"'mymodel'.*--settings"),
    ):
        opened = Snapshot(snapshot.folder)
        resources = {"embedding": {"name": name, "sha256": "f" * 64}}
        monkeypatch.setitem(opened.manifest, "resources", resources)
        with pytest.raises(InputError, match=told):
            opened.neighbours("anything", 1)
