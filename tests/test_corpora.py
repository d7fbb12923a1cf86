"""Declarations of corpora, what a run of them builds, and what its tasks do without Airflow."""

import json
import os
import re
import shutil
import socket
import sys
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kpyramid.errors import (
    BudgetError,
    ConflictError,
    EndpointError,
    GateError,
    InputError,
    IntegrityError,
    OvertakenError,
    RefusedError,
    SettingsError,
)
from kpyramid.extraction.cascade.tasks import PROMPTS, write_static
from kpyramid.pipeline.airflow import night
from kpyramid.pipeline.airflow.corpora import Corpus, fill_source, list_corpora, plan_night
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.settings import Settings
from kpyramid.storage.archive import list_exports
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.refs import list_entries, list_heads, read_head
from kpyramid.storage.runs import list_runs, open_run, start_run
from kpyramid.storage.snapshots import read_manifest
from tests import commands
from tests.asked_model import script, write_llm
from tests.corpora import pass_gates, use_quick_models, write_corpus
from tests.loopback import serve
from tests.rows import each_row
from tests.s3 import BUCKET, use_server
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
    assert (found.ref, found.day) == ("news", date(2026, 2, 3))


@each_row("text, said")
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
    declare(tmp_path, name="news-candidate")
    waiting = declare(tmp_path, 'source = "d"\napprove = true\n')
    assert "ref: 'news-candidate' is what news-candidate moves" in waiting.problem


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


def test_nights_keep_their_order_and_their_day_when_clocks_change(tmp_path: Path) -> None:
    corpus = declare(tmp_path, 'source = "{{ date }}"\ntimezone = "Europe/Berlin"\n')
    zone = ZoneInfo("Europe/Berlin")
    local = [datetime(2026, 3, day, 2, 30, tzinfo=zone) for day in (28, 29, 30)]  # none on the 29th
    local += [datetime(2026, 10, day, 2, 30, tzinfo=zone) for day in (24, 25, 26)]
    local.insert(5, local[4].replace(fold=1))  # twice on the 25th
    moments = [one.astimezone(UTC) for one in local]
    found = [plan_night(corpus, start(logical_date=moment), {}) for moment in moments]
    days = ["03-28", "03-29", "03-30", "10-24", "10-25", "10-25", "10-26"]
    assert [night.source for night in found] == [str(tmp_path / f"2026-{day}") for day in days]
    orders = [night.order for night in found]
    assert orders == sorted({*orders}), "no night is taken for an earlier one or for itself"


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


def test_run_key_is_same_for_every_try_and_another_when_settings_change(tmp_path: Path) -> None:
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


def test_backfill_moves_ref_of_its_day_and_only_own_ref_waits_for_approval(tmp_path: Path) -> None:
    backfill = {"run_type": "backfill"}
    plain = declare(tmp_path)
    found = [plan_night(plain, start(**backfill), p).ref for p in ({}, {"ref": "trial"})]
    assert found == ["news-2026-02-03", "trial-2026-02-03"]
    waiting = declare(tmp_path, 'source = "d"\napprove = true\n')
    refs = [
        plan_night(waiting, start(**given), params).ref
        for given, params in (
            ({}, {}),
            ({}, {"ref": "news"}),
            ({}, {"ref": "trial"}),
            (backfill, {}),
        )
    ]
    assert refs == ["news-candidate", "news-candidate", "trial", "news-2026-02-03"]


def test_day_without_a_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    corpus = declare(tmp_path, 'source = "docs/{{ date }}"\n')
    warehouse = tmp_path / "w"
    place = tmp_path / "docs/2026-02-03"
    said = "docs/2026-02-03 of 2026-02-03 does not exist; put it"
    with pytest.raises(InputError, match=said) as caught:
        night.plan(corpus, start(), {}, str(warehouse))
    (run,) = list_runs(Warehouse(warehouse))
    assert (run["status"], run["exit_code"], run["stages"]) == ("failed", 3, 0)
    assert said in str(run["error"])
    assert not Warehouse(warehouse).cache.exists()
    (note,) = caught.value.__notes__
    assert note.startswith("by hand: kpyramid stage ingest --run airflow-")
    place.mkdir(parents=True)
    with pytest.raises(InputError, match=f"{place} has no file in it"):
        night.plan(corpus, start(), {}, str(warehouse))


IGNORED = shutil.ignore_patterns("exports")  # notes of other tests


def copy_tiny(folder: Path) -> str:
    """A warehouse with the tiny pyramid as HEAD of `main`."""
    return str(shutil.copytree(open_tiny().folder.parent.parent, folder, ignore=IGNORED))


def test_files_that_were_not_read_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = declare(tmp_path, 'source = "docs"\nref = "trial"\n')
    write_corpus(tmp_path / "docs", TEXTS)
    for number in range(5):
        (tmp_path / "docs" / f"scan-{number}.tiff").write_bytes(b"II*\0")
    warehouse = copy_tiny(tmp_path / "warehouse")
    found = night.plan(corpus, start(), {}, warehouse)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "5 .tiff, unknown format: scan-0.tiff, scan-1.tiff, scan-2.tiff and 2 more. " in said[0]
    assert "5 files or records were not read" in said[1]
    night.run_stages(corpus, ["resolve", "induce", "complete", "condense"], found.run, warehouse)
    pass_gates(monkeypatch)
    told = night.publish(corpus, found.run, "trial", warehouse)
    assert str(told["headline"]).endswith("; 5 of the corpus not read")
    command = said[1].partition("kpyramid ")[2].split()
    listed = json.loads(commands.run(*command, "--json").stdout)
    assert listed["total"] == 5


def test_unchanged_night_does_all_stored_stages_in_its_plan_and_a_changed_one_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = declare(tmp_path, 'source = "docs"\nref = "trial"\nshards = 3\n')
    write_corpus(tmp_path / "docs", TEXTS)
    warehouse = copy_tiny(tmp_path / "warehouse")
    found = night.plan(corpus, start(), {}, warehouse)
    stored = ("extract", "resolve", "embed", "induce", "complete", "condense")
    assert (found.stored, found.shards, found.ref) == (stored, (), "trial")
    assert [*found.counts] == ["ingest", "chunk", *stored]
    assert found.counts["ingest"]["rows"] == {"documents": len(TEXTS)}
    again = night.plan(corpus, start(), {}, warehouse)
    assert (again.run, again.stored) == (found.run, stored), "a cleared task goes on with the run"
    fewer = night.plan(corpus, start(run_id="fewer"), {"allow_shrink": True}, warehouse)
    permitted = [
        open_run(open_warehouse(warehouse), one.run).allow_shrink for one in (found, fewer)
    ]
    assert permitted == [False, True]
    (tmp_path / "here.toml").write_text("[chunk]\nmax_tokens = 100\n")
    here = declare(tmp_path, 'source = "docs"\nsettings = "here.toml"\n', "elsewhere")
    done = night.run_stages(here, ["condense"], found.run, warehouse)
    assert done["condense"]["recomputed"] == 0
    assert f"here.toml is not what run {found.run} began with; the run goes on" in caplog.text
    assert f"not with chunk.max_tokens of {socket.gethostname()}" in caplog.text
    for number in range(60):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Ada wrote letter {number} to Charles.")
    more = night.plan(corpus, start(run_id="next"), {}, warehouse)
    assert (more.stored, more.shards, [*more.counts]) == ((), ("0/2", "1/2"), ["ingest", "chunk"])


def test_worker_that_differs_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = declare(tmp_path)
    with pytest.raises(
        InputError, match=r"not exist in .*other/runs.* give this one the same ware"
    ):
        night.run_stages(corpus, ["extract"], "airflow-1", str(tmp_path / "other"))
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match=r"needs the extra s3: pip install 'kpyramid\[s3\]'"):
        night.run_stages(corpus, ["extract"], "airflow-1", "s3://kept/warehouse")
    corpus = declare(tmp_path, 'source = "docs"\nsettings = "only-elsewhere.toml"\n')
    place = copy_tiny(tmp_path / "warehouse")
    (run,) = [path.name for path in (tmp_path / "warehouse" / "runs").iterdir()]
    with pytest.raises(SettingsError, match=r"only-elsewhere\.toml"):
        night.run_stages(corpus, ["condense"], run, place)


def test_export_asks_the_ref_and_is_whole_or_not_there(tmp_path: Path) -> None:
    snapshot = open_tiny()
    warehouse = str(snapshot.folder.parent.parent)
    exports = '[{to = "served"}, {to = "rdf", form = "turtle"}]'
    corpus = declare(tmp_path, f'source = "docs"\nref = "main"\nexports = {exports}\n')
    (tmp_path / f"served/.{snapshot.id}.part").mkdir(parents=True)  # of a killed worker
    first, again = (night.export(corpus, 0, warehouse) for _ in range(2))
    assert (first["snapshot"], first["copied"], again["copied"]) == (snapshot.id, True, False)
    assert (first["named"], again["named"]) == (True, False)
    assert json.loads((tmp_path / "served/newest.json").read_bytes())["snapshot"] == snapshot.id
    copied = tmp_path / "served" / snapshot.id
    assert {p.name for p in copied.iterdir()} == {p.name for p in snapshot.folder.iterdir()}
    night.export(corpus, 1, warehouse)
    newest = json.loads((tmp_path / "rdf/newest.json").read_bytes())
    assert newest["path"] == f"{snapshot.id}.ttl"
    assert (tmp_path / "rdf" / newest["path"]).is_file()


@pytest.mark.parametrize("kind", ["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def test_newest_follows_the_ref_and_only_the_newest_exports_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, kind: str
) -> None:
    to = str(tmp_path / "served")
    if kind == "bucket":
        use_server(request.getfixturevalue("s3_server"), monkeypatch)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
        to = f"s3://{BUCKET}/served-{os.getpid()}"
    served = open_warehouse(to).store
    place = copy_tiny(tmp_path / "warehouse")
    home, one = open_warehouse(place), open_tiny().id
    served.replace("own.txt", b"of the serving team")
    exports = f'exports = [{{to = "{to}/", keep = 2}}]'
    corpus = declare(tmp_path, f'source = "docs"\nref = "main"\n{exports}\n')
    sent: list[str] = []
    note_sent(monkeypatch, sent)

    def export() -> tuple[object, object]:
        found = night.export(corpus, 0, place)
        newest = json.loads(served.read("newest.json") or b"")
        assert newest["snapshot"] == newest["path"] == found["snapshot"]
        held = {blob.name.split("/")[0] for blob in served.list()}
        held -= {"own.txt", "newest.json", "probes"}
        assert {exported.snapshot for exported in list_exports(home)} == held
        assert all(exported.is_whole for exported in list_exports(home))
        assert served.read(f"{newest['path']}/manifest.json"), "what is named is whole"
        return found["snapshot"], held

    assert export() == (one, {one})
    two = publish_again(home, one, 2)
    if kind == "bucket":
        sent.append("fail at newest.json")
        with pytest.raises(EndpointError):
            night.export(corpus, 0, place)
        newest = json.loads(served.read("newest.json") or b"")
        assert newest["snapshot"] == one, "what stood there stands until the new one does"
    assert export() == (two, {one, two})
    if kind == "bucket":
        assert sent[-2:] == [f"{two}/manifest.json", "newest.json"], "half is never named"
    run = [*("--warehouse", place)]
    commands.run("rollback", "main", *run)
    sent.clear()
    assert export() == (one, {one, two})
    assert sent == (["newest.json"] if kind == "bucket" else []), "it was there already"
    sent.clear()
    before = [*served.list()]
    assert export() == (one, {one, two})
    assert (sent, [*served.list()]) == ([], before), "nothing is done when all is right"
    commands.run("promote", "main", two, *run)
    three = publish_again(home, one, 3)
    assert export() == (three, {two, three})
    shutil.rmtree(home.snapshots / two)  # by gc, or erased
    assert export() == (three, {three})
    assert served.read("own.txt"), "only what it exported goes"


def test_export_that_no_retry_can_mend_is_given_up_until_somebody_does(tmp_path: Path) -> None:
    place, one = copy_tiny(tmp_path / "warehouse"), open_tiny().id
    corpus = declare(tmp_path, 'source = "docs"\nref = "main"\nexports = [{to = "served"}]\n')
    table = tmp_path / "warehouse/snapshots" / one / "tables/chunks.parquet"
    whole = table.read_bytes()
    table.unlink()
    table.write_bytes(whole[:-1])

    def diagnose() -> list[str]:
        done = commands.run("doctor", "--warehouse", place, "--json")
        found = json.loads(done.stdout)["checks"]
        return [row["detail"] for row in found if row["check"] == "exports"]

    assert diagnose() == []
    with pytest.raises(IntegrityError, match="chunks"):
        night.export(corpus, 0, place)
    given_up = night.export(corpus, 0, place, looks=True)
    assert "chunks" in str(given_up["fault"]), "the next look does nothing, and says why"
    assert not (tmp_path / "served").exists() or not [*(tmp_path / "served").iterdir()]
    (said,) = diagnose()
    assert said.endswith(f"{one} was given up: {given_up['fault']}")
    with pytest.raises(IntegrityError, match="chunks"):
        night.export(corpus, 0, place)  # by a person, too early
    table.write_bytes(whole)
    assert night.export(corpus, 0, place)["copied"]
    assert "fault" not in night.export(corpus, 0, place, looks=True)
    assert diagnose() == []


def test_an_export_that_was_given_up_takes_no_place_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, one = copy_tiny(tmp_path / "warehouse"), open_tiny().id
    home = open_warehouse(place)
    exports = 'exports = [{to = "served", keep = 2}]'
    corpus = declare(tmp_path, f'source = "docs"\nref = "main"\n{exports}\n')

    def list_noted() -> dict[str, tuple[bool, str]]:
        return {each.snapshot: (each.is_whole, each.fault) for each in list_exports(home)}

    def refuse(*_: object, **__: object) -> None:
        raise RefusedError("no right to write there")

    night.export(corpus, 0, place)
    two = publish_again(home, one, 2)
    with monkeypatch.context() as patch:
        patch.setattr(night.exporting, "export", refuse)
        with pytest.raises(RefusedError):
            night.export(corpus, 0, place)
    assert list_noted() == {one: (True, ""), two: (False, "no right to write there")}
    three = publish_again(home, one, 3)
    with monkeypatch.context() as patch:
        patch.setattr(night, "write_durably", refuse)
        with pytest.raises(RefusedError):
            night.export(corpus, 0, place)
    assert list_noted()[three] == (True, "no right to write there"), "it was made, and is whole"
    third = night.export(corpus, 0, place)
    assert (third["copied"], third["named"]) == (False, True), "a reader is told all the same"
    assert list_noted() == {one: (True, ""), three: (True, "")}
    assert {path.name for path in (tmp_path / "served").iterdir()} == {"newest.json", one, three}


def publish_again(home: Warehouse, one: str, number: int) -> str:
    """Publishes the same as another snapshot, as the head of `main`."""
    folder = home.snapshots / one
    facts = {k: v for k, v in read_manifest(folder).items() if k != "files"}
    files: dict[str, bytes | Path] = {
        name: folder / name
        for name in dict(read_manifest(folder)["files"])  # type: ignore[call-overload]
    }
    made = write_snapshot(home, files, {**facts, "night": number})
    order = f"9{number}"
    commit(home, "main", snapshot=made, order=order, run="r", at="2026-11-23T00:00:00Z")
    return made


def note_sent(monkeypatch: pytest.MonkeyPatch, sent: list[str]) -> None:
    """Lists what goes to a bucket, in order; "fail at NAME" in the list has that fail once."""
    from kpyramid.storage.bucket import BucketStore

    send = BucketStore.send

    def note(store: BucketStore, path: Path, name: str) -> None:
        if f"fail at {name}" in sent:
            sent.remove(f"fail at {name}")
            raise EndpointError("gone")
        send(store, path, name)
        sent.append(name)

    monkeypatch.setattr(BucketStore, "send", note)


@pytest.mark.slow
def test_night_with_approval_moves_a_candidate_and_the_ref_when_it_is_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = declare(tmp_path, 'source = "docs"\napprove = true\n')
    write_corpus(tmp_path / "docs", TEXTS)
    warehouse = copy_tiny(tmp_path / "warehouse")
    place = open_warehouse(warehouse)

    def build(run_id: str) -> Any:
        found = night.plan(corpus, start(run_id=run_id), {}, warehouse)
        return night.publish(corpus, found.run, found.ref, warehouse)

    first = build("a")
    assert (first["ref"], first["moved"], first["waits"]) == ("news-candidate", True, True)
    assert read_head(place, "news") is None
    again = build("b")
    assert (again["moved"], again["waits"]) == (False, True), "asked until somebody agrees"
    for _ in range(2):  # a try that was killed, and the next
        night.promote(corpus, first["run"], first["snapshot"], warehouse)
    (entry,) = list_entries(place, "news")
    assert (entry.snapshot, entry.run, entry.action) == (first["snapshot"], first["run"], "build")
    assert not build("c")["waits"]
    later = {"snapshot": "0" * 16, "order": "2026-03", "run": "r", "at": AT.isoformat()}
    commit(place, "news", **later)
    with pytest.raises(OvertakenError, match="HEAD never moves back"):
        night.promote(corpus, first["run"], first["snapshot"], warehouse)
    monkeypatch.setattr(night, "list_undone", lambda entries: {first["snapshot"]})
    monkeypatch.setattr(night, "_start_candidate", lambda *_: None)
    with pytest.raises(GateError, match="'news' was rolled back from snapshot"):
        build("d")


@pytest.mark.slow
def test_backfill_after_a_prompt_changed_asks_only_what_the_prompt_touches_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = "Bob Cleo Dora Emil".split()
    texts = [f"{one} knew {other}." for one, other in pairwise(names)]
    days = [AT + timedelta(days=number) for number in range(len(texts))]
    for number, day in enumerate(days):  # a document more each day
        folder = tmp_path / "docs" / str(day.date())
        folder.mkdir(parents=True)
        for at, text in enumerate(texts[: number + 1]):
            (folder / f"{at}.txt").write_text(text, "utf-8")
    warehouse = str(tmp_path / "warehouse")

    with serve(script(entities={"entities": names})) as server:
        more = "[llm.prices.small]\ninput = 1.0\noutput = 2.0\n"
        more += '[cascade]\nmode = "paper"\nentities = "llm"\n'
        write_llm(tmp_path, server.base_url, more, "small")
        corpus = declare(tmp_path, 'source = "docs/{{ date }}"\nsettings = "settings.toml"\n')

        def backfill() -> tuple[dict[str, int], dict[str, int], list[object]]:
            before, recomputed, snapshots = len(server.log), Counter[str](), []
            for day in days:
                given = start(run_id=f"backfill__{day}", run_type="backfill", logical_date=day)
                found = night.plan(corpus, given, {}, warehouse)
                left = [one.name for one in PIPELINE[2:-1] if one.name not in found.stored]
                made = night.run_stages(corpus, left, found.run, warehouse)
                counts: Any = {name: counts["recomputed"] for name, counts in made.items()}
                recomputed.update(counts)
                snapshots.append(night.publish(corpus, found.run, found.ref, warehouse)["snapshot"])
            asked = Counter(entry["schema"] for entry in server.log[before:])
            del asked["probe"]
            return dict(asked), dict(+recomputed), snapshots

        use_quick_models(monkeypatch)
        pass_gates(monkeypatch)
        caplog.set_level("INFO", "kpyramid")
        asked, recomputed, first = backfill()
        assert recomputed["resolve"] > 0
        assert asked == {"entities": len(texts)}, "a document that stays: once"
        told = [one.getMessage() for one in caplog.records if one.levelname == "INFO"]
        costs = [text for text in told if re.match(r"extract: .* \$\d\.\d{4} in \d+ calls$", text)]
        assert len(costs) == len(days), "a line with the cost of each day"
        assert backfill() == ({}, {}, first)
        write_static.cache_clear()
        monkeypatch.setitem(PROMPTS, "entities", f"{PROMPTS['entities']} Be brief.")
        try:
            asked, recomputed, then = backfill()
        finally:
            write_static.cache_clear()
    assert asked == {"entities": len(texts)}
    assert recomputed == {}, "what the same answers come to is stored"
    tables = [
        {name: one["sha256"] for name, one in files.items() if name.startswith("tables/")}
        for snapshot in (first[-1], then[-1])
        for files in [read_manifest(open_warehouse(warehouse).snapshots / str(snapshot))["files"]]
    ]
    assert tables[0] == tables[1]
    assert {
        ref: len(list_entries(open_warehouse(warehouse), ref))
        for ref in list_heads(open_warehouse(warehouse))
    } == {f"news-{day.date()}": 2 for day in days}


def test_look_at_batches_that_finds_nobody_leaves_the_work_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = declare(tmp_path)
    (tmp_path / "docs").mkdir()
    start_run(open_warehouse(tmp_path), tmp_path / "docs", Settings(), name="r", ref="main")
    failing = {ConflictError: False, EndpointError: False, RefusedError: True, BudgetError: True}
    for error, is_raised in failing.items():

        def fail(*_: str, error: type[Exception] = error) -> Any:
            raise error("it failed")

        monkeypatch.setattr(night, "run_command", fail)
        with pytest.raises(error) if is_raised else nullcontext():
            assert not night.ask_in_batches(corpus, "r", str(tmp_path))


def test_command_of_a_task_raises_the_error_of_its_exit_code(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown ref 'nobody'"):
        night.run_command("verify", "nobody", "--warehouse", str(tmp_path))


@pytest.mark.slow
def test_command_that_a_model_refuses_is_not_tried_again(tmp_path: Path) -> None:
    with serve(key="right") as server:
        more = '[cascade]\nmode = "paper"\nentities = "llm"\n'
        settings = write_llm(tmp_path, server.base_url, more)
        place = "--warehouse", str(tmp_path / "w"), "--settings", str(settings)
        (tmp_path / "a.txt").write_text("Bob knew Cleo.", "utf-8")
        with pytest.raises(RefusedError, match="does not accept the key") as caught:
            night.run_command("batch", "submit", str(tmp_path / "a.txt"), *place, "--quiet")
    assert "by hand: kpyramid batch submit" in caught.value.__notes__[0]


def test_who_approves_has_the_hours_that_are_said(tmp_path: Path) -> None:
    for said, hours in (("true", True), ("6", 6.0), ("false", False)):
        declared = declare(tmp_path, f'source = "docs"\napprove = {said}\n').declared
        assert declared.approve is hours or declared.approve == hours
