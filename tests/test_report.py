"""The report says what the ontology lacked, what was proposed and what was merged from what."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import IntegrityError
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.report.course import draw_trend
from kpyramid.pipeline.report.index import write_index
from kpyramid.pipeline.report.report import (
    Figure,
    describe_completion,
    describe_condensation,
    open_tables,
    read_figure,
)
from kpyramid.pipeline.report.words import load_template, word_report
from kpyramid.storage.layout import open_warehouse
from tests.accounts import make_account
from tests.browser import WIDTHS, check_view, open_browser
from tests.commands import fails, run_json, show
from tests.corpora import ROOT
from tests.rows import read_bodies, read_rows

PLAIN: dict[str, Any] = read_bodies("report.plain")
STYLE = '{% include "style.css.jinja" %}'
VOID = {"meta", "br", "link", "img", "input", "hr", "path", "rect", "circle", "polyline"}


class Page(HTMLParser):
    """The words, tags, attributes and ids of a page; every tag must be closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID | {"tr", "td", "th", "li", "p", "html"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag == self.open[-1]:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@dataclass(frozen=True)
class Account:
    """Completion and condensation as plain values, and what is drawn of them."""

    completion: dict[str, Any]
    condensation: dict[str, Any]
    figure: Figure | None


def describe_snapshot(folder: Path) -> Account:
    """The account of the snapshot in a folder."""
    schema = parse_schema((folder / "ontology" / "schema.ttl").read_text("utf-8"), source="s")
    with open_tables(folder) as database:
        completion = describe_completion(database, schema)
        return Account(completion, describe_condensation(database, schema), read_figure(database))


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Account:
    folder = tmp_path_factory.mktemp("account") / "snapshot"
    make_account(folder)
    return describe_snapshot(folder)


def render(account: Account, **changed: Any) -> str:
    said = {"completion": account.completion, "condensation": account.condensation}
    report = PLAIN | said | changed
    drawn = {"trend": draw_trend(report["trend"]), "figure": account.figure}
    return load_template("report.html.jinja").render(report=report, **drawn)


def test_layers_merges_and_contradictions_are_in_figures(account: Account) -> None:
    completion, found = account.completion, account.condensation
    assert completion["layers"] == {
        "graph": {"phrases": 5, "facts": 7},
        "ontology": {"phrases": 1, "facts": 2},
    }
    assert completion["region"] == {"phrases": 2, "facts": 3}
    assert (completion["dimensions"], completion["explained"]) == (2, 0.75)
    assert (found["triples"], found["condensed"], found["merged_into"]) == (7, 6, 1)
    assert found["how"] == {"equivalent": 1, "kept": 6}
    assert (found["anchored"], found["contradictions"]) == (1, 1)
    (merge,) = found["merges"]
    assert merge["anchor"] == "employer"
    parts = {part["fact"][1]: part["how"] for part in merge["from"]}
    assert sorted(parts) == ["is employed by", "works for"]
    assert Counter(parts.values()) == {"kept": 1, "equivalent": 1}
    assert parts[merge["fact"][1]] == "kept"
    (clash,) = found["contradicting"]
    assert clash["anchor"] == "birth place"
    assert {side["sentence"] for side in clash["sides"]} == {
        "Dora Lind was born in Ghent",
        "Dora Lind was born in Evora",
    }


def test_a_proposal_stands_with_ends_examples_and_who_decided(account: Account) -> None:
    ((row,),) = [account.completion["proposals"]["open"]]
    assert (row["label"], row["domain"], row["range"]) == ("lost to", "person", "person")
    assert (row["support"], row["decided_by"], row["proposal_id"]) == (3, "rules", "proposal-1")
    facts = [tuple(example["fact"]) for example in row["examples"]]
    assert set(facts) == {
        ("Bela Kiss", "lost the match against", "Ada Byron"),
        ("Carl Orme", "lost the match against", "Bela Kiss"),
        ("Dora Lind", "lost to", "Carl Orme"),
    }
    for example in row["examples"]:
        assert example["sentence"] == " ".join(example["fact"])


def test_page_needs_nothing_from_outside_and_is_well_formed(account: Account) -> None:
    text = render(account)
    page = Page(text)
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & page.tags.keys()
    assert not re.search(r"url\((?!#)|@import", text)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = [value for name, value in page.attributes if name in ("href", "src")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_no_table_or_long_word_makes_a_page_wider_than_the_window() -> None:
    """Tables scroll in a place of their own, and what has no space in it is broken."""
    for page in (
        *("pipeline/report/templates/report", "pipeline/report/templates/index"),
        "evaluation/templates/evaluation",
    ):
        path = ROOT / "etl" / "kpyramid" / f"{page}.html.jinja"
        folder, text = path.parent, path.read_text("utf-8")
        if STYLE in text:
            text = text.replace(STYLE, (folder / "style.css.jinja").read_text("utf-8"))
        names = re.findall(r'include "(.+?)"', text)
        parts = [text, *((folder / name).read_text("utf-8") for name in names)]
        style = text.partition("<style>")[2].partition("</style>")[0]

        for part in parts:
            assert "<table" not in part.replace('<div class="wide"><table>', "")
            assert part.count("</table></div>") == part.count("</table>")
        assert ".wide { overflow-x: auto }" in style
        assert re.search(r"body {[^}]*overflow-wrap: anywhere", style)
        has_figure = any("<figure" in part for part in parts)
        assert has_figure is bool(re.search(r"svg {[^}]*max-width: 100%", style))
        assert 'name="viewport" content="width=device-width"' in text


def test_page_says_what_the_values_say(account: Account) -> None:
    text = Page(render(account)).text
    for words in read_rows("report.page_says_what_the_values_say"):
        assert words.replace(" ,", ",") in text.replace(" ,", ","), words


def test_report_of_an_empty_snapshot_says_so(tmp_path: Path) -> None:
    make_account(tmp_path / "s", [])
    account = describe_snapshot(tmp_path / "s")
    assert account.figure is None
    text = Page(render(account)).text
    for words in (
        "Nothing was proposed",
        "No two triples mean the same",
        "No two facts contradict",
    ):
        assert words in text
    json.dumps([account.completion, account.condensation], allow_nan=False)


HOSTILE = "<script>alert(1)</script>\u202eevil\x1b[2J&\"' " + "n" * 10_000


def fill(value: Any, number: int = 0) -> Any:
    """The value with `@` as hostile words, `#` as a number, and parts as often as they say."""
    match value:
        case str():
            return HOSTILE if value == "@" else value.replace("#", f"{number}")
        case {"times": int(times), "of": part}:
            return [fill(part, n) for n in range(times)]
        case dict():
            return {fill(name): fill(part, number) for name, part in value.items()}
        case list():
            return [fill(part, number) for part in value]
    return value


def describe_hostile() -> dict[str, Any]:
    """What changes in a report of a corpus that means harm, and is large."""
    changed: dict[str, Any] = fill(read_bodies("report.hostile"))
    return changed


def test_hostile_and_huge_content_is_escaped_cut_and_counted(account: Account) -> None:
    changed = describe_hostile()
    text = render(account, **changed)
    assert len(text) < 1_000_000
    page = Page(text)
    assert page.open == []
    assert "script" not in page.tags
    assert max(map(len, re.findall("n+", text))) <= 600
    assert "and 28 more kinds" in page.text
    told = word_report(PLAIN | changed, "p", "/w w")
    assert len(told) <= 25
    assert max(map(len, told)) < 1000
    assert told[0].startswith("Not published: ")


def test_a_refused_build_of_no_document_proposes_no_promotion() -> None:
    refused = {"ref": "mine", "gates": {"size": "fail: x"}, "refused_by": ["size"]}
    refused |= {"head": None, "unmatched": []}
    content = PLAIN["content"]
    some = {"content": content | {"counts": content["counts"] | {"documents": 3}}}

    told = "\n".join(word_report(PLAIN | refused, "p", ""))
    assert told.startswith("Not published: ref mine still names no snapshot; ")
    assert "fix it and build again" in told and "kpyramid promote" not in told
    assert "kpyramid promote mine" in "\n".join(
        word_report(PLAIN | refused | some, "p", "")
    ).replace("'", "")


def test_properties_without_a_value_are_named_with_the_reason() -> None:
    """As for an ontology of a field that the corpus does not have."""
    silent = [{"label": "catalyses", "near": 0}, {"label": "founded", "near": 3}]
    content = PLAIN["content"] | {"silent": silent}
    told = "\n".join(word_report(PLAIN | {"content": content, "unmatched": []}, "p", ""))
    assert "as no fact has a similar wording: catalyses\n" in told
    assert "as no similar fact has their domain and range: founded\n" in told


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    make_account(tmp_path / "s")
    path = tmp_path / "s" / "tables" / "phrases.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(IntegrityError, match=re.escape("phrases.parquet")):
        describe_snapshot(tmp_path / "s")


def make_runs(folder: Path) -> Path:
    """A warehouse with records of runs alone: done twice, failed in hostile words, without end."""
    said = {"corpus": "c", "order": "1", "host": "h"}
    for number, changed in enumerate(
        [
            {"status": "done", "figures": {"facts": 5, "seconds": 2.5, "changes": None}},
            {"status": "failed", "error": HOSTILE, "exit_code": 3},
            {"status": "running", "process": "no-host-4194303-x", "ref": "other"},
            {"status": "done", "figures": {"facts": 8, "seconds": 61.0, "changes": HOSTILE}},
        ]
    ):
        name = f"run-{number}"
        place = folder / "runs" / name
        place.mkdir(parents=True)
        record = {"run": name, "started": f"2026-11-0{number + 1}T02:00:00", "ref": "main"}
        (place / "run.json").write_text(json.dumps(record | said | changed), "utf-8")
        (place / "report.html").write_text("", "utf-8")
    return folder


def test_the_index_page_links_runs(tmp_path: Path) -> None:
    place = ("--warehouse", make_runs(tmp_path / "w"))
    show("report", *place)
    text = (tmp_path / "w" / "index.html").read_text("utf-8")
    page = Page(text)
    assert page.open == [] and not {"script", "link", "img"} & page.tags.keys()
    links = [value for name, value in page.attributes if name == "href"]
    assert links == [f"runs/run-{n}/report.html" for n in (3, 2, 1, 0)]
    assert all((tmp_path / "w" / link).is_file() for link in links)
    assert "facts: 8, before 5–8" in page.text and max(map(len, re.findall("n+", text))) < 300
    out = tmp_path / "pages" / "runs.html"
    assert len(run_json("report", *place, "--output", out)["runs"]) == 4 and out.is_file()
    fails(3, "the last: run-3, run-2, run-1", "runs", "none", *place)
    show("report", "--warehouse", tmp_path / "empty")
    assert "No run yet" in (tmp_path / "empty" / "index.html").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_in_a_browser(account: Account, tmp_path: Path, scheme: str) -> None:
    """At every width, without a request, by axe's rules, and short on a phone."""
    path = tmp_path / "report.html"
    path.write_text(render(account, **describe_hostile()), "utf-8", errors="replace")
    wider = "return document.documentElement.scrollWidth - innerWidth"
    with open_browser(scheme) as browser:
        for width in WIDTHS:
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(path.as_uri())
            assert browser.execute_script(wider) <= 0, width
        path.write_text(render(account), "utf-8")
        heading = "Published: main is now at s"
        assert check_view(browser, path.as_uri(), heading, "") == []
        phone = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        assert browser.execute_script("return document.documentElement.scrollHeight") < 8000
        index = tmp_path / "index.html"
        write_index(open_warehouse(make_runs(tmp_path / "w")), index)
        assert check_view(browser, index.as_uri(), "Runs of the warehouse", "") == []
