"""Settings are checked once, all problems together, before anything is done."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import SettingsError
from kpyramid.pipeline.fingerprints import identify_resource
from kpyramid.settings import Settings, load_settings, read_recorded
from tests.corpora import make_settings
from tests.rows import each_row, read_bodies


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_and_variables_the_defaults_hold() -> None:
    assert load_settings(None, {}) == Settings()


def test_a_file_sets_what_it_names_and_variables_override_it(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[chunk]\nmax_tokens = 100\noverlap_tokens = 10\n[extract]\nparser="p"\n'
    )
    environment = read_bodies("settings.a_file_sets_what_it_names_and_variables_override_it")

    settings = load_settings(path, environment)

    expected = make_settings(
        chunk={"max_tokens": 50, "overlap_tokens": 10},
        extract={"parser": "p"},
        condense={"mode": "rules"},
        ingest={"text_fields": ["abstract"]},
        induce={"ontology": "medicine"},
    )
    assert settings == expected
    assert settings != Settings()


def test_all_problems_are_reported_together_with_their_places(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "[chunk]\nmax_tokens = 0\nmax_token = 5\n[chunks]\nx = 1\n[publish]\nmin_confidence = 1.5\n"
        '[ingest]\nfallback_encoding = "klingon"\n',
    )
    environment = {
        "KPYRAMID_CHUNK__OVERLAP_TOKENS": "often",
        "KPYRAMID_CONDENSE__NEIGHBORS": "3",
        "KPYRAMID_CONDENSE__MERGE_SIMILARITY": "nan",
    }

    with pytest.raises(SettingsError) as e:
        load_settings(path, environment)

    message = str(e.value)
    assert message.startswith("problems in the settings: 8")
    for name in ("chunk.max_tokens", "chunk.max_token", "chunks", "publish.min_confidence"):
        assert f"  {name}: " in message
    assert "klingon" in message
    assert f"(given: 1.5), from {path}" in message
    assert "(given: 'often'), from variable KPYRAMID_CHUNK__OVERLAP_TOKENS" in message
    assert "from variable KPYRAMID_CONDENSE__NEIGHBORS" in message
    assert "from variable KPYRAMID_CONDENSE__MERGE_SIMILARITY" in message


def test_a_run_that_was_recorded_with_settings_of_an_earlier_version_is_read() -> None:
    values: dict[str, Any] = asdict(Settings())
    values["query"] |= {"mode": "paper", "triples": 5, "chunks": 3}
    values["publish"]["strict"] = True
    read = read_recorded(values, "run.json")
    assert read.publish.max_violation_share == 0.0 and read.query == Settings().query


def test_what_is_fixed_now_is_refused_by_name_and_a_near_miss_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "[complete]\nrounds = 3\n[index]\nseed = 1\n")
    with pytest.raises(SettingsError, match=r"these settings.*fixed value") as e:
        load_settings(path, {"KPYRAMID_LLM__SEED": "7"})
    assert f"complete.rounds, from {path}" in str(e.value)
    assert "llm.seed, from variable KPYRAMID_LLM__SEED" in str(e.value)
    with pytest.raises(SettingsError, match=r"did you mean chunk\.max_tokens\?"):
        load_settings(None, {"KPYRAMID_CHUNK__MAX_TOKEN": "7"})
    with pytest.raises(SettingsError, match=r"did you mean publish\?"):
        load_settings(write(tmp_path, "[publsh]\nstrict = true\n"), {})


@each_row("text, said")
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match="settings") as e:
        load_settings(write(tmp_path, text), {})
    assert said in str(e.value)


def test_a_file_that_is_not_there_or_no_text_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load_settings(tmp_path / "none.toml", {})
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"bad\.toml"):
        load_settings(tmp_path / "bad.toml", {})


@each_row("section, name, resource")
def test_missing_model_or_ontology_is_named(section: str, name: str, resource: str) -> None:
    settings = make_settings(**{section: {name: "no_such_thing"}})

    with pytest.raises(SettingsError, match=rf"{section}\.{name}.*no_such_thing"):
        identify_resource(resource, settings)


@pytest.mark.parametrize("name", ["KPYRAMID_CHUNK_MAX_TOKENS", "KPYRAMID_LOG"])
def test_a_variable_that_would_do_nothing_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*two underscores"):
        load_settings(None, {name: "10", "KPYRAMID_WAREHOUSE": "here"})


@each_row("section, values")
def test_a_value_that_would_bite_later_is_refused_now(
    section: str, values: dict[str, object]
) -> None:
    with pytest.raises(SettingsError, match=rf"{section}\.{next(iter(values))}"):
        make_settings(**{section: values})
