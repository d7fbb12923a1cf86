"""Each room of the package has a budget in code lines; raising a row needs a decision."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "etl" / "kpyramid"

BUDGETS = {
    "root": 540,
    "numerics": 305,
    "embeddings": 351,
    "documents": 3611,
    "storage": 3127,
    "llm": 2657,
    "extraction": 10720,
    "graph": 2325,
    "ontology": 6765,
    "completion": 2211,
    "condensation": 1621,
    "snapshot": 4199,
    "query": 3961,
    "serve": 533,
    "integrations": 153,
    "evaluation": 1132,
    "pipeline": 8624,
    "cli": 2935,
}
"""Most code lines of each room; `root` is the modules beside the rooms."""


def count_code_lines(source: str) -> int:
    """Lines that hold code: no blank line, comment or docstring counts."""
    documentation: set[int] = set()
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), end_lineno=int(end)):
                documentation.update(range(node.lineno, end + 1))
            case ast.Constant(end_lineno=int(end)) | ast.JoinedStr(end_lineno=int(end)):
                texts.update(range(node.lineno, end + 1))
    lines = ((number, line.strip()) for number, line in enumerate(source.split("\n"), 1))
    code = {number for number, line in lines if line and not line.startswith("#")}
    return len((code | texts) - documentation)


def count_rooms() -> Counter[str]:
    """Code lines of each room."""
    rooms: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        room = place.parts[0] if len(place.parts) > 1 else "root"
        rooms[room] += count_code_lines(path.read_text("utf-8"))
    return rooms


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ('"""What it is."""\n\n# why\nx = 1\n', 1),
        ('def f() -> str:\n    """Give it."""\n    return """a\nb"""\n', 3),
        ("x = [\n    1,  # one\n    # none\n]\n", 3),
    ],
)
def test_blank_lines_comments_and_docstrings_do_not_count(source: str, lines: int) -> None:
    assert count_code_lines(source) == lines


def test_every_room_stays_within_its_budget() -> None:
    rooms = count_rooms()
    assert rooms.keys() == BUDGETS.keys()
    over = {
        room: f"{rooms[room]} of {most}" for room, most in BUDGETS.items() if rooms[room] > most
    }
    assert not over, f"code lines over the budget of CONTRIBUTING.md: {over}"


def test_contributing_states_the_sum() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    stated = re.search(r"at\s+most ([\d,]+) code lines", text)
    assert stated, "CONTRIBUTING.md states the budget as “at most N code lines”"
    assert int(stated[1].replace(",", "")) == sum(BUDGETS.values())
