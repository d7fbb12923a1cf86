"""Prompts in data files: `prompts.toml` beside the module that sends them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpyramid.llm.task import GUARD, write_json


def read_prompts(module: str) -> dict[str, Any]:
    """The prompts beside a module, by the names of tasks; `module`: its `__file__`."""
    return tomllib.loads(Path(module).with_name("prompts.toml").read_text("utf-8"))


def write_system(prompt: Mapping[str, Any], domain: str, language: str) -> str:
    """The system message of a prompt: its `instructions`, with its other parts put into them."""
    parts = {k: part if isinstance(part, str) else write_json(part) for k, part in prompt.items()}
    named = {"domain": domain, "language": language, "guard": GUARD}
    return parts["instructions"].format(**parts, **named)
