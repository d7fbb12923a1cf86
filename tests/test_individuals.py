"""`kpyramid ontology show`: every individual shows the sentence it came from."""

import json
from pathlib import Path
from typing import Any

import pytest

from kpyramid.storage.layout import Warehouse
from tests.commands import run
from tests.corpora import build_corpus, copy_shared_build, use_quick_models, write_corpus
from tests.rows import read_bodies


def show(warehouse: Path, *words: str) -> tuple[int, str]:
    done = run("ontology", "show", *words, "--warehouse", str(warehouse))
    return done.exit_code, done.output


def show_json(warehouse: Path, *words: str) -> dict[str, Any]:
    code, output = show(warehouse, *words, "--json")
    assert code == 0, output
    found: dict[str, Any] = json.loads(output)
    return found


def test_an_individual_shows_each_value_with_its_sentence_and_marks_its_words(
    tmp_path: Path,
) -> None:
    copy_shared_build(tmp_path / "w")

    code, output = show(tmp_path / "w", "leon batt")

    assert code == 0
    lines = [line.strip() for line in output.splitlines()]
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
    _, output = show(tmp_path / "w", "birth place")
    assert "Leon Batt | Oslo" in output


def test_an_unknown_name_gives_the_near_ones(tmp_path: Path) -> None:
    copy_shared_build(tmp_path / "w")
    code, output = show(tmp_path / "w", "Leon Bat")
    assert code == 3
    assert "no individual" in output and "Leon Batt" in output


def test_a_name_that_two_bear_lists_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)
    texts = read_bodies("individuals.a_name_that_two_bear_lists_both")
    corpus, warehouse = write_corpus(tmp_path / "corpus", texts), Warehouse(tmp_path / "w")
    build_corpus(corpus, warehouse)

    code, output = show(warehouse.root, "Batt")

    assert code == 0
    assert output.count("name Batt") == 2
