"""Files that are large, or not what they say, through `ingest`: read or refused, within bounds."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.corpora import ROOT
from tests.files import make_pdf
from tests.test_record_formats import make_rows, make_workbook

FACT = "Ada Holm built the mill."
CELLS = ",".join("cell" for _ in range(1000))


def make_notebook(size: int) -> str:
    cells = [
        {"cell_type": "markdown", "source": FACT},
        {"cell_type": "code", "source": "run()", "outputs": [{"text": "x" * size}]},
    ]
    return json.dumps({"metadata": {}, "cells": cells})


def attach(size: int) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = "Mill"
    mail.set_content(FACT)
    mail.add_attachment(b"x" * size, maintype="application", subtype="pdf", filename="plan.pdf")
    return bytes(mail)


def make_book() -> bytes:
    return make_workbook(
        ("Mills", "visible", make_rows("Name|Height", "Mill|SUM(A1)=12", "Barn|SUM(A2)=#DIV/0!")),
        ("Secret", "hidden", make_rows("a|b", "x|y")),
    )


def make_pages() -> bytes:
    return make_pdf(*[[f"On page {n} a mill is shown."] * 30 for n in range(200)])


CASES: dict[str, tuple[str | Callable[[], str | bytes], int, list[str]]] = {
    # File: its text or what makes it, how many documents come of it, and why the rest is none.
    "large.csv": (f"{','.join(f'c{n}' for n in range(1000))}\n" + f"{CELLS}\n" * 300, 3, []),
    "large.html": ("<table>" + f"<tr>{'<td>a' * 100}" * 600, 1, []),
    "wide.csv": (",".join(f"c{n}" for n in range(10_000)) + "\n" + "1," * 9_999 + "1\n", 1, []),
    "merged.html": (
        "<table><tr><th>A<th>B<tr>" + "<td rowspan=999 colspan=99>x" * 900 + "<tr><td>y" * 999,
        1,
        [],
    ),
    "heading.html": (f"<h1></h1><h2> </h2><p>{FACT}", 1, []),
    "heading.md": (f"#\n\n## \n\n{FACT}\n", 1, []),
    "headings.html": ("<h1></h1>" * 1000, 0, ["empty"]),
    "open.html": ("<div><p><b><table><tr><td>" * 20_000 + FACT, 1, []),
    "comment.html": ("<!--" * 100_000 + FACT, 1, []),
    "lists.html": ("<ul><li>" * 5_000 + FACT, 1, []),
    "lists.md": ("- " * 5_000 + FACT, 0, ["too_deep"]),
    "charset.html": (f"<meta charset=utf-16><p>{FACT} Caf\u00e9", 1, []),
    "latin.html": (
        lambda: f"<meta charset=utf-8><p>{FACT} Caf\u00e9".encode("cp1252"), 0, ["undecodable"],
    ),
    "outputs.ipynb": (lambda: make_notebook(50_000_000), 1, []),
    "attached.eml": (lambda: attach(20_000_000), 1, ["attachment"]),
    "pages.pdf": (make_pages, 1, []),
    "book.xlsx": (make_book, 1, ["hidden_sheet"]),
}  # fmt: skip
MOST_SECONDS, MOST_MEGABYTES = 60, 2_000


@pytest.mark.slow
@pytest.mark.needs("files")
def test_a_file_is_read_or_refused_within_bounds(tmp_path: Path) -> None:
    """What a process of its own makes of each file, its processor time, and its memory so far."""
    for name, (data, *_) in CASES.items():
        (tmp_path / name).mkdir()
        made = data if isinstance(data, str) else data()
        (tmp_path / name / name).write_bytes(made.encode() if isinstance(made, str) else made)
    command = [sys.executable, "-m", "tests.test_large_files", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=600)
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    found = {name: (row["documents"], row["reasons"]) for name, row in rows.items()}
    assert found == {name: (documents, reasons) for name, (_, documents, reasons) in CASES.items()}
    for row in rows.values():
        assert row["seconds"] < MOST_SECONDS and row["megabytes"] < MOST_MEGABYTES, row


def _ingest_all(folder: Path) -> None:
    from kpyramid.documents.corpus import list_corpus
    from kpyramid.pipeline.cache import Context, open_converter
    from kpyramid.pipeline.stages import ingest
    from kpyramid.settings import Settings
    from kpyramid.storage.erasure import Erased
    from kpyramid.storage.layout import Warehouse

    settings = Settings()
    for name in CASES:
        start = time.process_time()
        made = ingest.run(
            corpus=list_corpus(folder / name).read_files(),
            converter=open_converter(Context(Warehouse(folder / "w"), settings, 1)),
            erased=Erased(),
            settings=settings.ingest,
        )
        row = {
            "name": name,
            "documents": len(made["documents"]),
            "reasons": made["rejects"]["reason"].to_pylist(),
            "seconds": time.process_time() - start,
            # Not `ru_maxrss`, in which the peak of the process that started this one counts.
            "megabytes": int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
            / 1024,
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    _ingest_all(Path(sys.argv[1]))
