"""The options of a strategy, which are its keyword parameters: read from words, and checked."""

import inspect
from collections.abc import Callable, Iterable, Mapping

from kpyramid.errors import InputError
from kpyramid.query.analysis import cut_value

Option = bool | int | float | str


def parse_options(texts: Iterable[str]) -> dict[str, Option]:
    """Options from `name=value`; true, false and numbers are read as such.

    Raises:
        InputError: one is no `name=value`.
    """
    options: dict[str, Option] = {}
    for text in texts:
        name, found, value = (part.strip() for part in text.partition("="))
        if not (name and found and value):
            raise InputError(f"option {cut_value(text)}: write NAME=VALUE")
        options[name] = _read_value(value)
    return options


def _read_value(text: str) -> Option:
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


_KINDS: Mapping[object, tuple[str, Callable[[object], bool]]] = {
    int: (
        "a whole number, 1 or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1,
    ),
    float: (
        "a number from 0 to 1",
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        ),
    ),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    str: ("a string", lambda value: isinstance(value, str)),
}
"""By the type of a parameter, what its value has to be; of another type, such as names, a string.

What a parameter means beyond that is the strategy's to check.
"""


def check_options(
    strategy: str, function: Callable[..., object], options: Mapping[str, object]
) -> None:
    """That a strategy has these parameters, and that each value is of its kind.

    Every strategy has a `floor`, see `kpyramid.query.decisions.FLOOR`.

    Raises:
        InputError: it has not, or a value is of another kind.
    """
    known = {
        name: taken.annotation
        for name, taken in inspect.signature(function, eval_str=True).parameters.items()
        if taken.kind is taken.KEYWORD_ONLY
    } | {"floor": float}
    for name, value in options.items():
        if name not in known:
            takes = f"it takes {', '.join(known)}"
            raise InputError(f"strategy {strategy} has no option {cut_value(name)}; {takes}")
        wants, is_so = _KINDS.get(known[name], _KINDS[str])
        if not is_so(value):
            raise InputError(f"{name} = {cut_value(value)}: pass {wants}")
