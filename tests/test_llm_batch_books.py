"""Books of batches: each reply is paid once and booked once, within the budget."""

from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import EndpointError
from kpyramid.llm.batch.collect import collect
from kpyramid.llm.batch.submit import submit
from kpyramid.settings import LLMSettings
from tests.batch_desk import (
    RUN,
    collect_twice,
    count_booked,
    list_asked,
    list_records,
    list_replies,
    make_pending,
    make_settings,
    open_books,
    open_desk,
    open_till,
    run_child,
)
from tests.loopback import Loopback


@pytest.fixture
def settings(server: Loopback) -> LLMSettings:
    return make_settings(server.base_url)


def test_collect_killed_midway_and_called_again_books_each_reply_once(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 6)
    submit(pending, open_desk(settings, tmp_path))
    server.batches.finish_all()
    assert run_child("collect", server, tmp_path, "3").wait() == -9
    assert len(list_replies(tmp_path)) == 3
    assert collect(open_till(settings, tmp_path)).replies == 6
    booked = count_booked(tmp_path)
    assert sorted(booked.values()) == [1] * 6
    assert collect(open_till(settings, tmp_path)).booked == 0
    assert count_booked(tmp_path) == booked


def test_replies_are_booked_at_the_batch_price_for_what_they_used(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path)
    submit(make_pending(settings, 3), desk)
    most = desk.ledger.spent()
    collection = collect_twice(settings, tmp_path)
    items = [entry for entry in server.log if entry["path"] == "item"]
    prompt = sum(entry["prompt_tokens"] for entry in items)
    completion = sum(entry["completion_tokens"] for entry in items)
    dollars = (prompt * 1.0 + completion * 4.0) / 1_000_000 * 0.5
    spent = open_desk(settings, tmp_path).ledger.spent()
    assert (spent.tokens, collection.tokens) == (prompt + completion, prompt + completion)
    assert spent.dollars == pytest.approx(dollars)
    assert collection.cost == pytest.approx(dollars)
    assert most.tokens > spent.tokens


def test_batch_that_another_machine_collected_is_booked_where_it_was_submitted(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 3), open_desk(settings, tmp_path))
    elsewhere = replace(open_till(settings, tmp_path), open_ledger=lambda run: None)
    server.batches.finish_all()
    assert (collect(elsewhere).replies, sum(count_booked(tmp_path).values())) == (3, 0)
    assert collect(open_till(settings, tmp_path)).booked == 3
    assert sorted(count_booked(tmp_path).values()) == [1] * 3


def test_batch_that_another_warehouse_began_is_sent_anew_and_its_money_freed_there(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("400", path="/batches", times=1)
    pending, nightly = make_pending(settings, 3), open_desk(settings, tmp_path)
    with pytest.raises(EndpointError):
        submit(pending, nightly)
    manual = open_books(tmp_path, settings, "manual")
    desk = replace(nightly, ledger=manual, run="manual")
    assert submit(pending, desk).submitted == 3
    records = [(record.run, record.state) for record in list_records(tmp_path)]
    assert records == [(RUN, "dropped"), ("manual", "submitted")]
    assert sorted(list_asked(server)) == sorted(pending)
    collect(open_till(settings, tmp_path))
    assert (nightly.ledger.list_owed(), nightly.ledger.spent().tokens) == (set(), 0)
    assert len(manual.list_owed()) == 1


def test_submit_sends_what_the_budget_allows_and_the_rest_when_there_is_room(
    server: Loopback, tmp_path: Path
) -> None:
    free = make_settings(server.base_url)
    probe = open_desk(free, tmp_path / "probe")
    pending = make_pending(free, 6)
    submit(pending, probe)
    most = probe.ledger.spent().dollars
    settings = make_settings(server.base_url, budget=most * 0.7)
    first = submit(pending, open_desk(settings, tmp_path))
    assert (first.submitted, first.refused) == (4, 2)
    assert first.refusal is not None
    assert "llm.budget" in str(first.refusal)
    assert open_desk(settings, tmp_path).ledger.spent().dollars <= most * 0.7
    second = submit(pending, open_desk(settings, tmp_path))
    assert (second.submitted, second.refused) == (0, 2)
    collect_twice(settings, tmp_path)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2
