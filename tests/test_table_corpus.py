"""A corpus of tables and pages through a real build: columns by the settings, pages as evidence."""

import json
from pathlib import Path

import pytest

from kpyramid.errors import SettingsError
from kpyramid.pipeline.build import build
from kpyramid.pipeline.wiring import require_ontology
from kpyramid.query import open_snapshot, retrieve
from kpyramid.settings import load_settings
from kpyramid.storage.layout import open_warehouse
from tests.commands import run
from tests.corpora import make_settings, pass_gates
from tests.files import make_pdf
from tests.rows import each_row, read_text

SETTINGS = read_text("table_corpus.toml")
FIRMS = read_text("table_corpus_firms.csv")
PAGES = (
    ["Reports on bridges"],
    ["The Harlow Bridge is a bridge in Kent.", "John Rennie designed the Harlow Bridge in 1820."],
)


@each_row("given, problem")
def test_column_ontology_lacks_is_refused(given: dict[str, object], problem: str | None) -> None:
    settings = make_settings(ingest={"columns": {"subject": "name", **given}})
    if problem is None:
        require_ontology(settings)
        return
    with pytest.raises(SettingsError, match=problem) as e:
        require_ontology(settings)
    assert str(e.value).count(", ") >= 5


@pytest.mark.slow
@pytest.mark.needs("files")
def test_columns_become_properties_with_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_gates(monkeypatch)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "firms.csv").write_text(FIRMS)
    (corpus / "people.csv").write_text(
        "Name,organisation,Birth year\nAda Holm,Orm Bank,1950\nBo Ek,Kron Works,1960\n"
    )
    (corpus / "bridges.pdf").write_bytes(make_pdf(*PAGES))
    (tmp_path / "s.toml").write_text(SETTINGS)
    warehouse = tmp_path / "w"
    build(corpus, open_warehouse(warehouse), load_settings(tmp_path / "s.toml"))
    asked = (
        "find",
        "organisation",
        "--where",
        "headquarters=Oslo",
        "--where",
        "founding year=1990",
    )

    done = run(*asked, "--warehouse", str(warehouse), "--json")

    (member,) = json.loads(done.stdout)["members"]
    assert member["name"] == "Orm Bank"
    evidence = [place["text"] for place in member["evidence"]]
    assert {"2 | Orm Bank | Oslo | 1990 | 1200", "headquarters", "founding year"} <= {*evidence}
    assert not [text for text in evidence if "Kron" in text]
    snapshot = open_snapshot("main", warehouse)
    born = {
        snapshot.names[row["head_id"]]
        for row in snapshot.table("condensed").to_pylist()
        if row["literal"] in {"1950", "1960"}
    }
    assert born == {"Ada Holm", "Bo Ek"}, "columns are those of tables with the subject's column"
    read = retrieve("Who designed the Harlow Bridge?", snapshot)
    assert {place.page for item in read.facts[:1] for place in item.evidence} == {2}
    assert "(time: 1820) (page 2)\n" in read.to_prompt()
    assert "\n[P1] On bridges" not in read.to_prompt()
