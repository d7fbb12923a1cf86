"""The tasks that a choice of settings asks, and what identifies them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

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


@dataclass(frozen=True, slots=True)
class Task:
    """One of the cascade's prompts; `static` is its part that all chunks share."""

    name: str
    version: int
    static: str
    schema: Mapping[str, JsonValue]


def _describe_closed(name: str, form: Form) -> Task:
    static, schema = closed.write_static(name, form), closed.describe_form(name, form)
    return Task(name, closed.VERSION, static, schema)


_DESCRIBE: Mapping[str, Callable[[Form], Task]] = {
    **{name: partial(_describe_closed, name) for name in closed.SYSTEMS},
    merged.NAME: lambda form: Task(
        merged.NAME, merged.VERSION, merged.write_static(form), merged.schema()
    ),
    paraphrase.NAME: lambda form: Task(
        paraphrase.NAME, paraphrase.VERSION, paraphrase.write_static(form), paraphrase.schema()
    ),
    entities.NAME: lambda form: Task(
        entities.NAME, entities.VERSION, entities.write_static(form), entities.schema()
    ),
    relations.NAME: lambda form: Task(
        relations.NAME,
        relations.VERSION,
        relations.write_static(form),
        relations.schema((), form),
    ),
    disambiguation.NAME: lambda form: Task(
        disambiguation.NAME,
        disambiguation.VERSION,
        disambiguation.write_static(form),
        disambiguation.schema((), form),
    ),
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
