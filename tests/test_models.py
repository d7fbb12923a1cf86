"""Opening models: no batch is submitted while a build asks, and locks lie with the replies."""

import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.errors import ConflictError, SettingsError
from kpyramid.llm.cache import describe_source
from kpyramid.pipeline.models import Opener, hold_asking, locate_locks
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from tests.corpora import make_settings

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


def test_a_build_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from kpyramid.pipeline.models import Opener
from kpyramid.storage.layout import Warehouse
from tests.test_models import LLM, open_asking
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
