"""Naming and condensation by a model behind a real server, from the stored graph on."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kpyramid.completion import naming as naming
from kpyramid.condensation import condenser as condensing
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.runner import collect_pending
from kpyramid.pipeline.stage import Progress
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.runs import StageMark, start_run
from tests import pyramid_model
from tests.corpora import HashEmbedder, hash_tree, make_settings, use_quick_models, write_corpus
from tests.loopback import Loopback
from tests.model_runs import read_rows, run_stages
from tests.pyramid_model import make_name

TASKS = ("naming", "condensation")
VERBS = (
    *("mentored", "praised", "photographed", "hired", "visited", "taught"),
    *("filmed", "blamed", "thanked", "interviewed", "painted", "rescued"),
)
NAMES = [
    f"{first} {last}"
    for first in ("Anna", "Per", "Clara", "Leon", "Ida", "Ben", "Olaf", "Hedda", "Mira", "Tobias")
    for last in ("Holm", "Lund", "Zorn", "Batt", "Kemp")
]


def write_texts() -> dict[str, str]:
    """Three facts each of two pairs of people per text."""
    texts = {}
    for n in range(12):
        told = [VERBS[(n + step) % 12] for step in (0, 1, 5)]
        pairs = [[NAMES[(4 * n + k) % 50] for k in ends] for ends in ((0, 1), (2, 3))]
        said = [f"{one} {verb} {other}." for one, other in pairs for verb in told]
        texts[f"{n}.txt"] = " ".join(said)
    return texts


def open_settings(url: str | None, *, rounds: int = 2, **llm: object) -> Settings:
    """A model's for both stages, or nobody's; small batches, wherever facts lie."""
    part = "rules" if url is None else "llm"
    endpoint = {"provider": "openai", "model": "m", "base_url": url or "http://127.0.0.1:9/v1"}
    return make_settings(
        complete={"min_support": 2, "region_share": 1.0, "rounds": rounds, "naming": part},
        condense={"anchor_similarity": 0.0, "mode": part},
        llm=endpoint | {"max_tokens": 500} | llm,
    )


def quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)
    monkeypatch.setattr(naming, "BATCH", 2)
    monkeypatch.setattr(condensing, "_FACTS", 4)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a warehouse that has all up to stage induce."""
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        write_corpus(folder / "corpus", write_texts())
        run_all(folder, open_settings(None), "induce")
    return folder


@pytest.fixture
def place(graph: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(graph, tmp_path / "place")
    return tmp_path / "place"


ANSWER = pyramid_model.answer


def run_all(place: Path, settings: Settings, last: str = "condense") -> Mapping[str, StageMark]:
    return run_stages(place / "corpus", place / "w", settings, last)


def list_wordings(place: Path, settings: Settings) -> list[list[str]]:
    """What the proposals of each request of the first round are called by the rules."""
    run = start_run(Warehouse(place / "w"), place / "corpus", settings, ref="main")
    pending = collect_pending(run, workers=1, progress=Progress())
    texts = sorted(request.messages[-1].content for request in pending.values())
    return [re.findall(r"^Wordings: ([^;\n]*)", text, re.MULTILINE) for text in texts]


def count_asked(server: Loopback) -> int:
    return sum(server.calls(schema=task) for task in TASKS)


def count_tokens(server: Loopback) -> int:
    log = [e for e in server.log if e["schema"] in TASKS]
    return sum(e["prompt_tokens"] + e["completion_tokens"] for e in log)


def plan(place: Path, settings: Settings) -> dict[str, Mapping[str, Any]]:
    """The model's part of both stages."""
    rows = plan_build(place / "corpus", Warehouse(place / "w"), settings)
    return {
        str(row["stage"]): row["model"]  # type: ignore[misc]
        for row in rows
        if row["stage"] in ("complete", "condense") and "model" in row
    }


def test_both_stages_ask_take_the_answers_and_ask_nothing_again(
    server: Loopback, place: Path
) -> None:
    settings = open_settings(server.base_url)
    marks = run_all(place, settings)

    labels = {row["label"] for row in read_rows(place / "w", marks["complete"], "proposals")}
    assert len({label for label in labels if label.startswith("known ")}) > 5
    how = [row["how"] for row in read_rows(place / "w", marks["condense"], "condensed")]
    assert Counter(word for words in how for word in words)["llm"] >= 4
    assert server.calls(schema="naming") == marks["complete"].model["calls"] - 1, "one probe"
    assert server.calls(schema="condensation") == marks["condense"].model["calls"] > 2
    asked = server.calls()

    again = run_all(place, settings)

    assert server.calls() == asked
    assert [mark.key for mark in again.values()] == [mark.key for mark in marks.values()]


def test_another_domain_asks_both_again_and_rules_ask_nobody(server: Loopback, place: Path) -> None:
    run_all(place, open_settings(None))
    assert not server.calls()
    settings = open_settings(server.base_url)
    run_all(place, settings)
    first = count_asked(server)
    other = make_settings(
        complete=settings.section("complete"),
        condense=settings.section("condense"),
        llm={"provider": "openai", "model": "m", "base_url": server.base_url, "max_tokens": 500},
        cascade={"domain": "academic"},
    )
    run_all(place, other)

    assert count_asked(server) == 2 * first
    assert "academic" in server.log[-1]["body"]["messages"][0]["content"]


def test_bad_replies_are_counted_leave_what_rules_made_and_heal(
    server: Loopback, place: Path
) -> None:
    settings = open_settings(server.base_url, rounds=1)
    ruled = run_all(place, open_settings(None, rounds=1))["complete"]
    listed = {row["label"] for row in read_rows(place / "w", ruled, "proposals")}
    refused, broken = [said for said in list_wordings(place, settings) if listed >= {*said}][:2]
    server.faults.add("refusal", contains=f"Wordings: {refused[0]}")
    server.faults.add("malformed", contains=f"Wordings: {broken[0]}")
    server.faults.add("truncated", contains="| praised |")
    marks = run_all(place, settings)

    assert {"llm_refused": 1, "llm_invalid": 1}.items() <= marks["complete"].rejects.items()
    assert marks["condense"].rejects["llm_truncated"] >= 1
    labels = {row["label"] for row in read_rows(place / "w", marks["complete"], "proposals")}
    assert {*refused, *broken} <= labels
    reject = next(
        row
        for row in read_rows(place / "w", marks["complete"], "rejects")
        if row["reason"] == "llm_refused"
    )
    assert "named by the rules: " in reject["detail"] and refused[0] in reject["detail"]

    server.faults.clear()
    marks = run_all(place, settings)

    assert {r for r in marks["complete"].rejects if r.startswith("llm_")} == {"llm_refused"}
    assert not marks["condense"].rejects
    labels = {row["label"] for row in read_rows(place / "w", marks["complete"], "proposals")}
    assert {*refused, *map(make_name, broken)} <= labels
    asked = server.calls()
    assert run_all(place, settings)["condense"].key == marks["condense"].key
    assert server.calls() == asked


def test_the_plan_foresees_the_calls_from_the_graph_and_their_tokens_from_experience(
    server: Loopback, place: Path
) -> None:
    settings = open_settings(server.base_url, rounds=1)
    before = plan(place, settings)
    assert not server.calls()
    marks = run_all(place, settings)

    assert before["complete"]["calls"]["expected"] == server.calls(schema="naming")
    low, high = (
        sum(part["tokens"][bound] for part in before.values()) for bound in ("low", "high")
    )
    assert low <= count_tokens(server) <= high
    asked = before["condense"]["calls"]
    assert asked["low"] <= int(str(marks["condense"].model["calls"])) <= asked["high"]
    assert plan(place, settings) == {}, "all of it is there"

    renewed = open_settings(server.base_url, rounds=1, seed=7)  # another key, the same questions
    server.log.clear()
    learned = plan(place, renewed)
    run_all(place, renewed)

    expected = {bound: sum(p[bound]["expected"] for p in learned.values()) for bound in
                ("calls", "tokens")}  # fmt: skip
    assert expected["calls"] == count_asked(server)
    assert expected["tokens"] == pytest.approx(count_tokens(server), rel=0.2)
    assert learned["condense"]["learned_from"] > 0


def test_a_plan_makes_each_vector_once_and_stores_none(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Counter[str] = Counter()
    real = HashEmbedder.embed

    def embed(self: HashEmbedder, texts: list[str]) -> Any:
        made.update(texts)
        return real(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed", embed)
    before = hash_tree(place / "w" / "cache")
    plan(place, open_settings("http://127.0.0.1:9/v1", rounds=3))

    assert made
    assert set(made.values()) <= {1, 2}, "once for each of two stages"
    assert hash_tree(place / "w" / "cache") == before


def test_a_batch_holds_the_first_round_alone_and_then_what_follows_from_it(
    server: Loopback, place: Path
) -> None:
    settings = open_settings(server.base_url, rounds=3)
    run = start_run(Warehouse(place / "w"), place / "corpus", settings, ref="main")
    pending = collect_pending(run, workers=1, progress=Progress())
    run_all(place, open_settings(server.base_url, rounds=1), "complete")

    assert {request.task for request in pending.values()} == {"naming"}
    assert len(pending) == server.calls(schema="naming")
    run_all(place, settings, "complete")
    pending = collect_pending(run, workers=1, progress=Progress())
    assert {request.task for request in pending.values()} == {"condensation"}
    run_all(place, settings)
    assert len(pending) == server.calls(schema="condensation")
