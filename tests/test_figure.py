"""Both layers in one space, drawn from a snapshot's tables: right points, equal bytes."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq

from kpyramid.pipeline.report.report import MOST_POINTS, Figure, open_tables, read_figure
from kpyramid.pipeline.report.words import load_template
from tests.accounts import make_account

SVG = "{http://www.w3.org/2000/svg}"


def make_figure(folder: Path) -> Figure:
    with open_tables(folder) as database:
        figure = read_figure(database)
    assert figure is not None
    return figure


def count_points(svg: str) -> int:
    return len(re.findall(r"M[\d.]+ [\d.]+h0", svg))


def draw(figure: Figure) -> str:
    return load_template("figure.svg.jinja").render(figure=figure)


def test_svg_has_three_panels_a_title_a_description_and_all_points(tmp_path: Path) -> None:
    make_account(tmp_path / "s")
    svg = draw(make_figure(tmp_path / "s"))
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    named = {e.get("id") for e in root.iter() if e.tag in (SVG + "title", SVG + "desc")}
    assert set((root.get("aria-labelledby") or "").split()) == named - {None}
    titles = [e.text for e in root.iter(SVG + "text") if e.get("font-size") == "14"]
    assert titles == ["Before: graph and ontology", "What the ontology lacks", "After condensation"]
    assert count_points(svg) == (5 + 1) + (3 + 2) + (3 + 1)
    axes = [e.text for e in root.iter(SVG + "text") if (e.text or "").startswith("axis")]
    assert set(axes) == {"axis 1: 50.0% of variance", "axis 2: 25.0% of variance"}


def test_of_many_phrases_the_same_are_drawn_and_all_are_counted(tmp_path: Path) -> None:
    people = [f"Person {number}" for number in range(3)]
    make_account(tmp_path / "s", [(p, "PERSON", "met", "Ada Byron", "PERSON") for p in people])
    path = tmp_path / "s" / "tables" / "phrases.parquet"
    table = pq.read_table(path)
    row = table.slice(0, 1).to_pylist()[0]
    chance = np.random.default_rng(0)
    many = [
        dict(row, phrase_id=f"phrase-{number:05}", x=float(x), y=float(y))
        for number, (x, y) in enumerate(chance.standard_normal((MOST_POINTS + 500, 2)))
    ]
    pq.write_table(type(table).from_pylist(many, schema=table.schema), path)
    path = path.with_name("priorities.parquet")
    table = pq.read_table(path)
    one = table.slice(0, 1).to_pylist()[0]
    scored = [
        one | {"triple_id": f"triple-{number}", "phrase_id": row["phrase_id"]}
        for number, row in enumerate(many)
    ]
    pq.write_table(type(table).from_pylist(scored + table.to_pylist(), schema=table.schema), path)
    figure = make_figure(tmp_path / "s")
    (layer,) = (row for row in figure.layers if row["panel"] == 0)
    assert layer["phrases"] == MOST_POINTS + 500
    assert count_points(layer["dots"]) <= MOST_POINTS
    assert f"{MOST_POINTS + 500:,} phrases of the graph, {MOST_POINTS:,} drawn" in draw(figure)
