"""Scopes: what a reader may not see, or does not ask for, is in no part of an answer."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from kpyramid.errors import InputError
from kpyramid.ontology.schema import write_schema
from kpyramid.query import STRATEGIES, Answer, Snapshot, answer, open_snapshot, retrieve
from kpyramid.query.analysis import link_text
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.view import EVERYTHING, EntitiesByName, Scope
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.declarations import locate_declarations
from tests import commands
from tests.corpora import build_told, encode_lines, open_told
from tests.rows import each_row, read_bodies, read_text

pytestmark = pytest.mark.usefixtures("passing_gates")

PUBLIC_ONES = read_bodies("scopes.public_ones")
LABELLED = read_bodies("scopes.labelled")
DECISIONS = read_text("scopes.toml")
SECRET = (
    *("Vance", "Marbury", "Turin", "chief executive", "Boone", "Aster Pictures", "1643"),
    *("Quill", "Zorn", "Krell", "Taub", "betray", "smuggler", "Sir John", "boat", "Paris"),
    "closed.jsonl",
)
"""What only labelled documents say: names, values, titles, sources, and also another name of a
public person, and terms that completion added to the ontology for these documents alone."""


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    texts = {"open.jsonl": encode_lines(PUBLIC_ONES), "closed.jsonl": encode_lines(LABELLED)}
    return open_told("scopes", texts, EVERYTHING, decisions=DECISIONS)


@pytest.fixture(scope="module")
def public(whole: Snapshot) -> Snapshot:
    return open_snapshot("main", whole.folder.parent.parent)


def shorten(found: Answer) -> set[str]:
    return {place.source.partition("#")[2] for item in found.context for place in item.evidence}


def list_secrets(told: str) -> list[str]:
    return [word for word in SECRET if word.casefold() in told.casefold()]


def has(*labels: str) -> Scope:
    return Scope(access=frozenset(labels))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@each_row("question", "scopes.without_a_label_nothing_of_a_labelled_document_is_told__question")
def test_without_a_label_nothing_labelled_is_told(
    public: Snapshot, strategy: str, question: str
) -> None:
    found = answer(question, public, strategy)
    told = json.dumps(found.to_dict() | {"question": "", "trace": [s.found for s in found.trace]})
    told = re.sub(r"\d\.\d+", "", told)  # digits of a score are no year
    asked = question.casefold()
    assert not [word for word in list_secrets(told) if word.casefold() not in asked]
    assert not shorten(found) & {row["id"] for row in LABELLED}


@pytest.mark.parametrize("strategy", ["naive", "kaping", "exact", "polyrag"])
def test_a_label_opens_its_documents_and_no_others(whole: Snapshot, strategy: str) -> None:
    board, staff = whole.scoped(has("board")), whole.scoped(has("staff"))
    assert "deal" in shorten(answer("Who bought Marbury Steel?", board, strategy))
    assert "deal" not in shorten(answer("Who bought Marbury Steel?", staff, strategy))
    assert "wage" in shorten(answer("Who founded Aster Pictures?", staff, strategy))
    assert "wage" not in shorten(answer("Who founded Aster Pictures?", board, strategy))


def test_answer_says_if_not_all_was_searched(whole: Snapshot, public: Snapshot) -> None:
    question = "Where was Ada Lovelace born?"
    assert "searched: 3 of 7 documents" in answer(question, public, "naive").recognised
    assert "searched: 5 of 7 documents" in answer(question, whole.scoped(has("staff"))).recognised
    assert not [told for told in answer(question, whole).recognised if "searched" in told]


def test_a_scope_of_what_is_not_there_is_refused(whole: Snapshot) -> None:
    for scope, message in [
        (Scope(None, frozenset({"opn.jsonl"})), r"'opn.jsonl'; did you mean 'open.jsonl'"),
        (Scope(None, metadata=frozenset({("year", "2031")})), "no document has year = '2031'"),
    ]:
        with pytest.raises(InputError, match=message):
            answer("Who is John Harlow?", whole.scoped(scope), "kaping")


def test_the_view_of_labels_says_what_the_index_goes_by(whole: Snapshot) -> None:
    database = duckdb.connect()
    for path in sorted((whole.folder / "tables").glob("*.parquet")):
        database.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
    database.execute(locate_declarations("views")["access"].read_text("utf-8"))
    said = {
        (table, key, document): tuple(labels)
        for table, key, document, labels in database.execute("FROM access").fetchall()
    }
    documents = whole._view._store.rows("documents").keys
    chunks = whole._view._store.rows("chunks")
    held = {
        ("chunks", chunks.keys[row], documents[int(chunks.numbers("document")[row])])
        for row in range(len(chunks))
    }
    for table in ("condensed", "instances"):
        rows = whole._view._store.rows(table)
        held |= {
            (table, rows.keys[row], documents[int(at)])
            for row in range(len(rows))
            for at in rows.list_of("documents", row)
        }
    assert {key for key in said if key[0] != "triples"} == held
    assert set(said.values()) == {(), ("board",), ("staff",), ("board", "staff")}


def spell(value: object) -> str:
    """Everything that a returned value holds, as text."""
    if isinstance(value, pa.Table):
        return str(value.to_pylist())
    if isinstance(value, EntitiesByName):
        by_word = {w: value.with_word(w) for name in value for w in name.split()}
        return str([dict(value), by_word, len(value)])
    if isinstance(value, Mapping):
        return str(dict(value))
    return repr(value)


def try_keys(act: Callable[[str], object], keys: Iterable[str]) -> list[str]:
    """What each key gives, or the kind of error."""
    told = []
    for key in keys:
        try:
            told.append(spell(act(key)))
        except KeyError:
            told.append("KeyError")
    return told


def keys_of(whole: Snapshot, table: str) -> list[str]:
    listed = whole.table(table)
    return list(listed[listed.column_names[0]].to_pylist())


QUESTIONS = ["Who betrayed Lena Zorn?", "Which smuggler is Sir John Harlow?", "Turin Ada Lovelace"]
EVERY_TRIPLE = "SELECT * WHERE { ?s ?p ?o }"
FILTERED = (
    *("documents", "chunks", "claims", "mentions", "raw_triples", "triples", "entities"),
    *("relations", "condensed", "statements", "instances", "additions", "proposals"),
    "contradictions",
)
WHOLE_ONLY = ("rejects", "phrases", "priorities", "layers", "vectors")

Read = Callable[[Snapshot, Snapshot], object]
SURFACE: dict[str, Read] = {
    "conflicts": lambda s, w: [*s.conflicts.list_all()],
    "count": lambda s, w: [s.count(t) for t in ("documents", "chunks", "condensed", "entities")],
    "compare": lambda s, w: [
        s.compare(one, other, p.label).to_dict()
        for p in s.schema.properties
        for one, other in pairwise(sorted({*s.names.values()})[:8])
    ],
    **{name: lambda s, w, name=name: getattr(s, name)() for name in ("describe_scope", "warm")},
    **{name: lambda s, w, name=name: spell(getattr(s, name)) for name in
       ("folder", "id", "model", "scopes", "types")},
    "embed": lambda s, w: s.embed("Turin").shape,
    "embed_all": lambda s, w: s.embed_all(["Turin"]).shape,
    "embedder": lambda s, w: s.embedder.name,
    "entities_by_name": lambda s, w: spell(s.entities_by_name()),
    "evidence": lambda s, w: [
        try_keys(s.evidence, keys_of(w, t)) for t in FILTERED if t != "additions"
    ],
    "facts_about": lambda s, w: [
        s.read_fact(key) for key in s.facts_about(keys_of(w, "entities"))
    ],
    "find": lambda s, w: [
        s.find(label, limit=1000).to_dict()
        for label in ("thing", *(each.label for each in s.schema.classes))
    ],
    "find_instances": lambda s, w: find_instances(
        {
            (r["subject_id"], r["property_iri"], r["object_id"] or r["literal"])
            for r in w.table("instances").to_pylist()
        },
        s,
    ),
    "find_detailed": lambda s, w: try_keys(s.find_detailed, keys_of(w, "condensed")),
    "link": lambda s, w: [(link_text(q, s).entities, link_text(q, s).names) for q in QUESTIONS],
    # A hash or a size may have the digits of a year.
    "manifest": lambda s, w: re.sub(r"[0-9a-f]{16,}|\"bytes\": \d+", "", json.dumps(s.manifest)),
    "mentions_in": lambda s, w: s.mentions_in(keys_of(w, "chunks")),

    "names": lambda s, w: [
        spell(s.names), len(s.names), [s.names.get(k) for k in keys_of(w, "entities")]
    ],
    "neighbours": lambda s, w: [
        s.neighbours(q, 1000, table) for q in QUESTIONS for table in ("condensed", "chunks")
    ],
    "locate_table": lambda s, w: [
        spell(pq.read_table(held) if isinstance(held, Path) else held)
        for held in map(s.locate_table, FILTERED)
    ],
    "paths": lambda s, w: [
        s.paths("John Harlow", name).to_dict()
        for name in sorted({*s.names.values()} - {"John Harlow"})
    ],
    "place_vectors": lambda s, w: try_keys(
        lambda k: s.place_vectors([k])[0].shape, keys_of(w, "chunks")
    ),
    "retrieve": lambda s, w: [
        (found.to_prompt(), found.to_dict() | {"question": ""})
        for found in (retrieve(q, s) for q in QUESTIONS)
    ],
    "schema": lambda s, w: [s.schema, write_schema(s.schema)],
    "scoped": lambda s, w: [
        spell(s.scoped(other).table(name))
        for other in (EVERYTHING, has("board"))
        for name in FILTERED
    ],
    "standardise_condensed": lambda s, w: try_keys(
        s.standardise_condensed, keys_of(w, "condensed")
    ),

    "sparql": lambda s, w: [
        s.sparql(query, limit=100_000)
        for query in (EVERY_TRIPLE, "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } }")
    ],
    "read_fact": lambda s, w: try_keys(s.read_fact, keys_of(w, "condensed")),
    "read_value": lambda s, w: try_keys(
        s.read_fact, keys_of(w, "instances")
    ),
    "summarise_condensed": lambda s, w: try_keys(s.summarise_condensed, keys_of(w, "condensed")),
    "surface_forms": lambda s, w: s.surface_forms(keys_of(w, "entities")),
    "table": lambda s, w: [spell(s.table(name)) for name in FILTERED],
    "texts_of": lambda s, w: [
        try_keys(lambda k, t=table: s.texts_of([k], t), keys_of(w, table))  # type: ignore[misc]
        for table in ("condensed", "chunks")
    ],
    "titles": lambda s, w: s.titles(keys_of(w, "documents")),

    "vectors_of": lambda s, w: try_keys(
        lambda k: s.vectors_of([k]).shape, keys_of(w, "condensed")
    ),
    "find_titled": lambda s, w: try_keys(
        lambda k: s.evidence(k),
        [key for text in SECRET for chunks in s.find_titled(text) for key in chunks],
    ),
    "link_titles": lambda s, w: try_keys(
        lambda k: [s.texts_of(chunks, "chunks") for chunks in s.link_titles(k)],
        keys_of(w, "chunks"),
    ),
    "nearest": lambda s, w: [
        s.evidence(key) for q in QUESTIONS for key in s.nearest(q, 1000, "chunks")
    ],

    "words_holding": lambda s, w: [
        s.evidence(key) for word in SECRET for key, _ in s.words_holding(word, "", 1000)
    ],
    "words": lambda s, w: [
        (s.words(word, 1000), s.words(word, 1000, "condensed")) for word in SECRET
    ],
}  # fmt: skip
"""Every public name of a snapshot, and how to read all that it gives, hidden keys included. A new
name must be added here, with a thought for what it may tell."""


OF_QUESTIONS = {"find_instances", "link", "retrieve", "read_value"}
"""What reads a snapshot for a question and stands beside it."""


def test_every_public_name_of_a_snapshot_is_thought_about(public: Snapshot) -> None:
    shown = {name for name in dir(public) if not name.startswith("_")}
    assert shown == set(SURFACE) - OF_QUESTIONS
    assert {*FILTERED, *WHOLE_ONLY} == set(load_contracts())


@pytest.mark.parametrize("name", sorted(SURFACE))
def test_nothing_hidden_is_in_what_a_snapshot_gives(
    whole: Snapshot, public: Snapshot, name: str
) -> None:
    seed = list_secrets((whole.folder / "ontology" / "seed.ttl").read_text())
    assert seed == ["chief executive"]  # the ontology that the build began with says so
    told = list_secrets(spell(SURFACE[name](public, whole)))
    assert told == [] or (name in ("schema", "sparql") and told == seed)


@pytest.mark.parametrize(
    "name",
    [*("table", "sparql", "schema", "names", "titles", "mentions_in", "texts_of")],
)
def test_all_of_it_is_in_what_the_whole_gives(whole: Snapshot, name: str) -> None:
    """So that the test above could fail."""
    wanted = {"titles": {"Turin"}, "schema": {"betray", "smuggler"}, "names": {"Sir John", "Zorn"}}
    told = list_secrets(spell(SURFACE[name](whole, whole)))
    assert {*told} >= wanted.get(name, {"Vance"})


def test_a_label_lets_a_reader_see_the_terms_of_its_documents(whole: Snapshot) -> None:
    def labels(snapshot: Snapshot) -> set[str]:
        return {term.label for term in (*snapshot.schema.classes, *snapshot.schema.properties)}

    added = {"betrayed", "smuggler"}
    assert labels(whole) >= added
    assert labels(whole.scoped(has("board"))) >= added
    assert not labels(whole.scoped(has("staff"))) & added
    plot = whole.scoped(has("board")).schema
    assert next(p for p in plot.properties if p.label == "betrayed").comment


def test_a_person_is_called_as_seen_documents_call_him(whole: Snapshot, public: Snapshot) -> None:
    (harlow,) = link_text("Who is John Harlow?", public).entities
    assert whole.names[harlow] == "Sir John Harlow"
    assert whole.surface_forms([harlow]) == {harlow: ("John Harlow", "Sir John Harlow")}
    assert public.names[harlow] == "John Harlow"
    assert public.surface_forms([harlow]) == {harlow: ("John Harlow",)}
    assert link_text("Who is Sir John Harlow?", public).entities == (harlow,)
    assert public.texts_of(public.facts_about([harlow])) == [
        "John Harlow works for Harlow Brewing Company"
    ]


def test_filtered_table_keeps_contract_and_references(whole: Snapshot, public: Snapshot) -> None:
    for snapshot in (public, whole.scoped(has("staff")), whole.scoped(has("board"))):
        tables = {name: snapshot.table(name) for name in FILTERED}
        for name, table in tables.items():
            load_contracts()[name].check(table)
            load_contracts()[name].check_references(table, tables)


@pytest.mark.parametrize("name", WHOLE_ONLY)
def test_table_of_no_parts_is_refused(whole: Snapshot, public: Snapshot, name: str) -> None:
    assert whole.table(name) is not None
    with pytest.raises(InputError, match="cannot be divided by documents"):
        public.table(name)


def test_a_scope_only_narrows(whole: Snapshot, public: Snapshot) -> None:
    staff = whole.scoped(has("staff"))
    assert staff.count("documents") == 5
    assert staff.scoped(EVERYTHING).count("documents") == 5
    assert staff.scoped(has("board")).count("documents") == 4
    assert public.scoped(has("staff", "board")).count("documents") == 3
    only = staff.scoped(Scope(None, documents=frozenset({"closed.jsonl"})))
    assert only.count("documents") == 2
    with pytest.raises(InputError, match="no document"):
        public.scoped(Scope(None, documents=frozenset({"closed.jsonl"}))).count("documents")


def ask(whole: Snapshot, *options: str) -> Result:
    place = ["--warehouse", str(whole.folder.parent.parent), "--json"]
    return commands.run("ask", "Who founded Aster Pictures?", *options, *place)


def run(whole: Snapshot, *arguments: str) -> Result:
    place = ["--warehouse", str(whole.folder.parent.parent)]
    return commands.run(*arguments, *place)


@each_row("option, hidden, missing")
def test_what_is_hidden_is_refused_like_what_there_is_not(
    whole: Snapshot, option: str, hidden: str, missing: str
) -> None:
    first, second = ask(whole, option, hidden), ask(whole, option, missing)
    assert (first.exit_code, second.exit_code) == (3, 3)
    error = json.loads(first.stdout)["error"].replace(hidden.removeprefix("year="), "")
    other = json.loads(second.stdout)["error"].replace(missing.removeprefix("year="), "")
    assert error == other
    assert list_secrets(error) == []
    assert ask(whole, option, hidden, "--everything").exit_code == 0


@each_row("command")
def test_commands_show_nothing_hidden_unless_told(
    whole: Snapshot, command: tuple[str, ...]
) -> None:
    def tell(*options: str) -> str:
        output: str = run(whole, *command, *options).output
        return output

    assert list_secrets(tell()) == []
    assert list_secrets(tell("--everything")) != []
    assert list_secrets(tell("--access", "board", "--access", "staff")) != []


def test_a_hidden_individual_or_proposal_is_refused_like_none(
    whole: Snapshot, tmp_path: Path
) -> None:
    hidden = {row["label"]: row["proposal_id"] for row in whole.table("proposals").to_pylist()}
    digits = hidden["betrayed"].removeprefix("proposal-")
    words = ("--decisions", str(tmp_path / "proposals.toml"))
    for command, there, none in [
        (("ontology", "show"), "Clara Boone", "Klara Bohne"),
        (("ontology", "show"), "betrayed", "bewrayed"),
        (("proposals", *words, "--accept"), digits, "0123456789"),
        (("proposals", *words, "--reject"), digits, "0123456789"),
    ]:
        first, second = run(whole, *command, there), run(whole, *command, none)
        assert first.exit_code == second.exit_code == 3
        assert first.output.replace(there, "") == second.output.replace(none, "")
        assert list_secrets(first.output.replace(there, "")) == []
    assert run(whole, "proposals", *words, "--reject", digits, "--everything").exit_code == 0


def test_the_command_sees_what_its_labels_open(whole: Snapshot) -> None:
    assert json.loads(ask(whole).stdout)["text"] == ""
    for options in (["--access", "staff", "--access", "x"], ["--everything"]):
        assert json.loads(ask(whole, *options).stdout)["text"] == "Clara Boone"
    narrowed = ["--everything", "--document", "open.jsonl"]
    assert json.loads(ask(whole, *narrowed).stdout)["text"] == ""
    assert json.loads(ask(whole, "--everything", "--where", "year=1931").stdout)["text"]


@each_row("options, message")
def test_the_command_refuses_a_scope_that_makes_no_sense(
    whole: Snapshot, options: tuple[str, ...], message: str
) -> None:
    found = ask(whole, *options)
    assert found.exit_code == 3
    assert message in json.loads(found.stdout)["error"]


def test_a_hidden_title_does_not_tell_what_a_shared_noun_means(tmp_path: Path) -> None:
    corrections = tmp_path / "corrections.toml"
    rows = [
        {"id": "a", "title": "About Torvane", "text": "The company was founded in 1987."},
        {"id": "b", "title": "Minutes of the vault", "text": "The firm was founded in 1987."},
    ]
    rows[1] |= {"access": ["board"]}
    corrections.write_text('[[correction]]\nsame = ["company", "firm"]\n')
    texts = {"rows.jsonl": encode_lines(rows)}
    build_told(tmp_path, texts, publish={"corrections": str(corrections)})

    def say(snapshot: Snapshot) -> str:
        (fact,) = snapshot.table("condensed").to_pylist()
        tables = (snapshot.table(name).to_pylist() for name in ("triples", "condensed"))
        return str([*tables, snapshot.read_fact(fact["condensed_id"])])

    hidden, place = "vault", tmp_path / "warehouse"
    assert hidden in say(open_snapshot("main", place, scope=EVERYTHING))
    public = open_snapshot("main", place)
    assert hidden not in say(public) and "About Torvane" in say(public)
    told = str(retrieve("When was the company founded?", public).facts[0].qualifiers)
    assert hidden not in told and "About Torvane" in told
