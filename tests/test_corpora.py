"""Declarations of corpora, what a run of them builds, and what its tasks do without Airflow."""

import json
import logging
import shutil
import socket
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from kpyramid.cli.app import app
from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.airflow import night
from kpyramid.pipeline.airflow.corpora import Corpus, fill_source, list_corpora, plan_night
from tests.tiny_pyramid import TEXTS, open_tiny

AT = datetime(2026, 2, 3, 2, tzinfo=UTC)
LATER = datetime(2026, 2, 4, 2, tzinfo=UTC)


def declare(folder: Path, text: str = 'source = "docs"\n', name: str = "news") -> Corpus:
    (folder / f"{name}.toml").write_text(text, "utf-8")
    return next(corpus for corpus in list_corpora(folder) if corpus.file.stem == name)


def start(**given: Any) -> Any:
    """A run as Airflow describes it."""
    usual = {"dag_id": "d", "run_id": "a", "run_type": "scheduled", "logical_date": AT}
    return SimpleNamespace(**{**usual, "run_after": LATER, **given})


def test_a_line_is_enough_and_paths_are_beside_the_file(tmp_path: Path) -> None:
    corpus = declare(tmp_path)
    assert (corpus.name, corpus.problem) == ("news", "")
    found = plan_night(corpus, start(), {})
    assert found.source == str(tmp_path / "docs")
    assert (found.ref, found.day, found.is_backfill) == ("news", date(2026, 2, 3), False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "source: Field required"),
        ("source = 1", "source: Input should be a valid string"),
        ("source = ", "Invalid value"),
        ('source = "d"\ncolour = "red"', "colour: Unexpected keyword argument"),
        ('source = "d"\nref = "../etc"', "ref: String should match pattern"),
        ('source = "d"\nshards = 201', "shards: Input should be less than or equal to 200"),
        ('source = "d"\ntimezone = "Mars/Base"', "timezone: 'Mars/Base' is none"),
        ('source = "https://host/docs"', "no address such as s3://bucket/prefix"),
        ('source = "{{ ds }}"', "'ds' is undefined; {{ date }} and {{ yesterday }} are days"),
        ('source = "{{ date"', "unexpected end of template"),
        ('source = "{{ date }}"\n[learn]\nfeedback = "f.jsonl"', "one folder for all days"),
    ],
)
def test_wrong_declaration_says_what_to_mend_and_leaves_the_others(
    tmp_path: Path, text: str, said: str
) -> None:
    declare(tmp_path, name="good")
    corpus = declare(tmp_path, text, "bad")
    assert said in corpus.problem
    assert f"Mend {tmp_path / 'bad.toml'}" in corpus.problem
    assert [c.name for c in list_corpora(tmp_path) if not c.problem] == ["good"]


def test_two_corpora_move_two_refs(tmp_path: Path) -> None:
    declare(tmp_path, name="first")
    second = declare(tmp_path, 'source = "d"\nref = "first"\n', "second")
    assert "ref: 'first' is what first moves" in second.problem


def test_all_problems_of_a_declaration_are_said_at_once(tmp_path: Path) -> None:
    problem = declare(tmp_path, "shards = 0\nref = ''\n").problem
    assert all(f"{name}: " in problem for name in ("source", "shards", "ref"))


def test_missing_folder_of_corpora_is_named() -> None:
    with pytest.raises(SettingsError, match="/nowhere does not exist"):
        list_corpora(Path("/nowhere"))


def test_dated_source_is_that_of_the_day_in_the_declared_zone(tmp_path: Path) -> None:
    text = 'source = "{{ date.strftime(\'%Y/%m\') }}/{{ yesterday }}"\ntimezone = "Asia/Tokyo"\n'
    corpus = declare(tmp_path, text)
    evening = datetime(2026, 3, 31, 20, tzinfo=UTC)  # the first of April in Tokyo
    found = plan_night(corpus, start(logical_date=evening), {})
    assert found.source == str(tmp_path / "2026/04/2026-03-31")
    assert found.order == "2026-03-31T20:00:00.000000+00:00"


def test_source_may_lie_in_a_bucket(tmp_path: Path) -> None:
    corpus = declare(tmp_path, "source = \"s3://news/{{ date.strftime('%Y/%m') }}/{{ date }}/\"\n")
    assert corpus.problem == ""
    assert plan_night(corpus, start(), {}).source == "s3://news/2026/02/2026-02-03/"
    wrong = ("s3://key:secret@news/a", "s3://news/../a", "s3://", "s3://news/a?b")
    for source in wrong:
        problem = declare(tmp_path, f'source = "{source}"\n').problem
        assert "is no folder, and no address such as s3://bucket/prefix" in problem, source
    learning = 'source = "s3://news/a"\n[learn]\nfeedback = "f.jsonl"\n'
    assert "learn: writes into the source" in declare(tmp_path, learning).problem


def test_template_reaches_no_code() -> None:
    with pytest.raises(SettingsError, match="unsafe"):
        fill_source("{{ date.__class__.__mro__ }}", AT.date())


def test_run_key_is_the_same_for_every_try_and_another_when_the_settings_change(
    tmp_path: Path,
) -> None:
    corpus = declare(tmp_path)
    first = plan_night(corpus, start(), {})
    assert first == plan_night(corpus, start(run_after=AT), {}), "the start does not matter"
    assert first.run.startswith("airflow-20260203T020000Z-")
    assert first.order == "2026-02-03T02:00:00.000000+00:00"
    others = [
        plan_night(corpus, start(run_id="b"), {}),
        plan_night(corpus, start(), {}, settings="other"),
        plan_night(corpus, start(), {"source": "/elsewhere"}),
        plan_night(corpus, start(), {"ref": "trial"}),
    ]
    assert len({first.run, *(other.run for other in others)}) == 5
    undated = plan_night(corpus, start(run_id="../x y", logical_date=None), {})
    assert undated.order == "2026-02-04T02:00:00.000000+00:00"
    assert undated.run.startswith("airflow-20260204T020000Z-")


def test_backfill_moves_a_ref_of_its_day(tmp_path: Path) -> None:
    corpus = declare(tmp_path)
    found = plan_night(corpus, start(run_type="backfill"), {})
    assert (found.ref, found.is_backfill) == ("news-2026-02-03", True)
    trial = plan_night(corpus, start(run_type="backfill"), {"ref": "trial"})
    assert trial.ref == "trial-2026-02-03"


def test_day_without_a_folder_is_refused_before_any_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = declare(tmp_path, 'source = "docs/{{ date }}"\n')
    warehouse = tmp_path / "w"
    place = tmp_path / "docs/2026-02-03"
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(InputError, match="docs/2026-02-03 of 2026-02-03 does not exist; put it"),
    ):
        night.plan(corpus, start(), {}, str(warehouse), 1)
    assert not warehouse.exists()
    assert "To go on, clear this task; by hand: kpyramid stage ingest --run airflow-" in caplog.text
    place.mkdir(parents=True)
    with pytest.raises(InputError, match=f"{place} has no file in it"):
        night.plan(corpus, start(), {}, str(warehouse), 1)


def test_unchanged_night_does_all_stored_stages_in_its_plan_and_a_changed_one_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = declare(tmp_path, 'source = "docs"\nref = "trial"\nshards = 3\n')
    (tmp_path / "docs").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "docs" / name).write_text(text)
    warehouse = str(shutil.copytree(open_tiny().folder.parent.parent, tmp_path / "warehouse"))
    found = night.plan(corpus, start(), {}, warehouse, 1)
    stored = ("extract", "resolve", "embed", "induce", "complete", "condense")
    assert (found.stored, found.shards, found.ref) == (stored, (), "trial")
    again = night.plan(corpus, start(), {}, warehouse, 1)
    assert again == found, "a cleared task goes on with the same run"
    (tmp_path / "here.toml").write_text("[chunk]\nmax_tokens = 100\n")
    done = night.run_stages(["condense"], found.run, warehouse, str(tmp_path / "here.toml"), 1)
    assert done["condense"]["recomputed"] == 0
    assert f"here.toml is not what run {found.run} began with; the run goes on" in caplog.text
    assert f"not with chunk.max_tokens of {socket.gethostname()}" in caplog.text
    for number in range(60):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Ada wrote letter {number} to Charles.")
    more = night.plan(corpus, start(run_id="next"), {}, warehouse, 1)
    assert (more.stored, more.shards) == ((), ("0/2", "1/2"))


def test_a_worker_that_differs_from_the_others_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("airflow-1", str(tmp_path / "other"), None, 1)
    with pytest.raises(
        InputError, match=r"not exist in .*other/runs.* give this one the same ware"
    ):
        night.run_stages(["extract"], *given)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match=r"needs the extra s3: pip install 'kpyramid\[s3\]'"):
        night.run_stages(["extract"], "airflow-1", "s3://kept/warehouse", None, 1)
    settings = str(tmp_path / "only-elsewhere.toml")
    place = str(shutil.copytree(open_tiny().folder.parent.parent, tmp_path / "warehouse"))
    (run,) = [path.name for path in (tmp_path / "warehouse" / "runs").iterdir()]
    with pytest.raises(SettingsError, match=r"only-elsewhere\.toml"):
        night.run_stages(["condense"], run, place, settings, 1)


def test_export_asks_the_ref_and_is_whole_or_not_there(tmp_path: Path) -> None:
    snapshot = open_tiny()
    warehouse = str(snapshot.folder.parent.parent)
    corpus = declare(tmp_path, 'source = "docs"\nref = "main"\n[export]\nto = "served"\n')
    (tmp_path / f"served/.{snapshot.id}.part").mkdir(parents=True)  # of a killed worker
    first, again = (night.export(corpus, warehouse) for _ in range(2))
    assert (first["snapshot"], first["copied"], again["copied"]) == (snapshot.id, True, False)
    assert json.loads((tmp_path / "served/newest.json").read_bytes())["snapshot"] == snapshot.id
    copied = tmp_path / "served" / snapshot.id
    assert {p.name for p in copied.iterdir()} == {p.name for p in snapshot.folder.iterdir()}


def test_command_of_a_task_raises_the_error_of_its_exit_code(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown ref 'nobody'"):
        night.run_command("verify", "--ref", "nobody", "--warehouse", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--corpus", "old", "--from", "2026-01-01", "--to", "2026-01-02"], 3, "unknown corpus"),
        (["--corpus", "news", "--from", "1.1.2026", "--to", "2026-01-02"], 2, "say a day"),
        (["--corpus", "news", "--from", "2026-01-02", "--to", "2026-01-01"], 2, "is before"),
        (["--corpus", "bad", "--from", "2026-01-01", "--to", "2026-01-02"], 2, "Mend"),
    ],
)
def test_backfill_that_cannot_be_is_refused(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    declare(tmp_path)
    declare(tmp_path, "", "bad")
    done = CliRunner().invoke(app, ["backfill", *words, "--corpora", str(tmp_path), "--json"])
    assert done.exit_code == code
    assert said in json.loads(done.stdout)["error"]
