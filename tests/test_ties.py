"""What a text says of a thing is tied to that thing: `golden/ties.jsonl`, made-up texts by kind.

`must` are patterns of which each matches a line "head | relation | tail | qualifiers" or
"KIND | name | type", `must_not` of which none matches any. The rows of the half `apart` were
written after the rules, without looking at them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kpyramid.pipeline.build import call_stage
from tests.rows import each_row, read_rows, read_text

TIES = Path(__file__).parent / "golden" / "ties.jsonl"
ROWS = [json.loads(row) for row in TIES.read_text("utf-8").splitlines()]
OPEN = read_rows("ties.open")
"""Read wrongly still."""
FACTS = read_text("ties_facts.sql")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is stated of each text, all texts being documents of one corpus."""
    house = tmp_path_factory.mktemp("ties")
    documents = [{"id": f"{at}", "title": "", **row} for at, row in enumerate(ROWS)]
    return read_facts(house, {"ties.jsonl": "\n".join(json.dumps(row) for row in documents)})


def read_facts(house: Path, files: Mapping[str, str]) -> dict[str, list[str]]:
    """What is stated of each text of a corpus of these files."""
    corpus = house / "corpus"
    corpus.mkdir()
    for name, text in files.items():
        (corpus / name).write_text(text)
    call_stage("ingest", run="ties", warehouse=str(house / "wh"), corpus=str(corpus))
    for name in ("chunk", "extract", "resolve"):
        call_stage(name, run="ties", warehouse=str(house / "wh"))
    tables = {
        name: f"'{next((house / 'wh' / 'cache' / 'results').glob(f'*/*/{name}.parquet'))}'"
        for name in re.findall(r"{(\w+)}", FACTS)
    }
    found: dict[str, list[str]] = defaultdict(list)
    with duckdb.connect() as connection:
        rows = connection.execute(FACTS.format_map(tables)).fetchall()
    for text, head, kind, relation, tail, other, said in rows:
        own = {role: value for role, value in dict(said or {}).items() if role != "document"}
        found[text] += [f"{head} | {relation} | {tail} | {own}"]
        found[text] += [f"KIND | {head} | {kind}", f"KIND | {tail} | {other}"]
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row["text"][:50] for row in ROWS])
def test_text_is_tied_to_what_it_speaks_of(
    row: dict[str, Any], lines: dict[str, list[str]]
) -> None:
    own = lines[row["text"]]
    missing = [p for p in row["must"] if not any(re.search(p, line) for line in own)]
    wrong = [line for p in row["must_not"] for line in own if re.search(p, line)]
    assert bool(missing or wrong) == (row["text"] in OPEN), f"{missing=} {wrong=} {own}"


@each_row("opening, owner")
def test_an_attribute_is_of_its_section_or_of_the_title(
    tmp_path: Path, opening: str, owner: str
) -> None:
    page = (
        f"{opening}\n\n## Departments\n\nThe Production Department is based in Wexcombe.\n\n"
        "## Roles\n\nThe managing director is Wilma Brandt.\n"
    )
    (found,) = read_facts(tmp_path, {"a.md": page}).values()
    assert [line.split(" | ")[0] for line in found if "| Wilma Brandt |" in line] == [owner, "KIND"]


PLACED = {
    "a.md": "# Depot\n\n## C3. Bus wash\n\nThe pump came back from repair. Eva Moe bought a mill.\n"
    "\nNew fittings cost about £900.\n\n## Meeting of 21 May\n\nThe pit was closed in June.\n",
    "b.txt": "NOTES OF MEETING\n\n2. HEATING AT ORCHARD BANK\nThe boiler failed in May 2026.\n",
}


def test_a_bare_noun_has_its_heading(tmp_path: Path) -> None:
    found = [line for lines in read_facts(tmp_path, PLACED).values() for line in lines]
    assert [line.partition(" | ")[0] for line in found if "'section': 'Bus wash'" in line] == [
        "New fittings",
        "pump",
    ]
    assert any("'section': 'Meeting of 21 May'" in line for line in found)
    assert any("'section': 'HEATING AT ORCHARD BANK'" in line for line in found)


def test_pairs_of_one_line_are_parted(tmp_path: Path) -> None:
    page = "# Ferry mate\n\n**Grade:** C3 | **Hours:** 37.5 a week, in turns | **Pay:** £34,600\n"
    (found,) = read_facts(tmp_path, {"a.md": page}).values()
    ends = {line.split(" | ")[2] for line in found if line.startswith("Ferry mate")}
    assert ends == {"C3", "37.5 a week, in turns", "£34,600"}


def test_the_month_of_a_header_is_a_time(tmp_path: Path) -> None:
    rows = "| Yaw brake pad | 6 |\n| Seat spring | 4 |\n"
    page = f"# Stores\n\n| Part | In stock Nov 2026 |\n|---|---|\n{rows}"
    (found,) = read_facts(tmp_path, {"a.md": page}).values()
    assert any(re.search(r"is in stock \| 6 \| .*'time': 'Nov 2026'", line) for line in found)


def test_a_page_of_rules_is_read_by_its_marks(tmp_path: Path) -> None:
    page = """# Board

- A member is removed unless
  - the member requests a leave of absence.

**Code of Conduct**
The Velm Board made a rule on advice of the [Voting Power][] in Hull.
The gate is open on Monday--Thursday.
"""
    (found,) = read_facts(tmp_path, {"a.md": page}).values()
    facts = [line for line in found if not line.startswith("KIND")]
    assert not any("requests" in line for line in facts)
    assert any(line.startswith("Velm Board | made") for line in facts)
    assert "Voting Power" in " ".join(facts)
    assert "Monday–Thursday" in " ".join(facts)
    assert not any(mark in line for line in facts for mark in "[]")
