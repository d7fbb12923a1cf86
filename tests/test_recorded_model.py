"""A real local model's replies on 20 passages, replayed: no call, the same triples."""

import json
from pathlib import Path

import pytest

from tests.recordings.record import GOLDEN, MODES, describe_replay, find_recording

MEND = (
    "The recorded replies now give something else. If that is meant: "
    "python tests/recordings/record.py --golden, and read the diff. If prompts or rules now ask "
    "what is not recorded (failures): see the top of tests/recordings/record.py"
)


@pytest.mark.parametrize("mode", MODES)
def test_recorded_replies_give_the_recorded_triples(mode: str, tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))[mode]
    assert json.loads(json.dumps(describe_replay(mode, tmp_path))) == golden, MEND


@pytest.mark.parametrize("mode", MODES)
def test_every_request_is_recorded(mode: str) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))[mode]
    assert "llm_unrecorded" not in golden["rejects"], MEND
    assert golden["replies"] > 20
    assert len(golden["triples"]) > 20
    assert find_recording(mode).stat().st_size < 200_000
