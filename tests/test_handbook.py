"""A handbook: its conflicts, corrections that last over nights, checks of one's own, SQL."""

from pathlib import Path
from typing import Any

import pytest

from kpyramid.completion.corrections import Correction, Corrections, load_corrections
from kpyramid.documents.measures import read_quantity
from kpyramid.errors import GateError, InputError
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.pipeline.checks import add_check, load_checks
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.query import Scope, Snapshot, answer, open_snapshot, retrieve
from kpyramid.settings import load_settings
from kpyramid.snapshot.export import run_sql
from kpyramid.storage.layout import open_warehouse
from tests.commands import run
from tests.corpora import HashEmbedder
from tests.planted import general_schema
from tests.rows import each_row, read_bodies, read_text

pytestmark = pytest.mark.usefixtures("passing_gates")

TEXTS = read_bodies("handbook.texts")
CORRECTIONS = read_text("handbook_corrections.toml")


def write(folder: Path, extra: str = "", **files: str) -> Path:
    (folder / "texts").mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / "texts" / name).write_text(text, "utf-8")
    (folder / "texts" / "more.md").write_text(f"# More\n\n{extra or 'Nothing is new.'}", "utf-8")
    (folder / "settings.toml").write_text("", "utf-8")
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


def build_in(folder: Path, **options: Any) -> BuildOutcome:
    settings = load_settings(folder / "settings.toml", {})
    place = open_warehouse(folder / "warehouse")
    return build(folder / "texts", place, settings, **options)


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("handbook"))
    guarded = '{"text": "The Brackley plant opened in 1991.", "access": ["board"]}\n'
    (folder / "texts" / "board.jsonl").write_text(guarded, "utf-8")
    build_in(folder)
    return folder


def open_main(folder: Path, **options: Any) -> Snapshot:
    return open_snapshot("main", folder / "warehouse", **options)


def list_sides(snapshot: Snapshot) -> set[tuple[str, ...]]:
    return {
        tuple(side.statement for side in conflict.sides)
        for conflict in snapshot.conflicts.list_all()
    }


VIBORG = ("Viborg plant opened in 2008", "Viborg plant opened in 2009")
SHIFT = {"Olten plant runs night shift", "Olten plant does not run night shift"}


def test_conflicts_have_newest_side_first_and_are_seen_where_all_sides_are(handbook: Path) -> None:
    seen = list_sides(open_main(handbook))
    assert VIBORG in seen, "the visitors' leaflet has a date"
    assert SHIFT in map(set, seen) and len(seen) == 2
    board = list_sides(open_main(handbook, scope=Scope(access=frozenset({"board"}))))
    assert {frozenset(sides) for sides in board - seen} == {
        frozenset(f"Brackley plant opened in {year}" for year in (1990, 1991))
    }
    sentences = open_main(handbook).sparql("SELECT ?s ?o WHERE { ?s prov:value ?o }")
    assert sentences and "1991" not in str(sentences)


def test_who_is_shown_a_fact_in_conflict_is_shown_all_sides(handbook: Path) -> None:
    snapshot = open_main(handbook)
    question = "When was the Viborg plant opened?"
    prompt = retrieve(question, snapshot).to_prompt()
    assert "in conflict: Viborg plant opened in 2008: “The Viborg plant opened in 2008.”" in prompt
    assert "in conflict: Viborg plant opened in 2009: “The Viborg plant opened in 2009.”" in prompt
    found = answer("When was the Viborg plant opened?", snapshot)
    shown = found.conflicts or [c for item in found.context for c in item.conflicts]
    assert tuple(side.statement for side in shown[0].sides) == VIBORG
    for command in (["conflicts"], ["ask", question]):
        place = ["--warehouse", str(handbook / "warehouse")]
        said = run(*command, *place)
        assert said.exit_code == 0 and all(f"{side}: “" in said.stdout for side in VIBORG)


def test_commands_print_tables_and_refuse_values_that_there_are_not(handbook: Path) -> None:
    def call(*words: str) -> str:
        done = run(*words, "--warehouse", handbook / "warehouse")
        assert done.exit_code in (0, 3)
        return done.output

    said = call("sql", "select head, valid_to from facts order by all", "--limit", "2")
    assert said.startswith("head") and "valid_to" in said and "more; --limit 0 shows all" in said
    assert "nearest: May 2012, 2011" in call("find", "thing", "--where", "opened in=Two thousand")
    lines = [line for line in call("rejects", "--everything").splitlines() if ", " in line]
    stages = [line.partition(",")[0] for line in lines if not line.startswith(" ")]
    assert stages == sorted(stages, key=[stage.name for stage in PIPELINE].index)
    assert "“The Viborg plant opened in 2008.” (visit.md, 2024-05-03)" in call("conflicts")
    assert "“The Viborg plant opened in 2009.” (sites.md)" in call("conflicts")


@each_row("query, rows")
def test_sql_reads_what_is_seen_and_no_file(handbook: Path, query: str, rows: Any) -> None:
    if isinstance(rows, str):
        with pytest.raises(InputError, match=rows):
            run_sql(open_main(handbook), query)
    else:
        assert run_sql(open_main(handbook), query) == [*rows]


@each_row("entry, fact, verdict", "handbook.corrections_in_words")
def test_a_correction_is_understood_in_other_words_than_the_facts(
    entry: dict[str, str], fact: str, verdict: str
) -> None:
    corrections = Corrections([Correction(**entry)], "corrections.toml", general_schema())
    head, relation, tail = fact.split(" | ")
    names = ["Quaybook", "Norvane", "Lantern Ltd.", "Ida Lind", "Acme", "Beta"]
    corrections.unite(names, [name.lower() for name in names])
    ends = [(name.lower() if name in names else None, name) for name in (head, tail)]
    found = corrections.judge(
        ends[0], {relation}, ends[1], Comparer(HashEmbedder("", Path(), Path())).compare
    )
    lost = [value for role, value in found if role == "corrected"]
    assert lost == [entry["holds"]] * (verdict == "corrected")
    assert bool(corrections.used) is (verdict != "apart")


@pytest.mark.slow
def test_corrections_are_still_there_after_nights_of_edits(tmp_path: Path) -> None:
    write(tmp_path, corrections=CORRECTIONS)
    for night in range(4):
        write(tmp_path, f"The plant of year {night} is located in Velm. Ida Lind leads Norvale.")
        made = build_in(tmp_path)
        snapshot = open_main(tmp_path)
        assert {frozenset(sides) for sides in list_sides(snapshot)} == {frozenset(SHIFT)}, night
        facts = {row["tail"]: row for row in run_sql(snapshot, "select * from facts")}
        assert facts["2009"]["modality"] == "reported" and facts["2008"]["modality"] == "fact"
        assert facts["1961"]["head"] == facts["2004"]["head"]
        members = snapshot.find("person", limit=50).members
        assert "Dame Mary Aston" in {member.name for member in members}
        assert made.report["unmatched"] == [
            "corrections.toml, entry 4: 'Nobody' is called 'Odysseus'"
        ]


CHECKS = read_text("handbook_checks.toml")


@pytest.mark.slow
def test_checks_are_a_gate_measured_by_the_time_of_the_run(tmp_path: Path) -> None:
    write(tmp_path, checks=CHECKS)
    made = build_in(tmp_path, order="2024-05-04T02:00:00+00:00")
    (*held, warned) = made.report["checks"]
    assert all(check["holds"] for check in held) and not warned["holds"]
    assert "pass: 4 of 5 hold" in made.report["gates"]["expected"]
    with pytest.raises(GateError, match="the newest document is of 2024-05-03"):
        build_in(tmp_path, order="2024-05-08T02:00:00+00:00")
    added = {"question": "Who leads Acme?", "answer": "Ada Holm"}
    text = add_check(CHECKS, added)
    assert add_check(text, added) == text != CHECKS
    (tmp_path / "checks.toml").write_text(text, "utf-8")
    assert load_checks(str(tmp_path / "checks.toml"), general_schema())[-1].answer == "Ada Holm"


@each_row("kind, entry, said", "handbook.a_wrong_entry_is_named")
def test_a_wrong_entry_is_named_with_the_valid(
    tmp_path: Path, kind: str, entry: str, said: str
) -> None:
    path = tmp_path / f"{kind}.toml"
    path.write_text(entry, "utf-8")
    load = load_checks if kind == "checks" else load_corrections
    with pytest.raises(InputError, match=said):
        load(str(path), general_schema())


@each_row("one, other, agree", "handbook.quantities_that_agree")
def test_quantities_agree_by_value_and_unit(one: str, other: str, agree: bool | None) -> None:
    first, second = read_quantity(one), read_quantity(other)
    comparable = first and second and first.kind == second.kind
    assert (first.agrees(second) if first and second and comparable else None) is agree
