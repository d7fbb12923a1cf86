"""A task: one kind of work asked of a language model, and what all requests for it share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.prompts import Strict, fence, strict_schema
from kpyramid.llm.types import Message, Request

if TYPE_CHECKING:
    from kpyramid.settings import Settings

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Expected:
    """What requests take before any experience.

    `reply`, `material`: characters of a reply, and of what is shown of the subject, per character
    of the subject. `per_chunk`: requests per chunk, where one request holds many small questions;
    `characters`: the subject of such a request; `spread`: factors between which their number lies.
    """

    reply: float = 1.0
    material: float = 1.0
    per_chunk: float = 0.0
    characters: int = 0
    spread: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class Task(Generic[P, R_co]):
    """One kind of work asked of a language model; all of them stand in `kpyramid.pipeline.tasks`.

    `version` goes up whenever the prompt, the form of the reply or the parser changes.
    `stage`: who asks. `reply`: the form of the reply. `parse`: what a reply is read into.
    `system`: the message that all requests share. `is_asked`: whether settings ask for the task.
    `shaping`: all that shapes the prompts besides their material; by default the system message.
    """

    name: str
    version: int
    stage: str
    reply: type[Strict]
    parse: Callable[P, R_co]
    system: Callable[["Settings"], str]
    is_asked: Callable[["Settings"], bool]
    shaping: Sequence[JsonValue] = ()
    expected: Expected = Expected()

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The strict schema of the reply."""
        return strict_schema(self.reply)

    def describe(self, settings: "Settings") -> dict[str, JsonValue]:
        """What identifies the prompts: an ingredient of the stage's fingerprint."""
        prompt = hash_value(list(self.shaping) or self.system(settings))
        return {"name": self.name, "version": self.version, "prompt": prompt}

    def request(
        self,
        system: str,
        material: str,
        *,
        max_tokens: int,
        subject: str | None = None,
        document: str | None = None,
        schema: Mapping[str, JsonValue] | None = None,
        logprobs: bool = False,
    ) -> Request:
        """One structured completion about fenced material; by default that is its subject too."""
        content = fence(material)
        return Request(
            task=self.name,
            version=self.version,
            messages=(Message("system", system), Message("user", content)),
            schema=schema or self.schema,
            max_tokens=max_tokens,
            stage=self.stage,
            document=document,
            subject=content if subject is None else subject,
            logprobs=logprobs,
        )
