"""A busy endpoint is left alone by all, and no state of the file stops the calls."""

from pathlib import Path

import pytest

from kpyramid.llm.endpoint import Pause


class Clock:
    """A time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def open_pause(folder: Path, clock: Clock) -> Pause:
    return Pause(folder / "new" / "pause", clock=clock, sleep=clock.sleep)


def test_a_pause_holds_everybody_and_does_not_shorten_an_earlier_one(
    tmp_path: Path, clock: Clock
) -> None:
    one, other = (open_pause(tmp_path, clock) for _ in range(2))
    one.wait(100.0)
    assert not (tmp_path / "new").exists()
    one.hold(30.0)
    other.hold(5.0)
    other.wait(100.0)
    assert clock.now == 1030.0
    one.wait(100.0)
    assert clock.now == 1030.0


def test_a_pause_noted_while_waiting_holds_the_waiting_too(tmp_path: Path, clock: Clock) -> None:
    def sleep(seconds: float) -> None:
        if clock.now == 1000.0:
            other.hold(100.0)
        clock.sleep(seconds)

    other = open_pause(tmp_path, clock)
    other.hold(10.0)
    Pause(tmp_path / "new" / "pause", clock=clock, sleep=sleep).wait(600.0)
    assert clock.now == 1100.0


@pytest.mark.parametrize("state", [b"", b"\0" * 20, b"{}", b"nan", b"inf", b"1e12", b"999.5"])
def test_what_can_be_no_pause_is_none(tmp_path: Path, clock: Clock, state: bytes) -> None:
    pause = open_pause(tmp_path, clock)
    pause.hold(1e9)
    file = tmp_path / "new" / "pause"
    assert float(file.read_bytes()) == 1000.0 + 86_400.0
    file.write_bytes(state)
    pause.wait(0.0)
    assert clock.now == 1000.0
