"""Answering from a recording: no endpoint, no key, no cost."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue, hash_bytes, hash_value
from kpyramid.llm.types import FailureKind, ReplyError, Request, describe_model
from kpyramid.settings import LLMSettings

Answer = Callable[[Request], str | Mapping[str, JsonValue] | None]
"""The text of a reply, or a whole recorded completion; None for what was not recorded."""

_NOTHING: Mapping[str, JsonValue] = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
}


def describe_source(settings: LLMSettings) -> dict[str, JsonValue]:
    """What replies are kept under: the model, and for a recording its content besides.

    So a live model of that name is never answered from a recording, nor from an older one.

    Raises:
        SettingsError: there is no such recording.
    """
    model = describe_model(settings)
    if settings.provider == "replay":
        try:
            model["recording"] = hash_bytes(Path(str(settings.recording)).read_bytes())
        except OSError as e:
            raise SettingsError(f"llm.recording cannot be read: {e}") from e
    return model


class ReplayTransport:
    """A `Transport` that asks nobody. What it answers was paid for by whoever recorded it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        """See `Transport.send`; usage is none, and `replayed` says that this is so.

        Raises:
            ReplyError: the recording has no answer to this.
        """
        answer = self._answer(request)
        if answer is None:
            asked = request.subject or request.messages[-1].content
            raise ReplyError(
                FailureKind.UNRECORDED,
                f"the recording has no answer to task {request.task!r} for the text that begins "
                f"with {' '.join(asked.split())[:80]!r}",
            )
        if isinstance(answer, str):
            answer = _write_completion(answer)
        return {**answer, "usage": _NOTHING, "replayed": True}


def _write_completion(content: str) -> dict[str, JsonValue]:
    """A chat completion as a server would send it."""
    return {
        "id": f"replay-{hash_value(content)[:20]}",
        "object": "chat.completion",
        "created": 0,
        "model": "replay",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
        ],
    }
