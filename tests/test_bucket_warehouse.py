"""A warehouse in a bucket does what one in a folder does, for machines that share no disk."""

import multiprocessing
import multiprocessing.pool
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from kpyramid.errors import ConflictError, EndpointError, InputError, IntegrityError
from kpyramid.pipeline.build import call_stage
from kpyramid.settings import Settings
from kpyramid.storage import bucket
from kpyramid.storage.bucket import BucketStore
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.copies import locate_snapshot, open_stored
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.leases import hold, list_held
from kpyramid.storage.publication import commit, promote, remove_tag, rollback, tag
from kpyramid.storage.refs import check_refs, list_entries, list_heads, read_head, resolve_ref
from kpyramid.storage.results import RowCache, find_result, store_result
from kpyramid.storage.retention import Collected, Policy, collect
from kpyramid.storage.runs import list_runs, start_run
from kpyramid.storage.snapshots import date_snapshots, has_snapshot
from kpyramid.storage.verification import check_bytes, list_snapshots
from tests.commands import fails, run, run_json, show
from tests.corpora import TEXTS, write_corpus
from tests.publishers import KEY, START, name_day, publish, work_at
from tests.s3 import BUCKET, Faults, S3Server, serve_faults, use_server

_NUMBERS = count()

Machine = Callable[[], Warehouse]
"""Another machine each time it is called: it knows where the warehouse is and has nothing else."""


def name_place() -> str:
    return f"s3://{BUCKET}/warehouse-{os.getpid()}-{next(_NUMBERS)}"


def move_to_a_new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"machine-{next(_NUMBERS)}"))


@pytest.fixture
def place(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a fresh warehouse in a bucket."""
    use_server(s3_server, monkeypatch)
    move_to_a_new_machine(tmp_path, monkeypatch)
    return name_place()


@pytest.fixture
def faulty(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Faults]]:
    """The address of a fresh warehouse in a bucket behind a proxy, and what the proxy does."""
    move_to_a_new_machine(tmp_path, monkeypatch)
    with serve_faults(s3_server) as (proxied, faults):
        use_server(proxied, monkeypatch)
        yield name_place(), faults


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    if request.param == "folder":
        return lambda: Warehouse(tmp_path / "warehouse")
    location = request.getfixturevalue("place")

    def open_there() -> Warehouse:
        move_to_a_new_machine(tmp_path, monkeypatch)
        return open_warehouse(location)

    return open_there


def check_whole(warehouse: Warehouse, snapshot: str) -> None:
    with open_stored(warehouse, snapshot) as folder:
        assert check_bytes(folder) == []


def sweep(warehouse: Warehouse, *, keep: int = 1) -> Collected:
    now = START + timedelta(days=99)
    return collect(warehouse, Policy(keep, timedelta(0), now, lambda runs: frozenset()))


# One behaviour, in a folder and in a bucket.


def test_refs_move_forward_by_builds_and_anywhere_by_persons(machine: Machine) -> None:
    a, b = publish(machine(), "a", "1"), publish(machine(), "b", "2")
    with pytest.raises(ConflictError, match="HEAD never moves back"):
        publish(machine(), "c", "1")

    assert rollback(machine(), "main", at=name_day(3)).snapshot == a
    assert promote(machine(), "live", b, at=name_day(4))
    assert tag(machine(), "release", b, at=name_day(5))
    with pytest.raises(InputError, match="is a tag"):
        publish(machine(), "d", "9", ref="release")
    assert remove_tag(machine(), "release") == b

    there = machine()
    assert [*list_heads(there)] == ["live", "main"]
    assert [e.action for e in list_entries(there, "main")] == ["build", "build", "rollback"]
    assert resolve_ref(there, "main@1") == b
    assert check_refs(there) == []
    rows = {row["id"]: row["refs"] for row in list_snapshots(there)}
    assert (rows[a], rows[b], len(rows)) == (["main"], ["live"], 4)


def test_what_is_not_there_is_said(machine: Machine) -> None:
    there = machine()
    with pytest.raises(InputError, match="unknown ref 'main'"):
        resolve_ref(there, "main")
    with pytest.raises(InputError, match=r"is not in .*snapshots"):
        promote(there, "main", "f" * 16, at=name_day(1))
    with pytest.raises(ConflictError, match="run the command again"), hold(there, "f" * 16):
        pass
    assert list_held(there) == {} and list_runs(there) == []
    with pytest.raises(InputError, match="does not exist"):
        call_stage("chunk", run="none", warehouse=there.locate())


def test_gc_keeps_what_is_needed_and_deletes_the_rest_in_two_steps(machine: Machine) -> None:
    a, b, c, d = (publish(machine(), letter, letter) for letter in "abcd")
    tag(machine(), "release", a, at=name_day(5))
    holder = machine()
    with hold(holder, b):
        assert {item.path for item in sweep(machine()).moved} == {f"snapshots/{c}"}
    there = machine()
    assert {*date_snapshots(there)} == {a, b, d} and not has_snapshot(there, c)
    with pytest.raises(ConflictError, match="removed, by `gc`"), hold(there, c):
        pass

    done = sweep(machine())

    assert [item.path for item in done.moved] == [f"snapshots/{b}"]
    assert [(item.path, item.bytes > 15_000) for item in done.deleted] == [(f"snapshots/{c}", True)]
    there = machine()
    assert not [blob.name for blob in there.store.list() if c in blob.name]
    publish(there, "b", "e")  # what lies in the trash is made anew
    check_whole(machine(), b)
    sweep(machine(), keep=2)
    check_whole(machine(), b)
    assert {*date_snapshots(machine())} == {a, b, d}


def test_a_retired_ref_keeps_nothing_from_gc_and_its_log_stays(machine: Machine) -> None:
    """A backfilled day that nobody needs; what is at the same snapshot stays there."""
    a, b = publish(machine(), "a", "1"), publish(machine(), "b", "2", ref="day")
    publish(machine(), "a", "2", ref="other")
    tag(machine(), "release", a, at=name_day(5))
    place = machine().locate()
    for names in ("main", "nothing", "day@0", "day main"):
        refused = run("tag", "--remove", *names.split(), "--warehouse", place)
        assert refused.exit_code == 3, (names, refused.output)
    done = run_json("tag", "--remove", "day", "other", "--warehouse", place)
    assert done["names"] == {"day": b, "other": a}

    assert [*list_heads(machine())] == ["main", "release"] and read_head(machine(), "day") is None
    with pytest.raises(InputError, match=r"was retired at .*kpyramid log day"):
        resolve_ref(machine(), "day")
    shown = run_json("log", "day", "--warehouse", place)
    assert [row["action"] for row in shown["entries"]] == ["retire", "build"]
    said = run_json("gc", "--older-than", "0d", "--warehouse", place)
    kept = said["kept"]["snapshots"]
    assert {item.path for item in sweep(machine()).moved} <= {f"snapshots/{b}"}
    sweep(machine())
    assert {*date_snapshots(machine())} == {a} and kept > 15_000
    assert check_refs(machine()) == []

    with pytest.raises(ConflictError, match="HEAD never moves back"):
        publish(machine(), "b", "1", ref="day")
    assert publish(machine(), "b", "2", ref="day") == resolve_ref(machine(), "day")
    assert check_refs(machine()) == []


def test_a_result_and_rows_made_on_one_machine_are_found_on_another(machine: Machine) -> None:
    contract = load_contracts()["rejects"]
    made = {"rejects": contract.build([])}
    result = store_result(machine(), "chunk", KEY, made, ["a" * 64])
    RowCache(machine(), "extractor", KEY).store({"k1": b"one", "k2": b"two"})

    there = machine()
    found = find_result(there, "chunk", KEY)
    assert found and found.tables["rejects"].sha256 == result.tables["rejects"].sha256
    assert find_result(there, "chunk", "1" * 64) is None
    rows = RowCache(there, "extractor", KEY)
    assert rows.load(["k1", "k2", "k3"]) == {"k1": b"one", "k2": b"two"}


@pytest.mark.slow
def test_eight_publishers_at_once_make_a_chain_and_readers_see_only_whole_snapshots(
    machine: Machine, tmp_path: Path
) -> None:
    """They also write the same result and the same rows, which stay whole."""
    first, location = publish(machine(), "z", "1"), machine().locate()
    seen: list[str] = []
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        work = [(location, str(tmp_path / f"of-{letter}"), letter) for letter in "abcdefgh"]
        pending = pool.starmap_async(work_at, work, chunksize=1)
        while not pending.ready():
            there = machine()
            head = resolve_ref(there, "main")
            assert check_bytes(locate_snapshot(there, head)) == []
            if head not in seen[-1:]:
                seen.append(head)
        made = pending.get()

    entries = list_entries(machine(), "main")
    chain = [entry.snapshot for entry in entries]
    assert sorted(chain) == sorted([first, *made])
    assert [entry.parent for entry in entries] == [None, *chain[:-1]]
    assert [snapshot for snapshot in chain if snapshot in seen] == seen
    assert RowCache(machine(), "extractor", KEY).load(["same"]) == {"same": b"row" * 9999}
    assert find_result(machine(), "chunk", KEY)
    assert list_held(machine()) == {}


# Deaths. A machine that dies at a request sends none after it, not even to tidy up.


class DeathError(BaseException):
    """The machine is gone."""


class DyingBucket(BucketStore):
    """Sends so many requests that change something, and nothing more."""

    left = 10**9

    def _spend(self) -> None:
        type(self).left -= 1
        if type(self).left < 0:
            raise DeathError

    def _create(self, name: str, data: bytes, writer: str = "probe") -> bool:
        if writer != "probe":
            self._spend()
        return super()._create(name, data, writer)

    def replace(self, name: str, data: bytes) -> None:
        self._spend()
        super().replace(name, data)

    def send(self, path: Path, name: str) -> None:
        self._spend()
        super().send(path, name)

    def delete(self, name: str) -> None:
        if not name.startswith("probes/"):
            self._spend()
        super().delete(name)


def die_at(
    monkeypatch: pytest.MonkeyPatch, request: int, location: str, act: Callable[[Warehouse], object]
) -> bool:
    """Does something on a machine that dies at that request; whether it did."""
    # On another computer, which nobody here can ask whether its processes live.
    monkeypatch.setattr("kpyramid.storage.layout._name_host", lambda: "elsewhere")
    DyingBucket.left = request
    warehouse = open_warehouse(location)
    place = Warehouse(warehouse.root, DyingBucket(location))
    try:
        act(place)
    except DeathError:
        return True
    finally:
        monkeypatch.undo()
    return False


@pytest.mark.slow
def test_killed_at_any_request_of_a_publish_head_is_old_or_new_and_a_retry_commits_once(
    s3_server: S3Server, tmp_path: Path
) -> None:
    for step in count():
        with pytest.MonkeyPatch.context() as patch:
            use_server(s3_server, patch)
            move_to_a_new_machine(tmp_path, patch)
            location = name_place()
            old = publish(open_warehouse(location), "a", "1")
            with pytest.MonkeyPatch.context() as dying:
                died = die_at(dying, step, location, lambda place: publish(place, "b", "2"))

            move_to_a_new_machine(tmp_path, patch)
            there = open_warehouse(location)
            head = read_head(there, "main")
            assert head is not None
            for snapshot in date_snapshots(there):
                check_whole(there, snapshot)
            assert check_refs(there) == []
            new = publish(there, "b", "2")
            assert head.snapshot in {old, new}
            assert [e.snapshot for e in list_entries(there, "main")] == [old, new]
            check_whole(there, new)
        if not died:
            break
    assert step > 6


@pytest.mark.slow
def test_killed_at_any_request_of_a_gc_nothing_is_lost_and_a_rerun_ends(
    place: str, tmp_path: Path
) -> None:
    for step in count():
        letters = [f"{step}-{letter}" for letter in "abcd"]
        location = f"{place}/{step}"
        a, b, c, d = (publish(open_warehouse(location), x, x) for x in letters)
        sweep(open_warehouse(location), keep=3)  # a is in the trash
        with pytest.MonkeyPatch.context() as dying:
            died = die_at(dying, step, location, lambda place: sweep(place, keep=2))
        there = open_warehouse(location)
        assert {c, d} <= {*date_snapshots(there)}
        for snapshot in date_snapshots(there):
            check_whole(there, snapshot)
        if died and there.store.read("gc.lock") is not None:
            with pytest.raises(ConflictError, match=r"elsewhere.*remove s3://.*/gc\.lock"):
                sweep(there, keep=2)
            there.store.delete("gc.lock")
        publish(there, letters[0], "e")  # a again, of which half may be deleted
        check_whole(there, a)
        sweep(there, keep=3)
        sweep(there, keep=3)
        assert {*date_snapshots(there)} == {a, c, d}
        assert not [x.name for x in there.store.list() if b in x.name or "trash" in x.name]
        check_whole(there, a)
        if not died:
            break
    assert step > 5


# Stores that fail, lie or were damaged.


@pytest.mark.slow
def test_a_commit_that_a_busy_bucket_refuses_is_tried_again_and_has_one_winner(
    faulty: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, faults = faulty
    there = open_warehouse(location)
    a = publish(there, "a", "1")
    for ref, answer in (("live", (409, "ConditionalRequestConflict")), ("hot", (503, "SlowDown"))):
        faults.answers.extend([answer] * 3)
        entry = commit(there, ref, snapshot=a, order="1", run="r", at="t")
        assert entry and not faults.answers
        assert len(list_entries(there, ref)) == 1

    faults.puts = 0
    move_to_a_new_machine(tmp_path, monkeypatch)
    reader = open_warehouse(location)
    assert check_bytes(locate_snapshot(reader, resolve_ref(reader, "live"))) == []
    assert check_refs(reader) == [] and faults.puts == 0, "a reader writes nothing"


@pytest.mark.slow
def test_a_machine_whose_clock_is_wrong_is_told_so_and_an_entry_that_was_written_is_the_writers(
    faulty: tuple[str, Faults], tmp_path: Path
) -> None:
    location, faults = faulty
    faults.answers.extend([(403, "RequestTimeTooSkewed")] * 2)
    with pytest.raises(EndpointError, match=r"Set the clock of .*: it is not the bucket's; "):
        start_run(open_warehouse(location), tmp_path, Settings(), ref="main")
    there = open_warehouse(location)
    a = publish(there, "a", "1")
    faults.lost_answers = 1  # the PUT is done, its answer is a 500; the client asks again: 412
    assert commit(there, "live", snapshot=a, order="1", run="r", at="t")
    assert faults.lost_answers == 0
    assert len(list_entries(there, "live")) == 1


@pytest.mark.slow
def test_what_a_bucket_gives_late_or_changed_is_not_taken(
    faulty: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, faults = faulty
    a = publish(open_warehouse(location), "a", "1")
    move_to_a_new_machine(tmp_path, monkeypatch)
    reader = open_warehouse(location)
    for change, error in [
        (lambda data: data[:1] + bytes([data[1] ^ 1]) + data[2:], "its bytes changed"),
        (lambda data: data[:-1], "bytes came where 5000 were asked for"),
    ]:
        faults.change = change
        with pytest.raises(IntegrityError, match=error):
            locate_snapshot(reader, a)
        assert not (reader.snapshots / a).exists() and not [*reader.staging.iterdir()]
    faults.change, faults.seconds = bytes, 4.0
    monkeypatch.setattr(bucket, "_TIMEOUT", timedelta(seconds=1))
    with pytest.raises(EndpointError, match="cannot read"):
        locate_snapshot(open_warehouse(location), a)
    faults.seconds = 0.1
    assert check_bytes(locate_snapshot(open_warehouse(location), a)) == []


@pytest.mark.slow
def test_a_bucket_that_knows_no_conditions_is_refused_before_any_work(
    faulty: tuple[str, Faults], tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", TEXTS)
    location, faults = faulty
    faults.unconditional = True
    said = "does not hold to conditional writes"
    fails(8, said, "build", corpus, "--warehouse", location)
    show("snapshots", "--warehouse", location)  # reading needs no conditions
    assert not [*BucketStore(location).list()]


@pytest.mark.slow
def test_damage_in_the_bucket_is_named_and_what_can_be_computed_is_made_anew(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = open_warehouse(place)
    a = publish(there, "a", "1")
    made = {"rejects": load_contracts()["rejects"].build([])}
    store_result(there, "chunk", KEY, made)
    RowCache(there, "extractor", KEY).store({"k": b"v"})
    (part,) = there.store.list("cache/rows")
    (table,) = (x for x in there.store.list("cache/results") if x.name.endswith(".parquet"))
    for name in (part.name, table.name):
        there.store.replace(name, b"torn")
    name = f"snapshots/{a}/tables/1"
    whole = there.store.read(name) or b""
    there.store.replace(name, b"b" + whole[1:])
    move_to_a_new_machine(tmp_path, monkeypatch)

    there = open_warehouse(place)
    assert find_result(there, "chunk", KEY) is None
    assert RowCache(there, "extractor", KEY).load(["k"]) == {}
    assert not [*there.store.list("cache/rows")]
    with pytest.raises(IntegrityError, match="tables/1: its bytes changed"):
        locate_snapshot(there, a)
    with pytest.raises(IntegrityError, match="No ref was moved"):
        promote(there, "live", a, at="t")
    done = run("verify", "--warehouse", place)
    assert done.exit_code == 6 and f"{place}/snapshots/{a}" in done.output
    store_result(there, "chunk", KEY, made)
    move_to_a_new_machine(tmp_path, monkeypatch)
    assert find_result(open_warehouse(place), "chunk", KEY)


@pytest.mark.slow
def test_a_full_disk_here_commits_nothing_and_a_larger_one_goes_on(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from kpyramid.storage import publication

    there, real = open_warehouse(place), publication.put_file

    def write(path: Path, data: bytes | Path) -> None:
        if path.name == "manifest.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(publication, "put_file", write)
        with pytest.raises(OSError, match="No space left"):
            publish(there, "a", "1")
    assert not [*there.store.list("refs")] and not [*there.store.list("snapshots")]
    assert not [*there.staging.iterdir()]
    check_whole(there, publish(there, "a", "1"))


def test_an_address_that_is_none_is_refused_and_no_secret_is_repeated() -> None:
    for location in ("ftp://bucket/x", "s3://me:secret4711@bucket/x", "s3://"):
        done = run("snapshots", "--warehouse", location)
        assert done.exit_code == 2
        assert "secret4711" not in done.output


@pytest.mark.needs("s3")
def test_a_missing_server_ends_with_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_to_a_new_machine(tmp_path, monkeypatch)
    use_server(S3Server("http://127.0.0.1:1"), monkeypatch)
    monkeypatch.setattr(bucket, "_TIMEOUT", timedelta(seconds=1))
    fails(8, "AWS_ENDPOINT_URL", "snapshots", "--warehouse", "s3://bucket/x")
