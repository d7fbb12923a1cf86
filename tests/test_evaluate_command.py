"""`kpyramid evaluate` on a small pyramid, and the pyramid without completion or condensation."""

import json
from pathlib import Path
from typing import Any

import pytest
from making.ablation import take_away

from kpyramid.ontology.schema import write_schema
from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.storage.contracts import decode_table, map_column
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.results import find_result
from kpyramid.storage.runs import read_mark
from tests import commands
from tests.corpora import make_settings
from tests.planted import general_schema
from tests.rows import each_row, read_rows, read_text

pytestmark = pytest.mark.usefixtures("passing_gates")

# Six facts that the seed ontology has no property for, and one that is stated in two wordings.
TEXT = read_text("evaluate_command.txt")
DECISIONS = read_text("evaluate_command.toml")
QUESTIONS = read_rows("evaluate_command.questions")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    (folder / "corpus").mkdir()
    (folder / "corpus" / "games.txt").write_text(TEXT)
    rows = "".join(json.dumps(question) + "\n" for question in QUESTIONS)
    (folder / "questions.jsonl").write_text(rows)
    return folder


@pytest.fixture(scope="module")
def outcome(folder: Path) -> BuildOutcome:
    (folder / "proposals.toml").write_text(DECISIONS)
    settings = make_settings(complete={"decisions": str(folder / "proposals.toml")})
    return build(folder / "corpus", open_warehouse(folder / "w"), settings)


@pytest.fixture(scope="module")
def snapshot(outcome: BuildOutcome) -> Snapshot:
    return open_snapshot("main", outcome.run.warehouse.root)


def run(folder: Path, *words: str, questions: str = "questions.jsonl") -> tuple[int, str]:
    place = ["--warehouse", str(folder / "w")]
    done = commands.run("evaluate", str(folder / questions), *place, *words)
    return done.exit_code, done.stdout or done.output


def find(report: dict[str, Any], arm: str, metric: str) -> float:
    (mean,) = [
        row["mean"]
        for row in report["metrics"]
        if (row["arm"], row["metric"], row["group"]) == (arm, metric, "")
    ]
    return float(mean)


@pytest.mark.usefixtures("outcome")
def test_json_is_one_object_with_a_row_per_arm_and_metric(folder: Path) -> None:
    code, out = run(folder, "--strategy", "kaping", "--strategy", "polyrag:graph=false", "--json")
    report = json.loads(out)
    assert code == 0 and report["questions"] == 3
    assert [arm["name"] for arm in report["arms"]] == ["kaping", "polyrag (no graph)"]
    assert report["arms"][1]["options"] == {"graph": False}
    # The ontology states all three answers; of one, what the question names is the object.
    assert find(report, "polyrag (no graph)", "exact_match") == 1.0
    assert find(report, "polyrag (no graph)", "layer_ontology") == 1.0
    assert find(report, "polyrag (no graph)", "layer_graph") == 0.0
    assert find(report, "polyrag (no graph)", "f1") == 1.0
    assert all(row["low"] <= row["mean"] <= row["high"] for row in report["metrics"])
    assert {row["baseline"] for row in report["comparisons"]} == {"kaping"}
    assert report["missing_documents"] == ["elsewhere.txt"]
    assert report["failures"] == [] and report["stopped"] is None


@each_row("words, code, message")
@pytest.mark.usefixtures("outcome")
def test_what_cannot_be_done_is_said(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    ended, out = run(folder, *words, "--json")
    assert ended == code
    assert message in json.loads(out)["error"]


@pytest.mark.usefixtures("outcome")
def test_questions_that_are_none_are_refused_with_their_lines(folder: Path) -> None:
    (folder / "bad.jsonl").write_text('{"id": "x", "question": "Who?"}\n')
    (folder / "empty.jsonl").write_text("")
    for name in ("bad.jsonl", "empty.jsonl", "absent.jsonl"):
        code, out = run(folder, "--json", questions=name)
        assert code == 3 and name in json.loads(out)["error"]


def read_made(outcome: BuildOutcome, stage: str, table: str) -> list[dict[str, Any]]:
    """The rows that one stage of the build made of a table."""
    warehouse: Warehouse = outcome.run.warehouse
    mark = read_mark(outcome.run, stage)
    assert mark is not None
    result = find_result(warehouse, stage, mark.key)
    assert result is not None
    return list(decode_table(result.tables[table].path.read_bytes()).to_pylist())


def count(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["p"]: row["n"] for row in rows}


BY_PROPERTY = "SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p"


def test_without_completion_the_ontology_is_what_induction_made(
    outcome: BuildOutcome, snapshot: Snapshot
) -> None:
    induced = read_made(outcome, "induce", "instances")
    added = read_made(outcome, "complete", "instances")
    assert added, "completion has to add something, or this tests nothing"
    ids = {row["instance_id"] for row in added}
    assert set(snapshot.table("additions")["instance_id"].to_pylist()) == ids
    grown = {row["property_iri"] for row in added} - {None}
    with take_away(snapshot, ["completion"]) as seed:
        assert seed.id == f"{snapshot.id}-without-completion"
        assert seed.table("instances").to_pylist() == induced
        assert write_schema(seed.schema) == write_schema(general_schema())
        assert not grown & set(count(seed.sparql(BY_PROPERTY)))
        whole, left = (one.table("condensed").to_pylist() for one in (snapshot, seed))
        known = {p.iri: p.label for p in seed.schema.properties}
        gone = {p.label for p in snapshot.schema.properties} - set(known.values())
        assert [row["derived_from"] for row in left] == [row["derived_from"] for row in whole]
        assert all((row["anchor"] or min(known)) in known for row in left)
        wording = map_column(snapshot.table("relations"), "relation_id", "name")
        named = [row for row in left if row["standard_relation"] in gone]
        assert all(row["standard_relation"] == wording[row["relation_id"]] for row in named)
        for row, before in zip(left, whole, strict=True):
            if before["anchor"] in known and before["standard_relation"] not in gone:
                assert row == before
        vectors = seed.table("vectors").to_pylist()
        kept = {row["owner_id"] for row in vectors if row["owner_table"] == "instances"}
        assert kept == {row["instance_id"] for row in induced if row["property_iri"]}
        place = seed.folder
    assert grown <= set(count(snapshot.sparql(BY_PROPERTY)))
    assert not place.exists() and snapshot.folder.is_dir()
