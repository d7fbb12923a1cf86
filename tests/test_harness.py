"""The harness over planted answers, so that every figure is known beforehand."""

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest

from kpyramid import query
from kpyramid.cli.evaluate import Evaluated
from kpyramid.cli.render import print_result
from kpyramid.errors import EndpointError, InputError
from kpyramid.evaluation import harness
from kpyramid.evaluation.harness import Answers, answer_all, parse_arm
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.evaluation.report import Reader, Sheet, lay_out, plan_grid, render_page
from kpyramid.evaluation.results import Results
from kpyramid.query.types import Answer, Backends, Item, Outcome, Question, Step
from kpyramid.snapshot.evidence import Evidence
from tests.rows import read_rows

STRATEGIES: ChainMap[str, Any] = ChainMap({}, query.STRATEGIES)  # type: ignore[arg-type]
DOCUMENTS = {"texts.jsonl#ada": "Ada", "texts.jsonl#mill": "Mill", "hill.txt": "Hill"}
QUESTIONS = [
    EvalQuestion("q1", "Where was Ada born?", "open", (("London",),), gold_documents=("ada",)),
    EvalQuestion("q2", "Who founded the mill?", "open", (("John Harlow", "Harlow"),)),
    EvalQuestion("q3", "How high is the hill?", "open", (("330 metres",),)),
    EvalQuestion(
        "c1", "Which are towns?", "choice", (("Bergen",), ("Evora",)), ("Bergen", "Evora", "Ada")
    ),
]
RIGHT = {"q1": "London", "q2": "Harlow", "q3": "330 metres", "c1": "Bergen; Evora"}
IDS = {question.text: question.id for question in QUESTIONS}


class Stub:
    """What the harness asks of a snapshot itself."""

    id = "stub"
    parts: tuple[str, ...] = ()

    def table(self, name: str) -> pa.Table:
        assert name == "documents"
        rows = [{"source": source, "title": title} for source, title in DOCUMENTS.items()]
        return pa.Table.from_pylist(rows)


def make_answer(text: str, layer: str = "text", source: str = "texts.jsonl#ada") -> Answer:
    place = Evidence("doc-1", "chunk-1", 0, 3, "Ada <b>was</b> here.", source)
    item = Item("chunk-1", place.text, "text", 1.0, (place,))
    step = Step(layer, Outcome.ANSWERED, "planted")
    choices = tuple(text.split("; ")) if text else ()
    return Answer(text, choices, (item,), layer, (place,), (step,), confidence=0.9)


def ask_planted(
    question: Question, snapshot: Any, backends: Backends, *, mode: str = "q1 q2 q3 c1"
) -> Answer:
    """Right answers to some questions; of the others the choice is half right, the rest silent."""
    key = IDS[question.text]
    if key in mode.split():
        return make_answer(RIGHT[key], "graph" if key == "q2" else "text")
    return make_answer("Bergen; Ada") if key == "c1" else make_answer("")


def answer_planted(
    question: str,
    snapshot: Any,
    strategy: str,
    *,
    candidates: Any,
    backends: Backends,
    **options: Any,
) -> Answer:
    """What a strategy says, with nothing of a real snapshot looked up."""
    ask: Callable[..., Answer] = STRATEGIES[strategy]
    return ask(Question(question, candidates), snapshot, backends, **options)


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "STRATEGIES", STRATEGIES)
    monkeypatch.setitem(STRATEGIES, "planted", ask_planted)
    monkeypatch.setattr(harness, "answer", answer_planted)


def run(*arms: str, questions: list[EvalQuestion] = QUESTIONS, **options: Any) -> Answers:
    planned = [parse_arm(text) for text in arms]
    return answer_all(questions, Stub(), planned, **options)  # type: ignore[arg-type]


def test_figures_of_planted_answers_are_what_was_planted() -> None:
    results = Results(run("planted", "planted:mode=q1 c1"), "stub")
    half = results.answers.arms[1].name
    means = {m: [results.find(a, m) for a in results.rows_by_arm] for m in results.metrics}
    # Of q2 and q3 the second arm says nothing, so it has a third of what is said in words.
    assert [f.mean for f in means["exact_match"] if f] == [1.0, 0.5]
    assert [f.mean for f in means["hit_rate"] if f] == [1.0, pytest.approx(1 / 3)]
    assert [f.mean for f in means["precision"] if f] == [1.0, 1.0]
    assert [(f.questions, f.mean) for f in means["layer_graph"] if f] == [(4, 0.25), (4, 0.0)]
    by_kind = {f.group: f.mean for f in results.figures if (f.arm, f.metric) == (half, "answered")}
    assert by_kind == {"": 0.5, "kind: choice": 1.0, "kind: open": pytest.approx(1 / 3)}


def test_metrics_apply_by_the_kind_of_question() -> None:
    rows = {row.question.id: row.scores.keys() for row in run("planted").rows}
    assert {"f1", "precision"} <= rows["c1"] and "token_f1" not in rows["c1"]
    assert "token_f1" in rows["q1"] and "precision" not in rows["q1"]
    assert "recall_at_5" in rows["q1"] and "recall_at_5" not in rows["q2"]


def draw(results: Results) -> str:
    out = StringIO()
    with redirect_stdout(out):
        print_result(Evaluated(results=results, sheets=(), out=None))
    return out.getvalue()


def test_a_star_marks_what_differs_after_correction_for_several_arms() -> None:
    # Of six differences of one sign p is 2 / 2 ** 6: below 0.05 alone, and not among two arms.
    six = [EvalQuestion(f"s{n}", f"{n}?", "open", (("Rome",),)) for n in range(6)]
    IDS.update({q.text: q.id for q in six})
    RIGHT.update({q.id: "Rome" for q in six})
    every = "planted:mode=" + " ".join(q.id for q in six)
    one = Results(run(every, "planted:mode=none", questions=six), "stub")
    (mine,) = [c for c in one.comparisons if c.metric == "exact_match"]
    assert mine.p == mine.p_holm == 2 / 2**6 and mine.high < 0
    assert re.search(r"^exact_match .*0\.000\*", draw(one), re.MULTILINE)
    assert 'class="differs"' in render_page(one)

    arms = (every, "planted:mode=none", "planted:mode=nothing")
    two = Results(run(*arms, questions=six), "stub")
    found = [c for c in two.comparisons if c.metric == "exact_match"]
    assert [c.p_holm for c in found] == [4 / 2**6] * 2 and all(c.high < 0 for c in found)
    (line,) = re.findall(r"^exact_match .*", draw(two), re.MULTILINE)
    assert "0.000" in line and "*" not in line


def test_the_baseline_can_be_named_and_an_unknown_one_is_refused() -> None:
    answers = run("planted", "planted:mode=none")
    results = Results(answers, "stub", baseline=answers.arms[1].name)
    assert {c.arm for c in results.comparisons} == {"planted"}
    with pytest.raises(InputError, match=r"no arm is called 'best'.*planted"):
        Results(answers, "stub", baseline="best")


def test_gold_documents_that_the_corpus_lacks_are_counted_and_titles_are_resolved() -> None:
    questions = [
        EvalQuestion("d1", "A?", "retrieval", gold_documents=("ada", "gone")),
        EvalQuestion("d2", "B?", "retrieval", gold_titles=("Ada",)),
        EvalQuestion("d3", "C?", "retrieval", gold_titles=("Nowhere",)),
    ]
    IDS.update({q.text: q.id for q in questions})
    answers = run("planted", questions=questions)
    assert answers.missing == ("gone", "Nowhere")
    assert answers.questions[1].gold_documents == ("texts.jsonl#ada",)
    recall = [row.scores["recall_at_5"] for row in answers.rows]
    assert recall == [0.5, 1.0, 0.0]


def test_failure_is_counted_and_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, "q2", KeyError("no such row"))
    answers = run("brittle")
    (failed,) = answers.failures
    assert (failed.question.id, failed.failure) == ("q2", "KeyError: 'no such row'")
    assert len(answers.rows) == 4
    assert failed.scores["exact_match"] == 0.0  # it counts as an empty answer
    results = Results(answers, "stub")
    assert results.expenses[0].failures == 1
    assert results.to_dict()["failures"][0]["reason"] == "KeyError: 'no such row'"


def breaks(monkeypatch: pytest.MonkeyPatch, at: str, error: Exception) -> None:
    """A strategy that answers as planted, but for one question, or for all."""

    def ask(question: Question, snapshot: Any, backends: Backends) -> Answer:
        if at in (IDS[question.text], "all"):
            raise error
        return ask_planted(question, snapshot, backends)

    monkeypatch.setitem(STRATEGIES, "brittle", ask)


def test_when_all_fails_there_is_error_and_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, "all", InputError("snapshot x is no longer here"))
    with pytest.raises(InputError, match=r"not one of 4 questions.*no longer here"):
        run("brittle")


def test_endpoint_that_is_down_stops_run_with_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, "q3", EndpointError("nobody there"))
    answers = run("planted", "brittle")
    assert isinstance(answers.stopped, EndpointError)
    assert len(answers.rows) == 6
    # The arm that was stopped is compared on the questions that it was asked.
    results = Results(answers, "stub")
    assert {c.questions for c in results.comparisons if c.metric == "answered"} == {2}
    assert results.to_dict()["stopped"] == "nobody there"


def test_no_question_no_arm_and_names_that_stand_twice_are_refused() -> None:
    for arms, questions, message in [
        (["planted"], [], "no question"),
        ([], QUESTIONS, "name a strategy"),
        (["planted"], [QUESTIONS[0]] * 2, "question id 'q1' stands there twice"),
        (["planted"] * 2, QUESTIONS, "arm 'planted' stands there twice"),
    ]:
        with pytest.raises(InputError, match=message):
            run(*arms, questions=questions)
    rows = read_rows("harness.an_arm_that_cannot_be_is_refused_before_anything_is_asked")
    for text, message in rows:
        with pytest.raises(InputError, match=message):
            parse_arm(text)


def test_the_table_of_answers_has_a_row_per_question_and_arm_with_its_scores() -> None:
    answers = run("planted", "planted:mode=none")
    table = Results(answers, "stub").build_tables()["answers"]
    rows = table.to_pylist()
    assert [(r["question_id"], r["arm"]) for r in rows] == [
        (q.id, arm.name) for arm in answers.arms for q in QUESTIONS
    ]
    assert rows[0]["evidence"][0]["source"] == "texts.jsonl#ada"
    assert rows[1]["gold"] == [["John Harlow", "Harlow"]] and rows[1]["layer"] == "graph"
    assert rows[4]["layer"] == "none" and rows[4]["options"] == '{"mode": "none"}'
    assert rows[0]["precision"] is None and rows[3]["precision"] == 1.0


def test_the_page_shows_every_arm_and_links_that_lead_somewhere() -> None:
    odd = [*QUESTIONS, EvalQuestion("q4", "<script>alert(1)</script>?", "open", (("x",),))]
    IDS[odd[-1].text] = "q4"
    results = Results(run("planted", "planted:mode=none", questions=odd), "stub")
    page = render_page(results)
    assert page == render_page(results)
    assert "<script" not in page and "&lt;script&gt;" in page and "http" not in page
    assert "Ada &lt;b&gt;was&lt;/b&gt; here." in page
    for arm in results.rows_by_arm:
        assert arm in page
    links = set(re.findall(r'href="#(place-\d+)"', page))
    assert links and links <= set(re.findall(r'id="(place-\d+)"', page))


# What each arm of the grid answers rightly, by what is switched: of ten questions so many.
GRID: dict[frozenset[str], int] = {
    frozenset(): 9,
    frozenset({"top 5"}): 7,
    frozenset({"no graph", "no text"}): 1,
    frozenset({"no ontology", "no text"}): 2,
    frozenset({"no ontology", "no graph"}): 0,
    frozenset({"no graph"}): 10,
    frozenset({"no ontology"}): 6,
    frozenset({"no text"}): 4,
}
LESS = {"best": 0, "authors": 1, "paper": 2}
TEN = [EvalQuestion(f"c{n}", f"{n} Which?", "choice", (("A",),), ("A", "B")) for n in range(10)]


def answer_first(count: int, question: Question) -> Answer:
    place = int(question.text.split()[0])
    return make_answer("A" if place < count else "B", "ontology" if place < count else "text")


@pytest.fixture
def _grid(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_polyrag(
        question: Question,
        snapshot: Any,
        backends: Backends,
        *,
        mode: str = "best",
        triples: int = 10,
        ontology: bool = True,
        graph: bool = True,
        text: bool = True,
    ) -> Answer:
        layers: Mapping[str, bool] = {"ontology": ontology, "graph": graph, "text": text}
        switched = {f"no {name}" for name, on in layers.items() if not on}
        switched |= {f"top {triples}"} if triples != 10 else set()
        return answer_first(max(0, GRID[frozenset(switched)] - LESS[mode]), question)

    for count, name in enumerate(("direct", "naive", "kaping")):
        ask = lambda question, *_, count=count: answer_first(count, question)  # noqa: E731
        monkeypatch.setitem(STRATEGIES, name, ask)
    monkeypatch.setitem(STRATEGIES, "polyrag", ask_polyrag)


@pytest.mark.usefixtures("_grid")
def test_the_grid_puts_every_arm_of_the_paper_into_its_cell() -> None:
    readers = [Reader()]
    arms = plan_grid(readers)
    assert len(arms) == 3 + 3 * len(GRID)
    results = Results(answer_all(TEN, Stub(), arms), "stub")  # type: ignore[arg-type]
    methods, layers, shares = lay_out(results, readers)

    f1 = 3 + methods.columns.index("f1")
    assert methods.columns[:3] == ("precision", "recall", "f1")
    assert {row[:2]: row[f1] for row in methods.rows} == {
        ("Direct querying", "–"): "0.000",
        ("Naive RAG", "–"): "0.100",
        ("KAPING", "–"): "0.200",
        ("PolyRAG", "best"): "0.900",
        ("PolyRAG", "authors"): "0.800",
        ("PolyRAG", "paper"): "0.700",
    }
    whole = [f"{n / 10:.3f}" for n in (1, 2, 0, 10, 6, 4, 9)]
    assert read_column(layers, f1, "best") == whole
    at = 3 + layers.columns.index("above_text")
    assert read_column(layers, at, "best") == whole  # the stub answers above the text when right
    all_layers = ("Ont.", "KG", "Raw.", "Ont.+Raw.", "KG+Raw.", "Ont.+KG", "PolyRAG")
    assert tuple(dict.fromkeys(row[0] for row in layers.rows)) == all_layers
    ontology = 3 + shares.columns.index("ontology")
    assert [(row[0], row[ontology]) for row in shares.rows if row[1] == "best"] == [
        ("top 5", "0.700"),
        ("top 10", "0.900"),
    ]


def read_column(sheet: Sheet, column: int, mode: str) -> list[str]:
    return [row[column] for row in sheet.rows if row[1] in {mode, "–"} and row[2] == "rules"]
