"""What the extractor makes of one example per construction and per oddity stands as recorded."""

import pytest

from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.settings import ExtractSettings
from tests.golden.record import FILES, Entry, describe_results, read_entries
from tests.rows import read_rows

ENTRIES = {
    f"{path.stem}: {entry.name}": (path.stem, entry)
    for path in FILES
    for entry in read_entries(path)[1]
}
MISREAD = {*read_rows("golden_openie.misread")}
"""Examples that the parser takes for something else, so that nothing is stated."""
SCREENED = (
    "no_words table code citation address all_capitals list no_prose language_not_supported "
    "no_statement"
).split()


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[str, ...]]:
    """Today's lines by example, all texts of a file in one run."""
    settings = ExtractSettings()
    extractor = DependencyExtractor(settings.parser, settings.language)
    found: dict[str, tuple[str, ...]] = {}
    for path in FILES:
        entries = read_entries(path)[1]
        lines = describe_results(
            [entry.text for entry in entries], extractor, n_ary=path.stem == "constructions"
        )
        found |= {f"{path.stem}: {e.name}": r for e, r in zip(entries, lines, strict=True)}
    return found


@pytest.mark.parametrize("name", ENTRIES)
def test_example_gives_what_was_recorded(name: str, results: dict[str, tuple[str, ...]]) -> None:
    entry = ENTRIES[name][1]
    assert results[name] == entry.results, (
        f"{entry.text!r} gives something else now; if it is better, run `make golden` and commit"
    )


def test_every_construction_states_something() -> None:
    stating = [
        (name, entry)
        for name, (file, entry) in ENTRIES.items()
        if file == "constructions" and not entry.name.endswith("states nothing")
    ]
    assert len(stating) > 100
    silent = {
        name for name, e in stating if not any(r.startswith(("  fact", "n-ary")) for r in e.results)
    }
    assert silent <= MISREAD


def test_what_is_said_to_state_nothing_states_nothing() -> None:
    quiet = [(n, e) for n, (_, e) in ENTRIES.items() if e.name.startswith("nothing: ")]
    assert len(quiet) > 15
    assert not [name for name, e in quiet if any(r.startswith("  fact") for r in e.results)]


@pytest.mark.parametrize("reason", SCREENED)
def test_every_reason_of_screening_has_an_example(reason: str) -> None:
    lines = [line for _, e in ENTRIES.values() for line in e.results]
    assert any(line.startswith(f"dropped  {reason}: ") for line in lines)


def test_names_are_unique() -> None:
    count = sum(len(read_entries(path)[1]) for path in FILES)
    assert count == len(ENTRIES)
    assert all(isinstance(entry, Entry) for _, entry in ENTRIES.values())
