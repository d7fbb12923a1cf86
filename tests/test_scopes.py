"""Scopes: what a reader may not see, or does not ask for, is in no part of an answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import Result
from typer.testing import CliRunner

from kpyramid.build import build
from kpyramid.cli import app
from kpyramid.declared import locate_declarations
from kpyramid.errors import InputError
from kpyramid.query import STRATEGIES, Answer, Snapshot, answer, open_snapshot
from kpyramid.query.analysis import link_text
from kpyramid.query.pyramid.scopes import EVERYTHING, Scope
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import open_warehouse

PUBLIC_ONES = [
    {"id": "ada", "text": "Ada Lovelace was born in London. She was a mathematician."},
    {"id": "mill", "text": "John Harlow works for the Harlow Brewing Company.", "year": "1871"},
]
LABELLED = [
    {"id": "deal", "access": ["board"], "text": "Marbury Steel was bought by Dorian Vance. "
     "John Harlow is the chief executive officer of the Harlow Brewing Company."},
    {"id": "file", "access": ["staff", "board"], "text": "Ada Lovelace was born in Turin."},
    {"id": "wage", "access": ["staff"], "text": "Clara Boone founded Aster Pictures in 1931.",
     "year": "1931"},
]  # fmt: skip
SECRET = ("Vance", "Marbury", "Turin", "chief executive", "Boone", "Aster")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    corpus = tmp_path_factory.mktemp("corpus")
    for name, rows in (("open.jsonl", PUBLIC_ONES), ("closed.jsonl", LABELLED)):
        (corpus / name).write_text("\n".join(map(json.dumps, rows)))
    warehouse = open_warehouse(tmp_path_factory.mktemp("warehouse"))
    build(corpus, warehouse, Settings())
    yield open_snapshot("main", warehouse.root, scope=EVERYTHING)


@pytest.fixture(scope="module")
def public(whole: Snapshot) -> Snapshot:
    return open_snapshot("main", whole.folder.parent.parent)


def shorten(found: Answer) -> set[str]:
    return {place.source.partition("#")[2] for item in found.context for place in item.evidence}


def has(*labels: str) -> Scope:
    return Scope(access=frozenset(labels))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize(
    "question",
    [
        "Who bought Marbury Steel?",
        "Where was Ada Lovelace born?",
        "Who is John Harlow?",
        "Who founded Aster Pictures?",
        "What did Dorian Vance buy?",
    ],
)
def test_without_a_label_nothing_of_a_labelled_document_is_told(
    public: Snapshot, strategy: str, question: str
) -> None:
    found = answer(question, public, strategy)
    told = json.dumps(found.to_dict() | {"question": "", "trace": [s.found for s in found.trace]})
    asked = question.casefold()
    assert not [word for word in SECRET if word in told and word.casefold() not in asked]
    assert not shorten(found) & {row["id"] for row in LABELLED}


@pytest.mark.parametrize("strategy", ["naive", "kaping", "exact", "polyrag"])
def test_a_label_opens_its_documents_and_no_others(whole: Snapshot, strategy: str) -> None:
    board, staff = whole.scoped(has("board")), whole.scoped(has("staff"))
    assert "deal" in shorten(answer("Who bought Marbury Steel?", board, strategy))
    assert "deal" not in shorten(answer("Who bought Marbury Steel?", staff, strategy))
    assert "wage" in shorten(answer("Who founded Aster Pictures?", staff, strategy))
    assert "wage" not in shorten(answer("Who founded Aster Pictures?", board, strategy))


def test_the_ontology_answers_from_what_is_seen(whole: Snapshot, public: Snapshot) -> None:
    question = "Who founded Aster Pictures?"
    assert answer(question, whole.scoped(has("staff"))).text == "Clara Boone"
    found = answer(question, public)
    assert (found.text, found.choices) == ("", ())
    query = "SELECT ?name WHERE { ?x <http://www.w3.org/2000/01/rdf-schema#label> ?name }"
    names = {row["name"] for row in public.sparql(query)}
    assert "Ada Lovelace" in names
    assert not names & {"Clara Boone", "Dorian Vance", "Turin"}


def test_what_a_labelled_document_says_more_of_a_public_fact_stays_hidden(
    public: Snapshot,
) -> None:
    facts = {
        public.state_condensed(key)[3]
        for key in public.facts_about(link_text("Who is John Harlow?", public).entities)
    }
    assert not [relation for relation in facts if "chief" in relation]


def test_an_answer_says_that_not_all_documents_were_searched(
    whole: Snapshot, public: Snapshot
) -> None:
    question = "Where was Ada Lovelace born?"
    assert "searched: 2 of 5 documents" in answer(question, public, "naive").recognised
    assert "searched: 4 of 5 documents" in answer(question, whole.scoped(has("staff"))).recognised
    assert not [told for told in answer(question, whole).recognised if "searched" in told]


def test_documents_metadata_and_classes_narrow_a_question(whole: Snapshot) -> None:
    def ask(question: str, **wanted: frozenset[str]) -> set[str]:
        return shorten(answer(question, whole.scoped(Scope(None, **wanted)), "naive"))

    who = "Who works for which company?"
    assert ask(who, documents=frozenset({"open.jsonl"})) <= {"ada", "mill"}
    assert ask(who, documents=frozenset({"closed.jsonl#file"})) == {"file"}
    year = Scope(None, metadata=frozenset({("year", "1871")}))
    assert shorten(answer(who, whole.scoped(year), "naive")) == {"mill"}
    organisations = whole.scoped(Scope(None, classes=frozenset({"organisation"})))
    assert "ada" not in shorten(answer("Where was Ada Lovelace born?", organisations, "kaping"))
    assert "mill" in shorten(answer(who, organisations, "kaping"))


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (
            Scope(None, documents=frozenset({"opn.jsonl"})),
            r"'opn.jsonl'; did you mean 'open.jsonl'",
        ),
        (Scope(None, metadata=frozenset({("year", "2031")})), "no document has year = '2031'"),
        (Scope(None, classes=frozenset({"organization"})), "did you mean 'organisation'"),
    ],
)
def test_a_scope_of_what_is_not_there_is_refused(
    whole: Snapshot, scope: Scope, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        answer("Who is John Harlow?", whole.scoped(scope), "kaping")


def test_scopes_of_one_snapshot_do_not_disturb_each_other(
    whole: Snapshot, public: Snapshot
) -> None:
    question = "Where was Ada Lovelace born?"
    first = answer(question, public).to_dict() | {"seconds": 0}
    answer(question, whole)
    answer(question, whole.scoped(has("staff")))
    assert answer(question, public).to_dict() | {"seconds": 0} == first


def test_every_row_is_seen_when_no_document_has_a_label(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("Ada Lovelace was born in London.")
    build(tmp_path / "corpus", open_warehouse(tmp_path / "w"), Settings())
    view = open_snapshot("main", tmp_path / "w").view
    assert (view.documents, view.chunks, view.facts, view.instances, view.entities) == (None,) * 5


def test_the_view_of_labels_says_what_the_index_goes_by(whole: Snapshot) -> None:
    database = duckdb.connect()
    for path in sorted((whole.folder / "tables").glob("*.parquet")):
        database.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
    database.execute(locate_declarations("views")["access"].read_text("utf-8"))
    said = {
        (table, key, document): tuple(labels)
        for table, key, document, labels in database.execute("FROM access").fetchall()
    }
    documents = whole.index.rows("documents").keys
    chunks = whole.index.rows("chunks")
    held = {
        ("chunks", chunks.keys[row], documents[int(chunks.numbers("document")[row])])
        for row in range(len(chunks))
    }
    for table in ("condensed", "instances"):
        rows = whole.index.rows(table)
        held |= {
            (table, rows.keys[row], documents[int(at)])
            for row in range(len(rows))
            for at in rows.list_of("documents", row)
        }
    assert {key for key in said if key[0] != "triples"} == held
    assert set(said.values()) == {(), ("board",), ("staff",), ("board", "staff")}


def ask(whole: Snapshot, *options: str) -> Result:
    place = ["--warehouse", str(whole.folder.parent.parent), "--json"]
    return CliRunner().invoke(app, ["ask", "Who founded Aster Pictures?", *options, *place])


def test_the_command_sees_what_its_labels_open(whole: Snapshot) -> None:
    assert json.loads(ask(whole).stdout)["text"] == ""
    for options in (["--access", "staff", "--access", "x"], ["--everything"]):
        assert json.loads(ask(whole, *options).stdout)["text"] == "Clara Boone"
    narrowed = ["--everything", "--document", "open.jsonl", "--class", "person"]
    assert json.loads(ask(whole, *narrowed).stdout)["text"] == ""
    assert json.loads(ask(whole, "--everything", "--where", "year=1931").stdout)["text"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--where", "year"], "say field=value"),
        (["--everything", "--access", "staff"], "leave --access out"),
        (["--document", "nowhere.txt"], "no document has the id or source"),
    ],
)
def test_the_command_refuses_a_scope_that_makes_no_sense(
    whole: Snapshot, options: list[str], message: str
) -> None:
    found = ask(whole, *options)
    assert found.exit_code == 3
    assert message in json.loads(found.stdout)["error"]
