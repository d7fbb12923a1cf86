"""WTS step by step, each test named after the section that it holds the code against."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kpyramid.llm.task import FailureKind
from kpyramid.query import STRATEGIES, Backends, Snapshot, answer
from kpyramid.query.analysis import analyse
from kpyramid.query.types import Outcome
from kpyramid.query.wts import Search
from tests import loopback
from tests.asked_model import ask_scripted, list_prompts
from tests.cascade_script import ScriptedAsker, reply_by_task
from tests.commands import run
from tests.corpora import open_told
from tests.rows import read_bodies, read_rows

pytestmark = pytest.mark.usefixtures("passing_gates")

UNCLE = "Who was the uncle of the author of Grey Water?"
NAMED = {"entities": ["Grey Water"]}
ALL = {"triples": [{"triple": n, "score": 1 / n} for n in range(1, 20)]}
YES = read_bodies("wts.yes")
NO = YES | {"cites": [], "answer": "", "confidence": "no", "support_info": ""}
CUT = loopback.Answer("{}", reasoning=100_000)


MADE: dict[str, Any] = {"wts_extract": NAMED, "wts_score": ALL, "wts_reason": YES}


def ask_model(
    snapshot: Snapshot,
    question: str = UNCLE,
    *,
    reader: Any = "llm",
    walk: Any = "llm",
    options: Any = None,
    candidates: Sequence[str] = (),
    **replies: Any,
) -> tuple[Any, Any]:
    asker = ScriptedAsker(reply_by_task(**MADE | replies))
    backends = Backends(reader=reader, walk=walk, asker=asker)
    given = {"floor": 0.0, **(options or {})}  # what the script says, whatever its facts support
    found = answer(question, snapshot, "wts", backends=backends, candidates=candidates, **given)
    return found, asker


def begin(snapshot: Snapshot, *names: str, **ways: Any) -> Search:
    index = snapshot.entities_by_name()
    given: dict[str, Any] = {"width": 30, "distance": 1.0, "match": "question", "chained": True}
    topics = tuple(index[name][0] for name in names)
    return Search(analyse(UNCLE, snapshot), topics, **(given | ways))


def deepen(search: Search) -> list[str]:
    near = search.match_facts()
    return [fact.statement for fact in search.keep(near, search.score())]


# Entity extraction module.


def test_3_2_1_the_model_extracts_at_most_n_entities_in_one_call(snapshot: Snapshot) -> None:
    many = {"entities": ["Grey Water", "Zog", "Mary Stone", "John Harlow", "Devon", "London"]}
    found, asker = ask_model(snapshot, wts_extract=many)

    assert asker.tasks.count("wts_extract") == 1
    assert "at most 5 meaningful entities" in asker.asked[0].messages[0].content
    (line,) = [line for line in found.recognised if line.startswith("entities: ")]
    assert line == "entities: Grey Water, Mary Stone, John Harlow, Devon"
    assert "not in the graph: Zog" in found.recognised


def test_3_2_1_what_the_model_does_not_say_the_question_and_rules_do(snapshot: Snapshot) -> None:
    for said in (FailureKind.REFUSED, FailureKind.INVALID, {"entity": 1}):
        found, _ = ask_model(snapshot, wts_extract=said)
        assert found.text == "John Harlow"
        assert (found.trace[0].layer, found.trace[0].outcome) == ("model", Outcome.FAILED)
    for said in (FailureKind.REFUSED, {"triples": "all"}):
        found, _ = ask_model(snapshot, wts_score=said)
        assert found.text == "John Harlow"
        assert "since the model gave no scores" in found.trace[0].reason


# Retrieval module.


def test_3_2_1_similarity_leaves_what_is_within_l_of_the_question(snapshot: Snapshot) -> None:
    near = begin(snapshot, "grey water", "brent tor").match_facts()
    middle = sorted(1 - fact.cosine for fact in near)[len(near) // 2]
    search = begin(snapshot, "grey water", "brent tor", distance=middle)
    within = search.match_facts()

    assert 0 < len(within) < len(near)
    assert all(1 - fact.cosine <= middle for fact in within)
    assert search.note.startswith(f"{len(within)} of {len(near)} facts within")


def test_3_2_1_the_next_depth_starts_from_entities_not_met_before(snapshot: Snapshot) -> None:
    search = begin(snapshot, "grey water")
    first = deepen(search)
    names = [snapshot.names[entity] for entity in search.ahead]
    second = deepen(search)

    assert "Mary Stone" in names and "Grey Water" not in names
    assert not set(first) & set(second)  # the union has each fact once
    assert "Mary Stone" not in [snapshot.names[entity] for entity in search.ahead]


def test_table_2_facts_are_near_to_question_to_entities_or_to_neither(snapshot: Snapshot) -> None:
    steps = {
        way: answer(UNCLE, snapshot, "wts", match=way).trace[0].reason
        for way in ("question", "entity", "exact")
    }

    assert "of the question," in steps["question"] and "of its entities," in steps["entity"]
    assert "facts matched," in steps["exact"]
    cosines = [
        {f.condensed_id: f.cosine for f in begin(snapshot, "grey water", match=way).match_facts()}
        for way in ("question", "entity")
    ]
    assert cosines[0] != cosines[1]


# Pruning module.


def test_3_2_1_width_pruning_keeps_the_k_best_scores(snapshot: Snapshot) -> None:
    found, asker = ask_model(
        snapshot,
        wts_score={"triples": [{"triple": 2, "score": 0.9}, {"triple": 1, "score": 0.2}]},
        wts_reason=NO,
        options={"width": 1, "depth": 1},
    )
    shown = asker.asked[1].messages[1].content.splitlines()
    (second,) = [line[4:] for line in shown if line.startswith("[2] ")]

    assert [item.text for item in found.context] == [second]
    assert found.trace[0].found == (second,)


def test_3_2_1_a_score_of_an_unshown_triple_or_out_of_range_is_left_out(snapshot: Snapshot) -> None:
    for scores, odd in read_rows("wts.scores_left_out"):
        found, asker = ask_model(snapshot, wts_score={"triples": scores})
        assert asker.tasks == ["wts_extract", "wts_score"]  # nothing is kept, so nothing is read
        assert (found.text, found.context) == ("", ())
        assert f"({odd} scores of no triple shown or out of range" in found.trace[-1].reason


# Reasoning module and depth pruning.


def test_3_2_1_a_yes_ends_the_search_and_a_no_goes_deeper(snapshot: Snapshot) -> None:
    found, asker = ask_model(snapshot, wts_reason=[NO, YES])

    assert asker.tasks == ["wts_extract", *["wts_score", "wts_reason"] * 2]
    assert [step.outcome for step in found.trace] == [Outcome.INSUFFICIENT, Outcome.ANSWERED]
    assert [step.query.partition(",")[0] for step in found.trace] == ["depth 1", "depth 2"]
    assert found.trace[0].reason.endswith("not sure, deeper")
    assert YES["support_info"] in found.trace[1].reason
    assert (found.text, found.confidence, found.layer) == ("John Harlow", 0.8, "graph")
    assert len(found.context) > len(found.trace[1].found) > 0  # the union of both depths


def test_algorithm_1_the_last_depth_answers_even_without_confidence(snapshot: Snapshot) -> None:
    unsure = YES | {"confidence": "no"}
    found, asker = ask_model(snapshot, wts_reason=unsure, options={"depth": 2})

    assert asker.tasks.count("wts_reason") == 2
    assert (found.text, found.confidence) == ("John Harlow", 0.3)
    assert "not sure, the last depth" in found.trace[-1].reason


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_calls_are_at_most_one_and_two_a_depth(
    snapshot: Snapshot, tmp_path: Path, depth: int
) -> None:
    for cut in ("wts_extract", "wts_score", "wts_reason", ""):
        replies: dict[str, Any] = {"wts_extract": NAMED, "wts_score": ALL, "wts_reason": NO}
        replies |= {cut: CUT} if cut else {}
        with ask_scripted(tmp_path / f"cut-{cut}", **replies) as (server, asker):
            backends = Backends(reader="llm", walk="llm", asker=asker)
            found = answer(UNCLE, snapshot, "wts", backends=backends, depth=depth)
            made = sum(len(list_prompts(server, task)) for task in replies)
        reached = sum(step.layer == "graph" for step in found.trace)

        assert found.calls == made <= 1 + 2 * reached and reached <= depth


def test_rules_read_the_likeliest_chain_with_a_sentence_for_every_step(snapshot: Snapshot) -> None:
    found = answer(UNCLE, snapshot, "wts")

    assert (found.text, found.calls) == ("John Harlow", 0)
    assert found.context[0].text.startswith("Grey Water ←")
    assert found.context[0].evidence[1].text == "John Harlow was the uncle of Mary Stone."
    assert "support: Grey Water ←" in found.trace[-1].reason
    assert len(found.trace) == 2  # sure at the second depth


# Bad input.


def test_no_entity_that_the_graph_knows_is_an_outcome(snapshot: Snapshot) -> None:
    for walk in ("rules", "llm"):
        named = {"entities": ["Zq-17 vv"]}
        found, asker = ask_model(snapshot, "Who is Zog?", walk=walk, wts_extract=named)
        assert (found.text, found.context) == ("", ())
        assert found.trace[-1].outcome is Outcome.EMPTY
        assert "wts_reason" not in asker.tasks


# `ask --trace`.


def ask_command(snapshot: Snapshot, *arguments: object) -> Any:
    return run("ask", UNCLE, *arguments, "--warehouse", snapshot._store.folder.parent.parent)


def test_ask_adds_a_line_of_feedback_for_each_question(snapshot: Snapshot, tmp_path: Path) -> None:
    file = tmp_path / "feedback.jsonl"
    for strategy in ("wts", *sorted(STRATEGIES), "wts"):
        assert ask_command(snapshot, "--strategy", strategy, "--trace", file).exit_code == 0
    one, *others, last = file.read_text("utf-8").splitlines()
    assert one == last  # no time stands in it
    rows = [json.loads(line) for line in others]
    assert [row["strategy"] for row in rows] == sorted(STRATEGIES)
    assert all(each["words"] for row in rows for each in row["triples"])
    row = json.loads(one)
    assert list(row) == [
        "question", "options", "answer", "gold", "rating", "triples", "depth", "confidence",
        "strategy", "snapshot",
    ]  # fmt: skip
    assert (row["question"], row["answer"], row["depth"]) == (UNCLE, "John Harlow", 2)
    assert (row["options"], row["gold"], row["rating"]) == ([], None, None)
    assert (row["strategy"], row["snapshot"]) == ("wts", snapshot.id)
    assert 0 < row["confidence"] <= 1
    words = [triple["words"] for triple in row["triples"]]
    assert "Mary Stone wrote Grey Water" in words and len(set(words)) == len(words)
    assert all(snapshot.evidence(triple["key"]) for triple in row["triples"])
    for place in (tmp_path, tmp_path / "none" / "f.jsonl"):
        done = ask_command(snapshot, "--trace", place)
        assert done.exit_code != 0 and "--trace" in done.output


@pytest.mark.parametrize("strategy", ["wts", "rok", "ksl"])
def test_when_is_answered_by_time_and_who_by_end_that_verb_asks_for(strategy: str) -> None:
    texts = {
        "grey.txt": "Mary Stone founded Orbel Works in 1962. Carl Harlow bought Orbel Works.",
        "mary.txt": "Mary Stone was born in Leeds on 14 March 1931.",
    }
    opened = open_told("orbel", texts)
    assert answer("When was Mary Stone born?", opened, strategy).text == "14 March 1931"
    assert answer("Who founded Orbel Works?", opened, strategy).text == "Mary Stone"
    assert answer("Who bought Orbel Works?", opened, strategy).text == "Carl Harlow"
