"""Bytes in, documents and refusals out: rows, workbooks, notebooks, mail and markup."""

import json
from email.message import EmailMessage
from pathlib import Path

import pytest

from kpyramid.documents.formats import Record, Refusal, read_records
from kpyramid.settings import IngestSettings
from tests.files import pack
from tests.rows import read_rows, read_text
from tests.test_conversion import ingest_files

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Pumps\n", "Ann built one."]},
        {"cell_type": "code", "metadata": {}, "source": "run()", "outputs": [{"text": "x" * 9}]},
    ],
    "metadata": {"kernelspec": {"name": "python3"}},
}
MAIL = EmailMessage()
MAIL["Subject"], MAIL["From"], MAIL["Message-ID"] = "Re: Orm", "Ann <ann@x.org>", "<m1@x.org>"
MAIL.set_content("Ann founded Orm.\n\n> Who founded it?\n\n-- \nAnn Lee\n")
MAIL.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
ARTICLE = read_text("article.xml").encode()
ADOC = read_text("orm.adoc").encode()
READ: dict[str, tuple[bytes, dict[str, str]]] = {
    **{
        name: (text.encode(), expected) for name, text, expected in read_rows("record_formats.read")
    },
    "a.ipynb": (json.dumps(NOTEBOOK).encode(), {"a.ipynb": "Pumps\n\nAnn built one.\n\nrun()"}),
    "a.eml": (bytes(MAIL), {"a.eml": "Ann founded Orm.\n\nWho founded it?", "a.eml#plan.pdf": ""}),
    "a.xml": (ARTICLE, {"a.xml": "It grew.\n\nMethods\n\nWe saw 10^9."}),
    "a.adoc": (
        ADOC,
        {"a.adoc": "Orm\n\nAnn founded it.\n\nPast\n\nOne\n\nrun()\n\nName\tBorn\nAnn <Lee>\t1990"},
    ),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    **{name: (text.encode(), why) for name, text, why in read_rows("record_formats.refused")},
    "deep.json": (b"[" * 100_000, "bad_json"),
    "long.csv": (b"name,abstract\nAnn," + b"word " * 400 + b"\n", "no_text_field"),
    "near.ipynb": (json.dumps(NOTEBOOK | {"metadata": {"Access": "hr"}}).encode(), "bad_access"),
}


def read(name: str, data: bytes, **settings: object) -> list[Record | Refusal]:
    return list(read_records(name, data, IngestSettings(**settings)))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", READ)
def test_file_is_read_as_documents_whose_blocks_lie_in_their_text(name: str) -> None:
    data, expected = READ[name]

    found = read(name, data)

    assert {r.source: r.text if isinstance(r, Record) else "" for r in found} == expected
    for record in found:
        for block in record.blocks if isinstance(record, Record) else ():
            words = record.text[block.start : block.end]
            assert words == words.strip() != ""


def test_labels_can_be_required() -> None:
    rows = b'{"id": 1, "text": "Ann grew.", "access": "hr"}\n{"id": 2, "text": "Bo grew."}\n'
    open_one, closed = read("a.jsonl", rows, require_access=True)
    assert isinstance(open_one, Record)
    assert isinstance(closed, Refusal)
    assert (closed.reason, "ingest.require_access" in closed.detail) == ("no_access", True)
    assert isinstance(read("a.txt", b"Ann grew.", require_access=True)[0], Refusal)


@pytest.mark.parametrize("name", REFUSED)
def test_file_is_refused_with_its_reason(name: str) -> None:
    data, reason = REFUSED[name]

    found = read(name, data)

    assert [r.reason for r in found if isinstance(r, Refusal)] == [reason]
    assert not [r for r in found if isinstance(r, Record)]


def test_subject_is_the_title_and_labels_part_tables() -> None:
    (mail, *_) = read("a.eml", bytes(MAIL))
    tables = read("labels.csv", READ["labels.csv"][0])

    assert isinstance(mail, Record)
    assert mail.title == "Orm"
    assert mail.metadata == {"from": "Ann <ann@x.org>", "message-id": "<m1@x.org>"}
    assert [b.kind for b in mail.blocks] == ["paragraph", "quotation"]
    assert [t.access for t in tables if isinstance(t, Record)] == [(), ("hr",)]


def test_all_fields_that_the_settings_name_are_read_in_their_order() -> None:
    row = b'{"id": 1, "two": "B.", "one": "A.", "text": "C.", "body": "D."}\n'

    named = read("a.jsonl", row, text_fields=("one", "two", "three"))
    usual = read("a.jsonl", row)

    assert [r.text for r in (*named, *usual) if isinstance(r, Record)] == ["A.\n\nB.", "C."]


def test_a_field_as_a_csv_file_has_it_is_read_without_its_marks() -> None:
    texts = ['"The ""old"" mill stands."', '"The ""old"" mill', '"Go," she said.', 'a = ""']
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)

    found = [r.text for r in read("a.jsonl", rows.encode()) if isinstance(r, Record)]

    assert found == ['The "old" mill stands.', 'The "old" mill', *texts[2:]]


def test_large_tables_become_documents_of_bounded_size() -> None:
    rows = b"Name,Born\n" + b"".join(b"N%d,1990\n" % row for row in range(2500))
    wide = ",".join(f"c{column}" for column in range(10_000)).encode()

    assert [r.source for r in read("a.csv", rows)] == [
        "a.csv#rows2-1001",
        "a.csv#rows1002-2001",
        "a.csv#rows2002-2501",
    ]
    (record,) = read("w.csv", wide + b"\n" + wide + b"\n")
    assert isinstance(record, Record)
    assert len(record.blocks) == 20_000


def make_workbook(*sheets: tuple[str, str, str]) -> bytes:
    """A workbook of sheets, each with its name, state and the XML of its rows."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    listed = "".join(
        f'<sheet name="{name}" sheetId="{at}" state="{state}" r:id="r{at}"/>'
        for at, (name, state, _) in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="r{at}" Type="{kind}/worksheet" Target="worksheets/s{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r0" '
        f'Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{kind}">'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}'
        "</Relationships>",
    }
    for at, (_, _, rows) in enumerate(sheets, 1):
        files[f"xl/worksheets/s{at}.xml"] = f"<worksheet {main}>{rows}</worksheet>"
    return pack(files)


def make_rows(*rows: str) -> str:
    """Rows of sheet XML: cells parted by bars, a formula before `=` and its stored value."""
    made = []
    for number, row in enumerate(rows, 1):
        cells = []
        for letter, cell in zip("ABCDEF", row.split("|"), strict=False):
            words, _, value = cell.partition("=")
            formula = f"<f>{words}</f><v>{value}</v>" if value else ""
            text = f"<is><t>{words}</t></is>" if words and not value else ""
            kind = "" if value else ' t="inlineStr"'
            cells.append(f'<c r="{letter}{number}"{kind}>{formula}{text}</c>')
        made.append(f'<row r="{number}">{"".join(cells)}</row>')
    return f"<sheetData>{''.join(made)}</sheetData>"


@pytest.mark.needs("files")
def test_workbook_is_read_by_its_visible_sheets(tmp_path: Path) -> None:
    people = make_rows("All people", "Name|City|Total", "Ann|Oslo|SUM(A1)=12", "Bo||3")
    merged = '<mergeCells count="1"><mergeCell ref="B3:B4"/></mergeCells>'
    book = make_workbook(
        ("People", "visible", people + merged), ("Secret", "hidden", make_rows("a|b", "x|y"))
    )

    documents, rejects = ingest_files(tmp_path, {"a.xlsx": book, "bad.xlsx": b"PK no"})

    assert {name: row["text"] for name, row in documents.items()} == {
        "a.xlsx#People#rows3-4": "Name | City | Total\nAnn | Oslo | 12\nBo | Oslo | 3"
    }
    assert {name: row["reason"] for name, row in rejects.items()} == {
        "a.xlsx#People!1": "above_header",
        "a.xlsx#Secret": "hidden_sheet",
        "bad.xlsx": "unconvertible",
    }


@pytest.mark.needs("files")
def test_tex_and_wikitext_are_read_without_their_marks(tmp_path: Path) -> None:
    files = {
        "a.tex": b"\\documentclass{article}\n\\title{Orm}\n\\begin{document}\n\\section{Past}\n"
        b'Schr\\"odinger~\\cite{a} \\emph{saw} 5\\% of it. % not this\n\\end{document}\n',
        "b.txt": b"{{Infobox firm\n| name = Orm\n| logo = [[File:x.png]]\n| seat = [[Oslo]]\n"
        b"| founded = 1990\n}}\n'''Orm''' is a [[firm]] in [[Oslo|the capital]].<ref>x</ref>\n\n"
        b"== Past ==\n* It [[grow]]s.\n",
    }

    documents, rejects = ingest_files(tmp_path, files)

    assert not rejects
    assert documents["a.tex"]["title"] == "Orm"
    assert documents["a.tex"]["text"] == "Past\n\nSchr\u00f6dinger saw 5% of it."
    assert documents["b.txt"]["title"] == "Orm"
    assert documents["b.txt"]["text"] == (
        "name: Orm\n\nseat: Oslo\n\nfounded: 1990\n\nOrm is a firm in the capital.\n\nPast\n\n"
        "It grows."
    )
