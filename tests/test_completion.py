"""Induction, completion and condensation recover what was planted, and lose nothing."""

from collections import Counter

import pyarrow as pa
import pytest

from kpyramid.completion.decisions import Decisions
from kpyramid.settings import CompleteSettings, CondenseSettings
from kpyramid.stages import complete, condense, induce
from tests.planted import MemoEmbedder, Statement, general_schema, pick, plant

INDUCE = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples"),
)
COMPLETE = (
    *("documents", "chunks", "claims", "raw_triples"),
    *("entities", "relations", "triples", "instances"),
)
GENERAL = "https://w3id.org/kpyramid/general#"
PEOPLE = ["Ada Byron", "Bela Kiss", "Carl Orme", "Dora Lind", "Egon Ray", "Fay Moss", "Gus Hale"]
TOWNS = ["Arnstadt", "Bergen", "Coimbra", "Durham", "Evora", "Ferrara", "Ghent"]

KNOWN: list[Statement] = [
    (person, "PERSON", "was born in", town, "GPE")
    for person, town in zip(PEOPLE, TOWNS, strict=True)
]
MISSING: list[Statement] = [
    (loser, "PERSON", wording, winner, "PERSON")
    for loser, winner in zip(PEOPLE, PEOPLE[1:] + PEOPLE[:1], strict=True)
    for wording in ("lost the chess match against",)
]
VILLAGES: list[Statement] = [(town, "GPE", "is a", "small village", "NOUN") for town in TOWNS]


def _induce(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    return induce.run(
        *pick(tables, *INDUCE),
        schema=general_schema(),
        shapes=(),
        embedder=MemoEmbedder(),
        annotator=lambda texts: ["" for _ in texts],
        reader=None,
        inducer=None,
    )


def _complete(statements: list[Statement], **options: float) -> tuple[dict, dict]:
    tables = plant(statements)
    schema, embedder = general_schema(), MemoEmbedder()
    induced = _induce(tables)
    tables["instances"] = induced["instances"]
    settings = CompleteSettings(**{"region_share": 0.8, **options})  # type: ignore[arg-type]
    made = complete.run(
        *pick(tables, *COMPLETE),
        settings=settings,
        schema=schema,
        shapes=(),
        decisions=Decisions((), "no file"),
        embedder=embedder,
        namer=None,
    )
    return tables, made


def test_induction_finds_every_planted_value_and_traces_it() -> None:
    tables = plant(KNOWN)
    made = _induce(tables)
    entity = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    text = {r["chunk_id"]: r["text"] for r in tables["chunks"].to_pylist()}
    born = [r for r in made["instances"].to_pylist() if r["property_iri"] == GENERAL + "birthPlace"]
    found = {(entity[r["subject_id"]], entity[r["object_id"]]) for r in born}
    assert found == {(head, tail) for head, _, _, tail, _ in KNOWN}
    for row in born:
        said = text[row["chunk_id"]][row["start"] : row["end"]]
        assert entity[row["subject_id"]] in said and entity[row["object_id"]] in said
    classes = Counter(
        r["class_iri"] for r in made["instances"].to_pylist() if not r["property_iri"]
    )
    assert classes == {GENERAL + "Person": len(PEOPLE), GENERAL + "PopulatedPlace": len(TOWNS)}


def test_a_value_outside_the_range_is_a_reject_that_says_so() -> None:
    tables = plant([("Ada Byron", "PERSON", "was born in", "great poverty", "NOUN")])
    made = _induce(tables)
    assert not [r for r in made["instances"].to_pylist() if r["property_iri"]]
    (reject,) = made["rejects"].to_pylist()
    assert reject["reason"] == "range"
    assert "great poverty" in reject["detail"] and "birth place" in reject["detail"].casefold()


def test_a_second_value_of_a_functional_property_is_a_reject() -> None:
    twice = [*KNOWN[:1], ("Ada Byron", "PERSON", "was born in", "Bergen", "GPE")]
    tables = plant([*twice, twice[0]])
    made = _induce(tables)
    entity = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    values = [entity[r["object_id"]] for r in made["instances"].to_pylist() if r["object_id"]]
    assert values == ["Arnstadt"]  # stated twice, so surer than Bergen
    assert [r["reason"] for r in made["rejects"].to_pylist()] == ["functional_conflict"]


def test_completion_proposes_the_missing_property_and_nothing_that_exists() -> None:
    tables, made = _complete(KNOWN + MISSING)
    proposals = made["proposals"].to_pylist()
    (found,) = [p for p in proposals if p["kind"] == "property"]
    assert found["label"] == "lost the chess match against"
    assert (found["domain"], found["range"]) == (GENERAL + "Person", GENERAL + "Person")
    assert found["state"] == "accepted"
    assert len(found["triple_ids"]) == len(MISSING)
    entity = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    values = {
        (entity[r["subject_id"]], entity[r["object_id"]])
        for r in made["instances"].to_pylist()
        if r["property_iri"] == found["iri"]
    }
    assert values == {(head, tail) for head, _, _, tail, _ in MISSING}


def test_completion_proposes_the_missing_class_with_its_members() -> None:
    tables, made = _complete(KNOWN + VILLAGES)
    (found,) = [p for p in made["proposals"].to_pylist() if p["kind"] == "class"]
    assert (found["label"], found["domain"]) == ("village", GENERAL + "PopulatedPlace")
    entity = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    rows = made["instances"].to_pylist()
    assert {entity[r["subject_id"]] for r in rows if r["class_iri"] == found["iri"]} == set(TOWNS)


def test_a_proposed_class_does_not_take_the_iri_of_a_property() -> None:
    capitals: list[Statement] = [(town, "GPE", "is a", "capital", "NOUN") for town in TOWNS]
    _, made = _complete(KNOWN + capitals)
    (found,) = [p for p in made["proposals"].to_pylist() if p["kind"] == "class"]
    assert (found["label"], found["iri"]) == ("capital", GENERAL + "Capital")


def test_every_fact_has_a_priority_and_the_missing_ones_come_first() -> None:
    tables, made = _complete(KNOWN + MISSING)
    relation = {r["relation_id"]: r["name"] for r in tables["relations"].to_pylist()}
    said = {r["triple_id"]: relation[r["relation_id"]] for r in tables["triples"].to_pylist()}
    ordered = sorted(made["priorities"].to_pylist(), key=lambda r: -r["priority"])
    assert {r["triple_id"] for r in ordered} == set(said)
    first = [said[r["triple_id"]] for r in ordered[: len(MISSING)]]
    assert first.count(MISSING[0][2]) > len(MISSING) / 2


def test_completion_of_an_empty_graph_proposes_nothing() -> None:
    _, made = _complete([])
    assert made["proposals"].num_rows == made["priorities"].num_rows == 0


def _condense(statements: list[Statement], **options: float) -> tuple[dict, list[dict]]:
    tables = plant(statements)
    tables["proposals"] = _complete([])[1]["proposals"]
    settings = CondenseSettings(**options)  # type: ignore[arg-type]
    names = ("entities", "relations", "triples", "proposals")
    made = condense.run(
        *pick(tables, *names), settings=settings, schema=general_schema(), embedder=MemoEmbedder()
    )
    return tables, made["condensed"].to_pylist()


def _relations(tables: dict) -> dict[str, str]:
    return {r["relation_id"]: r["name"] for r in tables["relations"].to_pylist()}


def test_two_wordings_of_one_property_are_merged() -> None:
    tables, rows = _condense(
        [
            ("Ada Byron", "PERSON", "works for", "Lind Institute", "ORG"),
            ("Ada Byron", "PERSON", "is employed by", "Lind Institute", "ORG"),
        ]
    )
    (row,) = rows
    assert row["anchor"] == GENERAL + "employer"
    assert set(row["derived_from"]) == set(tables["triples"]["triple_id"].to_pylist())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("was born in", "died in"),
        ("wrote", "directed"),
        ("is north of", "is south of"),
        ("was born in", "may have been born in"),
        ("visited", "could have visited"),
    ],
)
def test_wordings_that_differ_in_meaning_stay_apart(one: str, other: str) -> None:
    _, rows = _condense(
        [("Ada Byron", "PERSON", wording, "Ghent", "GPE") for wording in (one, other)]
    )
    assert len(rows) == 2


def test_a_passive_is_merged_with_its_active_form() -> None:
    tables, rows = _condense(
        [
            ("Ada Byron", "PERSON", "founded", "Lind Institute", "ORG"),
            ("Lind Institute", "ORG", "was founded by", "Ada Byron", "PERSON"),
        ]
    )
    (row,) = rows
    assert _relations(tables)[row["relation_id"]] == "founded"
    assert len(row["derived_from"]) == 2


def test_facts_with_another_head_or_tail_are_never_merged() -> None:
    _, rows = _condense(KNOWN)
    assert len(rows) == len(KNOWN)


def test_every_fact_is_in_exactly_one_condensed_fact() -> None:
    tables, rows = _condense(KNOWN + MISSING + VILLAGES)
    derived = Counter(key for row in rows for key in row["derived_from"])
    assert derived == Counter(tables["triples"]["triple_id"].to_pylist())


def test_a_fact_near_no_anchor_stays_as_it_is() -> None:
    _, rows = _condense(MISSING, anchor_similarity=0.99)
    assert [row["anchor"] for row in rows] == [None] * len(MISSING)
