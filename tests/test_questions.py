"""A user's file of questions: any usual names of fields, every fault named, nothing guessed."""

import json
from pathlib import Path

import pytest
from sets.files import write_questions

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion, read_questions
from tests.rows import read_rows


def write_rows(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read_one(folder: Path, **fields: object) -> EvalQuestion:
    (question,) = read_questions(write_rows(folder / "q.jsonl", {"question": "Who?"} | fields))
    return question


def refuse(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_questions(path)
    return str(caught.value)


def test_a_question_with_an_answer_is_open(tmp_path: Path) -> None:
    for name in ("question", "text", "query"):
        for answer in ("answer", "gold_answer", "gold"):
            rows = {name: "Who wrote Emma?", answer: "Jane Austen", "id": 7}
            (question,) = read_questions(write_rows(tmp_path / "q.jsonl", rows))
            assert question == EvalQuestion("7", "Who wrote Emma?", "open", (("Jane Austen",),))


def test_aliases_are_spellings_of_the_one_answer(tmp_path: Path) -> None:
    question = read_one(tmp_path, answer="G. Stanley Hall", aliases=["Stanley Hall"])
    assert question.answers == (("G. Stanley Hall", "Stanley Hall"),)
    assert question.values == ("G. Stanley Hall",)


def test_several_answers_are_several_values_unless_the_kind_says_open(tmp_path: Path) -> None:
    several = read_one(tmp_path, answers=["Ann", "Bob"])
    assert (several.kind, several.answers) == ("values", (("Ann",), ("Bob",)))
    spelled = read_one(tmp_path, answers=["Ann", "Annie"], kind="open")
    assert (spelled.kind, spelled.answers) == ("open", (("Ann", "Annie"),))
    nested = read_one(tmp_path, answers=[["Ann", "Annie"], ["Bob"]])
    assert nested.answers == (("Ann", "Annie"), ("Bob",))


def test_yes_or_no_is_a_kind_of_its_own(tmp_path: Path) -> None:
    assert read_one(tmp_path, answer="yes").kind == "yesno"
    assert read_one(tmp_path, answer=True).answers == (("yes",),)


def test_gold_documents_without_an_answer_ask_for_retrieval(tmp_path: Path) -> None:
    question = read_one(tmp_path, gold_doc_ids=["p1", 2])
    assert (question.kind, question.gold_documents) == ("retrieval", ("p1", "2"))
    assert read_one(tmp_path, gold_titles=["Emma"]).gold_titles == ("Emma",)


def test_right_options_are_texts_letters_or_labels(tmp_path: Path) -> None:
    for options, gold, right in read_rows("questions.right_options_are_texts_letters_or_labels"):
        question = read_one(tmp_path, options=options, gold=gold)
        assert (question.kind, question.values) == ("choice", right)


def test_a_row_that_cannot_be_asked_is_refused_with_its_line(tmp_path: Path) -> None:
    fine: dict[str, object] = {"question": "a?", "options": ["x", "y"], "gold": "x"}
    swedes: dict[str, object] = {"options": ["Swedes", "Sweden"], "gold": "Swedes"}
    fields = ("`answer`", "`answers`", "`options` with `gold`", "`gold_doc_ids`")
    bare: dict[str, object] = {"question": "b?"}
    for row, *said in [
        (fine | {"gold": 1}, "gold '1' is none of the options x, y; give its text or its letter"),
        (fine | {"options": ["x"]}, "line 2: a choice question needs two options"),
        (bare, "line 2: no answer", *fields),
        (bare | {"answer": None}, "line 2: no answer", *fields),
        (bare | {"answers": []}, "line 2: no answer", *fields),
        (bare | {"answer": "", "kind": "open"}, "line 2: no answer", *fields),
    ]:
        refused = refuse(write_rows(tmp_path / "q.jsonl", fine, row))
        assert all(part in refused for part in said), refused
        assert "question 2" not in refused
    for other in ("sweden", "  Sweden ", "SWEDEN"):
        row = fine | swedes | {"options": ["Swedes", "Sweden", other]}
        same = f"line 2: options 'Sweden' and {other.strip()!r} are the same"
        assert same in refuse(write_rows(tmp_path / "q.jsonl", fine, row))
        with pytest.raises(InputError, match="are the same"):
            EvalQuestion("q", "a?", "choice", (("Sweden",),), ("Sweden", other))


def test_a_table_has_lists_in_cells_and_cells_over_lines(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text(
        'Question,options,gold,gold_titles\n"Who\nwrote it?",Ann|Bob,b,X|Y\n', "utf-8-sig"
    )
    (question,) = read_questions(path)
    assert (question.text, question.candidates) == ("Who\nwrote it?", ("Ann", "Bob"))
    assert (question.values, question.gold_titles) == (("Bob",), ("X", "Y"))


def test_everything_wrong_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"question": "ok?", "answer": "yes", "id": "one"}\n'
        "not json\n"
        '{"answer": "x"}\n'
        "\n"
        '{"question": "which?", "options": ["a b", "c d"], "gold": "e f"}\n'
        '{"question": "again?", "answer": "no", "id": "one"}\n'
        '{"question": "nothing?"}\n'
    )
    said = refuse(path)
    assert "rows that are no question: 5" in said
    assert "line 2: no JSON" in said
    assert "line 3: no question" in said
    assert "line 5: gold 'e f' is none of the options a b, c d" in said
    assert "line 6: id 'one' was given in line 1" in said
    assert "line 7: no answer; name the field" in said


def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    for name, text, said in read_rows("questions.a_file_that_cannot_be_used_is_refused"):
        (tmp_path / name).unlink(missing_ok=True)
        if text is not None:
            (tmp_path / name).write_text(text)
        assert said in refuse(tmp_path / name)
    (tmp_path / "q.csv").write_bytes("question,answer\nWho?,Müller\n".encode("latin-1"))
    assert "not UTF-8 at byte" in refuse(tmp_path / "q.csv")
    (tmp_path / "q.csv").write_text('question,answer\n"two\nlines?",x\nwho?,a,b\n')
    assert "line 4: more fields than the header" in refuse(tmp_path / "q.csv")


def test_what_is_written_is_read_as_the_same(tmp_path: Path) -> None:
    questions = [
        EvalQuestion(
            "a", "Who?", "choice", (("Ann", "Annie"),), ("Bob", "Ann"), ("p1",), (), ("Ann",)
        ),
        EvalQuestion("b", "Where | when?", "values", (("x | y",), ("z", "zed")), group="g"),
        EvalQuestion("c", "One spelled twice?", "open", (("x", "y"),), evidence=("It is x | y.",)),
        EvalQuestion("d", "Find it", "retrieval", gold_titles=("T",)),
        EvalQuestion("e", "Is it?", "yesno", (("no",),), ("yes", "no")),
    ]
    path = tmp_path / "q.jsonl"
    path.write_text(write_questions(questions), "utf-8")
    assert read_questions(path) == questions


def test_a_question_that_cannot_be_scored_is_refused() -> None:
    whole: dict[str, object] = {"id": "q", "text": "Who?", "kind": "open", "answers": (("x",),)}
    for fields, said in read_rows("questions.a_question_that_cannot_be_scored_is_refused"):
        with pytest.raises(InputError, match=said):
            EvalQuestion(**(whole | fields))
