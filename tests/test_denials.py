"""Denials are facts of their own: marked, printed as such, and never taken for plain ones."""

from pathlib import Path

import duckdb
import networkx
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kpyramid.documents.words import deny
from kpyramid.errors import InputError
from kpyramid.query import Snapshot, retrieve
from kpyramid.snapshot.export import FORMS
from kpyramid.snapshot.individuals import describe_entity, find_entities, summarise_snapshot
from kpyramid.storage.contracts import load_contracts, read_table
from tests.corpora import open_told
from tests.rows import each_row, read_rows

DENIED = dict(read_rows("denials.denied"))
PLAIN = dict(read_rows("denials.plain"))
OPEN = read_rows("denials.open")
TWINS = ["Brelin causes headaches.", "Tarvo Group acquired Arden Mills."]


@pytest.fixture(scope="module")
def told() -> Snapshot:
    sentences = [*DENIED, *PLAIN, *OPEN, *TWINS]
    return open_told("denials", {f"{at:02}.txt": said for at, said in enumerate(sentences)})


def list_facts(snapshot: Snapshot) -> dict[tuple[str, str, str], bool]:
    """What the condensed facts say, and whether they are denials."""
    stated = map(snapshot.read_fact, snapshot.table("condensed")["condensed_id"].to_pylist())
    return {(fact.head, fact.relation, fact.tail): fact.negated for fact in stated}


def test_each_denial_is_a_fact_that_says_so(told: Snapshot) -> None:
    facts = list_facts(told)
    assert {said for said in DENIED.values() if not facts.get(said)} == set()


def test_what_is_stated_stays_plain(told: Snapshot) -> None:
    facts = list_facts(told)
    for head, relation, tail in PLAIN.values():
        found = [
            no
            for (one, way, other), no in facts.items()
            if (one, other) == (head, tail) and relation in way
        ]
        assert False in found and True not in found, (head, relation, tail)


def test_no_plain_fact_comes_from_a_denying_sentence(told: Snapshot) -> None:
    rows = told.table("condensed").select(["condensed_id", "negated"]).to_pylist()
    for row in rows:
        texts = {place.text for place in told.evidence(row["condensed_id"])}
        if not row["negated"]:
            assert texts.isdisjoint(DENIED), texts


def test_a_denial_contradicts_its_twin_and_both_stay(told: Snapshot) -> None:
    table = told.table("contradictions")
    denied = table.filter(pc.equal(table["kind"], "denied")).to_pylist()
    facts = list_facts(told)
    assert sorted(row["detail"] for row in denied) == [
        "Brelin: causes headaches, and does not cause headaches",
        "Tarvo Group: acquired Arden Mills, and did not acquire Arden Mills",
    ]
    assert facts["Brelin", "causes", "headaches"] is False
    assert facts["Brelin", "does not cause", "headaches"] is True


def test_typed_questions_take_denials_by_name_only(told: Snapshot) -> None:
    def find(name: str, value: str) -> list[str]:
        return [member.name for member in told.find("thing", where={name: value}).members]

    assert find("bought", "Nordlake") == ["Hanna Berg"]
    assert find("not bought", "Nordlake") == ["Greta Holm"]
    assert not told.paths("Greta Holm", "Nordlake", hops=1).paths
    with pytest.raises(InputError, match="property"):
        find("not bakes", "Nordlake")


def test_denials_are_not_counted_nor_listed_among_what_is_about_a_thing(told: Snapshot) -> None:
    (key,) = told.entities_by_name()["paul grist"]
    assert told.facts_about([key]) == []
    assert "Paul Grist" not in {thing.name for thing in summarise_snapshot(told, 100).things}


@pytest.mark.parametrize(
    ("name", "plain"), [("Brelin", 2), ("Paul Grist", 0), ("Lena Voss", 1), ("Hanna Berg", 1)]
)
def test_a_thing_shows_its_denials_after_its_facts(told: Snapshot, name: str, plain: int) -> None:
    (key,) = find_entities(name, told)
    shown, facts = describe_entity(key, told, 50), told.facts_about([key])
    denied = {said for said in DENIED.values() if said[0] == name}
    stated = [(fact.head, fact.relation, fact.tail) for fact in shown.facts]
    assert len(facts) >= plain and denied == {*stated[len(facts) :]}
    assert denied.isdisjoint(stated[: len(facts)]) and shown.count == len(stated)


def test_ontology_completion_and_standard_relations_have_no_denial(told: Snapshot) -> None:
    triples = told.table("triples")
    denied = triples.filter(triples["negated"])["triple_id"].combine_chunks()
    assert len(denied) >= len(DENIED)
    used = told.table("priorities")["triple_id"]
    assert not pc.any(pc.is_in(used, value_set=denied)).as_py()
    assert "Greta Holm" not in {name for _, name, *_ in told._view.list_standard()}


def test_retrieval_shows_a_denial_in_words(told: Snapshot) -> None:
    shown = retrieve("Does Brelin cause insomnia?", told).to_prompt()
    assert "Brelin does not cause insomnia" in shown
    assert "Brelin causes insomnia" not in shown


@pytest.mark.parametrize("form", ["jsonl", "graphml", "neo4j", "turtle"])
def test_exports_say_what_is_denied(told: Snapshot, form: str, tmp_path: Path) -> None:
    FORMS[form](told, tmp_path / form)
    files = [tmp_path / form] if (tmp_path / form).is_file() else (tmp_path / form).iterdir()
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    said = [line for line in lines if "Brelin does not cause insomnia" in line]
    assert any("true" in line for line in said)
    assert not any("Brelin causes insomnia" in line for line in lines)


def test_views_and_graphs_say_of_each_fact_whether_it_is_denied(
    told: Snapshot, tmp_path: Path
) -> None:
    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{told.folder}'")
    database.execute((told.folder / "views.sql").read_text("utf-8"))
    query = "SELECT DISTINCT negated FROM evidence_of_facts WHERE text LIKE '%Brelin does not%'"
    assert database.execute(query).fetchall() == [(True,)]
    FORMS["graphml"](told, tmp_path / "graph")
    edges = networkx.read_graphml(tmp_path / "graph", force_multigraph=True).edges(data=True)
    denied = {data["wording"]: data["negated"] for *_, data in edges if "negated" in data}
    assert denied["Brelin does not cause insomnia"] is True and False in denied.values()


@each_row("phrase, denied")
def test_a_wording_is_denied_as_english_does(phrase: str, denied: str) -> None:
    assert deny(phrase) == denied


def test_a_snapshot_from_before_the_column_opens_without_denials(
    told: Snapshot, tmp_path: Path
) -> None:
    contract = load_contracts()["condensed"]
    table = told.table("condensed")
    old = table.filter(pc.invert(table["negated"])).drop_columns("negated")
    pq.write_table(old, tmp_path / "condensed.parquet")

    read = read_table(tmp_path / "condensed.parquet", contract)

    assert read.column_names == table.column_names
    assert not any(read["negated"].to_pylist())
    contract.check_file(tmp_path / "condensed.parquet")
