"""A first ontology is cut from word nets: valid, bounded, and ready to be reviewed."""

import gzip
import os
from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.bootstrapping import (
    Cut,
    WordNet,
    build_schema,
    cut_wordnet,
    merge_conceptnet,
)
from kpyramid.ontology.schema import Schema, parse_schema, write_schema
from tests.commands import fails_json, run, run_json, show

WORDNET = Path(__file__).parent / "wordnet"
"""A cut of WordNet 3.0 in its own format; see its README and LICENSE."""
INSTALLED = Path("/usr/share/wordnet")


def cut(word: str = "body of water", *, depth: int = 9, folder: Path = WORDNET) -> Cut:
    net = WordNet(folder)
    return cut_wordnet(net, net.find_senses(word)[0], depth=depth)


def build(word: str = "body of water", *, depth: int = 9) -> Schema:
    return build_schema(cut(word, depth=depth), title=word)


def write_dump(path: Path, *rows: tuple[str, str, str, float]) -> Path:
    lines = [
        f'/a/[{r}]\t/r/{r}\t/c/{s}\t/c/{e}\t{{"dataset": "/d/x", "weight": {w}}}\n'
        for r, s, e, w in rows
    ]
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


# --- WordNet -----------------------------------------------------------------------------


def test_all_meanings_below_a_word_become_classes() -> None:
    found = cut()
    assert (len(found.concepts), found.instances, found.deeper) == (76, 410, 0)
    schema = build()
    lake = next(c for c in schema.classes if c.label == "lake")
    assert lake.comment == "A body of (usually fresh) water surrounded by land."
    assert [schema.class_by_iri[p].label for p in lake.parents] == ["body of water"]
    brook = next(c for c in schema.classes if c.label == "brook")
    assert brook.alt_labels == ("creek",)


def test_depth_bounds_the_cut_and_what_is_left_is_counted() -> None:
    found = cut(depth=1)
    assert len(found.concepts) == 26
    assert found.deeper == 36
    assert cut(depth=2).deeper == 14


def test_the_result_is_a_valid_schema_and_complete_as_a_seed() -> None:
    schema = build()
    assert parse_schema(write_schema(schema), source="written") == schema
    assert {p.label for p in schema.properties} == {"part of", "has part", "made of"}
    for prop in schema.properties:
        assert prop.comment.endswith(".")
        assert len(prop.alt_labels) >= 2
        assert f"<{prop.domain.rpartition('#')[2]}>" in prop.competency_question
        assert prop.competency_question.endswith("?")
    assert all(c.label and c.comment for c in schema.classes)
    assert schema.class_for_type("LOC") == schema.base + "BodyOfWater"


def test_the_licence_of_wordnet_stands_in_the_output() -> None:
    text = write_schema(build())
    for line in WordNet(WORDNET).licence.splitlines():
        assert line.replace('"', '\\"') in text
    assert WORDNET.joinpath("LICENSE").read_text("utf-8").strip() == WordNet(WORDNET).licence


def test_circles_of_meanings_are_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(
        "00000001 03 n 01 top 0 002 ~ 00000002 n 0000 @ 00000003 n 0000 | the top\n"
        "00000002 03 n 01 mid 0 003 @ 00000001 n 0000 @ 00000003 n 0000 ~ 00000003 n 0000 | mid\n"
        "00000003 03 n 01 low 0 002 @ 00000002 n 0000 ~ 00000001 n 0000 | the low end\n"
    )
    (tmp_path / "index.noun").write_text("top n 1 2 @ ~ 1 0 00000001\n")
    with pytest.raises(InputError, match=r"meanings (mid, low, mid|low, mid, low) lie below each"):
        cut("top", folder=tmp_path)


def test_an_unknown_word_is_refused_with_words_near_it() -> None:
    with pytest.raises(InputError, match="no noun 'bodi of water'; near it are body of water"):
        WordNet(WORDNET).find_senses("bodi of water")


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.noun: no such file; install WordNet"):
        WordNet(tmp_path)
    (tmp_path / "data.noun").write_text("00000001 03 n 05 top 0 | x\n")
    (tmp_path / "index.noun").write_text("top n 1 0 1 0 00000001\nlost n 1 0 1 0 00000009\n")
    with pytest.raises(InputError, match="synset 00000001 is broken"):
        WordNet(tmp_path).find_senses("top")
    with pytest.raises(InputError, match="no synset 00000009"):
        WordNet(tmp_path).find_senses("lost")


def test_the_whole_wordnet_of_the_system_is_read() -> None:
    if not (INSTALLED / "data.noun").is_file():
        assert "CI" not in os.environ, "install wordnet-base"
        pytest.skip("WordNet (wordnet-base) is not installed")
    found = cut("disease", depth=2, folder=INSTALLED)
    assert len(found.concepts) > 200
    schema = build_schema(found, title="disease")
    assert parse_schema(write_schema(schema), source="written") == schema
    assert all(c.common_nouns for c in schema.classes)


# --- ConceptNet --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dump.csv", "dump.csv.gz"])
def test_a_dump_of_conceptnet_is_merged_in(tmp_path: Path, name: str) -> None:
    dump = write_dump(
        tmp_path / name,
        ("IsA", "en/lake", "en/body_of_water", 2.0),
        ("IsA", "en/crater_lake/n", "en/lake/n/wn/object", 1.0),
        ("IsA", "en/caldera_lake", "en/crater_lake", 1.0),
        ("IsA", "en/lake", "en/caldera_lake", 1.0),  # a circle
        ("IsA", "en/doubtful", "en/lake", 0.5),
        ("IsA", "en/a_very_deep_old_lake", "en/lake", 1.0),
        ("IsA", "fr/étang", "en/lake", 1.0),
        ("UsedFor", "en/lake", "en/swimming", 1.0),
        ("PartOf", "en/bay", "en/sea", 1.0),
        ("UsedFor", "en/hammer", "en/nail", 1.0),
    )
    found = cut()
    assert merge_conceptnet(found, dump, depth=9, watch=lambda lines: lines) == 2
    schema = build_schema(found, title="water")
    by_label = {c.label: c for c in schema.classes}
    assert by_label["caldera lake"].parents == (by_label["crater lake"].iri,)
    assert by_label["crater lake"].comment == "ConceptNet: crater lake is a lake."
    used = next(p for p in schema.properties if p.label == "used for")
    assert (used.domain, used.range) == (by_label["lake"].iri, n.THING)
    assert any("sharealike" in line.lower() for line in schema.axioms)
    assert parse_schema(write_schema(schema), source="w") == schema


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b,c\n" * 500)
    with pytest.raises(InputError, match="not ConceptNet's assertions"):
        merge_conceptnet(cut(), other, depth=1, watch=lambda lines: lines)
    other.write_bytes(b"\x1f\x8b\x08\x00broken")
    with pytest.raises(InputError, match="broken gzip"):
        merge_conceptnet(cut(), other, depth=1, watch=lambda lines: lines)


# --- the command -------------------------------------------------------------------------


def test_the_command_lists_the_senses_and_writes_the_chosen_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["ontology", "bootstrap", "--wordnet", str(WORDNET), "--domain", "lake"]
    senses = show(*command).splitlines()
    assert senses[0].startswith("Sense 1 (taken): a body of (usually fresh) water")
    assert senses[1].startswith("Sense 2 (--sense 2 takes it): a purplish red pigment")
    assert len(parse_schema(Path("lake.ttl").read_text("utf-8"), source="lake").classes) == 16
    assert run_json(*command, "--sense", "2", "--output", "l.ttl")["classes"] == 1
    assert "is there already" in run(*command).stderr
    assert "no num" in run(*command, "--sense", "4", "--output", "x.ttl").stderr


def test_an_output_that_cannot_be_written_is_one_error_object(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "x.ttl"
    command = ["ontology", "bootstrap", "--wordnet", str(WORDNET), "--domain", "lake"]
    assert f"{target} cannot be written" in fails_json(3, *command, "--output", target)
