"""Embeddings by an endpoint: bad replies, faults, budget, and that no vector is bought twice."""

import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kpyramid.embeddings.served import Connect, ServedEmbedder, open_served
from kpyramid.errors import BudgetError, EndpointError, IntegrityError
from kpyramid.llm.endpoint import Endpoint
from kpyramid.llm.ledger import LEDGER, Ledger, read_lines
from kpyramid.pipeline.cache import CachedEmbedder, Context
from kpyramid.pipeline.stage import Progress
from kpyramid.pipeline.workers import pack_vector
from kpyramid.settings import LLMSettings, Settings, check_settings
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.layout import Warehouse
from tests import loopback_replies
from tests.corpora import SETTINGS, build_corpus, use_quick_models, write_corpus
from tests.llm_runs import Time
from tests.loopback import serve
from tests.loopback_replies import VECTOR_SIZE, make_vector
from tests.loopback_server import Loopback

PATH = "/embeddings"
TEXTS = [f"text number {number}" for number in range(1100)]
"""Five calls."""


def make_settings(base_url: str, llm: Mapping[str, Any] | None = None, **embed: Any) -> Settings:
    chosen = {"provider": "openai", "model": "small", "base_url": base_url, **embed}
    return check_settings({"embed": chosen, "llm": llm or {}}, {"file": "a test"})


def connect_to(
    folder: Path, llm: LLMSettings, ledger: Ledger | None = None, clock: Time | None = None
) -> Connect:
    """Endpoints with books, as a build has them; nobody waits."""
    clock = clock or Time()
    return lambda open_transport, describe: Endpoint(
        open_transport,
        ledger or Ledger(folder / LEDGER, llm),
        max_wait=llm.max_wait,
        describe=describe,
        clock=clock.read,
        sleep=clock.sleep,
    )


def open_model(folder: Path, base_url: str, **embed: Any) -> ServedEmbedder:
    settings = make_settings(base_url, {"timeout": 2.0}, **embed)
    return open_served(settings.embed, settings.llm, connect_to(folder, settings.llm))


def open_cached(
    warehouse: Path, settings: Settings, connect: Connect | None = None
) -> CachedEmbedder:
    connect = connect or connect_to(warehouse, settings.llm)
    return CachedEmbedder(Context(Warehouse(warehouse), settings, 2), connect)


def list_inputs(server: Loopback) -> Counter[str]:
    """How often each text was embedded, and so paid for."""
    return Counter(t for e in server.log if e["done"] for t in e["body"]["input"])


def expect_rows(made: np.ndarray, texts: list[str]) -> None:
    expected = np.array([make_vector(text, made.shape[1]) for text in texts])
    assert np.abs(made - expected).max() < 1e-6


def test_a_call_says_what_the_settings_say_and_no_more(server: Loopback, tmp_path: Path) -> None:
    model = open_model(tmp_path, server.base_url, instruction="query: ", dimensions=5)
    made = model.embed(["a", "", "é" * 9000])

    assert made.shape == (3, 5)
    (entry,) = server.log
    sent = entry["body"].pop("input")
    assert entry["body"] == {"model": "small", "encoding_format": "float", "dimensions": 5}
    assert sent[:2] == ["query: a", "query: "]
    assert sent[2] == "query: " + "é" * 3996, "8,000 bytes, and no half character"


def test_a_reply_in_another_order_is_put_in_order(server: Loopback, tmp_path: Path) -> None:
    server.faults.add("shuffled", path=PATH)
    texts = TEXTS[:7]
    expect_rows(open_model(tmp_path, server.base_url).embed(texts), texts)


def test_vectors_that_may_be_of_other_texts_are_not_kept(server: Loopback, tmp_path: Path) -> None:
    settings = make_settings(server.base_url)
    for number, (fault, message) in enumerate({
        "one_missing": "6 vectors came for 7 texts",
        "one_twice": "item 6 of the reply has no index of its own",
        "data_null": "0 vectors came for 7 texts",
    }.items()):  # fmt: skip
        place, bought = tmp_path / fault, list_inputs(server)
        server.faults.add(fault, path=PATH, times=1)
        with pytest.raises(EndpointError, match=message):
            open_cached(place, settings).embed(TEXTS[:7])
        expect_rows(open_cached(place, settings).embed(TEXTS[:7]), TEXTS[:7])
        assert set((list_inputs(server) - bought).values()) == {2}, number


def test_a_bad_vector_is_refused_and_its_neighbours_are_kept(
    server: Loopback, tmp_path: Path
) -> None:
    settings = make_settings(server.base_url)
    for fault in ("short_vector", "vector_null"):
        place, bought = tmp_path / fault, list_inputs(server)
        server.faults.add(fault, path=PATH, times=1)
        with pytest.raises(EndpointError, match=r"1 of 7 vectors are .* 6 of that reply are kept"):
            open_cached(place, settings).embed(TEXTS[:7])
        expect_rows(open_cached(place, settings).embed(TEXTS[:7]), TEXTS[:7])
        expected = Counter(TEXTS[:7]) + Counter(TEXTS[6:7])
        assert list_inputs(server) - bought == expected, "one is bought again"


def test_of_vectors_in_two_lengths_only_those_of_the_known_length_are_kept() -> None:
    kept: dict[str, np.ndarray] = {}
    model = ServedEmbedder("small", None, Served(lambda text: [1.0] * int(text)))
    with pytest.raises(EndpointError, match=r"None of that reply are kept"):
        model.embed_batch(["3", "4"], kept.update)
    assert not kept, "which of them is right is not known"
    model.embed_batch(["3"], kept.update)
    with pytest.raises(EndpointError, match=r"1 of 2 vectors"):
        model.embed_batch(["4", "03"], kept.update)
    assert kept.keys() == {"3", "03"}


class Served:
    """An endpoint's replies: a vector for each text of a request."""

    def __init__(self, make: Callable[[str], object]) -> None:
        self.make = make

    def obtain(self, key: str, request: Any) -> Mapping[str, Any]:
        made = [self.make(message.content) for message in request.messages]
        return {"data": [{"index": n, "embedding": vector} for n, vector in enumerate(made)]}


def test_a_vector_without_direction_or_numbers_is_refused() -> None:
    for vector in (
        *([0.0, 0.0], [math.inf, 1.0], [1e300, 1.0], [10**400, 1.0], [True, 1.0], ["1", 1.0]),
        *([], "AAA"),
    ):
        with pytest.raises(EndpointError, match="cannot be used"):
            ServedEmbedder("small", None, Served(lambda _, v=vector: v)).embed(["a"])
    with pytest.raises(EndpointError, match=r"2 numbers where 5 were.*embed\.dimensions"):
        ServedEmbedder("small", 5, Served(lambda _: [3, 4])).embed(["a"])


def test_an_endpoint_that_stays_down_is_given_up_and_loses_nothing(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("500", path=PATH, skip=2)
    settings = make_settings(server.base_url, {"concurrency": 1})
    with pytest.raises(EndpointError, match="run the same command"):
        open_cached(tmp_path, settings).embed(TEXTS)
    server.faults.clear()

    expect_rows(open_cached(tmp_path, settings).embed(TEXTS), TEXTS)
    assert list_inputs(server) == Counter(TEXTS), "each text is paid for once"


def test_known_vectors_cost_nothing_wherever_served(server: Loopback, tmp_path: Path) -> None:
    before = open_cached(tmp_path, make_settings(server.base_url)).embed(TEXTS[:3])
    with serve() as other:
        embedder = open_cached(tmp_path, make_settings(other.base_url, api_key_env="OTHER"))
        after = embedder.embed([TEXTS[2], TEXTS[0]])

    assert after.tobytes() == before[[2, 0]].tobytes()
    assert other.log == [] and embedder.function.computed == 0


def serve_size(size: int) -> Connect:
    """An endpoint whose vectors have so many numbers."""
    return lambda open_transport, describe: Served(lambda _: [1.0] * size)


def test_vectors_of_two_sizes_under_one_name_are_told(tmp_path: Path) -> None:
    settings = make_settings("http://localhost:1/v1")
    open_cached(tmp_path, settings, serve_size(3)).embed(TEXTS[:2])
    cached = open_cached(tmp_path, settings, serve_size(3))
    cached.function.store({TEXTS[2]: pack_vector(np.ones(4, np.float32))})
    with pytest.raises(IntegrityError, match=r"3 and 4 numbers.*Remove .*cache"):
        cached.embed(TEXTS[:4])


@pytest.mark.slow
def test_a_build_ends_where_vectors_change_length_and_goes_on_when_the_endpoint_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    corpus, warehouse = write_corpus(tmp_path / "corpus"), Warehouse(tmp_path / "warehouse")
    with serve() as server:
        settings = replace(SETTINGS, embed=make_settings(server.base_url).embed)
        open_cached(warehouse.root, settings).embed(TEXTS[:1])
        with monkeypatch.context() as broken:
            broken.setattr(loopback_replies, "VECTOR_SIZE", VECTOR_SIZE - 1)
            for _ in range(2):
                with pytest.raises(EndpointError, match=r"numbers where \d+ were expected"):
                    build_corpus(corpus, warehouse, settings)
        assert build_corpus(corpus, warehouse, settings).snapshot


def test_vectors_of_another_length_are_not_stored_by_a_later_run(tmp_path: Path) -> None:
    settings = make_settings("http://localhost:1/v1")
    open_cached(tmp_path, settings, serve_size(3)).embed(TEXTS[:2])
    for _ in range(2):
        with pytest.raises(EndpointError, match="4 numbers where 3 were expected"):
            open_cached(tmp_path, settings, serve_size(4)).embed(TEXTS[2:4])
    later = open_cached(tmp_path, settings, serve_size(3))
    assert later.embed(TEXTS[:4]).shape == (4, 3) and later.function.computed == 2


def test_vectors_that_another_program_removes_are_told(server: Loopback, tmp_path: Path) -> None:
    class Remover(Progress):
        def advance(self, count: int) -> None:
            shutil.rmtree(tmp_path / "cache" / "rows")

    settings = make_settings(server.base_url)
    connect = connect_to(tmp_path, settings.llm)
    embedder = CachedEmbedder(Context(Warehouse(tmp_path), settings, 2, Remover()), connect)
    with pytest.raises(IntegrityError, match="another program removes them"):
        embedder.embed(TEXTS[:3])
    assert server.calls(PATH) == 1


def test_every_call_is_in_the_books_with_its_stage(server: Loopback, tmp_path: Path) -> None:
    settings = make_settings(server.base_url, {"prices": {"small": {"input": 2.0, "output": 0.0}}})
    ledger = Ledger(tmp_path / "ledger.jsonl", settings.llm)
    connect = connect_to(tmp_path, settings.llm, ledger)
    warehouse = Warehouse(tmp_path / "warehouse")
    CachedEmbedder(Context(warehouse, settings, 2), connect, "resolve").embed(TEXTS)

    lines = [line for line in read_lines(tmp_path / LEDGER)[0] if line["event"] == "settled"]
    billed = sum(entry["prompt_tokens"] for entry in server.log)
    assert len(lines) == len(server.log) == 5
    assert {(line["task"], line["stage"], line["model"], line["kind"]) for line in lines} == {
        ("embed", "resolve", "small", "embeddings")
    }
    assert ledger.spent().tokens == billed
    assert ledger.spent().dollars == pytest.approx(billed * 2 / 1_000_000)


def test_a_budget_stops_before_its_limit_and_the_next_run_goes_on(
    server: Loopback, tmp_path: Path
) -> None:
    limited = make_settings(server.base_url, {"budget_tokens": 9_500, "concurrency": 1})
    ledger = Ledger(tmp_path / "ledger.jsonl", limited.llm)
    with pytest.raises(BudgetError, match="budget_tokens"):
        open_cached(tmp_path, limited, connect_to(tmp_path, limited.llm, ledger)).embed(TEXTS)

    assert 0 < server.calls(PATH) < 5
    assert sum(entry["prompt_tokens"] for entry in server.log) <= 9_500
    open_cached(tmp_path, make_settings(server.base_url)).embed(TEXTS)
    assert list_inputs(server) == Counter(TEXTS)


def test_the_key_is_sent_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-0123")
    with serve(key="sk-very-secret-0123") as server:
        settings = make_settings(server.base_url, api_key_env="MY_KEY")
        ledger = Ledger(tmp_path / "ledger.jsonl", settings.llm)
        open_cached(tmp_path, settings, connect_to(tmp_path, settings.llm, ledger)).embed(["a"])
        assert server.log[0]["authorized"]

    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 2
    assert not [path for path in written if b"very-secret" in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_a_pyramid_of_a_served_model_is_built_asked_and_built_again_for_nothing(
    tmp_path: Path,
) -> None:
    corpus, warehouse = write_corpus(tmp_path / "corpus"), Warehouse(tmp_path / "warehouse")
    with serve() as server:
        settings = replace(SETTINGS, embed=make_settings(server.base_url, dimensions=8).embed)
        built = build_corpus(corpus, warehouse, settings)
        calls = server.calls(PATH)
        snapshot = Snapshot(warehouse.snapshots / built.snapshot, settings.embed)
        (nearest,) = snapshot.neighbours("Lake Constance", 1)
        assert max(list_inputs(server).values()) == 1
        assert 0 < calls == server.calls(PATH) - 1
    with serve() as moved:
        elsewhere = replace(SETTINGS, embed=make_settings(moved.base_url, dimensions=8).embed)
        again = build_corpus(corpus, warehouse, elsewhere)
        assert moved.log == []

    assert again.snapshot == built.snapshot
    resources = snapshot.manifest["resources"]
    assert resources["embedding"] == {"name": "small", "provider": "openai", "dimensions": 8}
    assert -1 <= nearest[2] <= 1.000001
    files = [path for path in snapshot.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"127.0.0.1" in path.read_bytes()]
