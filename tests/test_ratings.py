"""Ratings from a file."""

from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.evaluation.harness import read_ratings

QUESTIONS, ARMS = ("q1", "q2"), ("naive", "polyrag")


def write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "ratings.csv"
    path.write_text(text, encoding)
    return path


def test_ratings_are_read_by_answer_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    rows = 'q1,naive,B,4,"good, short"\nq1,naive,A,2.5,\nq2,polyrag,B,1,\n'
    path = write(tmp_path, f"question,arm,rater,score,comment\n{rows}")
    found = read_ratings(path, QUESTIONS, ARMS)
    assert found == {("q1", "naive"): [2.5, 4.0], ("q2", "polyrag"): [1.0]}


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_other_names_marks_and_a_byte_order_mark_are_read(tmp_path: Path, mark: str) -> None:
    lines = (("Question_ID", "Strategy", "annotator", "Rating"), ("q1", "naive", "1", "3"))
    path = write(tmp_path, "\r\n".join(mark.join(line) for line in lines), "utf-8-sig")
    assert read_ratings(path, QUESTIONS, ARMS) == {("q1", "naive"): [3.0]}


def test_all_wrong_rows_are_said_at_once_with_their_lines(tmp_path: Path) -> None:
    rows = ("q9,naive,A,3", "q1,bm25,A,3", "q1,naive,,3", "q1,naive,A,six", "q1,naive,A,6")
    path = write(tmp_path, "\n".join(("question,arm,rater,score", *rows)))
    with pytest.raises(InputError) as caught:
        read_ratings(path, QUESTIONS, ARMS)
    assert str(caught.value).splitlines()[1:] == [
        "line 2: question 'q9' is not among those asked",
        "line 3: arm 'bm25' is not among naive, polyrag",
        "line 4: no rater; a letter or a number will do",
        "line 5: score 'six' is not a number",
        "line 6: score 6 is outside the scale from 1 to 5",
    ]


def test_second_score_of_an_answer_by_one_rater_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "question,arm,rater,score\nq1,naive,A,3\nq1,naive,B,3\nq1,naive,A,4\n")
    with pytest.raises(InputError, match=r"line 4: the rater's second score .* after line 2"):
        read_ratings(path, QUESTIONS, ARMS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("question,arm,score\nq1,naive,3\n", "no column rater"),
        ("question,arm,rater,score\n", "no ratings below the header"),
        ("", "no column question, arm, rater, score"),
        ("question,arm,rater,score\nq1,naive\n", "line 2: no rater"),
        ("question,arm,rater,score\nq1,naive,A,3,5\n", "line 2: more fields than the header"),
        ("question,arm,rater,score\nq1,naive,A,nan\n", "outside the scale"),
        ('question,arm,rater,score\n"q1,naive,A,1\n', "as a CSV file"),
    ],
)
def test_file_that_is_no_list_of_ratings_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_ratings(write(tmp_path, text), QUESTIONS, ARMS)


def test_missing_and_undecodable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the ratings as a CSV file"):
        read_ratings(tmp_path / "none.csv", QUESTIONS, ARMS)
    (tmp_path / "latin.csv").write_bytes(b"question,arm,rater,score\nq1,naive,\xe9,3\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_ratings(tmp_path / "latin.csv", QUESTIONS, ARMS)


def test_hundred_wrong_rows_are_counted_and_not_listed(tmp_path: Path) -> None:
    path = write(tmp_path, "question,arm,rater,score\n" + "q1,naive,A,9\n" * 100)
    with pytest.raises(InputError, match="and 80 more"):
        read_ratings(path, QUESTIONS, ARMS)
