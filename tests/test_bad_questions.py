"""Bad input to every strategy: a clear answer or error, never a wrong answer with confidence.

What a question may be: nothing, too long, no English, hostile, about what no text says; what may
stand behind it: layers without a row, a model that is down, a snapshot that is gone or damaged.
"""

import json
import math
import os
import shutil
import socket
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import EndpointError, InputError, IntegrityError, PyramidError
from kpyramid.query import STRATEGIES, Answer, Backends, Snapshot, answer, open_snapshot
from tests.asked_model import open_caller
from tests.rows import read_rows

pytestmark = pytest.mark.usefixtures("passing_gates")

EVERY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))
READING = pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"direct"}))
"""Strategies that read the snapshot."""
BORN = "Where was Ada Lovelace born?"
CONFIDENT = 0.5
SECONDS = 20.0
"""Of the processor: many times what the longest question takes."""


def ask(question: str, snapshot: Snapshot, strategy: str, **options: Any) -> Answer:
    """The answer, held to be one: whole, bounded in time, in plain values."""
    started = time.process_time()
    found = answer(question, snapshot, strategy, **options)
    assert time.process_time() - started < SECONDS
    assert math.isfinite(found.confidence) and 0.0 <= found.confidence <= 1.0
    assert bool(found.text) == bool(found.choices), "an answer has values, no answer has none"
    assert found.trace and all(step.reason for step in found.trace)
    assert json.loads(json.dumps(found.to_dict()))["text"] == found.text
    return found


def ask_for(right: Sequence[str], question: str, snapshot: Snapshot, strategy: str) -> Answer:
    """The answer, held to be right, or missing, or doubted."""
    found = ask(question, snapshot, strategy)
    assert found.text in ("", *right) or found.confidence < CONFIDENT, (
        f"{strategy} answers {found.text!r} with {found.confidence:.2f} to {question!r}"
    )
    return found


def assert_tells(error: BaseException, *words: str) -> None:
    """That a message says what is wrong, and holds no more than can be read."""
    message = str(error)
    assert all(word in message for word in words), message
    assert len(message) < 600, f"{len(message)} characters"


# --- what is no question ---------------------------------------------------------------------


@EVERY
def test_what_is_no_question_is_refused_in_words(snapshot: Snapshot, strategy: str) -> None:
    words = " ".join(f"word{number}" for number in range(10_000))
    refused: list[tuple[Any, tuple[str, ...]]] = [
        *((blank, ("question is empty",)) for blank in ("", " \t\u00a0\u3000", "\x00\x1b\u2028")),
        *((long, ("at most", "fewer words")) for long in (words, f"{BORN} {words}", "(" * 100_000)),
        ("\udfffWhere was Ada Lovelace born?", ("question", "half", "surrogate")),
        *((other, ("question", "pass a string")) for other in (None, 42, b"Where?", ["Where?"])),
    ]
    for question, says in refused:
        started = time.process_time()
        with pytest.raises(InputError) as error:
            answer(question, snapshot, strategy)
        assert time.process_time() - started < SECONDS / 4
        assert_tells(error.value, *says)


@pytest.mark.slow
@EVERY
def test_longest_questions_are_answered_in_time(snapshot: Snapshot, strategy: str) -> None:
    for question in ("who " * 499, " ".join(f"Ada{n}" for n in range(499)), "W" * 4_999):
        ask_for((), question, snapshot, strategy)


@READING
def test_noise_changes_no_answer_to_wrong_one(snapshot: Snapshot, strategy: str) -> None:
    for question in read_rows("bad_questions.noise"):
        found = ask_for(("London",), question, snapshot, strategy)
        assert not any(c in found.question + found.text for c in "\x00\x07\x1b")


@READING
def test_another_language_is_answered_rightly_or_not(snapshot: Snapshot, strategy: str) -> None:
    for question, right in read_rows("bad_questions.another_language"):
        ask_for((right,), question, snapshot, strategy)


# --- hostile questions -----------------------------------------------------------------------

ATTACKS: list[str] = read_rows("bad_questions.attacks")

PLACES = ("ATTACK", f"ATTACK {BORN}", "Where was Ada LovelaceATTACK born?")


@EVERY
def test_an_attack_is_words_and_reaches_nothing(snapshot: Snapshot, strategy: str) -> None:
    count = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"
    before = snapshot.sparql(count)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        for attack, place in zip(ATTACKS, cycle(PLACES), strict=False):
            words = attack.replace("{port}", str(listener.getsockname()[1]))
            question = place.replace("ATTACK", words)
            found = ask_for(("London",), question, snapshot, strategy)
            told = json.dumps([*found.choices, *(str(step) for step in found.trace)])
            assert "root:" not in told
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert snapshot.sparql(count) == before


# --- what no text says -----------------------------------------------------------------------


@READING
def test_no_relation_is_answered_with_another(snapshot: Snapshot, strategy: str) -> None:
    for question in read_rows("bad_questions.no_relation"):
        ask_for((), question, snapshot, strategy)


# --- candidates and options ------------------------------------------------------------------


@EVERY
def test_candidates_that_cannot_be_chosen_are_refused(snapshot: Snapshot, strategy: str) -> None:
    refused: list[tuple[Any, tuple[str, ...]]] = [
        ([f"Town {number}" for number in range(1_000)], ("1000 candidates", "at most")),
        (("London", " \t"), ("candidate", "empty")),
        (("London", "Oslo\udc00"), ("candidate", "half")),
        (("London", "x " * 10_000), ("candidate", "at most")),
        (("London", None), ("candidate None", "pass a string")),
        ((1, 2), ("candidate 1", "pass a string")),
        ("London", ("candidates", "sequence")),
        (None, ("candidates", "()")),
    ]
    for candidates, says in refused:
        with pytest.raises(InputError) as error:
            answer(BORN, snapshot, strategy, candidates=candidates)
        assert_tells(error.value, *says)


@EVERY
@pytest.mark.parametrize(
    "candidates",
    read_rows("bad_questions.a_candidate_is_chosen_once_and_only_if_it_is_right"),
    ids=["alike", "none-right", "single", "of-the-question", "signs", "yes-no"],
)
def test_a_candidate_is_chosen_once_and_only_if_it_is_right(
    snapshot: Snapshot, strategy: str, candidates: tuple[str, ...]
) -> None:
    found = ask(BORN, snapshot, strategy, candidates=candidates)
    chosen = [choice.strip().lower() for choice in found.choices]
    assert len(set(chosen)) == len(chosen) and set(found.choices) <= set(candidates)
    assert chosen in ([], ["london"]) or found.confidence < CONFIDENT + 0.05
    if strategy not in ("direct", "tools") and "London" in candidates:
        assert found.choices == ("London",) and found.confidence >= CONFIDENT


@EVERY
def test_wrong_option_is_refused_with_what_to_pass(snapshot: Snapshot, strategy: str) -> None:
    taken = {"naive": "chunks", "kaping": "triples", "exact": "triples", "polyrag": "chunks"}
    wrong: list[dict[str, Any]] = [{"magic": 1}, {"m" * 20_000: 1}]
    if strategy in taken:
        wrong += [{taken[strategy]: value} for value in (0, -1, "5", 2.5, "ten", None, True)]
    if strategy == "polyrag":
        wrong += [{"mode": "fast"}, {"mode": None}, {"floor": 2}, {"graph": "no"}]
    if strategy == "naive":
        wrong += [{"by": "magic"}, {"by": 3}]
    walks = {"wts": {"match": "near"}, "rok": {"damping": 1}, "hykge": {"overlap": 10}}
    wrong += [{"hops": 0}, {"rounds": 0}] if strategy == "ksl" else [walks.get(strategy, {"by": 1})]
    for options in wrong:
        with pytest.raises(InputError) as refused:
            answer(BORN, snapshot, strategy, **options)
        assert_tells(refused.value, *(name[:30] for name in options))


@EVERY
def test_no_snapshot_and_no_backends_are_refused(snapshot: Snapshot, strategy: str) -> None:
    for wrong in (None, "main", snapshot.folder):
        with pytest.raises(InputError) as refused:
            answer(BORN, wrong, strategy)  # type: ignore[arg-type]
        assert_tells(refused.value, "snapshot", "open_snapshot")
    with pytest.raises(InputError) as refused:
        answer(BORN, snapshot, strategy, backends=None)  # type: ignore[arg-type]
    assert_tells(refused.value, "backends", "Backends")


def test_an_unknown_strategy_is_refused_with_those_there_are(snapshot: Snapshot) -> None:
    for wrong in ("magic", "m" * 20_000, None):
        with pytest.raises(InputError) as refused:
            answer(BORN, snapshot, wrong)  # type: ignore[arg-type]
        assert_tells(refused.value, "strategy", *STRATEGIES)


# --- what is behind a question ---------------------------------------------------------------


@EVERY
def test_model_that_is_down_is_told_soon(snapshot: Snapshot, strategy: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    question = (
        BORN if strategy in {"exact", "ksl"} else "Which path did pilgrims take to the chapel?"
    )
    started = time.monotonic()
    with open_caller(url, tmp_path) as asker, pytest.raises(EndpointError) as down:
        backends = Backends("llm", "llm", "llm", "llm", asker)
        answer(question, snapshot, strategy, backends=backends)
    assert time.monotonic() - started < 120, "not the ten minutes of a build"
    assert_tells(down.value, url, "is the server running", "llm.base_url")


def copy(snapshot: Snapshot, folder: Path) -> tuple[Snapshot, Path]:
    """A snapshot of one's own to break, and its folder."""
    place = folder / "snapshots" / snapshot.id
    shutil.copytree(snapshot.folder, place)
    return open_snapshot(snapshot.id, folder), place


@READING
def test_a_snapshot_that_is_removed_later_is_named_or_answers_as_before(
    snapshot: Snapshot, strategy: str, tmp_path: Path
) -> None:
    opened, place = copy(snapshot, tmp_path)
    first = ask(BORN, opened, strategy)
    shutil.rmtree(place)
    for question, before in (
        (BORN, first),
        ("Who is Peter Ash?", ask("Who is Peter Ash?", snapshot, strategy)),
    ):
        try:
            found = ask(question, opened, strategy)
        except PyramidError as e:
            assert_tells(e, snapshot.id, "removed", "Open")
        else:
            assert (found.text, found.evidence) == (before.text, before.evidence)


def remove(file: Path) -> None:
    file.unlink()


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    held = bytearray(file.read_bytes())
    middle = len(held) // 2
    held[middle : middle + 16] = bytes(byte ^ 0xFF for byte in held[middle : middle + 16])
    file.write_bytes(held)


def test_damaged_index_file_is_named_or_not_needed(snapshot: Snapshot, tmp_path: Path) -> None:
    path = "Which path did pilgrims take to the chapel?"
    wholes = {question: ask(question, snapshot, "polyrag") for question in (path, BORN)}
    assert [step.layer for step in wholes[path].trace] == ["ontology", "graph", "text"]
    told = set()
    index = snapshot.folder / "index"
    names = sorted(file.name for file in index.iterdir() if file.is_file())
    names.append(str(min((index / "vectors").iterdir()).relative_to(index)))
    for name, damage in zip(names, cycle((remove, halve, flip)), strict=False):
        opened, place = copy(snapshot, tmp_path / name)
        damage(place / "index" / name)
        for question, whole in wholes.items():
            try:
                found = ask(question, opened, "polyrag")
            except (IntegrityError, InputError) as e:
                assert_tells(e, name)
                told.add(name)
            else:
                assert (found.text, found.evidence) == (whole.text, whole.evidence)
    assert {"chunks.arrow", "condensed.arrow", "entities.arrow"} <= told
