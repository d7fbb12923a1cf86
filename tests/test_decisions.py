"""The decisions file: read, refused by entry, written into without touching the rest."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.completion.decisions import Decision, Index, add_decision, parse_decisions
from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.fingerprints import describe_settings, fingerprint_stage
from kpyramid.pipeline.stage import find_stage
from kpyramid.pipeline.wiring import require_ontology
from tests.corpora import make_settings
from tests.planted import GENERAL, general_schema
from tests.rows import each_row, read_text

KING = read_text("decisions_king.toml")
BEATEN = read_text("decisions_beaten.toml")
VILLAGE = read_text("decisions_village.toml")


def accept(text: str) -> list[dict[str, object]]:
    return parse_decisions(text, "d.toml").list_accepted(general_schema())


def test_entries_are_read_in_order_with_their_iris() -> None:
    rows = accept(KING + BEATEN + VILLAGE)
    assert [(r["kind"], r["iri"], r["phrases"]) for r in rows] == [
        ("property", GENERAL + "is_king_of", ["is king of", "reigned over"]),
        ("class", GENERAL + "Village", ["village"]),
    ]


@each_row("text, problem")
def test_a_wrong_file_is_refused_by_name_and_entry(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"d\.toml.*{problem}"):
        parse_decisions(text, "d.toml")


@each_row("text, problem")
def test_an_entry_that_does_not_fit_the_ontology_is_refused(text: str, problem: str | None) -> None:
    if problem is None:
        assert accept(text)
        return
    with pytest.raises(InputError, match=rf"d\.toml, entry 1 .*{problem}"):
        accept(text)


def test_a_build_is_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "decided.toml"
    settings = make_settings(complete={"decisions": str(path)})
    with pytest.raises(SettingsError, match=r"complete\.decisions: there is no file .*decided"):
        require_ontology(settings)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read"):
        require_ontology(settings)
    path.write_text(KING.replace("PopulatedPlace", "Realm"), "utf-8")
    with pytest.raises(InputError, match="entry 1"):
        require_ontology(settings)
    path.write_text(KING, "utf-8")
    require_ontology(settings)


def test_the_files_content_is_part_of_the_stages_key_but_not_its_place(tmp_path: Path) -> None:
    stage = find_stage("complete")

    def fingerprint(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, "utf-8")
        settings = make_settings(complete={"decisions": str(tmp_path / name)})
        assert "decisions" not in describe_settings("complete", settings)
        return fingerprint_stage(stage, settings)

    plain = fingerprint("one.toml", KING + BEATEN)
    assert fingerprint("two.toml", "# a remark\n" + KING + BEATEN) == plain
    assert fingerprint("one.toml", KING) != plain
    assert fingerprint("one.toml", KING + BEATEN.replace("reject", "reject") + "note='x'") != plain


@each_row("one, other, same")
def test_the_same_suggestion_is_known_again(
    one: tuple[str, str, list[str]], other: tuple[str, str, list[str]], same: bool
) -> None:
    assert bool(Index([(one, 1)]).find(other)) == bool(Index([(other, 1)]).find(one)) == same


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip()
)


@given(st.lists(st.tuples(WORDS, WORDS, st.lists(WORDS, max_size=3)), max_size=3))
def test_what_is_written_is_read_back_whatever_the_words(
    given_entries: list[tuple[str, str, list[str]]],
) -> None:
    entries = [
        Decision("reject", "class", label, phrases=tuple(phrases), note=note)
        for label, note, phrases in given_entries
    ]
    text = ""
    for entry in entries:
        text = add_decision(text, entry)
    found = [dict(row) for row in tomllib.loads(text).get("proposal", [])]
    assert [(r["label"], r["note"], r.get("phrases", [])) for r in found] == given_entries


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_rest_of_the_file_stays_as_it_is(end: str) -> None:
    before = (KING + BEATEN).replace("\n", end).rstrip()
    after = add_decision(before, Decision("reject", "class", "village"))
    assert after.startswith(before)
    assert len(parse_decisions(after, "d").entries) == 3
    assert end == "\n" or "\n" not in after.replace("\r\n", "")


def test_a_file_with_a_byte_order_mark_is_read_and_added_to() -> None:
    mark = "\ufeff"
    text = mark + KING.lstrip()
    after = add_decision(text, Decision("reject", "class", "village"))
    assert after.startswith(text) and after.count(mark) == 1
    assert len(parse_decisions(after, "d").entries) == 2
    assert parse_decisions(add_decision(mark, Decision("reject", "class", "x")), "d").entries


def test_a_list_of_entries_is_not_added_to() -> None:
    with pytest.raises(InputError, match=r"write each as a \[\[proposal\]\]"):
        add_decision("proposal = []\n", Decision("reject", "class", "village"))
