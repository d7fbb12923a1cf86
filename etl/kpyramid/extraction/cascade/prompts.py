"""What the prompts share: templates, the fence around a corpus text, strict schemas, examples."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.keys import JsonValue
from kpyramid.llm.task import GUARD as GUARD
from kpyramid.llm.task import Strict as Strict
from kpyramid.llm.task import Task
from kpyramid.llm.task import fence as fence
from kpyramid.llm.task import strict_schema as strict_schema
from kpyramid.llm.types import Request
from kpyramid.settings import CascadeSettings, Example, Settings

_TEMPLATES = Environment(
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 - a prompt is no HTML
    trim_blocks=True,
    lstrip_blocks=True,
)

BUILT_IN = Example(
    text="Hedda Lund was a Danish chemist. In 1928 she founded Lund Dyes.",
    claims=("Hedda Lund was a Danish chemist.", "Hedda Lund founded Lund Dyes in 1928."),
    entities=("Hedda Lund", "Danish chemist", "Lund Dyes", "1928"),
    triples=(
        ("Hedda Lund", "was a", "Danish chemist"),
        ("Hedda Lund", "founded", "Lund Dyes"),
        ("Lund Dyes", "was founded in", "1928"),
    ),
)
"""The example of a project that gives none; people and dates are made up."""


@dataclass(frozen=True, slots=True)
class Form:
    """How everything is asked in one run: the settings and the tokens of one reply."""

    settings: CascadeSettings
    max_tokens: int

    @property
    def examples(self) -> tuple[Example, ...]:
        """The examples of the settings, else the built-in one."""
        return self.settings.examples or (BUILT_IN,)


@dataclass(frozen=True, slots=True)
class Shown:
    """A worked example as a prompt shows it: what is given, what is to be replied."""

    given: str
    reply: str


def write_system(template: str, form: Form, examples: Iterable[Shown]) -> str:
    """The message that is the same for every chunk, so that servers can keep it."""
    return _TEMPLATES.from_string(template).render(
        domain=form.settings.domain,
        language=form.settings.language,
        examples=list(examples),
        guard=GUARD,
    )


def show_parts(parts: Mapping[str, str | Iterable[str]]) -> str:
    """Named parts of the material: one line of text, or one line per item."""
    lines = []
    for name, part in parts.items():
        if isinstance(part, str):
            lines.append(f"{name}: {part}")
        else:
            lines += [f"{name}:", *(f"- {' '.join(item.split())}" for item in part)]
    return "\n".join(lines)


def show_chunk(chunk: Chunk) -> str:
    """A chunk's title and text."""
    title = " ".join((chunk.title or "").split())
    return show_parts({"Title": title, "Text": chunk.text} if title else {"Text": chunk.text})


def ask_about(
    task: Task[..., object], system: str, material: str, chunk: Chunk, form: Form
) -> Request:
    """The request of a task about a chunk."""
    return task.request(
        system,
        material,
        max_tokens=form.max_tokens,
        subject=chunk.text,
        document=chunk.document,
    )


def asks_step(step: str) -> Callable[[Settings], bool]:
    """Whether settings have a model take a step of the cascade, chunk by chunk."""

    def is_asked(settings: Settings) -> bool:
        cascade = settings.cascade
        if not cascade.reads_chunks or cascade.mode == "merged":
            return cascade.reads_chunks and step == cascade.mode
        return getattr(cascade, step, None) == "llm"

    return is_asked


def write_json(value: JsonValue) -> str:
    """A reply as an example shows it: without spaces, which a model would copy and bill."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def clean_items(items: Iterable[str]) -> tuple[str, ...]:
    """The items with single spaces, each once whatever its case, without empty ones."""
    kept: dict[str, str] = {}
    for item in items:
        words = " ".join(item.split())
        if words:
            kept.setdefault(words.casefold(), words)
    return tuple(kept.values())
