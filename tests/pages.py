"""The hand-written pages, taken apart into their fenced blocks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
GENERATED = frozenset({"cli.md", "settings.md", "tables.md"})
PAGES = (
    CHECKOUT / "README.md",
    *(path for path in sorted((CHECKOUT / "docs").glob("*.md")) if path.name not in GENERATED),
    CHECKOUT / "warehouse" / "README.md",
)
"""The pages whose commands and snippets are executed."""
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
NOT_RUN, NEEDS = "not run: ", "needs "
DEMO = "of the demo"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page and what the HTML comment right above it says."""

    page: str
    line: int
    language: str
    text: str
    mark: str

    @property
    def why_not_run(self) -> str:
        """The reason why the block is not executed; empty for one that is."""
        return self.mark.removeprefix(NOT_RUN) if self.mark.startswith(NOT_RUN) else ""

    @property
    def needs(self) -> str:
        """The dotted name without which the block cannot be executed yet; mostly empty."""
        return self.mark.removeprefix(NEEDS) if self.mark.startswith(NEEDS) else ""

    def list_commands(self) -> list[str]:
        """The command lines of a `sh` block, or those after `$ ` of a `console` block."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            return [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def list_transcripts(self) -> Iterator[tuple[str, list[str]]]:
        """Each command of a `console` block with the lines that are shown below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            yield command, [line for line in shown if line.strip() and line.strip() != "..."]


def read_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page in their order."""
    text = page.read_text("utf-8")
    name = page.relative_to(CHECKOUT).as_posix()
    return [
        Block(
            name,
            text[: found.start()].count("\n") + 1,
            found["language"],
            found["text"],
            found["mark"] or "",
        )
        for found in FENCE.finditer(text)
    ]


def list_calls(command: str, program: str) -> Iterator[list[str]]:
    """The arguments of each call of a program in a shell command line."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    call: list[str] | None = None
    for token in [*lexer, ";"]:
        if set(token) <= set("|&;<>"):
            if call is not None:
                yield call
            call = None
        elif token == program and call is None:
            call = []
        elif call is not None:
            call.append(token)
