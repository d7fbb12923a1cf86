"""Text2KGBench: its scorer against published figures, ontologies and benchmark."""

import json
from functools import partial
from pathlib import Path

import pytest
import reader_weights
import text2kgbench
from sets.text2kgbench import GoldSentence, score_ontology
from sets.text2kgbench_ontologies import convert_ontology

from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import parse_schema
from tests.corpora import find_bench
from tests.rows import read_bodies

(ONTOLOGY,) = read_bodies("text2kgbench.ontology")
GOLD = {
    "1": GoldSentence("Nora built the Otter.", (("Otter", "built by", "Nora"),)),
    "2": GoldSentence("Nothing is said.", (("Otter", "fate", "sunk"),)),
}


@pytest.mark.slow
def test_recorded_responses_get_their_published_figures() -> None:
    figures = text2kgbench.reproduce(find_bench("text2kgbench_public"))

    assert figures["figures"] >= 200
    # One object of one sentence is cut into other words by the tokenizer of the published run.
    assert figures["differing"] == [
        "Vicuna-13B 19_film object_hallucination: 0.1954, published 0.19"
    ]


def test_what_stands_neither_in_sentence_nor_ontology_is_hallucinated() -> None:
    stated = {"1": [("Otters", "built_by", "boats"), ("Whale", "sunk_by", "Nora")], "2": []}

    scores = score_ontology(GOLD, stated, ["built by"], ["boat"])

    assert scores.subject_hallucination == pytest.approx(0.25)
    assert scores.relation_hallucination == pytest.approx(0.25)
    assert scores.object_hallucination == 0.0


def test_the_ontologys_json_becomes_a_schema() -> None:
    turtle = convert_ontology(json.dumps(ONTOLOGY), source="boats.json")
    schema = parse_schema(turtle, source="boats.json")
    by_label = {p.label: p for p in schema.properties}

    assert turtle == convert_ontology(json.dumps(ONTOLOGY), source="boats.json")
    assert sorted(c.label for c in schema.classes) == ["Fleet", "boat", "person"]
    assert by_label["launch date"].range == XSD + "date"
    assert by_label["launch date"].is_datatype
    assert by_label["fate"].range == THING
    assert by_label["fleet"].domain == THING
    assert schema.class_by_iri[by_label["built by"].range].label == "person"


def write_folder(folder: Path) -> None:
    base = folder / "data" / "some_set"
    triples = [{"sub": "Otter", "rel": "built by", "obj": "Nora Hale"}]
    files = {
        "ontologies/03_boat.json": [ONTOLOGY],
        "ground_truth/boat_3_gold.jsonl": [
            {"id": "t1", "sent": "Otter was built by Nora Hale.", "triples": triples}
        ],
        "train/ont_3_boat_train.jsonl": [
            {"id": "a", "sent": "Heron was built by Tom Askew.", "sub_label": "Heron"}
            | {"rel_label": "built by", "obj_label": "Tom Askew"}
        ],
    }
    for name, rows in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")


def test_the_benchmark_reads_any_folder_of_the_same_form(tmp_path: Path) -> None:
    write_folder(tmp_path)
    figures = text2kgbench.measure(tmp_path, None)

    assert figures["f1_set"] > 0
    assert figures["conformance"] == 1.0
    assert "margin_set" not in figures
    assert "3_boat" in figures["without_vicuna"]
    assert text2kgbench.measure(tmp_path, None, count=0)["examples"] == "none"


def test_an_ontology_that_is_left_out_teaches_its_own_weights_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def teach(name: str) -> reader_weights.Parts:
        return reader_weights.Lessons([([[name]], [True])]), reader_weights.Lessons()

    sources = [(name, partial(teach, name)) for name in ("passages", "sentences")]
    monkeypatch.setattr(reader_weights, "list_sources", lambda *_: sources)
    monkeypatch.setattr(
        reader_weights, "read_sentences", lambda *_: {n: teach(n) for n in ("music", "book")}
    )
    monkeypatch.setattr(
        reader_weights, "fit", lambda found: [r for s in found for rows, _ in s.pairs for r in rows]
    )
    weigh = reader_weights.fit_without(Path(), None, None)  # type: ignore[arg-type]
    assert weigh("music") == [["passages"], ["book"]]
    assert weigh("airport") == [["passages"], ["music"], ["book"]]
