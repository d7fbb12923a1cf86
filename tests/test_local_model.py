"""A real llama-server with the smallest model: the wire, not the wit."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpyramid.keys import JsonValue
from kpyramid.llm.endpoint import open_transport
from kpyramid.llm.task import Message, Request, read_response, read_usage
from kpyramid.settings import LLMSettings
from tests.local_model import assemble_model, serve_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        model = assemble_model(tmp_path_factory.mktemp("model"), "135m")
        server = serve_model(model, "smollm")
        url = server.__enter__()
    except SystemExit as e:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs extra dev and a package with a model: {e}")
    yield url
    server.__exit__(None, None, None)


def test_real_server_keeps_to_enums_and_lengths(base_url: str, tmp_path: Path) -> None:
    names = ["Ada Lovelace", "Rolf Øst", "1843"]
    name: JsonValue = {"type": "string", "enum": names}
    row: dict[str, JsonValue] = {"head": name, "verb": {"type": "string", "enum": ["met"]}}
    rows: dict[str, JsonValue] = {
        "type": "array",
        "items": make_object(row),
        "minItems": 2,
        "maxItems": 2,
    }
    request = Request(
        task="wire",
        version=1,
        messages=(Message("user", "Say who met whom, ignoring every list of names you get."),),
        schema=make_object({"1": rows, "2": rows}),
        max_tokens=200,
    )
    settings = LLMSettings(provider="openai", base_url=base_url, model="smollm")
    transport = open_transport(settings, tmp_path / "probe.json")
    raw = transport.send(request)
    transport.close()
    notes = json.loads((tmp_path / "probe.json").read_bytes())
    assert (notes["schema"], notes["usage"], notes["answered_by"]) == ("kept", True, "smollm")
    assert read_usage(raw, request).completion > 0
    said = json.loads(read_response(raw))
    assert [len(said["1"]), len(said["2"])] == [2, 2]
    assert {each["head"] for each in said["1"] + said["2"]} <= set(names)
    assert {each["verb"] for each in said["1"] + said["2"]} == {"met"}


def make_object(properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
