"""A second look at what no fact cites, and the check of facts drawn by hash."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpyramid.documents.sentences import Span
from kpyramid.errors import GateError, SettingsError
from kpyramid.extraction.cascade.review import draw_facts, join_readings, read_verdicts
from kpyramid.extraction.cascade.windows import Reading, Row, Thing, WindowExtraction
from kpyramid.extraction.types import Claim, Extraction, Fact
from kpyramid.llm.task import FailureKind, Request
from kpyramid.pipeline.build import build
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.report.words import load_template
from kpyramid.settings import check_settings
from kpyramid.storage.layout import Warehouse
from tests import reader
from tests.cascade_script import (
    CHUNK,
    LLM,
    TEXT,
    ScriptedAsker,
    list_reasons,
    list_triples,
    open_cascade,
    write_merged,
)
from tests.commands import run_json
from tests.corpora import make_settings, read_snapshot, use_quick_models, write_corpus
from tests.loopback import Loopback, serve
from tests.rows import read_bodies, read_rows

SENTENCES = [Span(0, 39), Span(40, 85), Span(86, len(TEXT))]
RULED = replace(
    CHUNK,
    extraction=Extraction(
        claims=tuple(Claim(TEXT[s.start : s.end], (s,), "does") for s in SENTENCES)
    ),
)
FIRST = write_merged([[1, "was born in", 2, 1]], [[1, "Marie Curie", "other"], [2, "Warsaw", "x"]])
SECOND = write_merged([[1, "shared", 3, 2], [3, "is awarded by", 4, 3, "not"]],
                      [[3, "Nobel Prize", "other"], [4, "France", "other"]])  # fmt: skip
TRIPLES = read_rows("cascade_review.triples")


def read_ruled(asker: ScriptedAsker, glean: int = 1, share: float = 0.0) -> WindowExtraction:
    settings = replace(LLM, glean=glean, check_share=share)
    (made,) = open_cascade(asker, settings).read([RULED])
    assert isinstance(made, WindowExtraction)
    return made


def answer(request: Request) -> str:
    if request.task == "check":
        rows = [["F1", TEXT[:39], "stated"], [2, "", "not stated"], ["3", "never there", "partly"]]
        return json.dumps({"verdicts": [*rows, [9, "", "stated"], ["x", "", "stated"], "odd"]})
    return {"merged": FIRST, "second": SECOND}[request.task]


def test_what_no_fact_cites_is_looked_at_again_where_the_rules_find_a_predicate() -> None:
    asker = ScriptedAsker(answer)
    assert list_triples(read_ruled(asker)) == TRIPLES
    first, second = (request.messages for request in asker.asked)
    assert second[0].content.startswith(first[0].content), "servers keep what is the same"
    assert "Sentences in question: 2, 3\n" in second[1].content
    assert "1 = Marie Curie; 2 = Warsaw" in second[1].content
    silent = ScriptedAsker(answer)
    assert list_triples(read_ruled(silent, glean=0)) == TRIPLES[:1]
    assert silent.tasks == ["merged"]
    open_cascade(silent, replace(LLM, glean=1)).read([CHUNK])
    assert silent.tasks == ["merged"] * 2, "the rules find nothing in it"


def test_numbers_of_the_second_look_are_none_of_the_first() -> None:
    first = Reading({1: Thing("Ada", "x")}, (Row(1, "met", "Bo", (1,)),), ("a",))
    second = Reading({1: Thing("Cy", "x")}, (Row(1, "saw", 1, (2,)),), ("b",))
    joined = join_readings(first, second)
    assert [joined.things[int(row.head)].name for row in joined.rows] == ["Ada", "Cy"]
    assert joined.broken == ("a", "b")


@pytest.mark.parametrize("kind", [FailureKind.PENDING, FailureKind.INVALID])
def test_a_second_look_that_is_due_leaves_the_first_and_nothing_is_checked_twice(
    kind: FailureKind,
) -> None:
    asker = ScriptedAsker(lambda r: kind if r.task == "second" else answer(r))
    made = read_ruled(asker, share=1.0)
    assert list_triples(made) == TRIPLES[:1]
    assert [failure.detail for failure in made.unanswered] == ["second: scripted"]
    assert asker.tasks == ["merged", "second"]
    asker = ScriptedAsker(lambda r: FailureKind.REFUSED if r.task == "check" else answer(r))
    made = read_ruled(asker, share=1.0)
    assert [fact.verdict for fact in made.facts] == [None] * 3
    assert [(failure.kind, failure.detail) for failure in made.unanswered] == [
        (FailureKind.REFUSED, "check: scripted")
    ]


def test_what_sentences_do_not_say_is_withheld_and_a_verdict_without_its_words_is_none() -> None:
    asker = ScriptedAsker(answer)
    made = read_ruled(asker, share=1.0)
    assert asker.tasks == ["merged", "second", "check"]
    shown = asker.asked[-1].messages[1].content
    assert "F1| Marie Curie | was born in | Warsaw | - | 1\n" in shown
    assert "F3| Nobel Prize | is awarded by | France | not | 3\n" in shown
    assert [(f.tail, f.verdict) for f in made.facts] == [("Warsaw", "stated"), ("France", None)]
    assert list_reasons(made) == ["not_stated"]
    with pytest.raises(Exception, match="invalid"):
        read_verdicts("no JSON")


def test_facts_are_drawn_by_their_hash_with_the_seed() -> None:
    claims = tuple(Claim(f"Ada met Bo {n}.", (Span(n, n + 1),)) for n in range(500))
    facts = tuple(Fact(n, "Ada", "met", f"Bo {n}", None, None, None) for n in range(500))
    made = WindowExtraction(claims, (), facts)
    drawn = {share: draw_facts(made, share, 0) for share in (0.0, 0.1, 0.3, 1.0)}
    assert drawn[0.0] == []
    assert drawn[1.0] == [*range(500)]
    assert set(drawn[0.1]) < set(drawn[0.3])
    assert 30 <= len(drawn[0.1]) <= 70
    assert draw_facts(made, 0.1, 1) != drawn[0.1]
    turned = replace(made, facts=facts[::-1])
    assert {499 - at for at in draw_facts(turned, 0.1, 0)} == set(drawn[0.1])


@pytest.mark.parametrize("cascade", [{"glean": 1}, {"check_share": 0.1}])
def test_both_need_windows(cascade: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="windows"):
        check_settings({"cascade": cascade}, {"file": "llm.toml"})


# Builds.

TEXTS = read_bodies("cascade_review.texts")
LISTED = re.compile(r"^F(\d+)\| (.*?) \| .*$", re.MULTILINE)


def answer_body(body: dict[str, Any]) -> str:
    """Reads a sentence of each window at first, the others when asked again; lies about Cleo."""
    name, material = body["response_format"]["json_schema"]["name"], body["messages"][-1]["content"]
    if name == "check":
        rows = [
            [int(n), "", "not stated" if head == "Cleo" else "stated"]
            for n, head in LISTED.findall(material)
        ]
        return json.dumps({"verdicts": rows})
    made = json.loads(reader.answer(body))
    if name in ("merged", "second"):
        asked = re.search(r"in question: (.*)", material)
        wanted = asked[1].split(", ") if asked else ["1"]
        made["facts"] = [row for row in made["facts"] if str(row[3]) in wanted]
    return json.dumps(made)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    use_quick_models(monkeypatch)
    with serve(answer_body) as running:
        yield running


def open_settings(url: str, **cascade: object) -> dict[str, Any]:
    steps = dict.fromkeys(("paraphrase", "entities", "relations"), "llm")
    llm = {
        "provider": "openai",
        "model": "m",
        "base_url": url,
        "prices": {"m": {"input": 1.0, "output": 1.0}},
    }
    return {"cascade": {**steps, "glean": 1, "check_share": 1.0, **cascade}, "llm": llm}


def show_checked(row: object) -> str:
    module = load_template("checked.jinja").module
    return str(module.checked(row))  # type: ignore[attr-defined]


def count(server: Loopback) -> dict[str, int]:
    names = [entry["schema"] for entry in server.log]
    return {name: names.count(name) for name in ("merged", "second", "check")}


@pytest.mark.slow
def test_a_build_looks_again_checks_and_reports_and_pays_nothing_twice(
    server: Loopback, tmp_path: Path
) -> None:
    corpus, place = write_corpus(tmp_path / "corpus", TEXTS), Warehouse(tmp_path / "w")
    settings = make_settings(**open_settings(server.base_url))
    planned = {row["stage"]: row for row in plan_build(corpus, place, settings)}["extract"]
    plain = make_settings(**open_settings(server.base_url, glean=0, check_share=0.0))
    cheap = {row["stage"]: row for row in plan_build(corpus, place, plain)}["extract"]
    outcome = build(corpus, place, settings)
    assert count(server) == {"merged": 2, "second": 2, "check": 2}
    assert cheap["calls"] == 2 < planned["calls"]
    steps = planned["model"]["steps"]
    assert [step["task"] for step in steps] == ["merged", "second", "check"]
    assert sum(step["tokens"] for step in steps) == pytest.approx(planned["tokens"], abs=2)
    assert [step["without"].partition(":")[0] for step in steps[1:]] == [
        *("cascade.glean = 0", "cascade.check_share = 0")
    ]
    assert planned["model"]["calls"]["low"] <= 6 <= planned["model"]["calls"]["high"]
    rows = read_snapshot(place, outcome.snapshot)["raw_triples"].to_pylist()
    assert {(r["head"], r["tail"], r["verdict"]) for r in rows} == {
        *(("Ada", "Bob", "stated"), ("Bob", "Cleo", "stated")),
        *(("Dora", "Emil", "stated"), ("Emil", "Fred", "stated")),
    }
    said = {"facts": 4, "checked": 5, "stated": 4, "partly": 0, "not_stated": 1}
    said |= {"by_rules": 0, "unanswered": 0}
    bounds = {"precision": 0.8, "low": 0.3755, "high": 0.9638}  # Wilson's score of 4 in 5
    assert outcome.report["checked"] == {**said, **bounds}
    build(corpus, place, settings)
    half = make_settings(**open_settings(server.base_url, check_share=0.5))
    build(corpus, place, half)
    assert count(server)["merged"] == count(server)["second"] == 2, "only checks were asked anew"
    left = {row["stage"]: row for row in plan_build(corpus, place, settings)}["extract"]
    assert left["calls"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_checks_without_an_answer_are_rejects_and_cells_are_no_facts_to_check(
    tmp_path: Path,
) -> None:
    table = "| Name | Born |\n| --- | --- |\n| Ada | 1815 |\n| Bob | 1820 |\n"
    corpus = write_corpus(tmp_path / "corpus", {**TEXTS, "c.md": f"{table}\nGus met Hal.\n"})
    silent = {"check"}

    def reply(body: dict[str, Any]) -> str:
        name = body["response_format"]["json_schema"]["name"]
        return "no JSON" if name in silent else answer_body(body)

    with serve(reply) as server:
        settings = make_settings(**open_settings(server.base_url))
        with pytest.raises(GateError, match=r"answered: fail: 3 of 3 .*llm_invalid") as caught:
            build(corpus, Warehouse(tmp_path / "w"), settings)
        report = caught.value.report
        assert report["checked"] == {
            **dict.fromkeys(("checked", "stated", "partly", "not_stated"), 0),
            **{"facts": 6, "by_rules": 2, "unanswered": 3},
        }
        assert "0 of the 6 facts that it read" in show_checked(report["checked"])
        silent.clear()
        report = build(corpus, Warehouse(tmp_path / "w"), settings).report
    assert (report["checked"]["unanswered"], report["checked"]["checked"]) == (0, 6)
    assert "2 more, from rules, are never checked" in show_checked(report["checked"])


@pytest.mark.slow
def test_batches_and_recordings_answer_both_as_other_calls(
    server: Loopback, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", TEXTS)
    file, replies = tmp_path / "settings.toml", tmp_path / "replies.jsonl.gz"

    def say(*words: object, warehouse: str = "w") -> Any:
        return run_json(*words, "--warehouse", tmp_path / warehouse, "--settings", file)

    given = open_settings(server.base_url)
    lines = [f"{name} = {json.dumps(value)}" for name, value in given["cascade"].items()]
    head = "\n".join(["[cascade]", *lines, '[llm]\nmodel = "m"'])
    file.write_text(f'{head}\nprovider = "openai"\nbase_url = "{server.base_url}"\n')
    for answered in (0, 2, 4):
        sent = say("batch", "submit", corpus, "--quiet")
        assert (sent["submitted"], sent["answered"]) == (2, answered)
        say("batch", "collect")
        assert say("batch", "collect")["replies"] == 2
    assert say("batch", "submit", corpus, "--quiet")["next"] == "build"
    built = say("build", corpus, "--quiet")
    assert built["checked"]["not_stated"] == 1
    assert server.calls() == 1, "the probe"
    say("cache", "--export", replies)
    file.write_text(f'{head}\nprovider = "replay"\nrecording = "{replies}"\n')
    assert say("build", corpus, "--quiet", warehouse="x")["checked"] == built["checked"]
