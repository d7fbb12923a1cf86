"""Checks, competency questions, and a publish that a gate of the ontology refuses."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kpyramid.errors import GateError, InputError
from kpyramid.ontology.schema import parse_schema
from kpyramid.ontology.sparql import list_iris, read_prefixes
from kpyramid.ontology.store import OntologyStore, entity_iri
from kpyramid.ontology.validation.checks import (
    Question,
    judge_checks,
    judge_questions,
    read_questions,
    run_checks,
    run_questions,
)
from kpyramid.pipeline import publish
from kpyramid.pipeline.build import build
from kpyramid.pipeline.gates import Judgement, judge_ontology
from kpyramid.pipeline.wiring import require_ontology
from kpyramid.storage.declarations import OntologyFiles, locate_ontology
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.refs import list_entries
from tests import commands
from tests.corpora import (
    build_corpus,
    copy_shared_build,
    make_settings,
    require_java,
    use_quick_models,
    write_corpus,
)
from tests.rows import each_row

KPG = "https://w3id.org/kpyramid/general#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
GYEAR = "http://www.w3.org/2001/XMLSchema#gYear"
ADA = f"<{entity_iri('ada')}>"
INSTANCES = (
    f"{ADA} {RDF_TYPE} <{KPG}Person> .\n"
    f'{ADA} {LABEL} "Ada Holm" .\n'
    f'{ADA} <{KPG}birthYear> "1900"^^<{GYEAR}> .\n'
)
SEED = Path(__file__).parent.parent / "ontology" / "general.ttl"
TURTLE = SEED.read_text("utf-8")
SCHEMA = parse_schema(TURTLE, source="general.ttl")
PREFIXES = read_prefixes(TURTLE)
KNOWN = frozenset({*SCHEMA.class_by_iri, *SCHEMA.property_by_iri})


ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"


@pytest.fixture(scope="module")
def store():  # type: ignore[no-untyped-def]
    with OntologyStore(TURTLE, INSTANCES, seconds=2.0) as opened:
        yield opened


def write_check(folder: Path, query: str, name: str = "general-x-violation.rq") -> Path:
    path = folder / name
    path.write_text(query, "utf-8")
    return path


# --- checks --------------------------------------------------------------------------------


def test_check_that_finds_something_fails_with_labels(store: OntologyStore, tmp_path: Path) -> None:
    paths = [
        write_check(tmp_path, "# Nobody.\nSELECT ?p { ?p kpg:deathYear ?y }", "a.rq"),
        write_check(tmp_path, "# Born before 1950.\nSELECT ?p ?y { ?p kpg:birthYear ?y }", "b.rq"),
    ]
    found = run_checks(paths, store, PREFIXES)
    assert judge_checks(found[:1]) == "pass"
    assert judge_checks(found).startswith("fail: Born before 1950. (Ada Holm, 1900);")


@each_row("query, said")
def test_refused_check_fails_and_next_one_runs(
    store: OntologyStore, tmp_path: Path, query: str, said: str
) -> None:
    following = write_check(tmp_path, "# All.\nASK { ?s ?p ?o }", "b.rq")
    paths = [write_check(tmp_path, query, "a.rq"), following]
    first, second = run_checks(paths, store, PREFIXES)
    assert said in first.problem
    assert judge_checks([first]).startswith(f"fail: {query[2]}.: SPARQL query")
    assert second.count == 1


def test_stopped_check_is_not_run_unless_one_fails(store: OntologyStore, tmp_path: Path) -> None:
    paths = [
        write_check(tmp_path, f"# Endless.\n{ENDLESS}", "a.rq"),
        write_check(tmp_path, "# Nobody.\nSELECT ?p { ?p kpg:deathYear ?y }", "b.rq"),
        write_check(tmp_path, "# Born.\nSELECT ?p { ?p kpg:birthYear ?y }", "c.rq"),
    ]
    found = run_checks(paths, store, PREFIXES)
    assert judge_checks(found[:2]).startswith("not run: Endless.: SPARQL query stopped after 2 s")
    assert judge_checks(found).startswith("fail: Endless.: SPARQL query stopped")


def test_a_check_that_runs_out_of_memory_is_not_run(tmp_path: Path) -> None:
    query = "# Greedy.\nSELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?i ?f ?c"
    with OntologyStore(TURTLE, INSTANCES, seconds=30, memory_bytes=50 * 2**20) as small:
        found = run_checks([write_check(tmp_path, query)], small, PREFIXES)
    assert judge_checks(found).startswith("not run: Greedy.: SPARQL query stopped")


# --- questions -----------------------------------------------------------------------------


def ask(store: OntologyStore, *questions: Question, strict: bool = False) -> str:
    found = run_questions(questions, store, PREFIXES, KNOWN, SCHEMA.base)
    return judge_questions(questions, found, strict=strict)


def test_questions_have_to_run_and_strictly_to_be_answered(store: OntologyStore) -> None:
    born = Question("When was <Person> born?", "SELECT ?p ?y { ?p kpg:birthYear ?y }")
    died = Question("When did <Person> die?", "SELECT ?p ?y { ?p kpg:deathYear ?y }")
    false = Question("Are there works?", "ASK { ?w a kpg:Work }")
    assert ask(store, born, died, false) == "pass"
    assert ask(store, born, strict=True) == "pass"
    verdict = ask(store, born, died, false, strict=True)
    assert verdict == (
        "fail: “When did <Person> die?” has 0 rows, not 1; “Are there works?” has 0 rows, not 1"
    )
    assert ask(store, Question("q", died.sparql, least=0), strict=True) == "pass"


def test_a_question_with_an_unknown_term_or_a_wrong_query_fails(store: OntologyStore) -> None:
    typo = Question("q1", "SELECT ?p { ?p a/rdfs:subClassOf* kpg:Persn }")
    wrong = Question("q2", "SELECT ?p { ?p")
    verdict = ask(store, typo, wrong)
    assert f"“q1”: <{KPG}Persn> is not in the ontology" in verdict
    assert "“q2”: SPARQL query" in verdict


@each_row("text, said")
def test_a_broken_file_of_questions_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.questions.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"x\.questions\.toml") as caught:
        read_questions(path)
    assert said in str(caught.value)


def test_the_terms_of_a_query_are_found_whatever_way_they_are_written() -> None:
    query = (
        "BASE <https://w3id.org/x#> PREFIX k: <https://w3id.org/k#> "
        'SELECT ?s WHERE { ?s <https://w3id.org/x#p> ?o ; k:q "<no> k:no" } # <none>'
    )
    assert list_iris(query) == {"https://w3id.org/x#p", "https://w3id.org/k#q"}
    assert list_iris("BASE <urn:x/> SELECT ?s { ?s <p> ?o }") == {"urn:x/p"}
    assert list_iris("BASE <https://w3id.org/x/> SELECT ?s { ?s <p> ?o }") == {
        "https://w3id.org/x/p"
    }


# --- the gates at publish ------------------------------------------------------------------


def refuse(tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch) -> GateError:
    """A build whose instances get these lines besides; HEAD must not move."""
    warehouse, head = copy_shared_build(tmp_path / "w")
    use_quick_models(monkeypatch, judged=True)
    monkeypatch.setattr("kpyramid.pipeline.build.find_repeat", lambda *_: None)
    # The lines are no input: verdicts of the run before would be taken for the same inputs.
    monkeypatch.setattr("kpyramid.pipeline.publish._read_judged", lambda *_: None)
    real: Callable[..., Mapping[str, str]] = publish.stage.run

    def plant(*tables: object, **ports: object) -> dict[str, str]:
        texts = dict(real(*tables, **ports))
        texts["ontology/instances.nt"] += planted
        return texts

    monkeypatch.setattr(publish.stage, "run", plant)
    with pytest.raises(GateError) as caught:
        build_corpus(write_corpus(tmp_path / "corpus"), warehouse, order="2026-01-02")
    assert [entry.snapshot for entry in list_entries(warehouse, "main")] == [head]
    kept = str(caught.value.report["snapshot"])
    assert kept != head
    assert (warehouse.snapshots / kept).is_dir()
    return caught.value


@pytest.mark.slow
def test_an_inconsistent_individual_keeps_the_ref_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_java()
    planted = f'{ADA} {LABEL} "Ada Holm" .\n' + "".join(
        f"{ADA} {RDF_TYPE} <{KPG}{name}> .\n" for name in ("Person", "Work")
    )
    error = refuse(tmp_path, planted, monkeypatch)
    assert "consistent: fail: inconsistent: " in str(error)
    assert "“Ada Holm” is a person" in str(error)
    assert "“Ada Holm” is a work" in str(error)


@pytest.mark.slow
@each_row("planted, said")
def test_a_bad_value_or_a_violated_check_keeps_the_ref_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str, said: str
) -> None:
    assert said in str(refuse(tmp_path, INSTANCES + planted, monkeypatch))


@pytest.mark.slow
def test_a_gate_that_was_not_run_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)

    def judge(*_: object, **__: object) -> Judgement:
        return Judgement({"consistent": "not run: no Java on PATH", "shapes": "pass"})

    monkeypatch.setattr(publish, "judge_ontology", judge)
    outcome = build_corpus(write_corpus(tmp_path / "corpus"), Warehouse(tmp_path / "w"))
    report = json.loads((outcome.run.folder / "report.json").read_bytes())
    assert report["gates"]["consistent"] == "not run: no Java on PATH"
    assert report["committed"] == "yes"


def test_ctrl_c_ends_the_gates_and_their_processes_at_once(tmp_path: Path) -> None:
    check = write_check(tmp_path, f"# Endless.\n{ENDLESS}")
    script = tmp_path / "judge.py"  # its folder is on the path of the children it starts
    script.write_text(
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from kpyramid.storage.declarations import OntologyFiles\n"
        "from kpyramid.pipeline.gates import judge_ontology\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "turtle, check = map(Path, sys.argv[1:])\n"
        "print('ready', flush=True)\n"
        "files = OntologyFiles(turtle, None, None, None, (check,))\n"
        "texts = {'ontology/schema.ttl': turtle.read_text('utf-8'), 'ontology/instances.nt': ''}\n"
        "judge_ontology(files, texts, seconds=60)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script), str(SEED), str(check)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as judging:
        assert judging.stdout is not None and judging.stderr is not None
        try:
            assert judging.stdout.readline() == b"ready\n"
            time.sleep(1.5)
            started = time.monotonic()
            judging.send_signal(signal.SIGINT)
            judging.wait(timeout=40)
        finally:
            judging.kill()
        assert time.monotonic() - started < 30, "the check would go on for 60"
        assert b"KeyboardInterrupt" in judging.stderr.read()
    assert not [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in _read_command(path)
    ]


def _read_command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


# --- kpyramid ontology check ---------------------------------------------------------------


def test_an_ontology_without_companions_says_what_was_not_run(tmp_path: Path) -> None:
    path = tmp_path / "own.ttl"
    path.write_text(TURTLE, "utf-8")
    files = locate_ontology(str(path))
    assert files == OntologyFiles(path, None, None, None, ())
    texts = {"ontology/schema.ttl": TURTLE, "ontology/instances.nt": INSTANCES}
    gates = judge_ontology(files, texts, seconds=60).gates
    assert gates["checks"] == "not run: there is no own-*-violation.rq beside own.ttl"
    assert gates["questions"] == "not run: there is no own.questions.toml beside own.ttl"
    assert gates["shapes"] == "pass"


@pytest.mark.slow
def test_command_ends_with_4_when_gate_fails(tmp_path: Path) -> None:
    require_java()
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    own = tmp_path / "general.ttl"
    own.write_text(TURTLE, "utf-8")
    write_check(tmp_path, "# Somebody was born.\nSELECT ?p { ?p kpg:birthYear ?y }")
    command = ["ontology", "check", str(own), "--snapshot", "main", "--json"]
    done = commands.run(*command, "--warehouse", warehouse.root)
    said = json.loads(done.stdout)
    assert done.exit_code == 4
    assert said["snapshot"] == snapshot
    assert said["gates"]["checks"].startswith("fail: Somebody was born. (Leon Batt")
    assert said["gates"]["consistent"] == "pass"

    assert "questions pass" in commands.show("ontology", "check", "general")
    commands.fails(3, "nowhere", "ontology", "check", "nowhere")


@pytest.mark.slow
def test_byte_order_mark_before_ontology_and_its_companions_is_no_fault(tmp_path: Path) -> None:
    general = locate_ontology("general")
    assert general is not None and general.shapes is not None and general.questions is not None
    for path in (general.turtle, general.shapes, general.questions, *general.checks):
        own = tmp_path / path.name.replace("general", "own")
        own.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (tmp_path / "own.examples.jsonl").write_text("\ufeff", "utf-8")
    own = tmp_path / "own.ttl"
    require_ontology(make_settings(induce={"ontology": str(own)}))
    gates = commands.run_json("ontology", "check", own)["gates"]
    assert {gates[name] for name in ("shapes", "checks", "questions")} == {"pass"}


@each_row("name, text")
def test_what_is_wrong_beside_an_ontology_is_told_first(
    tmp_path: Path, name: str, text: str
) -> None:
    own = tmp_path / "own.ttl"
    own.write_text(TURTLE, "utf-8")
    settings = make_settings(induce={"ontology": str(own)})
    corpus = write_corpus(tmp_path / "corpus", {"a.txt": "Ada was born in London."})
    (tmp_path / name).write_text(text, "utf-8")
    warehouse = open_warehouse(tmp_path / "warehouse")
    with pytest.raises(InputError, match=re.escape(name)):
        build(corpus, warehouse, settings)
    assert not list(warehouse.runs.glob("*"))


@pytest.mark.slow
def test_a_check_that_is_added_later_judges_a_pyramid_that_did_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.ttl"
    own.write_text(TURTLE, "utf-8")
    use_quick_models(monkeypatch)
    settings = make_settings(induce={"ontology": str(own)}, publish={"max_violation_share": 0.0})
    corpus = write_corpus(tmp_path / "corpus", {"a.txt": "Ada Holm was born in Oslo in 1900."})
    warehouse = open_warehouse(tmp_path / "warehouse")
    assert build(corpus, warehouse, settings).marks[-1].details["committed"] == "yes"
    unchanged = build(corpus, warehouse, settings).marks[-1]
    assert (unchanged.details["committed"], dict(unchanged.gates)) == ("unchanged", {})
    check = "# A person.\nSELECT ?p { ?p a kpg:Person }"
    (tmp_path / "own-person-violation.rq").write_text(check, "utf-8")
    with pytest.raises(GateError, match="A person"):
        build(corpus, warehouse, settings)
