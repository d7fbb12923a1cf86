"""Sets as questions: small folders of each form always, the real sets where they are at hand."""

import json
from pathlib import Path

import pytest
from choice_pyramids import read_text2kgbench
from convert_set import read_set, write_set
from sets.files import QuestionSet

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import read_questions
from tests.corpora import find_bench
from tests.rows import read_bodies, read_rows

SETS: dict[str, tuple[int | None, int | None, tuple[str, ...]]] = {
    name: tuple(counts) for name, *counts in read_rows("sets.sets")
}
"""Questions, rows of the corpus, kinds: counted in the files, not taken from the adapters."""


def write_lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def check_whole(found: QuestionSet) -> None:
    """What holds for every set."""
    ids = {row["id"] for row in found.corpus}
    assert len(ids) == len(found.corpus)
    assert len({question.id for question in found.questions}) == len(found.questions)
    assert found.corpus or found.note
    for question in found.questions:
        assert not found.corpus or set(question.gold_documents) <= ids
        if question.kind == "choice":
            assert len(question.candidates) == 8
            assert 1 <= len(question.answers) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_set_is_read_whole(name: str, tmp_path: Path) -> None:
    questions, rows, kinds = SETS[name]
    found = read_set(find_bench(name))
    check_whole(found)
    assert {question.kind for question in found.questions} == {*kinds}
    assert questions is None or len(found.questions) == questions
    assert len(found.questions) >= 10
    assert rows is None or len(found.corpus) == rows
    assert found.licence
    write_set(found, tmp_path / "out")
    assert read_questions(tmp_path / "out" / "questions.jsonl") == list(found.questions)
    assert (tmp_path / "out" / "corpus.jsonl").is_file() == bool(found.corpus)


def test_passages_with_titles_for_gold_are_found_by_their_titles(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "corpus.jsonl",
        {"id": "a", "title": "Emma", "text": "Jane Austen wrote Emma.", "extra": 1},
        {"id": "b", "text": "Nobody wrote this."},
    )
    hops = [{"question": "who?", "answer": "Jane Austen"}, {"question": "where?", "answer": "x"}]
    write_lines(
        tmp_path / "questions.jsonl",
        {"question": "Who?", "answer": "Austen", "gold_titles": ["Emma"], "hops": hops},
        {"question": "What?", "gold_doc_ids": ["b"]},
    )
    (tmp_path / "ATTRIBUTION.md").write_text("# Name\n\nOurs, CC0.\n")
    found = read_set(tmp_path)
    check_whole(found)
    assert found.corpus[0] == {"id": "a", "title": "Emma", "text": "Jane Austen wrote Emma."}
    first, second = found.questions
    assert (first.gold_documents, first.gold_titles, first.group) == (("a",), (), "2 hops")
    assert first.entities == ("Jane Austen", "x")
    assert second.kind == "retrieval"
    assert found.licence == "Ours, CC0."


def test_musiques_own_files_are_read(tmp_path: Path) -> None:
    passage = {"title": "Emma", "text": "Jane Austen wrote Emma."}
    inside = {"title": "Emma", "paragraph_text": passage["text"], "is_supporting": True}
    other = {"title": "Oslo", "paragraph_text": "It is a city.", "is_supporting": False}
    row = {
        "id": "q1",
        "question": "Who?",
        "answer": "Jane Austen",
        "answer_aliases": ["Austen"],
        "paragraphs": [inside, other],
        "question_decomposition": [{"answer": "Jane Austen"}],
    }
    (tmp_path / "any_corpus.json").write_text(json.dumps([passage]))
    (tmp_path / "asked.json").write_text(json.dumps([row]))
    (question,) = read_set(tmp_path).questions
    assert question.answers == (("Jane Austen", "Austen"),)
    assert question.gold_documents == ("p0000",)
    assert question.group == "1 hops"


def test_a_decision_of_pubmedqa_is_yes_no_or_maybe(tmp_path: Path) -> None:
    row = {"QUESTION": "Is it?", "CONTEXTS": ["One.", "Two."], "final_decision": "maybe"}
    path = tmp_path / "any.json"
    path.write_text(json.dumps({"7": row | {"LONG_ANSWER": "Perhaps it is."}}))
    found = read_set(tmp_path)
    (question,) = found.questions
    assert (question.kind, question.values) == ("yesno", ("maybe",))
    assert found.corpus == ({"id": "7", "text": "One.\n\nTwo."},)
    path.write_text(json.dumps({"7": row | {"final_decision": "unknown"}}))
    with pytest.raises(InputError, match="7 has no final_decision"):
        read_set(tmp_path)


def make_text2kgbench(folder: Path) -> None:
    base = folder / "group"
    (base / "ontologies").mkdir(parents=True)
    ontology = read_bodies("sets.make_text2kgbench")
    (base / "ontologies" / "1_song_ontology.json").write_text(json.dumps(ontology))
    rows = []
    for n in range(9):
        song, who = f"Tune{n} Air{n}", f"First{n} Last{n}"
        triples = [
            {"sub": song, "rel": "composer", "obj": who},
            {"sub": song, "rel": "publication date", "obj": f"01 January {1950 + n}"},
            {"sub": song, "rel": "unknown relation", "obj": "x"},
        ]
        sent = f"{song} was composed by {who} in {1950 + n}."
        rows.append({"id": f"ont_1_song_test_{n}", "sent": sent, "triples": triples})
    write_lines(base / "ground_truth" / "ont_1_song_ground_truth.jsonl", *rows)
    train = {"id": "t", "sent": "x", "sub_label": "Tune0 Air0", "rel_label": "composer"}
    write_lines(base / "train" / "ont_1_song_train.jsonl", train | {"obj_label": "First1 Last1"})


def test_gold_triples_of_text2kgbench_become_choice_questions(tmp_path: Path) -> None:
    make_text2kgbench(tmp_path)
    found = read_set(tmp_path)
    check_whole(found)
    by_group = {group: [q for q in found.questions if q.group == group] for group in
                ("composer", "composer (inverse)", "publication date")}  # fmt: skip
    assert len(by_group["publication date"]) == 9
    dated = {q.entities[0]: q.values for q in by_group["publication date"]}
    assert dated["Tune3 Air3"] == ("1953",)  # the sentence names no month
    # Tune0 was composed by First1 as well, says the train part.
    first = next(q for q in by_group["composer"] if q.entities[0] == "Tune0 Air0")
    assert "First1 Last1" not in first.candidates
    composed = next(q for q in by_group["composer"] if q.entities[0] == "Tune5 Air5")
    assert composed.gold_documents == ("ont_1_song_test_5",)
    assert all(option.startswith("First") for option in composed.candidates)


def test_tuning_reads_no_test_sentence_and_its_halves_share_no_subject(tmp_path: Path) -> None:
    make_text2kgbench(tmp_path)
    rows = [
        {"id": f"t{n}", "sent": f"Taught {n} by Person {n % 7}.", "triples": [
            {"sub": f"Song {n % 20}", "rel": "composer", "obj": f"Person {n % 7}"}]}
        for n in range(40)
    ]  # fmt: skip
    write_lines(tmp_path / "group" / "train" / "ont_1_song_train.jsonl", *rows)
    (test,) = read_text2kgbench(tmp_path, "test", None, 0)
    (tuning,) = read_text2kgbench(tmp_path, "train", None, 0)
    (other,) = read_text2kgbench(tmp_path, "train", None, 1)
    assert {row["text"] for row in test.rows} & {row["text"] for row in tuning.rows} == set()
    assert {row["id"] for row in test.rows} == {f"ont_1_song_test_{n}" for n in range(9)}
    assert len(test.examples) == 40
    asked = {triple[0] for triple, _ in tuning.facts}
    taught = {t["sub"] for row in tuning.examples for t in row["triples"]}
    assert asked
    assert taught
    assert not asked & taught
    assert len(tuning.rows) + len(tuning.examples) == 40
    assert tuning.rows != other.rows
