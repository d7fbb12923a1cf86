"""Typed questions: conditions, order, comparisons and paths, with what says so, within a scope."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kpyramid.documents.measures import list_measures, read_measure
from kpyramid.errors import InputError
from kpyramid.query import EVERYTHING, Snapshot, call_tool, open_snapshot, tools
from kpyramid.snapshot.typed import Members
from tests import commands
from tests.corpora import encode_lines, open_told
from tests.rows import each_row, read_bodies

ROWS = read_bodies("typed.rows")
CORPUS = {"rows.jsonl": encode_lines(ROWS)}


@pytest.fixture(scope="module")
def told() -> Snapshot:
    return open_told("typed", CORPUS)


def name_all(found: Members) -> list[str]:
    return sorted(member.name for member in found.members)


def test_members_meet_all_conditions(told: Snapshot) -> None:
    texts = {row["document_id"]: row["text"] for row in told.table("documents").to_pylist()}
    for class_name, where, names in [
        ("film", {}, ["Dark Tide", "Night Ferry", "Red Harbour", "Salt Road"]),
        ("Films", {"director": "Hana Volk"}, ["Red Harbour", "Salt Road"]),
        ("film", {"director": "hana volk", "released in": (1990, None)}, ["Red Harbour"]),
        ("film", {"released in": ["1988", "1992"]}, ["Red Harbour", "Salt Road"]),
        ("film", {"released in": 1995}, ["Dark Tide"]),
        ("film", {"director": {"not": "Hana Volk"}}, ["Dark Tide"]),
        ("film", {"director": {"not": None}}, ["Dark Tide", "Red Harbour", "Salt Road"]),
        ("film", {"director": None}, ["Night Ferry"]),
        ("film", [("director", "Hana Volk"), ("director", "Olaf Brun")], []),
        ("thing", {"^director": "Red Harbour"}, ["Hana Volk"]),
        ("person", {"birth place": "Norland"}, ["Eva Lund", "Nils Vik"]),
        ("person", {"born in": "Velm"}, ["Nils Vik"]),
        ("thing", {"elevation": ("1000 m", None)}, ["Mount Skarn"]),
        ("thing", {"elevation": (None, "1 km")}, ["Mount Ember"]),
        ("thing", {"may have praised": "Eva Lund"}, []),
    ]:
        found = told.find(class_name, where)
        assert name_all(found) == names, where
        assert (int(found.count), str(found.count)) == (len(names), f"at least {len(names)}")
        for member in found.members:
            assert member.evidence or where == {"director": None}
            for place in member.evidence:
                assert texts[place.document_id][place.start : place.end] == place.text


def test_what_meets_the_condition_is_cited_first_and_a_date_has_one_form(told: Snapshot) -> None:
    (dahl,) = told.find("person", {"birth date": "1970-05-04"}).members
    (film,) = told.find("film", {"released in": 1995}).members

    assert dahl.values == {"birth date": ("1970-05-04",)}
    assert "born on 4 May 1970" in dahl.evidence[0].text
    assert "released in 1995" in film.evidence[0].text


def test_a_year_is_the_date_where_no_day_is_known(machines: Snapshot) -> None:
    for after, names in [(1950, ["Ana Holm", "Bo Lind"]), (1972, ["Bo Lind"]), ("June 1981", [])]:
        for name in ("birth date", "birth year")[: 1 if after == "June 1981" else 2]:
            assert name_all(machines.find("person", {name: (after, None)})) == names, name
    born = machines.find("person", {"birth date": {"not": None}}, order_by="birth date").members
    assert [m.values["birth date"] for m in born] == [("1970-05-04",), ("1981",)]


def test_a_class_and_a_property_are_named_by_iri_too(told: Snapshot) -> None:
    schema = told.schema
    (director,) = [p.iri for p in schema.properties if p.label == "director"]
    (person,) = [c.iri for c in schema.classes if c.label == "person"]

    assert name_all(told.find("film", {director: "Olaf Brun"})) == ["Dark Tide"]
    assert told.find(person) == told.find("person")


def test_a_place_within_a_place_is_proved_by_both_sentences(told: Snapshot) -> None:
    found = told.find("person", {"birth place": "Norland"}, order_by="birth place")
    (vik,) = [member for member in found.members if member.name == "Nils Vik"]

    said = " ".join(place.text for place in vik.evidence)
    assert "born in Velm" in said and "Velm is located in Norland" in said


def test_members_are_ordered_and_what_has_no_value_comes_last(told: Snapshot) -> None:
    years = [m.name for m in told.find("film", order_by="-released in").members]
    works = told.find("person", order_by="-count(^director)", limit=1)
    first = told.find("film", order_by="director", limit=3).members

    assert years == ["Night Ferry", "Dark Tide", "Red Harbour", "Salt Road"]
    assert [m.name for m in works.members] == ["Hana Volk"] and works.count > 1
    assert works.members[0].values == {"count(^director)": ("Red Harbour", "Salt Road")}
    assert "Night Ferry" not in [member.name for member in first]


def test_two_things_are_compared_in_one_unit(told: Snapshot) -> None:
    found = told.compare("Mount Skarn", "Mount Ember", "elevation")
    years = told.compare("Red Harbour", "Dark Tide", "released in")

    assert (found.order, years.order) == ("greater", "less")
    assert "1.2 km" in found.first.evidence[0].text
    assert told.compare("Red Harbour", "Salt Road", "director").order == "equal"
    assert told.compare("Red Harbour", "Dark Tide", "director").order == "different"
    assert told.compare("Red Harbour", "Night Ferry", "director").order == "unknown"
    assert told.compare("Hana Volk", "Olaf Brun", "count(^director)").order == "greater"


def test_paths_lead_over_facts_that_are_asserted(told: Snapshot) -> None:
    (path,) = told.paths("Red Harbour", "Salt Road", 2).paths

    assert {hop.head for hop in path} | {hop.tail for hop in path} >= {"Hana Volk", "Salt Road"}
    assert all(hop.evidence for hop in path)
    assert told.paths("Nils Vik", "Eva Lund", 1).paths == ()  # "may have praised"
    assert len(told.paths("Nils Vik", "Eva Lund").paths[0]) == 3  # over Norland


def test_what_a_scope_hides_is_not_found(told: Snapshot) -> None:
    whole = open_snapshot(told.folder, scope=EVERYTHING)

    assert "Paper Boats" in name_all(whole.find("film", {"director": "Hana Volk"}))
    assert told.find("film").count == 4 and whole.find("film").count == 5
    assert whole.scoped(told.scopes[0]).find("film") == told.find("film")
    with pytest.raises(InputError, match="there is no thing 'Paper Boats'"):
        told.paths("Paper Boats", "Hana Volk")


def test_a_bad_question_is_refused_and_names_the_nearest_five(told: Snapshot) -> None:
    film = partial(told.find, "film")
    takes = "find takes an object with class_name, where, order_by, limit, at: arguments: Invalid"
    refused: dict[Callable[[], object], str] = {
        lambda: told.find("fil"): "there is no class 'fil'; nearest: film, ",
        lambda: film({"drector": "x"}): "no property 'drector'; nearest: director, ",
        lambda: film(order_by="relesed in"): "nearest: was released in, ",
        lambda: told.find(""): 'class "": pass a label',
        lambda: told.find(None): "class null: pass a label",
        lambda: film("director=x"): 'where "director=x": pass pairs',
        lambda: film(7): "where 7: pass pairs",
        lambda: film(["director"]): 'where has "director": pass a pair',
        lambda: film({"director": True}): "director: true is no condition",
        lambda: film({"director": ""}): 'director: "" is no condition',
        lambda: film({"director": {"or": 1}}): 'director: {"or": 1} is no condition',
        lambda: film({"x": (None, None)}): "no condition",
        lambda: film({"x": (1, 2, 3)}): "no condition",
        lambda: film({"x": ("soon", None)}): '"soon" bounds no range',
        lambda: film({"x": (3, 2)}): "nothing lies between 3 and 2",
        lambda: film({"x": ("3 m", "5 kg")}): "nothing lies between",
        lambda: film(limit=0): "limit 0: pass a whole number, 1 or more",
        lambda: film(limit=True): "limit true",
        lambda: told.compare("Dark Tide", "Nobody", "director"): "no thing 'Nobody'",
        lambda: told.compare("Dark Tide", "Salt Road", "drector"): "no property 'drector'",
        lambda: told.compare("Dark Tyde", "Salt Road", "director"): "nearest: Dark Tide",
        lambda: told.paths("Dark Tide", "Salt Road", 5): "hops 5: pass a whole number, from 1",
        lambda: call_tool("seek", {}, told): "there are overview, retrieve, find, compare, paths",
        lambda: call_tool("find", "{", told): takes,
        lambda: call_tool("find", {"class": "film"}, told): "find takes an object with",
    }
    for ask, message in refused.items():
        with pytest.raises(InputError) as caught:
            ask()
        assert message in str(caught.value)
    with pytest.raises(InputError) as caught:
        film({"drector": "x"})
    assert str(caught.value).count(",") == 4


def test_tools_are_what_a_model_calls(told: Snapshot) -> None:
    assert [tool["function"]["name"] for tool in tools()] == ["find", "compare", "paths"]
    for tool in tools():
        parameters = tool["function"]["parameters"]
        assert {*parameters["required"]} <= {*parameters["properties"]}
    where = [["director", "Hana Volk"], ["released in", [1990, None]]]
    given = json.dumps({"class_name": "film", "where": where, "limit": 5})

    found = call_tool("find", given, told).to_dict()

    assert json.loads(json.dumps(found))["count"] == {"at_least": 1}
    assert found["members"][0]["name"] == "Red Harbour"
    assert {*found["members"][0]["evidence"][0]} >= {"document_id", "chunk_id", "start", "end"}


@each_row("text, other, order")
def test_measures_are_compared_on_one_scale(text: str, other: str, order: int | None) -> None:
    one, beside = read_measure(text), read_measure(other)
    assert one is not None and beside is not None
    places = one.compare(beside)
    if order is None:
        assert places is None or places[0][0] <= places[1][0] <= places[0][1]
    else:
        assert places is not None
        assert (places[0] > places[1]) is (order > 0)


def test_what_is_no_date_is_no_measure() -> None:
    assert read_measure("31 February 1950") is None and [*list_measures("none at all")] == []


def run(*arguments: str) -> Any:
    return commands.run("find", *arguments)


def test_find_prints_members_with_their_sentences(told: Snapshot) -> None:
    asked = ("film", "--where", "director=Hana Volk", "--where", "released in>=1990")
    words = run(*asked, "--snapshot", str(told.folder))
    plain = run(*asked, "--snapshot", str(told.folder), "--json")

    assert words.exit_code == 0, words.output
    assert words.output.startswith("Count  at least 1\n")
    for shown in ("name Red Harbour", "director Hana Volk", "rows.jsonl#a, characters "):
        assert shown in words.output
    assert json.loads(plain.stdout)["members"][0]["name"] == "Red Harbour"


def test_find_says_in_words_that_there_is_no_path(told: Snapshot) -> None:
    none = "there is no path of at most 1 fact between 'Nils Vik' and 'Eva Lund'"
    where = ("--snapshot", str(told.folder), "--paths", "Nils Vik", "Eva Lund", "--json", "--hops")

    assert json.loads(run(*where, "1").stdout) == {"notes": [none], "paths": []}
    assert "notes" not in json.loads(run(*where, "3").stdout)


PRICES = {"Alder scale": 1290, "Birch scale": 420, "Cedar scale": 14200, "Elder scale": 1650}
MACHINES = {
    "prices.csv": "Product,Price,Fee\n"
    + "".join(f"{name},{price} EUR,{price}\n" for name, price in PRICES.items()),
    "machines.csv": """Machine,Type,Location,Purchased
Press S-4,screw press,Shed 2,2011
Oven O-9,drying oven,Shed 1,2016
Drill D-2,column drill,Shed 2,2019
""",
    "notes.jsonl": encode_lines(
        [
            {"id": "n", "text": "Alder Tools was audited by Birch Group.", "urgency": "high"},
            {
                "id": "o",
                "text": "Rita Falk is warden of Cedar Works.",
                "mood": "x",
                "access": ["b"],
            },
            {"id": "p", "text": "Ana Holm was born on 4 May 1970. Bo Lind was born in 1981."},
        ]
    ),
}


@pytest.fixture(scope="module")
def machines() -> Snapshot:
    return open_told("machines", MACHINES)


def test_a_table_is_asked_by_the_words_of_its_header(machines: Snapshot) -> None:
    for class_name, where, names in [
        ("thing", {"location": "Shed 2"}, ["Drill D-2", "Press S-4"]),
        ("thing", {"purchased": (2015, None)}, ["Drill D-2", "Oven O-9"]),
        ("thing", {"Purchased": 2011}, ["Press S-4"]),
        ("press", {}, ["Press S-4"]),
        ("drying oven", {"location": {"not": "Shed 2"}}, ["Oven O-9"]),
        ("thing", {"audited by": "Birch Group"}, ["Alder Tools"]),
    ]:
        assert name_all(machines.find(class_name, where)) == names, where
    (press,) = machines.find("thing", order_by="purchased", limit=1).members
    assert (press.name, press.values) == ("Press S-4", {"purchased": ("2011",)})


def test_a_relation_by_a_word_of_it_is_not_read_from_its_other_end(machines: Snapshot) -> None:
    whole = open_snapshot(machines.folder, scope=EVERYTHING)

    assert name_all(whole.find("thing", {"is warden of": "Cedar Works"})) == ["Rita Falk"]
    for name in ("warden", "audited"):  # who it is, whom it audited
        with pytest.raises(InputError, match=f"no property '{name}'"):
            whole.find("thing", {name: {"not": None}})


def test_metadata_of_visible_documents_is_named_where_it_can_be_asked(machines: Snapshot) -> None:
    with pytest.raises(InputError, match="metadata: `kpyramid ask --where urgency=VALUE`"):
        machines.find("thing", {"urgency": "high"})
    with pytest.raises(InputError, match=r"no property 'mood'; nearest(?!.*metadata)"):
        machines.find("thing", {"mood": "x"})
    with pytest.raises(InputError, match="metadata: `kpyramid ask --where mood="):
        open_snapshot(machines.folder, scope=EVERYTHING).find("thing", {"mood": "x"})


@each_row("arguments, message")
def test_bad_arguments_of_find_are_refused(
    told: Snapshot, arguments: list[str], message: str
) -> None:
    done = run(*arguments, "--snapshot", str(told.folder))
    assert (done.exit_code, message in done.output) == (3, True), done.output


def test_numbers_that_could_be_years_are_ordered_as_the_numbers_beside_them(
    machines: Snapshot,
) -> None:
    for amount in ("price", "fee"):
        where = {f"has {amount}": {"not": None}}
        found = machines.find("thing", where, order_by=f"has {amount}").members
        named = [member.name for member in found if member.name in PRICES]
        assert named == sorted(PRICES, key=PRICES.__getitem__), amount
