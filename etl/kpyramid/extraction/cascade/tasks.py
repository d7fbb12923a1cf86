"""The tasks that a choice of settings asks, and what identifies them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from kpyramid.extraction.cascade import disambiguation, entities, merged, paraphrase, relations
from kpyramid.extraction.cascade.prompts import Form
from kpyramid.keys import JsonValue, hash_value
from kpyramid.settings import CascadeSettings

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

    def schema(self) -> Schema: ...


_PROMPTS: Mapping[str, _Prompt] = {
    prompt.NAME: prompt for prompt in (merged, paraphrase, entities, relations, disambiguation)
}


def list_tasks(settings: CascadeSettings) -> tuple[str, ...]:
    """The names of the tasks that are asked for every chunk that is sent, in their order.

    Empty when the rules do it all: disambiguation alone belongs to the stage that resolves.
    """
    if not settings.reads_chunks:
        return ()
    if settings.mode == "merged":
        return (merged.NAME,)
    steps = {
        paraphrase.NAME: settings.paraphrase,
        entities.NAME: settings.entities,
        relations.NAME: settings.relations,
        disambiguation.NAME: settings.disambiguation,
    }
    return tuple(name for name, maker in steps.items() if maker == "llm")


def open_tasks(settings: CascadeSettings) -> tuple[Task, ...]:
    """The tasks that are asked for every chunk that is sent, in their order."""
    form = Form(settings, max_tokens=0)
    prompts = (_PROMPTS[name] for name in list_tasks(settings))
    return tuple(Task(p.NAME, p.VERSION, p.write_static(form), p.schema()) for p in prompts)


def describe_tasks(settings: CascadeSettings) -> JsonValue:
    """What shapes the extraction beside the model: an ingredient of the stage's fingerprint.

    The static part holds template, examples, domain and language.
    """
    return {
        "mode": settings.mode,
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
