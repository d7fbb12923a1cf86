"""Trying an endpoint out: what the probe finds, and what it says is to be mended."""

import json
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import EndpointError, SettingsError
from kpyramid.llm.endpoint import open_connection, open_transport, read_key
from kpyramid.llm.task import TransientError
from tests.llm_wire import REQUEST, find_unused_port, make_answer, make_settings, probe, serve_bytes
from tests.loopback import Loopback, serve
from tests.rows import each_row, read_bodies

SECRET = "sk-planted-5f1c7a90"


pytestmark = pytest.mark.usefixtures("no_key_of_the_shell")


def test_probe_says_what_the_endpoint_takes(server: Loopback) -> None:
    assert probe(server.base_url) == {
        "base_url": server.base_url,
        "model": "m",
        "answered_by": "m",
        "schema": "kept",
        "usage": True,
        "limit": "max_tokens",
        "seed": True,
        "temperature": True,
        "effort": True,
        "form": "json_schema",
    }
    assert server.calls() == 1


@each_row("fault, schema")
def test_probe_sees_a_server_that_ignores_the_schema(
    server: Loopback, fault: str, schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.add(fault)
    assert probe(server.base_url)["schema"] == schema
    assert ("ignores the JSON schema" in caplog.text) is (schema == "ignored")


@each_row("refuses, limit, seed, calls")
def test_parameters_that_an_endpoint_refuses_are_not_sent_again(
    tmp_path: Path, refuses: list[str], limit: str, seed: bool, calls: int
) -> None:
    record = tmp_path / "probe.json"
    with serve(refuses=refuses) as server:
        transport = open_transport(make_settings(server.base_url), record)
        assert server.calls() == calls
        transport.send(REQUEST)
        transport.close()
        body = server.log[-1]["body"]
    said = json.loads(record.read_bytes())
    assert (said["limit"], said["seed"]) == (limit, seed)
    assert limit in body and not set(refuses) & body.keys()


@each_row("refuses, words")
def test_refused_probe_says_what_to_mend(refuses: list[str], words: str) -> None:
    with serve(refuses=refuses) as server:
        with pytest.raises(EndpointError, match=words):
            probe(server.base_url)
        assert server.calls() <= 2


@pytest.mark.parametrize(
    ("refuses", "calls", "found"),
    read_bodies("llm_probe.the_probe_finds_what_works"),
)
def test_the_probe_finds_what_works(refuses: list[str], calls: int, found: dict[str, Any]) -> None:
    with serve(refuses=refuses) as server:
        record = probe(server.base_url)
        assert server.calls() == calls
    assert {**record, **found} == record


def test_base_url_without_its_path_is_found_out(server: Loopback) -> None:
    page = make_answer(b"<html><style>p{}</style>Not found</html>", "404 Not Found")
    with serve_bytes(page) as base_url, pytest.raises(EndpointError, match="ends in /v1") as caught:
        probe(base_url.removesuffix("/v1"))
    assert "<" not in str(caught.value)


def test_unknown_model_is_answered_with_the_command_that_lists_them() -> None:
    with serve(models=["model-0"]) as server:
        with pytest.raises(EndpointError, match=r"'m'.*kpyramid doctor"):
            probe(server.base_url)
        assert server.calls() == 1


@each_row("variable, asked")
def test_the_address_is_openais_unless_its_variable_names_another(
    variable: str, asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", variable)
    client = open_connection(make_settings(None, api_key_env="SOME_KEY")).client
    assert str(client.base_url) == (asked or f"{variable}/")
    client.close()


def test_an_address_with_a_key_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://me:{SECRET}@host/v1")
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL") as caught:
        open_connection(make_settings(None))
    assert SECRET not in str(caught.value)


def test_azures_version_without_an_address_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"llm\.api_version .*llm\.base_url is not set: set"):
        read_key(make_settings(None, api_version="2024-10-21"))


def test_what_decided_the_address_is_named_before_the_first_call_and_where_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = f"http://127.0.0.1:{find_unused_port()}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", nowhere)
    with caplog.at_level("INFO"), pytest.raises(TransientError, match="by the variable OPENAI_BA"):
        open_connection(make_settings(None)).post("chat", {"model": "m"})
    assert f"m is asked at {nowhere}, by the variable OPENAI_BASE_URL" in caplog.text


def test_proxy_of_the_environment_is_not_asked_for_this_machine(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{find_unused_port()}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert probe(server.base_url)["schema"] == "kept"
    assert probe(server.base_url.replace("127.0.0.1", "localhost"))["schema"] == "kept"
    with pytest.raises(EndpointError, match="is the server running"):
        probe("http://model.example/v1")
