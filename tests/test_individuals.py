"""`kpyramid ontology show`: every individual shows the sentence it came from."""

from pathlib import Path
from typing import Any

import pytest

from kpyramid.storage.layout import Warehouse
from tests import commands
from tests.corpora import build_corpus, copy_shared_build, write_corpus
from tests.rows import read_bodies


def show(warehouse: Path, *words: str) -> str:
    return commands.show("ontology", "show", *words, "--warehouse", warehouse)


def show_json(warehouse: Path, *words: str) -> dict[str, Any]:
    return commands.run_json("ontology", "show", *words, "--warehouse", warehouse)


def test_an_individual_shows_each_value_with_its_sentence_and_marks_its_words(
    tmp_path: Path,
) -> None:
    copy_shared_build(tmp_path / "w")

    lines = [line.strip() for line in show(tmp_path / "w", "leon batt").splitlines()]

    at = next(i for i, line in enumerate(lines) if "label birth place  value Oslo" in line)
    assert lines[at + 1 : at + 4] == [
        "Sentences:",
        "batt.txt, characters 0-35:",
        "Leon Batt was born in Oslo in 1902.",
    ]
    assert any("label person" in line for line in lines)


def test_json_has_all_and_ids_and_iris_are_understood(tmp_path: Path) -> None:
    copy_shared_build(tmp_path / "w")
    (by_name,) = show_json(tmp_path / "w", "Aster Pictures")["individuals"]
    (by_id,) = show_json(tmp_path / "w", by_name["entity_id"])["individuals"]
    (by_iri,) = show_json(tmp_path / "w", by_name["iri"])["individuals"]
    assert by_name == by_id == by_iri
    (founded,) = by_name["value_of"]
    assert (founded["of"], founded["value"]) == ("Anna Holm", "Aster Pictures")
    assert "Aster Pictures" in founded["sentences"][0]["text"]


def test_a_class_lists_its_individuals_and_a_property_its_values(tmp_path: Path) -> None:
    copy_shared_build(tmp_path / "w")
    people = show_json(tmp_path / "w", "person")["members"]
    assert {"Anna Holm", "Leon Batt"} <= set(people["first"])
    assert people["count"] == len(people["first"])
    assert "Leon Batt | Oslo" in show(tmp_path / "w", "birth place")


def test_an_unknown_name_gives_the_near_ones(tmp_path: Path) -> None:
    copy_shared_build(tmp_path / "w")
    words = ("ontology", "show", "Leon Bat", "--warehouse", tmp_path / "w")
    commands.fails(3, ("no individual", "Leon Batt"), *words)


@pytest.mark.usefixtures("quick_models")
def test_a_name_that_two_bear_lists_both(tmp_path: Path) -> None:
    texts = read_bodies("individuals.a_name_that_two_bear_lists_both")
    corpus, warehouse = write_corpus(tmp_path / "corpus", texts), Warehouse(tmp_path / "w")
    build_corpus(corpus, warehouse)
    assert show(warehouse.root, "Batt").count("name Batt") == 2
