"""Ten kinds of endpoint, each as its makers let it speak: all read the same small corpus."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.corpora import make_settings, use_quick_models, write_corpus
from tests.model_runs import list_facts, run_stages
from tests.servers import serve_handler

Body = dict[str, Any]
_LINE = re.compile(r"^(\d+)\| ([A-Z]\w*(?: [A-Z]\w*)*) ([a-z]+) ([^.]+)\.$", re.MULTILINE)


def answer(body: Body) -> str:
    """What the numbered sentences say, whatever form was asked for."""
    material = body["messages"][-1]["content"]
    if "capital of France" in material:
        return '{"answer": "k7-heron"}'
    facts = [[head, how, tail, int(n)] for n, head, how, tail in _LINE.findall(material)]
    return json.dumps({"entities": [], "facts": facts})


def say(content: object, **more: object) -> Body:
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def call_tool(body: Body) -> Body:
    if not body.get("tools"):
        return say("I may only call tools.")
    name = body["tools"][0]["function"]["name"]
    function = {"name": name, "arguments": answer(body)}
    return say(None, tool_calls=[{"id": "1", "type": "function", "function": function}])


def list_parts(body: Body) -> Body:
    return say([{"type": "text", "text": f"Here you are:\n```json\n{answer(body)}\n```"}])


@dataclass(frozen=True)
class Kind:
    """How an endpoint speaks; `refuses`: parameters, or values of one, that it does not take."""

    reply: Callable[[Body], Body] = lambda body: say(answer(body))
    refuses: tuple[str, ...] = ()
    path: str = "/v1/chat/completions"
    base: str = "/v1"
    header: str = "authorization"
    settings: Mapping[str, Any] = field(default_factory=dict)
    errors_in_a_list: bool = False
    found: Mapping[str, Any] = field(default_factory=dict)


JSON_ONLY = {"form": "json_object"}
KINDS = {
    "openai": Kind(found={"form": "json_schema"}),
    "reasoning": Kind(
        refuses=("temperature", "max_tokens"),
        settings={"reasoning_effort": "low"},
        found={"limit": "max_completion_tokens", "temperature": False, "effort": True},
    ),
    "think": Kind(lambda body: say(f"<think>{{so}} be it</think>\nSure:\n{answer(body)}\nDone.")),
    "reasoning_content": Kind(
        lambda body: say("", reasoning_content=f"Let me see. {answer(body)}")
    ),
    "json_mode": Kind(
        refuses=("json_schema", "reasoning_effort"),
        settings={"reasoning_effort": "low"},
        found={**JSON_ONLY, "effort": False},
    ),
    "plain": Kind(
        lambda body: say(f"The facts are: {answer(body)} I hope this helps."),
        refuses=("response_format", "tools"),
        found={"form": "plain"},
    ),
    "tools": Kind(call_tool, refuses=("response_format",), found={"form": "tools"}),
    "azure": Kind(
        path="/openai/deployments/m/chat/completions?api-version=2024-10-21",
        base="",
        header="api-key",
        settings={"api_version": "2024-10-21"},
    ),
    "gemini": Kind(
        refuses=("seed",),
        path="/v1beta/openai/chat/completions",
        base="/v1beta/openai",
        errors_in_a_list=True,
        found={"seed": False},
    ),
    "anthropic": Kind(list_parts),
}


@contextmanager
def serve(kind: Kind) -> Iterator[tuple[str, list[str]]]:
    """The address of such an endpoint, and what it was asked that it does not know."""
    strange: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get(kind.header, "").removeprefix("Bearer ")
            if self.path != kind.path or key != "planted-key-5f1c" or body["model"] != "m":
                strange.append(f"{self.path} {key} {body['model']}")
            wanted = {*body, (body.get("response_format") or {}).get("type")}
            refused = next((name for name in kind.refuses if name in wanted), None)
            if refused is None:
                self.send(200, kind.reply(body))
                return
            error = {"error": {"code": 400, "message": f"Invalid JSON payload: '{refused}'."}}
            self.send(400, [error] if kind.errors_in_a_list else error)

        def send(self, status: int, payload: object) -> None:
            data = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with serve_handler(Handler) as address:
        yield f"{address}{kind.base}", strange


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_endpoint_reads_the_corpus(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-5f1c")
    texts = {"a.txt": "Ada knew Bob. Bob liked Cleo.", "b.txt": "Dora met Emil."}
    corpus = write_corpus(tmp_path / "corpus", texts)
    with serve(KINDS[name]) as (base_url, strange):
        settings = make_settings(
            cascade=dict.fromkeys(("paraphrase", "entities", "relations"), "llm"),
            llm={"provider": "openai", "model": "m", "base_url": base_url, **KINDS[name].settings},
        )
        mark = run_stages(corpus, tmp_path / "w", settings)["extract"]
    assert not strange
    (record,) = (json.loads(p.read_bytes()) for p in tmp_path.glob("w/runs/*/endpoint.json"))
    assert {**record, **KINDS[name].found} == record
    stated = {("Ada", "knew", "Bob"), ("Bob", "liked", "Cleo"), ("Dora", "met", "Emil")}
    assert list_facts(tmp_path / "w", mark) == stated
    files = (path for path in (tmp_path / "w").rglob("*") if path.is_file())
    assert not any(b"planted-key-5f1c" in path.read_bytes() for path in files)
