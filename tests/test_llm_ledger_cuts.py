"""Lines of the books that a crash or a full disk cuts cost nobody else a line."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kpyramid.errors import BudgetError
from kpyramid.llm.ledger import Ledger, read_lines, read_totals
from kpyramid.llm.task import Usage
from tests.test_llm_ledger import make_call, make_settings


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_counted_and_spoils_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    ledger.settle(ticket, Usage(10, 5), "answered", billed=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    later = Ledger(path, make_settings())
    later.settle(later.reserve(make_call(7, 3)), Usage(7, 3), "answered", billed=True)
    lines, torn = read_lines(path)
    assert torn == (cut > 1)
    assert len(lines) == (4 if cut == 1 else 3)
    # The settled line is gone, so its call counts at its highest again.
    assert Ledger(path, make_settings()).spent().tokens == (25 if cut == 1 else 50)


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[]", b"{}", b'{"event":"settled","name":1,"tokens":1,"cost":1}', b"null",
     b'{"event":"settled","name":"x","tokens":1,"cost":NaN}', b'{"event":"paid"}'],
)  # fmt: skip
def test_lines_that_are_none_are_counted(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line + b"\n")
    ledger = Ledger(path, make_settings())
    ledger.reserve(make_call(1, 1))
    assert ledger.spent().tokens == 2
    assert read_totals(tmp_path).torn == 1


def test_what_the_disk_does_not_take_is_never_called_and_never_unpaid(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        ledger.reserve(make_call(30, 10))
    ledger.settle(ticket, Usage(1, 1), "answered", billed=True)  # the reply is worth more
    assert ledger.spent().tokens == 40


@contextmanager
def leave_room(path: Path, room: int) -> Iterator[None]:
    """The kernel takes so many bytes more of this file, cuts a write there, and refuses others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 100, -1], ids=["none", "byte", "piece", "all_but_one"])
@pytest.mark.parametrize("event", ["reserved", "settled"])
def test_a_line_that_the_disk_cuts_takes_no_other_with_it(
    tmp_path: Path, event: str, room: int
) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    length = path.stat().st_size
    if event == "reserved":
        with leave_room(path, room % length), pytest.raises(OSError, match=r"took|too large"):
            ledger.reserve(make_call(30, 10))
    else:
        with leave_room(path, room % length):
            ledger.settle(ticket, Usage(1, 1), "answered", billed=True)
    ledger.reserve(make_call(200, 0))
    assert ledger.spent().tokens == Ledger(path, make_settings()).spent().tokens == 240
    assert len(read_lines(path)[0]) == 2
    with pytest.raises(BudgetError):
        Ledger(path, make_settings(tokens=300)).reserve(make_call(61, 0))
