"""Settings of a language model: what cannot work is refused before anything is asked or paid."""

import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.errors import ConflictError, SettingsError
from kpyramid.llm.cache import describe_source
from kpyramid.pipeline.models import Opener, hold_asking, locate_locks
from kpyramid.settings import Settings, load_settings
from kpyramid.storage.layout import Warehouse
from tests.corpora import make_settings
from tests.rows import each_row

ALL_LLM = {step: "llm" for step in ("paraphrase", "entities", "relations", "disambiguation")}


ENDPOINT = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:8000/v1"}


@each_row("cascade, llm, words")
def test_what_cannot_work_is_refused_with_what_to_do(
    cascade: dict[str, object], llm: dict[str, object], words: str
) -> None:
    with pytest.raises(SettingsError) as e:
        make_settings(cascade=cascade, llm=llm)

    assert words in str(e.value)


def test_a_budget_in_dollars_needs_the_price_of_bought_vectors_too() -> None:
    prices = {"m": {"input": 1.0, "output": 2.0}}
    embed = {"provider": "openai", "model": "vectors", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(SettingsError) as e:
        make_settings(llm=ENDPOINT | {"budget": 1.0, "prices": prices}, embed=embed)
    assert "[llm.prices.'vectors']" in str(e.value)

    priced = prices | {"vectors": {"input": 0.02, "output": 0.0}}
    make_settings(llm=ENDPOINT | {"budget": 1.0, "prices": priced}, embed=embed)


def test_a_refused_credential_is_not_repeated_in_the_message() -> None:
    urls = "http://user:planted-secret@host/v1", "http://host/v1?key=planted-secret"
    for given in (*({"base_url": url} for url in urls), {"api_key": "planted-secret"}):
        with pytest.raises(SettingsError) as e:
            make_settings(llm=ENDPOINT | given)
        assert "planted-secret" not in str(e.value)


@pytest.mark.parametrize(
    "part", [{"complete": {"naming": "llm"}}, {"condense": {"mode": "llm"}}], ids=str
)
def test_naming_and_condensation_may_be_a_models_alone(part: dict[str, object]) -> None:
    assert make_settings(llm=ENDPOINT, **part).asks_model
    with pytest.raises(SettingsError, match=r'llm\.provider is "none"'):
        make_settings(**part)


def test_prices_are_read_from_the_file_by_model(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        '[llm]\nprovider = "openai"\nmodel = "a/b-1.5"\nbudget = 2.5\n'
        '[llm.prices."a/b-1.5"]\ninput = 0.15\noutput = 0.6\n'
    )

    settings = load_settings(path, {"KPYRAMID_LLM__BUDGET": "7"})

    assert settings.llm.budget == 7
    assert settings.llm.prices["a/b-1.5"].output == 0.6


def test_a_run_goes_on_with_another_endpoint_and_budget_but_not_another_model() -> None:
    started = make_settings(cascade=ALL_LLM, llm=ENDPOINT)
    price = {"m": {"input": 1.0, "output": 2.0}}
    now = make_settings(
        cascade=ALL_LLM | {"mode": "paper"},
        llm={
            "provider": "openai",
            "model": "other",
            "budget": 9.0,
            "prices": {"other": price["m"]},
        },
    )

    later = make_settings(cascade=ALL_LLM, llm=ENDPOINT | {"budget": 9.0, "prices": price})

    assert started.with_operations(later).llm.budget == 9.0
    assert started.with_operations(now) == started
    shaping = make_settings(cascade=ALL_LLM, llm=ENDPOINT | {"seed": 9, "max_tokens": 99})
    assert started.with_operations(shaping) == started


@pytest.mark.parametrize("name", ["hybrid", "closed"])
def test_a_setting_that_was_removed_says_so_and_what_to_do(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f"[cascade]\n{name} = true\n")
    with pytest.raises(SettingsError, match=f"cascade.{name}: .*removed.*delete this line.*s.toml"):
        load_settings(path, {})


# Opening models: no batch is submitted while a build asks, and locks lie with the replies.


LLM = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


def open_asking(warehouse: Warehouse, settings: Settings) -> Opener:
    return Opener(warehouse, settings, warehouse.runs / "r", "main")


def test_nothing_is_submitted_while_a_build_asks_and_again_when_it_is_done(tmp_path: Path) -> None:
    warehouse, settings = Warehouse(tmp_path), make_settings(llm=LLM)
    with open_asking(warehouse, settings) as opener:
        opener.open_model()
        with pytest.raises(ConflictError, match="Call again"), hold_asking(warehouse, settings):
            pass

    with hold_asking(warehouse, settings):
        pass


@pytest.mark.slow
def test_a_build_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from kpyramid.pipeline.models import Opener
from kpyramid.storage.layout import Warehouse
from tests.test_model_settings import LLM, open_asking
from tests.corpora import make_settings
opener = open_asking(Warehouse(Path({str(tmp_path)!r})), make_settings(llm=LLM))
opener.open_model()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent)
    assert done.returncode == -9

    with hold_asking(Warehouse(tmp_path), make_settings(llm=LLM)):
        pass


def test_warehouses_with_one_folder_of_replies_share_its_locks(tmp_path: Path) -> None:
    shared = make_settings(llm=LLM | {"cache": str(tmp_path / "replies")})
    bucket = make_settings(llm=LLM | {"cache": "s3://bucket/replies"})
    one, other = Warehouse(tmp_path / "one"), Warehouse(tmp_path / "other")

    assert locate_locks(one, shared) == locate_locks(other, shared)
    assert locate_locks(one, bucket) != locate_locks(other, bucket)
    with open_asking(one, shared) as opener:
        opener.open_model()
        with pytest.raises(ConflictError), hold_asking(other, shared):
            pass


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    llm = {"provider": "replay", "model": "m", "recording": str(tmp_path / "none.jsonl")}

    with pytest.raises(SettingsError, match=r"none\.jsonl"):
        describe_source(make_settings(llm=llm).llm)
