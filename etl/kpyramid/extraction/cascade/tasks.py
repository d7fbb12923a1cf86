"""The tasks that a choice of settings asks, and what identifies them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Protocol

from kpyramid.extraction.cascade import (
    closed,
    disambiguation,
    entities,
    merged,
    paraphrase,
    relations,
)
from kpyramid.extraction.cascade.prompts import Form
from kpyramid.keys import JsonValue, hash_value
from kpyramid.model_settings import CascadeSettings

Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Task:
    """One of the cascade's prompts; `static` is its part that all chunks share."""

    name: str
    version: int
    static: str
    schema: Schema


class _Prompt(Protocol):
    """A module of a task."""

    NAME: str
    VERSION: int

    def write_static(self, form: Form, /) -> str: ...


def _describe_closed(name: str, form: Form) -> Task:
    static, schema = closed.write_static(name, form), closed.describe_form(name, form)
    return Task(name, closed.VERSION, static, schema)


def _describe_open(prompt: _Prompt, schema: Callable[[Form], Schema], form: Form) -> Task:
    return Task(prompt.NAME, prompt.VERSION, prompt.write_static(form), schema(form))


_OPEN: Sequence[tuple[_Prompt, Callable[[Form], Schema]]] = (
    (merged, lambda _: merged.schema()),
    (paraphrase, lambda _: paraphrase.schema()),
    (entities, lambda _: entities.schema()),
    (relations, partial(relations.schema, ())),
    (disambiguation, partial(relations.schema, ())),
)
_DESCRIBE: Mapping[str, Callable[[Form], Task]] = {
    **{name: partial(_describe_closed, name) for name in closed.SYSTEMS},
    **{prompt.NAME: partial(_describe_open, prompt, schema) for prompt, schema in _OPEN},
}


def list_tasks(settings: CascadeSettings) -> tuple[str, ...]:
    """The names of the tasks that are asked for every chunk that is sent, in their order.

    Empty when the rules do it all: disambiguation alone belongs to the stage that resolves.
    """
    if not settings.reads_chunks:
        return ()
    if settings.mode == "merged":
        return (closed.MERGED, closed.RELATIONS) if settings.closed else (merged.NAME,)
    steps = {
        closed.PARAPHRASE if settings.closed else paraphrase.NAME: settings.paraphrase,
        closed.ENTITIES if settings.closed else entities.NAME: settings.entities,
        closed.RELATIONS if settings.closed else relations.NAME: settings.relations,
        disambiguation.NAME: settings.disambiguation,
    }
    return tuple(name for name, maker in steps.items() if maker == "llm")


def open_tasks(settings: CascadeSettings) -> tuple[Task, ...]:
    """The tasks that are asked for every chunk that is sent, in their order."""
    form = Form(settings, max_tokens=0)
    return tuple(_DESCRIBE[name](form) for name in list_tasks(settings))


def describe_tasks(settings: CascadeSettings) -> JsonValue:
    """What shapes the extraction beside the model: an ingredient of the stage's fingerprint.

    The static part holds template, examples, domain and language.
    """
    return {
        "mode": settings.mode,
        "hybrid": settings.hybrid and settings.reads_chunks,
        "closed": settings.closed,
        "tasks": [
            {
                "name": task.name,
                "version": task.version,
                "prompt": hash_value(task.static),
                "schema": task.schema,
                "examples": [asdict(example) for example in settings.examples],
            }
            for task in open_tasks(settings)
        ],
    }
