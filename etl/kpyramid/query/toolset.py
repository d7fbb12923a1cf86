"""Typed questions as tools that a model is given to call."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from kpyramid.errors import InputError
from kpyramid.snapshot.snapshot import Snapshot


def tools() -> list[dict[str, Any]]:
    """The typed questions as functions that a model may call, in the format of OpenAI's API."""
    path = Path(__file__).with_suffix(".json")
    return cast("list[dict[str, Any]]", json.loads(path.read_text("utf-8")))


def call_tool(name: str, arguments: str | Mapping[str, Any], snapshot: Snapshot) -> Any:
    """What a call gives; its arguments are an object or the JSON text of one.

    The result's `to_dict()` is what a model is shown.

    Raises:
        InputError: there is no such tool, it does not take these arguments, or they are refused.
    """
    known = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools()}
    if name not in known:
        raise InputError(f"there is no tool {name!r}; there are {', '.join(known)}")
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError as e:
        raise InputError(f"the arguments of {name} are no JSON: {e}") from e
    needed, taken = {*known[name]["required"]}, {*known[name]["properties"]}
    if not isinstance(given, Mapping) or not needed <= {*given} <= taken:
        wanted = f"{', '.join(sorted(taken))}, of which {', '.join(sorted(needed))} must be there"
        raise InputError(f"{name} takes an object with {wanted}")
    return getattr(snapshot, name)(**given)
