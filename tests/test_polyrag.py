"""PolyRAG's way down the pyramid: to the letter of the paper, and with what is carried down."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kpyramid.query import STRATEGIES, Snapshot, answer
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.choices import find_for_options
from kpyramid.query.decisions import Decisions
from kpyramid.query.polyrag import Mode, ask_polyrag
from kpyramid.query.types import Answer, Backends, Item, Outcome, Question, Reading
from tests.cascade_script import ScriptedAsker
from tests.corpora import open_told

pytestmark = pytest.mark.usefixtures("passing_gates")

BORN = "Where was Ada Lovelace born?"


def analyse(text: str, snapshot: Snapshot, *candidates: str) -> QuestionAnalysis:
    return QuestionAnalysis(Question(text, candidates), snapshot)


def test_paper_mode_reads_nearest_facts_or_chunks_and_carries_nothing(snapshot: Snapshot) -> None:
    found = answer(BORN, snapshot, mode="paper", ontology=False, text=False)
    nearest = [key for key, *_ in snapshot.neighbours(BORN, 10, "condensed")]
    assert [item.key for item in found.context] == nearest
    path = "Which path did pilgrims take?"
    found = answer(path, snapshot, mode="paper")
    nearest = [key for key, *_ in snapshot.neighbours(path, 5, "chunks")]
    assert [step.layer for step in found.trace] == ["ontology", "graph", "text"]
    assert [item.key for item in found.context] == nearest
    found = answer(BORN, snapshot, mode="paper", ontology=False, sufficient=1.0)
    assert {item.layer for item in found.context} == {"text"}


def test_what_layer_found_without_answering_goes_down_with_question(snapshot: Snapshot) -> None:
    found = answer(BORN, snapshot, ontology=False, sufficient=1.0)
    graph, text = found.trace[1], found.trace[2]
    assert graph.outcome is Outcome.INSUFFICIENT and graph.found
    assert "1.00 is asked for" in graph.reason
    carried = [item for item in found.context if item.layer == "graph"]
    assert carried and {item.text for item in carried} <= set(graph.found)
    assert text.layer == "text" and any(item.layer == "text" for item in found.context)


class Noting(Decisions):
    """The rules' decisions: what the reader was given, and its reading with other fields."""

    def __init__(self, **changed: Any) -> None:
        super().__init__(Backends())
        self.given: list[tuple[Item, ...]] = []
        self.changed = changed

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        self.given.append(tuple(items))
        return replace(super().read(asked, items, found), **self.changed)


def test_authors_mode_hands_reader_all_facts_beside_passages(snapshot: Snapshot) -> None:
    passages = [key for key, *_ in snapshot.neighbours(BORN, 5, "chunks")]
    facts = [key for key, *_ in snapshot.neighbours(BORN, 10, "condensed")]
    modes: dict[Mode, list[str]] = {"authors": [*passages, *facts], "paper": passages}
    for mode, seen in modes.items():
        noting = Noting()
        found = ask_polyrag(
            analyse(BORN, snapshot), noting, mode=mode, ontology=False, sufficient=1.0
        )
        assert [item.key for item in found.context] == seen
        assert [item.key for item in noting.given[-1]] == seen
        assert (found.layer, found.choices) == ("text", ("London",) * (mode == "authors"))


@pytest.mark.parametrize("mode", ["authors", "paper"])
def test_without_text_algorithm_1_gives_what_the_reader_makes_of_the_facts_alone(
    snapshot: Snapshot, mode: Mode
) -> None:
    towns = "In which towns was Ada Lovelace born?"  # several: more may be found below
    asked = analyse(towns, snapshot, "Paris", "London", "Leeds")
    guess = {"text": "Paris", "choices": ("Paris",), "confidence": 0.1}
    options: Any = {"ontology": False, "text": False}
    found = ask_polyrag(asked, Noting(**guess), mode=mode, **options)
    assert (found.choices, found.confidence) == (("Paris",), 0.1)  # no union, no floor


def test_an_answer_below_the_floor_is_not_given_and_its_context_stays(snapshot: Snapshot) -> None:
    only_graph = {"ontology": False, "text": False}
    given = answer(BORN, snapshot, **only_graph)
    kept = answer(BORN, snapshot, floor=1.0, **only_graph)
    assert given.text and 0 < given.confidence < 1
    assert (kept.text, kept.choices, kept.evidence) == ("", (), ())
    assert kept.context == given.context
    assert "below 1.00 no answer is given" in kept.trace[-1].reason


def test_candidates_are_chosen_by_highest_layer_whose_values_name_one(snapshot: Snapshot) -> None:
    cities = ["Paris", "London", "Leeds"]
    found = answer(BORN, snapshot, candidates=cities)
    assert (found.layer, found.choices, found.text) == ("ontology", ("London",), "London")
    graph = answer(BORN, snapshot, candidates=cities, ontology=False)
    assert (graph.layer, graph.choices) == ("graph", ("London",))


def test_a_models_yes_makes_the_graph_answer_and_its_no_sends_down(snapshot: Snapshot) -> None:
    def ask(reply: str) -> tuple[ScriptedAsker, Answer]:
        asker = ScriptedAsker(lambda _: reply)
        backends = Backends(sufficiency="llm", asker=asker)
        return asker, answer(BORN, snapshot, backends=backends, ontology=False)

    asker, found = ask('{"reason": "it is said", "facts": [1], "enough": "yes"}')
    assert asker.tasks == ["query_kg"]
    assert (found.layer, found.text) == ("graph", "London")
    _, found = ask('{"reason": "it is not said", "facts": [], "enough": "no"}')
    assert found.trace[1].outcome is Outcome.INSUFFICIENT
    assert "it is not said" in found.trace[1].reason


@pytest.mark.parametrize("mode", ["best", "paper"])
def test_empty_layers_are_said_to_be_empty(mode: str) -> None:
    bare = open_told("bare", {"a.txt": "Oh well."})
    assert bare.table("condensed").num_rows == 0
    found = answer(BORN, bare, mode=mode)
    assert found.text == "" and found.confidence < 0.5
    assert [step.outcome for step in found.trace][1] is Outcome.EMPTY
    for strategy in sorted(STRATEGIES):
        assert answer(BORN, bare, strategy).text == "", strategy


def test_passage_speaks_for_option_when_it_says_what_question_names_too(snapshot: Snapshot) -> None:
    asked = analyse("Who is a niece of John Harlow?", snapshot, "Ada Lovelace", "Mary Stone")
    (found,) = find_for_options(asked, 5)
    assert "John Harlow was the uncle of Mary Stone" in found.text
    assert find_for_options(asked, 5, without=[found.key]) == []
    assert find_for_options(asked.part(asked.text), 5) == []


def test_option_is_looked_up_though_its_passage_is_far_from_question(snapshot: Snapshot) -> None:
    question = "Which writer's relative is in the trade of John Harlow?"
    options = ["Mary Stone", "Ada Lovelace"]
    only_text = {"ontology": False, "graph": False}
    found = answer(question, snapshot, candidates=options, chunks=1, **only_text)
    assert any("Mary Stone" in item.text for item in found.context if item.layer == "text")
