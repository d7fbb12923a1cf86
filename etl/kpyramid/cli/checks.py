"""`kpyramid check add`: an answer that a person confirms becomes a check of every build."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from kpyramid.cli.options import say
from kpyramid.cli.render import Result, name_values
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.settings import Settings
    from kpyramid.snapshot.snapshot import Snapshot


def add(
    question: str,
    /,
    *,
    answer: str | None = None,
    severity: Literal["fail", "warn"] = "fail",
    file: Path | None = None,
    yes: bool = False,
    opened: "Snapshot",
    loaded: "Settings",
) -> Result:
    """Ask a question, confirm the answer, and have every build check it from now on.

    Builds look for `checks.toml` beside the settings, else in the working folder; classes, facts,
    shares of rejects and how new the documents are can be checked as well: see docs/operate.md.

    Example: kpyramid check add "Who leads Acme?" --settings kpyramid.toml --file checks.toml

    `question`: a question in plain words.
    `answer`: what the answer has to hold, where that is not the whole answer.
    `severity`: fail keeps a build from being published, warn is a line of its report.
    `file`: the checks file; by default publish.checks of the settings, else checks.toml.
    `yes`: do not ask whether the answer is right.
    """
    from kpyramid.pipeline.checks import add_check
    from kpyramid.query import answer as ask
    from kpyramid.storage.writing import write_durably

    found = ask(question, opened)
    say(f"Answer: {found.text or 'none'}", err=True)
    for place in found.evidence[:3]:
        say(f"  {place.text} ({place.source})", err=True)
    wanted = answer or found.text
    if not wanted:
        raise InputError("there is no answer to confirm; say with --answer what it has to be")
    if not yes and not typer.confirm(f"Check that the answer holds {wanted!r}?", err=True):
        raise InputError("nothing was written, as the answer was not confirmed")
    path = file or Path(loaded.publish.checks or "checks.toml")
    entry = {"question": question, "answer": wanted}
    entry |= {"severity": severity} if severity != "fail" else {}
    text = path.read_text("utf-8") if path.exists() else ""
    write_durably(path.resolve(), add_check(text, entry).encode())
    return name_values(file=str(path), added=entry)
