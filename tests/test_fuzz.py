"""Bytes that nobody wrote: each target of `fuzz.py` on changed inputs and stored ones."""

from contextlib import nullcontext
from random import Random

import pytest

from tests.fuzz import TARGETS, list_stored, mutate

RUNS = 1000


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_what_holds_for_any(name: str) -> None:
    target, seeds = TARGETS[name]
    chance = Random(name)
    for data in [*seeds, *list_stored(name)]:
        target(data)
    for _ in range(RUNS):
        target(mutate(chance.choice(seeds), seeds, chance))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("labels", b"---\naccess: [[a]]\n---\n"),
        ("sparql", b"ASK { SERVICE <http://e.org> { ?s ?p ?o } }"),
        ("replies", b"{"),
        ("log", b"{}"),
        ("files", b"\x06{"),
    ],
)
def test_a_target_without_its_gate_fails(
    name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a target that sees nothing cannot pass for a clean one."""
    from tests import fuzz

    monkeypatch.setattr(fuzz, "suppress", lambda *_: nullcontext())
    monkeypatch.setattr(fuzz, "read_records", lambda *_: 1 / 0)
    with pytest.raises(Exception, match=r"."):
        TARGETS[name][0](data)
