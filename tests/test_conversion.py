"""Files that are not text are converted, or refused by name; a folder of unread files at once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kpyramid.documents.corpus import list_corpus
from kpyramid.documents.pages import read_page
from kpyramid.pipeline import cache, runner
from kpyramid.pipeline.cache import Context, convert_all, open_converter
from kpyramid.pipeline.stages import ingest
from kpyramid.settings import Settings
from kpyramid.storage.erasure import Erased
from kpyramid.storage.layout import Warehouse
from tests.commands import fails, run, run_json
from tests.corpora import write_corpus
from tests.files import make_docx, make_epub, make_pdf, make_pptx, pack
from tests.rows import each_row, read_rows

LINES = read_rows("conversion.lines")
WRITTEN = {
    "a.pdf": make_pdf(LINES, ["The second page ends here."], title="On Ida"),
    "b.docx": make_docx("Ida Berg was born in Lund.", "Ann Lee is CEO of Orm."),
    "c.pptx": make_pptx(["Results", "Ida Berg leads Orm."], ["Thanks to Ann."]),
    "d.epub": make_epub("The book", "Ida Berg was born in Lund.", "Olav lived in <b>Oslo</b>."),
    "e.rst": b"Lund\n====\n\nIda *Berg* was born in\nLund.\n\n.. include:: /etc/passwd\n",
}
HARMFUL = {
    "entities.docx": make_docx(
        "&b9;",
        prolog='<!DOCTYPE l [<!ENTITY b0 "ha">'
        + "".join(f'<!ENTITY b{n} "{f"&b{n - 1};" * 10}">' for n in range(1, 10))
        + "]>",
    ),
    "outside.docx": make_docx(
        "&x;", prolog='<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ),
    "cut.pdf": WRITTEN["a.pdf"][:200],
    "empty.pdf": b"",
    "page.docx": b"<html>no package</html>",
    "other.epub": pack({"mimetype": "text/plain"}),
    "scanned.pdf": make_pdf([]),
}


def ingest_files(
    folder: Path, files: Mapping[str, bytes], **settings: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Documents by source, and rejects by row key."""
    corpus = folder / "corpus"
    for name, data in files.items():
        (corpus / name).parent.mkdir(parents=True, exist_ok=True)
        (corpus / name).write_bytes(data)
    chosen = Settings(**settings)
    made = ingest.run(
        corpus=list_corpus(corpus).read_files(),
        converter=open_converter(Context(Warehouse(folder / "w"), chosen, 2)),
        erased=Erased(),
        settings=chosen.ingest,
    )
    documents = {row["source"]: row for row in made["documents"].to_pylist()}
    return documents, {row["row_key"]: row for row in made["rejects"].to_pylist()}


@pytest.mark.needs("files")
def test_each_format_becomes_paragraphs_with_its_title(tmp_path: Path) -> None:
    documents, rejects = ingest_files(tmp_path, WRITTEN)

    assert not rejects
    lines = {name: row["text"].split("\n\n") for name, row in documents.items()}
    assert lines == {
        "a.pdf": [" ".join(LINES), "The second page ends here."],
        "b.docx": ["Ida Berg was born in Lund.", "Ann Lee is CEO of Orm."],
        "c.pptx": ["Results", "Ida Berg leads Orm.", "Thanks to Ann."],
        "d.epub": ["Ida Berg was born in Lund.", "Olav lived in Oslo."],
        "e.rst": ["Lund", "Ida Berg was born in Lund."],
    }
    titles = {name: documents[name]["title"] for name in ("a.pdf", "d.epub", "e.rst")}
    assert titles == {"a.pdf": "On Ida", "d.epub": "The book", "e.rst": "Lund"}


@pytest.mark.needs("files")
def test_fields_at_the_head_of_a_file_are_pairs_and_name_it(tmp_path: Path) -> None:
    head = b"Rule: 7\nTitle: Counting of votes\nStatus: in\n  force\n"
    documents, _ = ingest_files(
        tmp_path,
        {
            "a.rst": head + b"\nVotes\n=====\n\nThe clerk counts them.\n",
            "e.rst": b"Count\n=====\n\n**Day of count:** Monday\nClerk: Ada Holm\n\nIt is done.\n",
            "b.md": b"Rule: 8\nTitle: Order\n\n## Speech\n\nTitle: Speaker\n\nRank: first\n",
            "c.md": b"## Speech\n\nTitle: Speaker\n\nRank: first\n",
            "d.md": b"Name: Ada Holm\nTitle: Chief engineer\n\nShe lives in Velm.\n",
        },
    )
    titles = {name: document["title"] for name, document in documents.items()}
    kinds = [block["kind"] for block in documents["a.rst"]["blocks"]]
    assert [block["kind"] for block in documents["e.rst"]["blocks"]] == [
        *("heading", "pair", "pair", "paragraph")
    ]
    del titles["e.rst"]
    assert titles == {"a.rst": "Counting of votes", "b.md": "Order", "c.md": None, "d.md": None}
    assert kinds == ["pair", "pair", "pair", "heading", "paragraph"]
    assert documents["a.rst"]["text"].startswith(
        "Rule: 7\n\nTitle: Counting of votes\n\nStatus: in"
    )


@pytest.mark.needs("files")
def test_cells_of_a_simple_table_are_whole(tmp_path: Path) -> None:
    mark, head = "=====  ==============\n", "Stay   Limit\n"
    rows = "Velm   £165 per night\nLund   £9\n"
    text = f"Hotels\n======\n\n{mark}{head}{mark}{rows}{mark}\nAda Holm pays.\n"

    documents, _ = ingest_files(tmp_path, {"a.rst": text.encode()})

    row = documents["a.rst"]
    cells = [b for b in row["blocks"] if b["kind"] == "cell"]
    assert [row["text"][b["start"] : b["end"]] for b in cells] == [
        *("Stay", "Limit", "Velm", "£165 per night", "Lund", "£9")
    ]


@pytest.mark.needs("files")
def test_blocks_of_paged_files_have_their_pages(tmp_path: Path) -> None:
    runs = [f"Part {n}: Ada Holm wrote the report on bridge number {n} in Oslo." for n in range(4)]
    pages = [["Reports"], [runs[0], "", runs[1]], [], [runs[2]], [runs[3]]]
    slides = make_pptx(["Plan"], [runs[0], "Plan"], [runs[1]])

    documents, _ = ingest_files(tmp_path, {"a.pdf": make_pdf(*pages), "b.pptx": slides})

    numbers = {}
    for name, row in documents.items():
        for block in row["blocks"]:
            numbers[name, row["text"][block["start"] : block["end"]][:6]] = block["page"]
    assert [numbers["a.pdf", f"Part {n}"] for n in (0, 2, 3)] == [2, 4, 5]
    assert numbers["b.pptx", "Part 0"] == 2
    assert numbers["b.pptx", "Part 1"] == 3


@pytest.mark.needs("files")
def test_a_file_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ingest_files(tmp_path, WRITTEN)
    monkeypatch.setattr(cache, "convert_all", None)

    again = ingest_files(tmp_path, {"copy/of.pdf": WRITTEN["a.pdf"]})

    assert again[0].pop("copy/of.pdf")["text"] == first[0]["a.pdf"]["text"]
    assert again == first


@pytest.mark.needs("files")
def test_what_harms_or_is_broken_is_a_reject_and_the_rest_is_read(tmp_path: Path) -> None:
    harmful = HARMFUL | {"bomb.docx": make_docx("A" * (120 << 20))}
    documents, rejects = ingest_files(tmp_path, harmful | {"z.pdf": WRITTEN["a.pdf"]})

    assert set(documents) == {"z.pdf"}
    reasons = {name: row["reason"] for name, row in rejects.items()}
    assert reasons.keys() == harmful.keys()
    assert set(reasons.values()) == {"unconvertible", "empty"}
    assert "limit" in rejects["bomb.docx"]["detail"]
    assert "recognise its text" in rejects["scanned.pdf"]["detail"]
    assert "root:" not in str(rejects)


@pytest.mark.needs("files")
def test_a_file_above_the_limit_is_not_converted(tmp_path: Path) -> None:
    _, rejects = ingest_files(
        tmp_path, {"a.pdf": WRITTEN["a.pdf"]}, ingest={"max_document_bytes": 100}
    )

    assert rejects["a.pdf"]["reason"] == "too_large"


@pytest.mark.needs("files")
def test_a_conversion_that_hangs_or_dies_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    file = (".pdf", WRITTEN["a.pdf"])

    (slow,) = convert_all([file], 1, seconds=0.001)
    monkeypatch.setattr(cache, "_MOST_MEMORY", 2**26)
    died = [*convert_all([file, file], 1)]

    assert slow.reason == "too_slow"
    assert [one.reason for one in died] == ["killed", "killed"]


PAGE = """<html><head><title>T</title></head><body><header><h1>Site</h1></header>
<nav><ul><li>Home<li>About</ul></nav>{}<aside>Related</aside>
<div role=navigation>More</div><footer>Imprint</footer></body></html>"""


@each_row("body, text")
def test_only_the_main_text_of_a_page_is_read(body: str, text: str) -> None:
    assert read_page(PAGE.format(body)).text == text


@pytest.fixture
def _without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cache, runner):
        monkeypatch.setattr(module, "is_installed", lambda name: False)


@pytest.mark.usefixtures("_without_extra")
def test_a_folder_without_a_readable_file_fails_at_once_and_says_what_helps(tmp_path: Path) -> None:
    texts = {f"{n}.pdf": "%PDF" for n in range(5)} | {"b.doc": "x"}
    corpus = write_corpus(tmp_path / "corpus", texts)

    said = (
        "none of its 6 files can be read",
        "5 .pdf, needs extra: 0.pdf, 1.pdf, 2.pdf and 2 more.",
        *("pip install 'kpyramid[files]'", "save it as .docx"),
    )
    fails(3, said, "build", corpus, "--warehouse", tmp_path / "w")
    assert not [*(tmp_path / "w").glob("cache/results/*")]


@pytest.mark.slow
@pytest.mark.usefixtures("_without_extra")
@pytest.mark.usefixtures("quick_models")
def test_plan_build_and_report_name_unread(tmp_path: Path) -> None:
    texts = {"a.txt": "Ida Berg was born in Lund."} | {f"{n}.pdf": "%PDF" for n in range(4)}
    texts["l.jsonl"] = '{"text": "Ann Lee lives in Oslo."}\nno\n'
    corpus = write_corpus(tmp_path / "corpus", texts)
    place = ("--warehouse", tmp_path / "w")

    planned = run("plan", corpus, *place)
    built = run("build", corpus, *place)
    again = run_json("plan", corpus, *place)

    for done, head in ((planned, "  "), (built, "Not read: ")):
        first = done.stdout.splitlines()[:3]
        assert first[0].startswith(("Not read:", "Published:"))
        assert first[1].startswith(f"{head}4 .pdf, needs extra: 0.pdf, 1.pdf, 2.pdf and 1 more.")
        assert first[2].startswith(f"{head}1 .jsonl, bad json: l.jsonl#line2. line 2:")
    (report,) = (tmp_path / "w" / "runs").glob("*/report.json")
    said = json.loads(report.read_bytes())["unread"]
    assert [len(kind["refused"]) for kind in said] == [4, 1]
    assert again["stages"][0]["unread"] == said
    page = report.with_suffix(".html").read_text()
    assert page.index("3.pdf") < page.index("Gates")
