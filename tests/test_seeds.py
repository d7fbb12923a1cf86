"""The seed ontologies keep the rules of ontology/README.md, and hold in their fields."""

import re
import shutil
from functools import cache
from pathlib import Path

import pyoxigraph as ox
import pytest

from kpyramid.ontology import names as n
from kpyramid.ontology.population.examples import read_examples
from kpyramid.ontology.schema import OntologyProperty, Schema, parse_schema
from kpyramid.ontology.sparql import check_query, list_iris
from kpyramid.ontology.store import OntologyStore
from kpyramid.ontology.validation.checks import (
    complete_query,
    judge_questions,
    label_rows,
    read_prefixes,
    read_questions,
    run_questions,
)
from kpyramid.ontology.validation.consistency import find_java, judge_consistency
from kpyramid.ontology.validation.shapes import derive_shapes
from kpyramid.pipeline.build import build
from kpyramid.storage.declarations import OntologyFiles, locate_ontology
from kpyramid.storage.layout import Warehouse
from tests.corpora import (
    DEMO,
    ROOT,
    find_bench,
    make_settings,
    read_snapshot,
    require_java,
    use_quick_models,
)
from tests.rows import read_rows

SEEDS = ("academic", "company", "finance", "general", "medical", "software")
SAMPLES = ROOT / "examples" / "samples"
PLANTED = dict(read_rows("seeds.planted"))
"""By check: what it must find. Bare numbers take the datatypes of their properties."""
INNOCENT = dict(read_rows("seeds.innocent"))
"""By seed: what no check may find anything in."""
RUBBISH, HONEST = read_rows("seeds.rubbish"), read_rows("seeds.honest")
"""Values that the shapes of a seed must refuse, and that they must pass: class, property, value."""
FIBO = "https://spec.edmcouncil.org/fibo/ontology/"
LANGUAGE = re.compile(r"[A-Z].*[.?]", re.DOTALL)


def locate(seed: str) -> OntologyFiles:
    files = locate_ontology(seed)
    assert files is not None
    return files


@cache
def read_turtle(seed: str) -> str:
    return locate(seed).turtle.read_text("utf-8")


@cache
def load(seed: str) -> Schema:
    return parse_schema(read_turtle(seed), source=f"{seed}.ttl")


def list_terms(schema: Schema) -> set[str]:
    return {*schema.class_by_iri, *schema.property_by_iri}


def local(iri: str) -> str:
    return iri.rpartition("#")[2]


PROPERTIES = [
    pytest.param(seed, prop, id=f"{seed}-{local(prop.iri)}")
    for seed in SEEDS
    for prop in load(seed).properties
]
CHECKS = [
    pytest.param(seed, path, id=path.stem.removesuffix("-violation"))
    for seed in SEEDS
    for path in locate(seed).checks
]


# --- the rules of ontology/README.md -----------------------------------------------------


@pytest.mark.parametrize("seed", [*SEEDS, "core"])
def test_a_seed_says_what_it_is_and_under_which_licence(seed: str) -> None:
    store = ox.Store()
    store.load(read_turtle(seed).encode(), format=ox.RdfFormat.TURTLE)
    (header,) = store.quads_for_pattern(None, ox.NamedNode(n.RDF_TYPE), ox.NamedNode(n.ONTOLOGY))
    said = {q.predicate.value for q in store.quads_for_pattern(header.subject, None, None)}
    wanted = {n.LABEL, n.COMMENT, n.OWL + "versionInfo", "http://purl.org/dc/terms/license"}
    assert wanted <= said
    assert n.OWL + "imports" not in said


@pytest.mark.parametrize(("seed", "prop"), PROPERTIES)
def test_every_property_of_a_seed_is_fully_described(seed: str, prop: OntologyProperty) -> None:
    schema = load(seed)
    assert prop.label
    assert prop.comment.endswith(".")
    assert prop.domain in schema.class_by_iri
    assert prop.range.startswith(n.XSD) if prop.is_datatype else prop.range in schema.class_by_iri
    assert len(prop.alt_labels) >= 2
    assert f"<{local(prop.domain)}>" in prop.competency_question
    assert prop.competency_question.endswith("?")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_class_of_a_seed_has_label_and_comment(seed: str) -> None:
    assert all(c.label and c.comment.endswith(".") for c in load(seed).classes)


@pytest.mark.parametrize("seed", SEEDS)
def test_inverses_of_a_seed_swap_domain_and_range(seed: str) -> None:
    schema = load(seed)
    pairs = [(p, schema.property_by_iri[p.inverse_of]) for p in schema.properties if p.inverse_of]
    assert len(pairs) >= 10
    assert all((p.domain, p.range, p.iri) == (i.range, i.domain, i.inverse_of) for p, i in pairs)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_properties_of_a_seed_share_a_label_or_a_competency_question(seed: str) -> None:
    properties = load(seed).properties
    assert len({p.label for p in properties}) == len(properties)
    assert len({p.competency_question for p in properties}) == len(properties)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_states_disjointness_and_cardinality(seed: str) -> None:
    axioms = "\n".join(load(seed).axioms)
    assert f"<{n.OWL}Restriction>" in axioms
    assert "isjoint" in axioms


# --- examples ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [s for s in SEEDS if locate(s).examples])
def test_an_example_names_a_property_and_words_of_its_sentence(seed: str) -> None:
    path = locate(seed).examples
    assert path is not None
    known = {p.label for p in load(seed).properties} | {*load(seed).property_by_iri}
    for example in read_examples(path):
        for subject, relation, value in example.triples:
            assert relation in known, example.text
            assert subject in example.text
            assert value in example.text


# --- shapes ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")  # pyshacl's way with rdflib
@pytest.mark.slow
def test_the_shapes_of_the_seeds_are_valid_and_name_what_they_declare() -> None:
    import pyshacl
    import rdflib
    from rdflib import SH

    together = rdflib.Graph()
    for seed in SEEDS:
        shapes = rdflib.Graph().parse(locate(seed).shapes)
        named = {str(o) for p in (SH.path, SH.targetClass) for o in shapes.objects(None, p)}
        assert named <= list_terms(load(seed)) | {n.LABEL}
        messages = [str(o) for o in shapes.objects(None, SH.message)]
        assert messages
        assert all(LANGUAGE.fullmatch(message) for message in messages)
        together += shapes
    pyshacl.validate(rdflib.Graph(), shacl_graph=together, meta_shacl=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_property_of_a_seed_has_a_shape(seed: str) -> None:
    derived = derive_shapes(load(seed))
    assert all(f"sh:path <{p.iri}>" in derived for p in load(seed).properties)


@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")  # pyshacl's way with rdflib
def test_shapes_refuse_rubbish_and_pass_what_is_honest() -> None:
    import pyshacl
    import rdflib
    from rdflib import RDF, RDFS, SH, Literal, URIRef

    data, shapes = rdflib.Graph(), rdflib.Graph()
    cases = {}
    for seed in SEEDS:
        data.parse(locate(seed).turtle)
        shapes.parse(locate(seed).shapes)
        schema, prefixes = load(seed), read_prefixes(read_turtle(seed))
        values = [row for of, *row in (*RUBBISH, *HONEST) if of == seed]
        for number, (class_name, name, value) in enumerate(values):
            node, (prefix, _, rest) = URIRef(f"urn:{seed}:{number}"), name.partition(":")
            prop = schema.property_by_iri.get(prefixes[prefix] + rest)
            datatype = URIRef(prop.range) if prop else None
            cases[str(node)] = (class_name, name, value)
            data.add((node, RDF.type, URIRef(schema.base + class_name)))
            if prop is not None:
                data.add((node, RDFS.label, Literal("Some name")))
            said = Literal(value, datatype=datatype, normalize=False)
            data.add((node, URIRef(prefixes[prefix] + rest), said))
    _, report, _ = pyshacl.validate(data, shacl_graph=shapes)
    assert isinstance(report, rdflib.Graph)
    refused = {cases[str(o)] for o in report.objects(None, SH.focusNode)}
    assert refused == {tuple(row) for _, *row in RUBBISH}


# --- checks and questions ----------------------------------------------------------------


def plant(seed: str, turtle: str) -> str:
    """N-Triples of a few statements; bare years become what their properties' ranges are."""
    prefixes = read_prefixes(read_turtle(seed)) | {"": "urn:x:"}
    head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in prefixes.items())
    triples = []
    for quad in ox.parse(head + turtle, format=ox.RdfFormat.TURTLE):
        value, prop = quad.object, load(seed).property_by_iri[quad.predicate.value]
        if isinstance(value, ox.Literal):
            value = ox.Literal(value.value, datatype=ox.NamedNode(prop.range))
        triples.append(ox.Triple(quad.subject, quad.predicate, value))
    return "".join(f"{triple} .\n" for triple in triples)


@pytest.mark.parametrize(("seed", "path"), CHECKS)
def test_a_check_finds_what_it_is_for_and_nothing_else(seed: str, path: Path) -> None:
    schema, prefixes = load(seed), read_prefixes(read_turtle(seed))
    said = path.read_text("utf-8")
    query = check_query(complete_query(said, prefixes))
    comment = said.partition("\n")[0]
    assert comment.startswith("# ")
    assert LANGUAGE.fullmatch(comment.removeprefix("# "))
    terms = {iri for iri in list_iris(query) if iri.startswith(schema.base)} - {schema.base}
    assert terms <= list_terms(schema)
    planted = plant(seed, PLANTED[path.stem.removesuffix("-violation")])
    assert OntologyStore(read_turtle(seed), planted).select_trusted(query)
    innocent = plant(seed, INNOCENT[seed])
    assert OntologyStore(read_turtle(seed), innocent).select_trusted(query) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_the_questions_of_a_seed_run_and_use_what_it_declares(seed: str) -> None:
    path, schema = locate(seed).questions, load(seed)
    assert path is not None
    questions = read_questions(path)
    assert len(questions) >= 15
    assert len({q.text for q in questions}) == len(questions)
    placeholders = {p for q in questions for p in re.findall(r"<(\w+)>", q.text)}
    assert placeholders <= {local(c) for c in schema.class_by_iri}
    prefixes, store = read_prefixes(read_turtle(seed)), OntologyStore(read_turtle(seed), "")
    for question in questions:
        query = check_query(complete_query(question.sparql, prefixes))
        terms = {iri for iri in list_iris(query) if iri.startswith(schema.base)} - {schema.base}
        assert terms
        assert terms <= list_terms(schema)
        store.select_trusted(query)


# --- alignment ---------------------------------------------------------------------------


@pytest.mark.slow
def test_mappings_to_fibo_name_what_fibo_declares() -> None:
    folder = find_bench("onto_fibo")
    declared = set()
    for path in folder.rglob("*.rdf"):
        parsed = ox.parse(path.read_bytes(), format=ox.RdfFormat.RDF_XML)
        declared |= {q.subject.value for q in parsed if isinstance(q.subject, ox.NamedNode)}
    mapped = set(re.findall(rf"<({FIBO}[^>]+)>", "\n".join(load("finance").axioms)))
    mapped -= {FIBO}
    assert len(mapped) >= 30
    assert mapped <= declared


@pytest.mark.slow
def test_real_data_of_vivo_answers_the_academic_questions() -> None:
    data = find_bench("vivo_sample") / "sample-data.n3"
    schema, store = load("academic"), ox.Store()
    store.load(path=str(data), format=ox.RdfFormat.N3)
    store.load(read_turtle("academic").encode(), format=ox.RdfFormat.TURTLE)
    translate = (
        (ROOT / "ontology" / "academic-from-vivo.rq").read_text("utf-8"),
        "PREFIX owl: <http://www.w3.org/2002/07/owl#> "
        "CONSTRUCT { ?x a ?ours } { ?ours owl:equivalentClass ?theirs . ?x a ?theirs }",
        "PREFIX owl: <http://www.w3.org/2002/07/owl#> "
        "CONSTRUCT { ?x ?ours ?y } { ?ours owl:equivalentProperty ?theirs . ?x ?theirs ?y }",
    )
    ours = set()
    for query in translate:
        found = store.query(query)
        assert isinstance(found, ox.QueryTriples)
        ours |= {*found}
    names = store.quads_for_pattern(None, ox.NamedNode(n.LABEL), None)
    labels = {(q.subject, ox.Literal(getattr(q.object, "value", ""))) for q in names}
    subjects = {triple.subject for triple in ours} | {triple.object for triple in ours}
    ours |= {ox.Triple(s, ox.NamedNode(n.LABEL), label) for s, label in labels if s in subjects}
    text = "".join(sorted(f"{triple} .\n" for triple in ours))

    path = locate("academic").questions
    assert path is not None
    questions, prefixes = read_questions(path), read_prefixes(read_turtle("academic"))
    with OntologyStore(read_turtle("academic"), text) as opened:
        known = frozenset(list_terms(schema))
        answers = run_questions(questions, opened, prefixes, known, schema.base)
        answered = {a.text: label_rows(a.rows[:1], opened)[0] for a in answers if a.count}
    assert len(answered) >= 16
    assert answered["Who supervised the studies of <Person>?"] == {
        "person": "Martinez, Claudia",
        "advisor": "Peters, Jasper I",
    }
    assert answered["Who heads <Organisation>?"]["person"] == "Roberts, Patricia"
    if find_java():
        assert judge_consistency(read_turtle("academic"), text, seconds=60) == "pass"


# --- pyramids of the field ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_pyramid_of_its_field_passes_the_gates_and_answers_the_questions_of_a_seed(
    seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_java()
    use_quick_models(monkeypatch, judged=True)
    corpus = tmp_path / "corpus" / "texts.jsonl"
    corpus.parent.mkdir()
    if seed == "general":  # the demo's first passages; its whole takes a minute
        corpus.write_text("".join(DEMO.read_text("utf-8").splitlines(keepends=True)[:60]), "utf-8")
    else:
        shutil.copyfile(SAMPLES / f"{seed}.jsonl", corpus)
    warehouse = Warehouse(tmp_path / "w")
    settings = make_settings(induce={"ontology": seed})
    outcome = build(corpus.parent, warehouse, settings, order="2026-01-01")

    gates = outcome.marks[-1].gates
    wanted = ("consistent", "shapes", "checks", "questions")
    assert {name: gates[name] for name in wanted} == dict.fromkeys(wanted, "pass")

    ontology = warehouse.snapshots / outcome.snapshot / "ontology"
    schema_turtle, instances = (
        (ontology / name).read_text("utf-8") for name in ("schema.ttl", "instances.nt")
    )
    path, prefixes = locate(seed).questions, read_prefixes(read_turtle(seed))
    assert path is not None
    questions, schema = read_questions(path), load(seed)
    with OntologyStore(schema_turtle, instances) as store:
        known = frozenset(list_terms(schema))
        found = run_questions(questions, store, prefixes, known, schema.base)
        if seed != "general":  # of the demo only a part was built
            assert judge_questions(questions, found, strict=True) == "pass"
        assert sum(answer.count > 0 for answer in found) >= len(questions) // 2
        for _, text, words in (row for row in read_rows("seeds.known") if row[0] == seed):
            (query,) = (q.sparql for q in questions if q.text == text)
            rows = store.select_trusted(complete_query(query, prefixes))
            assert set(words) in [name_words(row, store) for row in rows]
    check_evidence(read_snapshot(warehouse, outcome.snapshot))


def name_words(row: dict[str, str], store: OntologyStore) -> set[str]:
    """The values of a row, labels for IRIs."""
    label = f"SELECT ?l {{ <%s> <{n.LABEL}> ?l }}"
    return {
        store.select_trusted(label % value)[0]["l"] if value.startswith(n.ENTITY) else value
        for value in row.values()
    }


def check_evidence(tables: dict[str, object]) -> None:
    """Every individual has a sentence, and every value the words that state it in one."""
    rows = {name: table.to_pylist() for name, table in tables.items()}  # type: ignore[attr-defined]
    document_of = {row["chunk_id"]: row["document_id"] for row in rows["chunks"]}
    text_of = {row["document_id"]: row["text"] for row in rows["documents"]}
    shown = set()
    for row in rows["instances"]:
        text = text_of[document_of[row["chunk_id"]]]
        sentence = text[row["start"] : row["end"]]
        assert sentence.strip()
        shown.add(row["subject_id"])
        if row["object_span"] is not None and row["object_id"] is not None:
            shown.add(row["object_id"])
    stated = {row["object_id"] for row in rows["instances"] if row["object_id"]}
    assert stated <= shown | {row["subject_id"] for row in rows["instances"]}
    assert len(shown) >= 20
