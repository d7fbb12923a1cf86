"""Of statements that contradict each other those with less evidence are withdrawn."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import GateError, SettingsError
from kpyramid.ontology.store import (
    InstanceStatement,
    OntologyStore,
    Quotation,
    entity_iri,
    write_instances,
)
from kpyramid.ontology.validation.checks import trace_violations
from kpyramid.ontology.validation.repair import Fault
from kpyramid.pipeline import gates
from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.pipeline.gates import judge_ontology, repair_ontology
from kpyramid.settings import Settings, check_settings
from kpyramid.storage.declarations import OntologyFiles
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.refs import read_head
from tests import commands
from tests.corpora import hash_tree, make_settings, read_snapshot, use_quick_models, write_corpus
from tests.rows import read_bodies, read_turtle

KPG = "https://w3id.org/kpyramid/general#"
XSD = "http://www.w3.org/2001/XMLSchema#"
GENERAL = Path(__file__).parent.parent / "ontology" / "general.ttl"


def state(
    key: str,
    subject: str,
    prop: str | None,
    value: str | None = None,
    *,
    kind: str = "Person",
    confidence: float = 0.9,
    documents: int = 1,
) -> InstanceStatement:
    """A statement with so many documents; a value of digits is a year, another an individual."""
    is_year = value is not None and value.isdigit()
    return InstanceStatement(
        subject_iri=entity_iri(subject),
        property_iri=KPG + prop if prop else None,
        class_iri=KPG + kind,
        object_iri=entity_iri(value) if value and not is_year else None,
        literal=value if is_year else None,
        datatype=XSD + "gYear" if is_year else None,
        subject_label=subject,
        object_label=None if is_year else value,
        places=tuple(
            Quotation(f"document-{at}", 0, 9, f"{subject} {prop} {value}.", "a.txt")
            for at in range(documents)
        ),
        instance_id=key,
        confidence=confidence,
    )


def repair(
    files: OntologyFiles, schema: str, statements: list[InstanceStatement]
) -> dict[str, tuple[str, str]]:
    """Reason and detail of what is withdrawn, by key."""
    texts = {
        "ontology/schema.ttl": schema,
        "ontology/instances.nt": write_instances(statements),
    }
    judged = judge_ontology(files, texts, seconds=60)
    found = repair_ontology(files, texts, statements, judged, seconds=60)
    return {str(w.statement.instance_id): (w.reason, w.detail) for w in found}


def write_check(folder: Path, query: str, shapes: str | None = None) -> OntologyFiles:
    """The general ontology with this check alone, and perhaps with shapes."""
    check = folder / "general-x-violation.rq"
    check.write_text(query, "utf-8")
    if shapes is not None:
        (folder / "general.shapes.ttl").write_text(shapes, "utf-8")
    found = folder / "general.shapes.ttl" if shapes is not None else None
    return OntologyFiles(GENERAL, found, None, None, (check,))


BORN_LATE = """# Died before being born.
SELECT ?p ?b ?d { ?p kpg:birthYear ?b ; kpg:deathYear ?d
  FILTER (xsd:integer(STR(?b)) > xsd:integer(STR(?d))) }"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("born", "died", "gone"),
    [
        ({"confidence": 0.8}, {"confidence": 0.9}, {"b"}),
        ({"documents": 2}, {"documents": 1}, {"d"}),
        ({}, {}, {"b", "d"}),
    ],
)
def test_the_statement_with_less_evidence_leaves_and_both_where_neither_has_more(
    tmp_path: Path, born: dict[str, float], died: dict[str, float], gone: set[str]
) -> None:
    statements = [
        state("a", "Ada", None),
        state("b", "Ada", "birthYear", "1950", **born),  # type: ignore[arg-type]
        state("d", "Ada", "deathYear", "1900", **died),  # type: ignore[arg-type]
        state("e", "Bea", "birthYear", "1900"),
    ]
    found = repair(write_check(tmp_path, BORN_LATE), GENERAL.read_text("utf-8"), statements)
    assert set(found) == gone
    assert {reason for reason, _ in found.values()} == {"violated_check"}
    assert all("Died before being born." in detail for _, detail in found.values())


@pytest.mark.usefixtures("shapes_here")
def test_the_facts_behind_a_path_are_found_and_the_weakest_of_a_circle_leaves(
    tmp_path: Path,
) -> None:
    query = "# In itself.\nSELECT DISTINCT ?p { ?p (kpg:locatedIn|kpg:partOf)+ ?p }"
    circle = [("A", "B", 0.9), ("B", "C", 0.6), ("C", "A", 0.9), ("A", "Z", 0.3)]
    statements = [
        state(f"{x}{y}", x, "locatedIn", y, kind="Place", confidence=c) for x, y, c in circle
    ]
    statements += [state(x, x, None, kind="Place") for x in "ABCZ"]
    found = repair(write_check(tmp_path, query), GENERAL.read_text("utf-8"), statements)
    assert set(found) == {"BC"}
    assert "“B” has " in found["BC"][1]
    assert "stated in “B locatedIn C.”" in found["BC"][1]


@pytest.mark.usefixtures("shapes_here")
def test_two_circles_through_one_place_are_both_opened_before_all_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = []

    def trace(given: OntologyFiles, store: OntologyStore) -> list[Fault]:
        traced.append(given.checks)
        return trace_violations(given, store)

    monkeypatch.setattr(gates, "trace_violations", trace)
    query = "# In itself.\nSELECT DISTINCT ?p { ?p kpg:locatedIn+ ?p }"
    ways = [("A", "B", 0.9), ("B", "A", 0.6), ("B", "C", 0.9), ("C", "B", 0.7)]
    statements = [
        state(f"{x}{y}", x, "locatedIn", y, kind="Place", confidence=c) for x, y, c in ways
    ]
    files = write_check(tmp_path, query)
    silent = tmp_path / "general-y-violation.rq"
    silent.write_text("# Nobody.\nSELECT ?p { ?p kpg:locatedIn kpg:Nowhere }")
    files = replace(files, checks=(*files.checks, silent))
    assert set(repair(files, GENERAL.read_text("utf-8"), statements)) == {"BA", "CB"}
    assert traced == [files.checks[:1]] * 3  # a check that found nothing is not asked again


@pytest.mark.usefixtures("shapes_here")
def test_a_check_that_names_no_node_is_traced_all_the_same(tmp_path: Path) -> None:
    query = "# Late.\nASK { ?p kpg:deathYear ?y FILTER (STR(?y) > '2100') }"
    statements = [state("a", "Ada", "deathYear", "2200"), state("b", "Bea", "deathYear", "1900")]
    found = repair(write_check(tmp_path, query), GENERAL.read_text("utf-8"), statements)
    assert set(found) == {"a"}


SHAPES = read_turtle("repair_shapes")


def test_a_shape_withdraws_the_values_it_counts_refuses_compares_or_misses(tmp_path: Path) -> None:
    files = write_check(tmp_path, "# Nothing.\nASK { kpg:a kpg:a kpg:a }", SHAPES)
    statements = [
        *(state(name, name, None) for name in ("Ada", "Bea", "Cy", "Dan")),
        state("kept", "Ada", "spouse", "Bea", confidence=0.9),
        state("second", "Ada", "spouse", "Cy", confidence=0.8),
        state("late", "Bea", "birthYear", "2050"),
        state("born", "Cy", "birthYear", "1950", confidence=0.8),
        state("died", "Cy", "deathYear", "1900"),
        state("org", "Org", None, kind="Organisation"),
        state("founds", "Org", "founder", "Dan", kind="Organisation"),
        state("sibling", "Dan", "sibling", "Ada"),
    ]
    found = repair(files, GENERAL.read_text("utf-8"), statements)
    assert {
        key: detail.partition(": ")[2].partition(";")[0] for key, (_, detail) in found.items()
    } == {
        "second": "one spouse",
        "late": "too late",
        "born": "no life",
        "founds": "founds",
        "sibling": "not born",
    }
    assert {reason for reason, _ in found.values()} == {"broken_shape"}


# --- whole builds --------------------------------------------------------------------------

TEXTS = read_bodies("repair.texts")


def run(folder: Path, settings: Settings) -> BuildOutcome:
    return build(folder / "corpus", open_warehouse(folder / "w"), settings)


def verify(folder: Path, snapshot: str) -> int:
    done = commands.run("verify", snapshot, "--warehouse", folder / "w")
    return done.exit_code


@pytest.mark.slow
def test_a_contradiction_is_withdrawn_named_and_counted_and_the_rest_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    write_corpus(tmp_path / "corpus", TEXTS)
    with pytest.raises(GateError, match=r"max_violation_share = 0\.0 allows"):
        run(tmp_path, make_settings(publish={"max_violation_share": 0.0}))
    assert read_head(Warehouse(tmp_path / "w"), "main") is None

    asked: list[str] = []
    read: list[str] = []
    other = tmp_path / "other"
    write_corpus(other / "corpus", TEXTS)
    with monkeypatch.context() as patch:  # what was left out leaves HermiT's verdict as it was
        patch.setattr(gates, "judge_consistency", lambda *_, **__: asked.append("HermiT") or "pass")
        patch.setattr(gates, "judge_reading", lambda text, *_, **__: read.append(text) or "pass")
        assert run(other, make_settings()).marks[-1].rejects == {"violated_check": 1}
    assert asked == ["HermiT"]
    assert ['"1950"' in text and '"1920"' not in text for text in read] == [True]  # what remains

    outcome = run(tmp_path, make_settings())  # one is not too many, however few there are
    mark = outcome.marks[-1]
    assert mark.details["committed"] == "yes"
    assert mark.rejects == {"violated_check": 1}
    assert mark.gates["contradictions"].startswith("pass: 1 contradicting statements about 1 of ")
    report = json.loads((outcome.run.folder / "report.json").read_bytes())
    ((reason, detail),) = [(row["reason"], row["detail"]) for row in report["withdrawn"]]
    assert reason == "violated_check"
    assert detail.startswith("“Ada Holm” has death year “1920” (")
    assert "kept: “Ada Holm” has birth year “1950”" in detail
    assert "stated in “Ada Holm died in 1920.”" in detail
    assert "death year “1920”" in (outcome.run.folder / "report.html").read_text("utf-8")
    assert verify(tmp_path, outcome.snapshot) == 0

    tables = read_snapshot(Warehouse(tmp_path / "w"), outcome.snapshot)
    (reject,) = [r for r in tables["rejects"].to_pylist() if r["stage"] == "publish"]
    assert reject["document_id"] in tables["documents"]["document_id"].to_pylist()
    assert reject["row_key"] not in tables["instances"]["instance_id"].to_pylist()
    assert reject["row_key"] not in tables["vectors"]["owner_id"].to_pylist()
    years = {r["literal"] for r in tables["instances"].to_pylist()}
    assert {"1950", "1930", "1931"} <= years
    assert "1920" not in years

    again = run(tmp_path, make_settings()).marks[-1]
    assert (again.details["committed"], dict(again.gates)) == ("unchanged", {})
    assert again.rejects == mark.rejects
    assert run(other, make_settings()).snapshot == outcome.snapshot
    first, second = (
        hash_tree(folder / "w" / "snapshots" / outcome.snapshot) for folder in (tmp_path, other)
    )
    assert first == second


def test_max_violations_is_refused_with_the_name_of_its_successor() -> None:
    with pytest.raises(SettingsError, match=r"publish\.max_violation_share"):
        check_settings({"publish": {"max_violations": 3}}, {"file": "a test"})
