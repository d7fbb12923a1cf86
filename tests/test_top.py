"""An ontology that is made from the corpus: its classes, its properties, and what lasts of them."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from kpyramid.completion.decisions import Decision, Decisions
from kpyramid.completion.top import MOST, draft_classes, keep_properties
from kpyramid.completion.types import GraphLayer
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import OntologyProperty, Schema, parse_schema, write_schema
from kpyramid.ontology.validation.consistency import find_java, judge_consistency
from kpyramid.pipeline.stages.induce import _draft
from kpyramid.settings import AUTO
from kpyramid.storage.declarations import locate_ontology
from kpyramid.storage.layout import Warehouse
from tests.corpora import HashEmbedder, build_corpus, make_settings, read_snapshot, use_quick_models
from tests.rows import read_bodies, read_text

FILES = locate_ontology(AUTO)
assert FILES is not None
UPPER = parse_schema(FILES.turtle.read_text("utf-8"), source="auto.ttl")
EMBEDDER = HashEmbedder("hash", Path(), Path())
BASE = UPPER.base

PLANTED = [
    *("savings account", "checking account", "new account", "bank accounts"),
    *("employee", "other employees", "the employee"),
    *("mice", "old mice", "three mice"),
    *("Travel Policy", "Password Policy", "Expenses Policy"),
    # Said as often, and no kind of thing:
    *("number of accounts", "large number", "number"),
    *("part of the year", "second part", "part"),
    *("way", "best way", "only way"),
    *("use of drugs", "use of cards", "frequent use"),
    *("good question", "question", "the question"),
    *("faithful", "faithful", "faithful"),
    *("plan itself", "debt itself", "book itself"),
    *("patients", "one patient"),  # in two chunks
    *("Brannick Ferries", "Brannick Ferries", "the Brannick Ferries"),  # one firm
]


def list_phrases(texts: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(t, "ORG" if t.istitle() else "NOUN", f"chunk {at}") for at, t in enumerate(texts)]


def draft(
    texts: Sequence[str],
    former: Schema | None = None,
    decisions: Sequence[Decision] = (),
    ends: Sequence[str] = (),
) -> dict[str, dict[str, object]]:
    given = Decisions(decisions, "decisions.toml")
    phrases = list_phrases(texts)
    said = [f"{verb} {at}" for at, verb in enumerate(("owns", "needs", "has"))]
    facts = [(text, kind, each, "subject") for text, kind, _ in phrases for each in said]
    facts += [(text, "NOUN", "is for", "value") for text in ends]
    rows = draft_classes(phrases, facts, UPPER, former, given, EMBEDDER)
    return {str(row["label"]): row for row in rows}


def test_what_heads_compounds_or_names_a_thing_is_a_class_and_a_measure_is_none() -> None:
    rows = draft(PLANTED)
    assert set(rows) == {"account", "employee", "mouse", "policy"}
    assert rows["employee"]["domain"] == f"{BASE}Person"
    assert rows["account"]["domain"] == f"{BASE}Entity"
    assert rows["account"]["iri"] == f"{BASE}Account"


@pytest.mark.parametrize(
    "texts",
    [
        ["town", "small town", "town", "town"],  # one town, never several
        ["Birch Street", "Dock Street", "Front Street", "Oak Street"],  # addresses
        ["Lismara Ferries", "Skerry Ferries", "Killorran Ferries"],  # firms
        ["shared", "paid", "tooling", "shared"],  # no forms of share, pay and tool
        ["Cover the tank", "Move the tank", "Drain the tank"],
    ],
)
def test_a_noun_without_several_things_of_a_kind_makes_no_class(texts: list[str]) -> None:
    assert draft(texts) == {}


@pytest.mark.parametrize(
    ("said", "is_class"),
    [
        ([("Aurora", "kind"), ("was hired", "subject")], True),
        ([("Aurora", "kind"), ("Gull", "kind"), ("Tern", "kind")], True),
        ([("owns", "value"), ("needs", "value"), ("has", "value")], False),  # only mentioned
        ([("was hired", "subject"), ("owns", "value")], False),
    ],
)
def test_a_class_has_things_of_which_something_is_known(
    said: list[tuple[str, str]], is_class: bool
) -> None:
    phrases = list_phrases(["old vessel", "vessels", "cargo vessel"])
    facts = [("vessels", "NOUN", *each) for each in said]
    nothing = Decisions((), "decisions.toml")
    assert bool(draft_classes(phrases, facts, UPPER, None, nothing, EMBEDDER)) == is_class


def test_an_agent_suffix_alone_makes_no_kind_of_person() -> None:
    texts = ["radio logger", "loggers", "old logger", "shift manager", "managers", "old manager"]
    rows = draft(texts)
    assert rows["logger"]["domain"] == f"{BASE}Entity"
    assert rows["manager"]["domain"] == f"{BASE}Person"


@pytest.mark.parametrize("texts", [[], [""], ["…", "12", "of"], ["of of of"] * 5])
def test_a_corpus_without_nouns_has_no_class(texts: list[str]) -> None:
    assert draft(texts) == {}


def test_the_order_of_mentions_changes_nothing() -> None:
    assert draft(PLANTED[::-1]) == draft(PLANTED)


def test_names_of_the_last_ontology_come_first_when_there_are_too_many() -> None:
    rare = "dog cat cow pig hen crab owl bee ant elk ram ewe newt".split()
    common = (
        "robin finch crow raven gull heron stork swan duck goose eagle hawk kite wren lark trout "
        "salmon pike perch carp eel cod herring tuna shark wolf bear deer hare mole rat "
        "lion tiger zebra camel goat horse".split()
    )
    first = draft([text for noun in rare for text in (noun, f"{noun}s", noun)])
    former = UPPER.extend(
        type(UPPER.classes[0])(str(r["iri"]), label, (), "", (str(r["domain"]),))
        for label, r in first.items()
    )
    texts = [text for noun in rare for text in (noun, f"{noun}s", noun)]
    texts += [text for noun in common for text in (noun, f"{noun}s") * 3]
    assert set(first) == set(rare)
    grown = draft(texts, former)
    assert len(grown) == MOST
    assert set(rare) <= set(grown)
    assert {label: row["iri"] for label, row in first.items()}.items() <= {
        label: row["iri"] for label, row in grown.items()
    }.items()
    assert set(rare).isdisjoint(draft(texts))
    about = draft(texts, ends=[f"old {noun}" for noun in rare for _ in range(16)])
    assert len(about) == MOST
    assert set(rare) <= set(about)  # facts are about them


def test_what_a_person_rejected_is_not_drafted_and_what_was_renamed_has_its_name() -> None:
    kept = Decision(
        "accept",
        "class",
        "bank account",
        iri=f"{BASE}BankAccount",
        domain=f"{BASE}Entity",
        phrases=("account",),
    )
    rows = draft(PLANTED, decisions=[Decision("reject", "class", "employee"), kept])
    assert set(rows) == {"bank account", "mouse", "policy"}
    assert rows["bank account"]["decided_by"] == "file"


def test_properties_of_the_last_ontology_stay_where_their_classes_do() -> None:
    ends = {"domain": f"{BASE}Person", "range": f"{BASE}Organisation"}
    props = [
        OntologyProperty(f"{BASE}works_in", "works in", (), "", **ends),
        OntologyProperty(f"{BASE}owns", "owns", (), "", f"{BASE}Person", f"{BASE}Policy"),
        OntologyProperty(f"{BASE}leads", "leads", (), "", **ends),
    ]
    policy = type(UPPER.classes[0])(f"{BASE}Policy", "policy", (), "", (f"{BASE}Entity",))
    former = UPPER.extend([policy, *props])
    refused = Decisions([Decision("reject", "property", "leads")], "decisions.toml")
    assert [r["label"] for r in keep_properties(former, UPPER, refused)] == ["works in"]


@pytest.mark.skipif(find_java() is None, reason="no Java")
def test_the_upper_classes_are_consistent() -> None:
    assert judge_consistency(FILES.turtle.read_text("utf-8"), "", seconds=60).startswith("pass")


TEXTS = read_bodies("top.texts")


@pytest.mark.slow
def test_nights_of_a_growing_corpus_keep_names_and_decisions_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch, judged=find_java() is not None)
    corpus, warehouse = tmp_path / "corpus", Warehouse(tmp_path / "warehouse")
    corpus.mkdir()
    chunk = {"max_tokens": 24, "overlap_tokens": 6}
    settings = make_settings(chunk=chunk, induce={"ontology": AUTO})
    terms: list[dict[str, str]] = []
    for name, text in TEXTS.items():
        (corpus / name).write_text(text)
        snapshot = build_corpus(corpus, warehouse, settings).snapshot
        terms.append(read_terms(warehouse, snapshot))
    assert {"policy", "works in", "owns"} <= {*terms[-1].values()}
    for before, after in pairwise(terms):
        assert before.items() <= after.items()
    values = read_snapshot(warehouse, snapshot)["instances"].to_pylist()
    assert any(row["property_iri"] == f"{BASE}works_in" for row in values)
    assert any(row["class_iri"] == f"{BASE}Policy" for row in values)

    decisions = tmp_path / "decisions.toml"
    decisions.write_text(
        '[[proposal]]\ndecision = "reject"\nkind = "property"\nlabel = "owns"\n'
        '[[proposal]]\ndecision = "accept"\nkind = "class"\nlabel = "rule"\n'
        f'domain = "{BASE}Entity"\nphrases = ["policy"]\n'
    )
    decided = make_settings(
        chunk=chunk, induce={"ontology": AUTO}, complete={"decisions": str(decisions)}
    )
    for text in ("", " Fay Lin works in Human Resources."):
        (corpus / "c.txt").write_text(TEXTS["c.txt"] + text)
        snapshot = build_corpus(corpus, warehouse, decided).snapshot
        labels = {*read_terms(warehouse, snapshot).values()}
        assert {"rule", "works in"} <= labels
        assert labels.isdisjoint({"owns", "policy"})
        rows = read_snapshot(warehouse, snapshot)["instances"].to_pylist()
        assert any(row["class_iri"] == f"{BASE}Rule" for row in rows)


BOATS = read_text("top_boats.csv")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_columns_of_a_table_without_a_caption_are_properties_of_what_its_rows_are(
    tmp_path: Path,
) -> None:
    corpus, warehouse = tmp_path / "corpus", Warehouse(tmp_path / "w")
    corpus.mkdir()
    (corpus / "boats.csv").write_text(BOATS)
    snapshot = build_corpus(corpus, warehouse, make_settings(induce={"ontology": AUTO})).snapshot
    turtle = (warehouse.snapshots / snapshot / "ontology" / "schema.ttl").read_text("utf-8")
    ends = {p.label: (p.domain, p.range) for p in parse_schema(turtle, source=snapshot).properties}
    boat, text = f"{BASE}Boat", f"{XSD}string"
    assert ends["length"] == (boat, f"{XSD}decimal")
    assert ends["next survey"] == (boat, f"{XSD}gYearMonth")
    assert (ends["contact"], ends["history"]) == ((boat, text), (boat, text))
    assert ends["named for"] == (boat, THING)
    rows = read_snapshot(warehouse, snapshot)
    worth = {row["literal"] for row in rows["instances"].to_pylist() if "940000" in str(row)}
    assert worth == {"940000"}
    assert not [name for name in rows["entities"]["name"].to_pylist() if "GBP" in name]


def read_terms(warehouse: Warehouse, snapshot: str) -> dict[str, str]:
    turtle = (warehouse.snapshots / snapshot / "ontology" / "schema.ttl").read_text("utf-8")
    schema = parse_schema(turtle, source=snapshot)
    return {t.iri: t.label for t in (*schema.classes, *schema.properties)}


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_another_ontology_of_a_ref_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus, warehouse = tmp_path / "corpus", Warehouse(tmp_path / "w")
    corpus.mkdir()
    (corpus / "a.txt").write_text("Orla Dunn was born in Lund. Orla Dunn founded Velt Foods.")
    for name in ("general", "general", "company"):
        assert "had the ontology" not in caplog.text
        build_corpus(corpus, warehouse, make_settings(induce={"ontology": name}))
        (corpus / "b.txt").write_text("Velt Foods is a dairy.")
    assert "main had the ontology general until now, and this build has company" in caplog.text


def test_a_later_night_leads_to_no_class_that_lost_its_facts_and_has_no_word_of_hidden_ones() -> (
    None
):
    place = {"range": None, "inverse_of": None, "splits": None, "definition": "", "note": ""}
    place |= {"state": "accepted", "decided_by": "rules"}
    vessel, person = f"{BASE}Vessel", f"{BASE}Person"
    kind = {"kind": "class", "iri": vessel, "label": "vessel", "phrases": ["vessel"]}
    words = {"iri": f"{BASE}crewed_by", "label": "crewed by", "phrases": ["crewed by", "manned by"]}
    former = adopt_proposals(
        UPPER,
        [
            {**place, **kind, "domain": f"{BASE}Product"},
            {**place, **words, "kind": "property", "domain": vessel, "range": person},
        ],
    )
    texts = [f"{use} vessel" for use in ("fishing", "cargo", "pressure", "oil", "patrol")]
    mentions = pa.table(
        [texts, ["NOUN"] * 5, [f"chunk {at}" for at in range(5)]], ["text", "type", "chunk_id"]
    )

    def list_drafts(head: str) -> list[object]:
        tail = ["Hana Volk"]
        layer = GraphLayer([head], ["NOUN"], ["crewed by"], tail, ["PERSON"], [head], tail)
        graph = SimpleNamespace(
            layer=layer,
            ids=pa.array(["triple-1"]),
            find_stated=lambda forms: np.array([0] if "crew" in " ".join(forms) else [], int),
        )
        old = SimpleNamespace(read_schema=lambda: write_schema(former))
        decided = Decisions((), "decisions.toml")
        rows = _draft(mentions, graph, UPPER, old, decided, EMBEDDER)  # type: ignore[arg-type]
        adopt_proposals(UPPER, rows)  # every end is there
        return [row["phrases"] for row in rows]

    assert list_drafts("Aurora") == []  # a vessel is spoken of, and no fact is about one
    assert list_drafts("cargo vessel") == [["vessel"], ["crewed by"]]
