"""The templates of a report, and the report in lines of text."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, Template, TemplateError, select_autoescape

from kpyramid.documents.corpus import Unread
from kpyramid.pipeline.stage import PIPELINE

_WIDE, _MOST = 160, 10


def load_template(name: str) -> Template:
    """A page, or a part of one, of the report."""
    return _open_templates().get_template(name)


@cache
def _open_templates() -> Environment:
    opened = Environment(
        loader=PackageLoader("kpyramid.pipeline.report"),
        autoescape=select_autoescape(["html.jinja", "svg.jinja"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    opened.filters |= {"cut": cut, "some": _join_some, "quoted": shlex.quote}
    return opened


def cut(text: object, most: int = _WIDE) -> str:
    """A text on one line, cut to so many characters."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= most else f"{plain[: most - 2]} …"


def cut_sentence(text: str, position: int) -> str:
    """The sentence of a text around a character; empty if there is none."""
    from kpyramid.documents.sentences import split_sentences

    spans = (span for span in split_sentences(text) if span.start <= position < span.end)
    return next((text[span.start : span.end] for span in spans), "")


def _join_some(words: Sequence[str]) -> str:
    """The first words, as far as they fit a line, and how many more there are."""
    shown = list(words[:_MOST])
    while len(", ".join(shown)) > _WIDE - 40 and len(shown) > 1:
        shown.pop()
    rest = len(words) - len(shown)
    return cut(", ".join(shown)) + (f" and {rest} more" if rest else "")


def word_report(
    report: Mapping[str, Any], page: str, place: str = "", *, verbose: bool = False
) -> list[str]:
    """A report in at most 25 lines; `place`: the warehouse of the next commands, if they need it.

    `page`: where the whole of it lies. Of a build that changed nothing one line, unless `verbose`.
    """
    kinds = [Unread(**kind) for kind in report["unread"]]
    given = {"page": page, "place": place and shlex.quote(place), "verbose": verbose}
    text = load_template("report.txt.jinja").render(report=report, unread_kinds=kinds, **given)
    return [line for line in text.splitlines() if line.strip()]


def word_plan(**given: object) -> list[str]:
    """What a build would ask of models in all: calls, tokens and dollars in ranges."""
    return load_template("plan.txt.jinja").render(**given).splitlines()


def word_run(
    run: Mapping[str, Any], report: Mapping[str, Any], marks: Sequence[Mapping[str, Any]], page: str
) -> Iterator[str]:
    """A run that was before: how it stands, then its report, or without one what its stages made.

    What another version wrote is shown as far as it has what this one shows.
    """
    yield from load_template("run.txt.jinja").render(run=run).splitlines()
    with suppress(LookupError, TypeError, ValueError, AttributeError, TemplateError):
        if report:
            yield from word_report(report, page, verbose=True)
            return
    with suppress(LookupError, TypeError, ValueError, AttributeError, TemplateError):
        done = [mark for s in PIPELINE for mark in marks if mark.get("stage") == s.name]
        yield from load_template("stages.txt.jinja").render(stages=done).splitlines()
