"""Knowledge Solver: each step of the paper, its traps, and rows for fine-tuning.

Covers the subgraph (3, 5.2), the walk and its rounds (4.1, Algorithm 1, 5.3), what a model may
reply, bad input, scopes, and the instruction rows with their split (4.2, Algorithm 2).
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path as File
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making.instructions import (
    Row,
    TaughtWalk,
    encode_rows,
    find_leaks,
    make_instructions,
    split_walks,
)

from kpyramid.evaluation.questions import EvalQuestion, read_questions
from kpyramid.llm.task import FailureKind, Request
from kpyramid.query import Answer, Backends, Snapshot, answer, open_snapshot
from kpyramid.query.analysis import analyse
from kpyramid.query.ksl import Subgraph, find_subgraph
from kpyramid.query.model.walks import INSTRUCTION
from kpyramid.query.paths import find_paths
from kpyramid.query.types import Outcome
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.view import EVERYTHING
from tests.cascade_script import CountingScript
from tests.corpora import ROOT, encode_lines, open_told
from tests.rows import each_row, read_bodies, read_rows

OPEN = read_bodies("ksl.open")
CLOSED = read_bodies("ksl.closed")
"""A cycle of three (Holm, Batt, Stone), two parts that nothing joins, and what few may see."""

WHERE = "In which city is the company that Anna Holm founded?"
CHOICES = ("Leeds", "Oslo", "Quuxville")

T = TypeVar("T")


@pytest.fixture(scope="module")
def public(whole: Snapshot) -> Snapshot:
    return open_snapshot("main", whole.folder.parent.parent)


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    texts = {"open.jsonl": encode_lines(OPEN), "closed.jsonl": encode_lines(CLOSED)}
    return open_told("ksl", texts, EVERYTHING)


def choose(name: str) -> Callable[[Request], str]:
    """A model that takes the first tail whose line ends with one of these names, else the first."""

    def reply(request: Request) -> str:
        return pick(request.messages[1].content, name)

    return reply


def pick(material: str, names: str) -> str:
    lines = re.findall(r"^\[(\d+)\] (.*)$", material, re.M)
    wanted = names.split("|")
    found = [int(n) for name in wanted for n, said in lines if said.endswith(f"→ {name}")]
    return json.dumps({"tail": found[0] if found else int(lines[0][0])})


def by_model(
    asker: Any, text: str, snapshot: Snapshot, *candidates: str, **options: object
) -> Answer:
    backends = Backends(walk="llm", asker=asker)
    given: dict[str, Any] = {"floor": 0.0, **options}  # what a walk meets, however improbable
    return answer(text, snapshot, "ksl", candidates=candidates, backends=backends, **given)


def by_rules(text: str, snapshot: Snapshot, *candidates: str, **options: object) -> Answer:
    return answer(text, snapshot, "ksl", candidates=candidates, **options)


def find_within(text: str, snapshot: Snapshot, *candidates: str, hops: int = 2) -> Subgraph:
    found = find_subgraph(analyse(text, snapshot, candidates), hops)
    assert isinstance(found, Subgraph), found
    return found


def name_rows(snapshot: Snapshot, rows: Iterable[int]) -> set[str]:
    graph = Adjacency(snapshot)
    return {snapshot.names[graph.name_entity(row)] for row in rows}


def find_row(snapshot: Snapshot, name: str) -> int:
    (key,) = snapshot.entities_by_name()[name.casefold()]
    row = Adjacency(snapshot).locate([key]).get(key)
    assert row is not None
    return row


# 3 and 5.2: the subgraph between question and options.


@pytest.mark.parametrize("name", ["Anna Holm", "Leon Batt", "Mary Stone"])
@pytest.mark.parametrize("options", [("Leeds", "Oslo"), ("Peter Ash",)], ids=str)
@pytest.mark.parametrize("hops", [1, 2])
def test_3_the_subgraph_is_that_of_the_paths_found_one_by_one(
    public: Snapshot, name: str, options: tuple[str, ...], hops: int
) -> None:
    graph = Adjacency(public)
    start, ends = find_row(public, name), [find_row(public, option) for option in options]
    expected = {row for end in ends for path in find_paths(graph, [start, end], hops)
                for row in path.entities}  # fmt: skip
    found = find_subgraph(analyse(f"What about {name}?", public, options), hops)

    assert (set(found.nodes.tolist()) if isinstance(found, Subgraph) else set()) == expected


# 4.1, Algorithm 1: the start, the rounds, the end.


def test_line_1_all_tails_are_offered_and_reversed_ones_marked(public: Snapshot) -> None:
    asker = CountingScript(choose("Aster Pictures|Leeds"))
    by_model(asker, "What has Leon Batt to do with it?", public, "Peter Ash", "Leeds", hops=3)

    shown = asker.asked[0].messages[1].content
    assert "Leon Batt – married* → Anna Holm" in shown
    assert "Leon Batt – praised → Mary Stone" in shown
    assert "Oslo" not in shown  # on no path to an option


def test_4_1_question_options_and_the_whole_history_are_in_every_prompt(public: Snapshot) -> None:
    asker = CountingScript(choose("Aster Pictures|Leeds"))
    found = by_model(asker, WHERE, public, *CHOICES)

    first, second = (request.messages[1].content for request in asker.asked)
    for prompt in (first, second):
        assert f"Question: {WHERE}" in prompt and "- Leeds\n- Oslo\n- Quuxville" in prompt
    assert "Steps so far" not in first
    assert "Steps so far:\n- Anna Holm – founded → Aster Pictures\n" in second
    assert "Current entity: Aster Pictures" in second
    assert found.choices == ("Leeds",)


# Traps.


def test_trap_an_option_that_the_question_names_does_not_win_at_once(public: Snapshot) -> None:
    text = "Is it Oslo, Leeds or Grey Water that Leon Batt was born in?"
    within = find_within(text, public, "Oslo", "Leeds", "Grey Water")
    found = by_model(CountingScript(choose("Oslo")), text, public, "Oslo", "Leeds", "Grey Water")

    assert name_rows(public, within.starts) == {"Leon Batt"}
    assert found.choices == ("Oslo",) and found.calls == 1


def test_trap_at_the_limit_no_entity_that_is_no_option_is_returned(public: Snapshot) -> None:
    asker = CountingScript(choose("Aster Pictures"))
    found = by_model(asker, WHERE, public, *CHOICES, rounds=1)

    assert (found.text, found.choices, found.evidence, found.calls) == ("", (), (), 1)
    assert found.confidence == 0.0
    (step,) = found.trace
    assert step.outcome is Outcome.INSUFFICIENT
    assert step.reason == "from Anna Holm to Aster Pictures: no option within 1 rounds"


BAD = [*read_rows("ksl.bad"), FailureKind.REFUSED, FailureKind.TRUNCATED, FailureKind.EMPTY]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_reply_that_names_no_offered_tail_ends_the_walk_and_is_asked_once(
    public: Snapshot, bad: str | FailureKind
) -> None:
    asker = CountingScript(lambda _: bad)
    found = by_model(asker, WHERE, public, *CHOICES)

    assert (found.text, found.choices, found.calls, len(asker.asked)) == ("", (), 1, 1)
    assert found.trace[-1].reason.startswith("from Anna Holm to Anna Holm: the model chose no tail")


def test_a_model_that_fails_on_the_way_answers_no_open_question(public: Snapshot) -> None:
    replies = iter(['{"tail": 1}', "no idea"])
    found = by_model(CountingScript(lambda _: next(replies)), "Who was Anna Holm?", public)

    assert found.text == "" and found.calls == 2 and len(found.context) == 1


# A real server: calls are counted as they are paid for.


@pytest.mark.parametrize(
    ("options", "text"), [((), "Grey Water"), (("Peter Ash", "Kiruna"), "")], ids=str
)
def test_5_3_five_rounds_are_five_calls_and_the_end(
    public: Snapshot, options: tuple[str, ...], text: str
) -> None:
    asker = CountingScript(choose("Leon Batt|Mary Stone|Grey Water|Anna Holm|Aster Pictures"))
    found = by_model(asker, "What is Leeds?", public, *options, hops=6)

    assert (found.text, found.calls, len(asker.asked)) == (text, 5, 5)
    assert re.match(
        r"from Leeds to Grey Water: (no option within )?5 rounds", found.trace[-1].reason
    )


# Bad input: stated outcomes.


@each_row("text, options, why")
def test_what_is_not_walked_says_why(
    public: Snapshot, text: str, options: tuple[str, ...], why: str
) -> None:
    asker = CountingScript(lambda _: '{"tail": 1}')
    for found in (by_rules(text, public, *options), by_model(asker, text, public, *options)):
        (step,) = found.trace
        assert step.outcome is Outcome.EMPTY and step.reason.startswith(why)
        assert (found.text, found.context, found.calls) == ("", (), 0)
    assert not asker.asked


# Open questions: an extension.


def test_an_open_question_ends_where_the_model_stops(public: Snapshot) -> None:
    def reply(request: Request) -> str:
        shown = request.messages[1].content
        return '{"tail": 0}' if "Current entity: Grey Water" in shown else pick(shown, "Grey Water")

    asker = CountingScript(reply)
    found = by_model(asker, "What did Mary Stone write?", public)

    assert found.text == "Grey Water" and found.calls == 2
    offered = ["[0] stop here" in request.messages[1].content for request in asker.asked]
    assert offered == [False, True]  # the start is no answer


# Scopes, and text that gives orders.


# 4.2, Algorithm 2: rows for fine-tuning.

GOLD: list[dict[str, Any]] = read_rows("ksl.gold")


def ask_gold(*names: str) -> list[EvalQuestion]:
    return [EvalQuestion(**row) for row in GOLD if not names or row["id"] in names]


def test_4_2_each_step_of_the_shortest_path_is_a_row(public: Snapshot) -> None:
    (walk,) = make_instructions(ask_gold("city"), public).train
    first, second = walk.rows

    assert first.instruction == second.instruction == INSTRUCTION
    assert (first.output, second.output) == ("Aster Pictures", "Leeds")
    assert first.input.startswith(f"Question: {WHERE}\nOptions:\n- Leeds\n- Oslo\n- Quuxville\n")
    assert "Current entity: Anna Holm" in first.input and "Steps so far" not in first.input
    assert "Anna Holm – married → Leon Batt" in first.input  # all tails, right or not
    assert "- Anna Holm – founded → Aster Pictures" in second.input


def test_what_gives_no_row_is_counted_with_the_reason(public: Snapshot) -> None:
    made = make_instructions(ask_gold("zog", "none", "far", "own", "half", "docs"), public)

    assert not made.train and not made.test
    assert made.left_out == {
        "the question names no entity of the graph": 1,
        "no right answer is an entity near the question": 2,
        "the question names only its answer": 1,
        "it is no question that can be asked": 1,
        "nothing says what is right": 1,
    }


def test_rows_for_ask_are_what_ask_sends_and_reads(public: Snapshot) -> None:
    made = make_instructions(ask_gold("city", "found"), public, prompt="ask")
    rows = {(row.instruction, row.input): row.output for walk in made.train for row in walk.rows}
    asker = CountingScript(lambda request: rows[_key(request)])

    def _key(request: Request) -> tuple[str, str]:
        system, user = request.messages
        return system.content, user.content

    assert by_model(asker, WHERE, public, *CHOICES).choices == ("Leeds",)
    assert by_model(asker, "What did Clara Zorblax found?", public).text == "Quuxville"


def test_hidden_facts_are_in_no_row(public: Snapshot, whole: Snapshot) -> None:
    question = EvalQuestion("q", "Whom did Anna Holm betray?", "open", (("Peter Ash",),))
    seen = encode_rows(make_instructions([question], whole).train).decode()
    hidden = make_instructions([question], public)

    assert "betrayed" in seen and hidden.train == ()
    told = encode_rows(make_instructions(ask_gold(), public).train).decode()
    assert "betray" not in told and "Turin" not in told


# Train and test.


def make_walk(question: str, *nodes: int) -> TaughtWalk:
    pairs = tuple((min(p), max(p)) for p in pairwise(nodes))
    facts = tuple(f"{a}-{b}" for a, b in pairs)
    return TaughtWalk(question, pairs, facts, (Row("", "", ""),) * len(pairs))


WALKS = st.lists(
    st.tuples(
        st.integers(0, 12), st.lists(st.integers(0, 12), min_size=2, max_size=4, unique=True)
    ),
    max_size=30,
).map(lambda found: [make_walk(f"q{q}", *nodes) for q, nodes in found])


@given(WALKS, st.integers(0, 3), st.floats(0, 0.9))
def test_no_question_and_no_step_into_an_answer_is_on_both_sides(
    walks: list[TaughtWalk], seed: int, test_share: float
) -> None:
    train, test = split_walks(walks, seed, test_share)

    into = {walk.pairs[-1] for walk in test}
    assert not into & {pair for walk in train for pair in walk.pairs}
    assert not {walk.pairs[-1] for walk in train} & {pair for walk in test for pair in walk.pairs}
    assert not {walk.question for walk in train} & {walk.question for walk in test}
    assert sorted(map(id, (*train, *test))) == sorted(map(id, walks))
    assert sum(len(w.rows) for w in test) <= test_share * sum(len(w.rows) for w in walks)
    assert (train, test) == split_walks(walks, seed, test_share)


def test_a_leak_is_found() -> None:
    one, other, far = make_walk("a", 1, 2, 3), make_walk("b", 3, 2), make_walk("c", 5, 6)

    assert find_leaks([one], [other]) == {(2, 3)}
    assert find_leaks([one], [make_walk("A", 7, 8)]) == {"a"}
    assert not find_leaks([one], [far])


ASKED: list[dict[str, Any]] = read_rows("ksl.asked")


# The recipe of `docs/`: one step of LoRA on a tiny model.


@pytest.mark.slow
@pytest.mark.needs("instructor", "tune")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of peft about transformers
def test_the_lora_recipe_learns_from_rows(public: Snapshot, tmp_path: File) -> None:
    import torch
    import transformers

    spec = spec_from_file_location("tune_lora", ROOT / "docs" / "tune_lora.py")
    assert spec is not None and spec.loader is not None
    recipe = sys.modules["tune_lora"] = module_from_spec(spec)
    spec.loader.exec_module(recipe)
    gold = tmp_path / "questions.jsonl"
    gold.write_text(encode_lines(ASKED))
    made = make_instructions(read_questions(gold), public, test_share=0.5)
    assert encode_rows(made.train) and made.left_out.total() == 1
    (tmp_path / "rows").mkdir()
    for name, walks in (("train", made.train), ("test", made.test)):
        (tmp_path / "rows" / f"{name}.jsonl").write_bytes(encode_rows(walks))

    def encode(text: str) -> list[int]:
        return list(text.encode())

    sides = [
        [recipe.encode_row(row, encode, 0, 1152) for row in recipe.read_rows(file)]
        for file in (tmp_path / "rows" / "train.jsonl", tmp_path / "rows" / "test.jsonl")
    ]
    example = sides[0][0]
    learnt = bytes(label for label in example.labels if label > 0).decode()
    assert learnt in {"Aster Pictures", "Quuxville", "Kiruna"}
    assert (
        recipe.encode_row({"instruction": "", "input": "x" * 1152, "output": ""}, encode, 0, 1152)
        is None
    )

    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=256, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=2, max_position_embeddings=1152,
        )
    )  # fmt: skip
    before = recipe.validate(model, sides[0], recipe.Recipe())
    losses = recipe.tune(model, sides[0], sides[0], tmp_path / "adapter", recipe.Recipe())

    assert len(losses) == 3 and losses == sorted(losses, reverse=True) and losses[0] < before
    told = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (told["r"], told["lora_alpha"], told["lora_dropout"]) == (16, 16, 0.05)
    assert set(told["target_modules"]) == {"q_proj", "k_proj", "v_proj", "o_proj"}
