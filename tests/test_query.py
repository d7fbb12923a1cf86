"""The query module: which layer answers, what it rests on, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.build import build
from kpyramid.errors import InputError
from kpyramid.query import STRATEGIES, Snapshot, answer, open_snapshot
from kpyramid.query.linking import link_question
from kpyramid.query.sparql_rules import ask_by_rules
from kpyramid.query.types import Outcome
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import open_warehouse

TEXTS = {
    "ada.txt": "Ada Lovelace was born in London on 10 December 1815. She was a mathematician.",
    "mill.txt": "The Harlow Brewing Company was founded by John Harlow in 1871. "
    "It owns a mill for barley.",
    "hill.txt": "Brent Tor is a hill in Devon. Its elevation is 330 metres. "
    "Granite crosses mark the path that pilgrims took to the chapel on its summit.",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    corpus = tmp_path_factory.mktemp("corpus")
    for name, text in TEXTS.items():
        (corpus / name).write_text(text)
    warehouse = open_warehouse(tmp_path_factory.mktemp("warehouse"))
    build(corpus, warehouse, Settings())
    return open_snapshot("main", warehouse.root)


@pytest.mark.parametrize(
    ("question", "layer", "expected"),
    [
        ("Where was Ada Lovelace born?", "ontology", "London"),
        ("When was Ada Lovelace born?", "ontology", "1815-12-10"),
        ("Who founded the Harlow Brewing Company?", "ontology", "John Harlow"),
        ("What is the elevation of Brent Tor?", "graph", "330 metres"),
        ("Which path did pilgrims take to the chapel?", "text", TEXTS["hill.txt"][59:]),
    ],
)
def test_polyrag_answers_from_the_highest_layer_that_knows(
    snapshot: Snapshot, question: str, layer: str, expected: str
) -> None:
    found = answer(question, snapshot)
    assert (found.layer, found.text) == (layer, expected)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"direct"}))
def test_every_strategy_shows_evidence_that_stands_in_the_documents(
    snapshot: Snapshot, strategy: str
) -> None:
    found = answer("Where was Ada Lovelace born?", snapshot, strategy)
    assert found.context and found.evidence and found.trace and found.seconds > 0
    for item in found.evidence:
        assert TEXTS[item.source][item.start : item.end] == item.text
    assert found.evidence[0].source == "ada.txt"


def test_layers_can_be_switched_off_one_by_one(snapshot: Snapshot) -> None:
    question = "Where was Ada Lovelace born?"
    assert answer(question, snapshot, ontology=False).layer == "graph"
    assert answer(question, snapshot, ontology=False, graph=False).layer == "text"
    nothing = answer(question, snapshot, ontology=False, graph=False, text=False)
    assert (nothing.layer, nothing.text, nothing.evidence) == (None, "", ())


def test_the_trace_says_why_the_upper_layers_were_not_enough(snapshot: Snapshot) -> None:
    found = answer("What is the elevation of Brent Tor?", snapshot)
    assert [step.layer for step in found.trace] == ["ontology", "graph"]
    assert "elevation" in str(found.trace[0])


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        ("Where was Ada Lovelace born?", "answered"),
        ("What is the elevation of Brent Tor?", "empty"),
        ("Which path did pilgrims take to the chapel?", "failed"),
    ],
)
def test_the_trace_tells_apart_how_the_ontology_layer_ended(
    snapshot: Snapshot, question: str, outcome: str
) -> None:
    assert str(answer(question, snapshot).trace[0]).startswith(f"ontology: {outcome}: ")


def test_more_values_than_an_answer_holds_are_too_broad(snapshot: Snapshot) -> None:
    question = "Which company was founded by John Harlow?"
    assert ask_by_rules(question, snapshot).outcome is Outcome.ANSWERED
    assert ask_by_rules(question, snapshot, most=0).outcome is Outcome.TOO_BROAD


def test_a_question_of_another_kind_is_not_answered_with_the_wrong_kind_of_value(
    snapshot: Snapshot,
) -> None:
    found = answer("Where was the Harlow Brewing Company founded?", snapshot)
    assert found.layer == "text"  # the graph knows when, which is not what was asked


@pytest.mark.parametrize(
    "question",
    [
        "word " * 10_000,
        "¿Dónde nació Ada Lovelace?",
        "エイダはどこで生まれましたか",
        'x> . } ; DROP ALL # "Ada Lovelace" born } SELECT ?s WHERE { ?s ?p ?o',
        "Who founded Atlantis?",
        "?",
    ],
)
def test_an_odd_question_gets_an_answer_from_the_text_or_none(
    snapshot: Snapshot, question: str
) -> None:
    assert answer(question, snapshot).layer in {"text", None}


def test_an_empty_question_and_an_unknown_strategy_are_refused(snapshot: Snapshot) -> None:
    with pytest.raises(InputError, match="empty"):
        answer(" \n", snapshot)
    with pytest.raises(InputError, match=r"unknown strategy 'magic'.*polyrag"):
        answer("Who?", snapshot, "magic")
    with pytest.raises(InputError, match="chunky"):
        answer("Who?", snapshot, "naive", chunky=3)


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


def test_a_snapshot_removed_under_a_reader_is_a_clear_error(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(snapshot.folder, tmp_path / "snapshots" / snapshot.id)
    opened = open_snapshot(snapshot.id, tmp_path)
    shutil.rmtree(tmp_path / "snapshots")
    with pytest.raises(InputError, match=f"snapshot {snapshot.id} is no longer"):
        answer("Where was Ada Lovelace born?", opened)


def test_a_snapshot_of_another_embedding_model_is_refused(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Snapshot(snapshot.folder)
    resources = {"embedding": {"name": "minilm-int8", "sha256": "f" * 64}}
    monkeypatch.setitem(opened.manifest, "resources", resources)
    with pytest.raises(InputError, match="embedded with minilm-int8"):
        opened.neighbours("anything", 1)


def test_linking_takes_the_longest_name_and_leaves_the_other_words() -> None:
    index = {"new york": ("ny",), "new york times": ("nyt",), "york": ("y",)}
    found = link_question("Who founded the New York Times?", index)
    assert (found.entities, found.lemmas, found.asks_for) == (("nyt",), ("found",), "who")


def test_the_query_module_is_thin() -> None:
    program = (
        "import sys, kpyramid; kpyramid.open_snapshot; "
        "print(*sorted({'spacy', 'sklearn', 'owlready2', 'airflow', 'kmedoids', 'openai', 'duckdb'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("question", ["Who founded Norway?", "What is the capital of Italy?"])
def test_what_no_text_says_is_not_answered_with_what_lies_nearest(
    snapshot: Snapshot, question: str
) -> None:
    found = answer(question, snapshot)
    assert found.text == "" and found.choices == ()
    assert found.context and found.layer == "text"
    assert "no sentence is near" in str(found.trace[-1])


def test_a_model_of_ones_own_that_is_not_named_is_asked_for(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Snapshot(snapshot.folder)
    resources = {"embedding": {"name": "mymodel", "sha256": "f" * 64}}
    monkeypatch.setitem(opened.manifest, "resources", resources)
    with pytest.raises(InputError, match=r"'mymodel'.*--settings"):
        opened.neighbours("anything", 1)
