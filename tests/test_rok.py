"""RoK step by step, each test named after the section that it holds the code against."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpyramid.query import Backends, Snapshot, answer
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import StatedPath
from kpyramid.query.paths import Path as Walk
from kpyramid.query.paths import (
    choose_anchors,
    drop_led,
    find_paths,
    list_branches,
    rank_entities,
    state_paths,
)
from kpyramid.query.rok import choose_main
from kpyramid.query.types import Question
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.view import NearFact
from tests import loopback
from tests.asked_model import ask_scripted, list_prompts, open_caller
from tests.cascade_script import CountingScript, reply_by_task
from tests.rows import read_rows

pytestmark = pytest.mark.usefixtures("passing_gates")

UNCLE = "Who was the uncle of the author of Grey Water?"
TOLD = {"answer": "Grey Water is by Mary Stone, whose uncle was John Harlow."}
NAMED = {"entities": ["Grey Water", "Mary Stone", "John Harlow", "Nobody Known"]}
READ = {"says": True, "cites": [1], "answer": "John Harlow", "choices": [], "confidence": 0.9}
CUT = loopback.Answer("{}", reasoning=100_000)


MADE: dict[str, Any] = {
    "rok_extend": TOLD,
    "rok_extract": NAMED,
    "rok_filter": {"facts": [1]},
    "rok_answer": READ,
}


def ask_model(snapshot: Snapshot, question: str = UNCLE, **replies: Any) -> tuple[Any, Any]:
    asker = CountingScript(reply_by_task(**MADE | replies))
    backends = Backends(reader="llm", walk="llm", asker=asker)
    return answer(question, snapshot, "rok", backends=backends), asker


def make_fact(head: str, relation: str, tail: str) -> NearFact:
    key = f"condensed-{head}{relation}{tail}"
    return NearFact(key, head, head, "ORG", relation, tail, tail, "ORG", 0.5)


def test_4_1_key_entities_are_questions_then_those_most_passages_name(snapshot: Snapshot) -> None:
    texts = ("John Harlow met Mary Stone.", "The mill of John Harlow.")
    found = choose_anchors(["Who wrote Grey Water?"], texts, snapshot, 3)

    assert found.names == ("Grey Water", "John Harlow", "Mary Stone")
    assert choose_anchors(["Who wrote Grey Water?"], texts, snapshot, 1).names == ("Grey Water",)


def test_4_1_model_writes_tentative_answer_whose_entities_are_anchors(snapshot: Snapshot) -> None:
    found, asker = ask_model(snapshot)

    assert asker.tasks == ["rok_extend", "rok_extract", "rok_filter", "rok_answer"]
    assert TOLD["answer"] in asker.asked[1].messages[1].content
    assert found.text == "John Harlow"
    assert "key entities: Grey Water, Mary Stone, John Harlow" in found.recognised
    assert "not in the graph: Nobody Known" in found.recognised


def test_4_2_1_paths_stand_in_buckets_by_key_entities_then_by_mean_pagerank() -> None:
    def walk(*rows: int) -> Walk:
        return Walk(rows, tuple(range(len(rows) - 1)), (True,) * (len(rows) - 1))

    paths = [walk(1, 9, 2), walk(1, 8, 2), walk(1, 3, 2), walk(2, 8, 3)]
    ranks = rank_entities(paths)
    assert ranks[8] > ranks[9]  # 8 is on two paths

    main = choose_main(paths, [1, 2, 3], 4, ranks)
    assert main[0] == walk(1, 3, 2)  # three key entities
    assert main.index(walk(1, 8, 2)) < main.index(walk(1, 9, 2))
    assert choose_main(paths, [1, 2, 3], 2, ranks) == main[:2]
    assert choose_main(list(reversed(paths)), [3, 2, 1], 4, ranks) == main


def test_4_2_2_a_relation_that_leads_to_a_main_path_already_leads_nowhere_else() -> None:
    on_path = make_fact("A", "crosses", "B")
    main = [StatedPath(("A", "B"), (on_path,), (True,))]
    same, back = make_fact("A", "crosses", "C"), make_fact("C", "crosses", "A")
    other, chord = make_fact("A", "has part", "D"), make_fact("B", "was built by", "A")

    assert drop_led([same, back, other, chord], ["A", "B"], main) == [back, other, chord]
    assert drop_led([same], ["A"], []) == [same]


def test_4_2_2_step_a_holds_for_all_branches(snapshot: Snapshot) -> None:
    asked = QuestionAnalysis(Question(UNCLE), snapshot)
    graph, index = Adjacency(snapshot), snapshot.entities_by_name()
    key = [index[name][0] for name in ("grey water", "mary stone", "john harlow")]
    rows = [*graph.locate(key).values()]
    main = state_paths(find_paths(graph, rows, 2), graph, snapshot)
    found = list_branches(asked, key, main)
    about = [f for f in found if not {f.head_id, f.tail_id}.isdisjoint(key)]

    assert not {f.condensed_id for f in found} & {f.condensed_id for p in main for f in p.facts}
    assert drop_led(about, key, main) == about


def test_4_2_2_all_branches_stand_numbered_in_one_call_and_none_without_room_is_chosen(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, asker = ask_model(snapshot)
    (prompt,) = [r.messages[1].content for r in asker.asked if r.task == "rok_filter"]
    assert "Background knowledge:\n- " in prompt and "Triples:\n[1] " in prompt
    assert "Mary Stone" in prompt.partition("Triples:")[2] or "Harlow" in prompt

    monkeypatch.setattr("kpyramid.query.model.walks.MOST_CHARACTERS", 60)
    found, asker = ask_model(snapshot, rok_filter={"facts": [1, 2, 3]})
    (prompt,) = [r.messages[1].content for r in asker.asked if r.task == "rok_filter"]
    assert "[1] " in prompt and "[2] " not in prompt
    assert re.search(r"\b1 of (?!1\b)\d+ branches, by the model", found.trace[-1].reason)


def test_4_3_rules_answer_by_a_path_whose_steps_each_have_a_sentence(snapshot: Snapshot) -> None:
    found = answer(UNCLE, snapshot, "rok")
    best = found.context[0]

    assert found.text == "John Harlow" and found.calls == 0
    assert best.text.startswith("Grey Water ←") and best.text.endswith("– John Harlow")
    assert "wrote the novel Grey Water" in best.evidence[0].text
    assert best.evidence[1].text == "John Harlow was the uncle of Mary Stone."


def test_at_most_four_calls_and_what_the_model_does_not_say_rules_do(snapshot: Snapshot) -> None:
    for lost in read_rows("rok.at_most_four_calls_and_what_the_model_does_not_say_rules_do"):
        found, asker = ask_model(snapshot, **lost)
        assert found.calls == len(asker.asked) <= 4
        assert found.text == "John Harlow"


@pytest.mark.parametrize("cut", [*MADE, "all"])
def test_a_cut_off_reply_is_asked_for_once_and_its_stored_run_answers_the_same(
    snapshot: Snapshot, tmp_path: Path, cut: str
) -> None:
    replies = MADE | dict.fromkeys(MADE if cut == "all" else [cut], CUT)
    with ask_scripted(tmp_path, **replies) as (server, asker):
        backends = Backends(reader="llm", walk="llm", asker=asker)
        found = answer(UNCLE, snapshot, "rok", backends=backends)
        made = sum(len(list_prompts(server, task)) for task in replies)
        with open_caller(server, tmp_path) as later:
            again = answer(UNCLE, snapshot, "rok", backends=replace(backends, asker=later))

    assert found.calls == made <= 4
    assert (again.text, again.context, again.trace) == (found.text, found.context, found.trace)
    assert list_prompts(server, "rok_answer")  # the answer is always asked for
