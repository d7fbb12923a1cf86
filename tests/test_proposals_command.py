"""`kpyramid proposals`: listed, decided on, built again; the file keeps what a person wrote."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from kpyramid.cli.builds import describe_build
from kpyramid.cli.render import print_result
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer
from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.build import BuildOutcome
from kpyramid.pipeline.report.report import describe_run
from kpyramid.pipeline.stages import complete
from kpyramid.query import open_snapshot
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from tests import commands
from tests.corpora import (
    build_corpus,
    count_recomputed,
    make_settings,
    read_snapshot,
    use_quick_models,
    write_corpus,
)
from tests.planted import GENERAL, PERSON, PLACE, Scripted, suggest
from tests.rows import each_row

PEOPLE = ["Leon Batt", "Anna Kuhn", "Karl Weiss", "Maria Lenz", "Peter Holm"]
TOWNS = ["Oslo", "Berlin", "Madrid", "Vienna", "Prague"]
TEXTS = {
    f"{number}.txt": f"{person} was born in {town}. {person} defeated {other}. "
    f"{person} praised {town}.\n"
    for number, (person, town, other) in enumerate(
        zip(PEOPLE, TOWNS, PEOPLE[1:] + PEOPLE[:1], strict=True)
    )
}
DEFEATED, PRAISED = GENERAL + "defeated", GENERAL + "praised"


def propose_twice(graph: GraphLayer, ontology: OntologyLayer, **_: object) -> Completion:
    """`praised` is clear, `defeated` is not; nothing that the ontology words already."""
    known = {w for p in ontology.schema.properties for w in (p.label, *p.alt_labels)}
    all_of_them = [
        suggest("defeated", agreement=0.5, score=0.25),
        suggest("praised", range=PLACE, score=0.75),
    ]
    return Scripted([[s for s in all_of_them if s[0]["label"] not in known]])(graph, ontology)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a warehouse in which it was built."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_quick_models(monkeypatch)
        monkeypatch.setattr(complete, "propose", propose_twice)
        write_corpus(folder / "corpus", TEXTS)
        build(folder)
    return folder


@pytest.fixture
def place(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder."""
    use_quick_models(monkeypatch)
    monkeypatch.setattr(complete, "propose", propose_twice)
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(decisions: str | None = None, **options: Any) -> Settings:
    return make_settings(complete={"decisions": decisions, **options})


def build(place: Path, settings: Settings | None = None) -> BuildOutcome:
    return build_corpus(place / "corpus", Warehouse(place / "w"), settings or make())


def call(*words: str) -> tuple[int, str]:
    done = commands.run("proposals", *words, "--warehouse", "w")
    return done.exit_code, done.output


def list_json(*words: str) -> dict[str, dict[str, Any]]:
    found = commands.run_json("proposals", *words, "--warehouse", "w")
    return {row["label"]: row for row in found["proposals"]}


def list_values(place: Path, outcome: BuildOutcome) -> dict[str, int]:
    """How many values each property has that completion may have brought."""
    rows = read_snapshot(Warehouse(place / "w"), outcome.snapshot)["instances"].to_pylist()
    return {
        iri: sum(row["property_iri"] == iri for row in rows)
        for iri in (DEFEATED, PRAISED, GENERAL + "overcame")
    }


def test_a_person_sees_what_is_proposed_and_why(place: Path) -> None:
    code, output = call()
    assert code == 0
    short = list_json()["defeated"]["short"]
    first = (
        f"id {short}  label defeated  kind property  state open  facts 5  agreement 0.5  score 0.25"
    )
    assert output.startswith(first)
    assert "50% of the facts fit its domain and range" in output
    assert output.count(" | defeated | ") == 3
    assert "ends person -> person" in output and "ends person -> populated place" in output
    assert "was born" not in output


@pytest.mark.slow
@each_row("decision, shown, said")
def test_what_is_only_like_an_entry_is_listed_so_and_gets_one_of_its_own(
    decision: str, shown: str, said: str | None, place: Path
) -> None:
    entry = f'decision = "{decision}"\nkind = "property"\nlabel = "overcame"\n'
    entry += f'domain = "{PERSON}"\nrange = "{PLACE}"\nphrases = ["defeated", "beat"]\n'
    Path("d.toml").write_text(f"[[proposal]]\n{entry}", "utf-8")
    assert shown in call("--decisions", "d.toml")[1]
    found = list_json("--decisions", "d.toml")["defeated"]
    assert found["decision"] == said
    assert call("--accept", found["short"], "--decisions", "d.toml")[0] == 0
    assert list_json("--decisions", "d.toml")["defeated"]["decision"] == "accept"
    assert list_values(place, build(place, make("d.toml")))[DEFEATED] == len(PEOPLE)


def test_sentences_wordings_and_the_definition_are_shown_on_demand(place: Path) -> None:
    _, output = call("--state", "open", "-v")
    assert "That defeated." in output
    assert "phrases defeated" in output
    lines = [line.strip() for line in output.splitlines()]
    at = next(i for i, line in enumerate(lines) if ".txt, characters " in line)
    assert " defeated " in lines[at + 1] and "|" not in lines[at + 1]
    assert "praised" not in output.replace(f"{PEOPLE[0]} praised", "")


@pytest.mark.slow
def test_an_accepted_proposal_is_in_the_next_build_with_its_instances(place: Path) -> None:
    short = list_json()["defeated"]["short"]
    code, output = call("--accept", short, "--decisions", "decided.toml")
    assert code == 0, output
    assert '[complete] decisions = "decided.toml"' in output
    assert "kpyramid build CORPUS" in output
    assert list_json("--decisions", "decided.toml")["defeated"]["decision"] == "accept"
    assert "open, to accept by the next build" in call("--decisions", "decided.toml")[1]

    outcome = build(place, make("decided.toml"))

    assert list_values(place, outcome)[DEFEATED] == len(PEOPLE)
    opened = open_snapshot("main", place / "w")
    assert opened.schema.property_by_iri[DEFEATED].comment == "That defeated."
    rows = opened.sparql(f"SELECT ?a ?b WHERE {{ ?a <{DEFEATED}> ?b }}")
    assert len(rows) == len(PEOPLE)
    found = list_json()["defeated"]
    assert (found["state"], found["decided_by"]) == ("accepted", "file")
    changed = {name for name, rows in count_recomputed(outcome).items() if rows}
    assert changed <= {"complete", "condense", "publish"}


@pytest.mark.slow
def test_a_rejected_proposal_is_gone_from_the_next_build_and_stays_away(place: Path) -> None:
    assert list_values(place, build(place))[PRAISED] == len(PEOPLE)
    short = list_json()["praised"]["short"]
    code, _ = call("--reject", short, "--note", "says nothing", "--decisions", "decided.toml")
    assert code == 0

    outcome = build(place, make("decided.toml"))

    assert list_values(place, outcome)[PRAISED] == 0
    assert PRAISED not in open_snapshot("main", place / "w").schema.property_by_iri
    found = list_json("--state", "rejected")["praised"]
    assert (found["decided_by"], found["note"]) == ("file", "says nothing")
    assert count_recomputed(build(place, make("decided.toml"))) == dict.fromkeys(
        count_recomputed(outcome), 0
    )


@pytest.mark.slow
def test_a_build_says_what_the_file_decided_and_when_it_is_left_out(
    place: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    caplog.set_level(logging.WARNING, "kpyramid")  # a command with -v before may have set it
    rows = list_json()
    call("--accept", rows["defeated"]["short"], "--decisions", "d.toml")
    call("--reject", rows["praised"]["short"], "--decisions", "d.toml")
    idle = '[[proposal]]\ndecision = "reject"\nkind = "class"\nlabel = "harbour"\n'
    Path("d.toml").write_text(Path("d.toml").read_text("utf-8") + idle, "utf-8")
    outcome = build(place, make("d.toml"))
    report: dict[str, Any] = describe_run(outcome.run, outcome.marks)
    counts = {"accept": 1, "reject": 2, "accepted": 1, "rejected": 1}
    assert report["decisions"] == {"file": "d.toml", **counts}
    print_result(describe_build(report, page="report.html"))
    said = "Decisions: d.toml, 1 accept and 2 reject; 1 proposals are accepted by them, 1 rejected."
    assert said in capsys.readouterr().out
    assert not caplog.records

    without = build(place)
    assert describe_run(without.run, without.marks)["decisions"] is None
    (warning,) = caplog.messages
    assert "ref main was built with a decisions file, which decided on 2 proposals" in warning
    build(place)
    assert len(caplog.records) == 1


def test_two_accepts_in_a_row_and_one_repeated_keep_the_text_of_the_file(place: Path) -> None:
    own = "# Reviewed by Ada.\n\n[[proposal]]   # no\ndecision = 'reject'\nkind = 'class'\n"
    own += "label = 'harbour'"
    Path("d.toml").write_text(own, "utf-8")
    rows = list_json()
    assert call("--accept", rows["defeated"]["short"], "--decisions", "d.toml")[0] == 0
    once = Path("d.toml").read_text("utf-8")
    assert once.startswith(own)
    assert call("--accept", rows["praised"]["proposal_id"], "--decisions", "d.toml")[0] == 0
    twice = Path("d.toml").read_text("utf-8")
    assert twice.startswith(once)
    code, output = call("--accept", rows["praised"]["short"], "--decisions", "d.toml")
    assert code == 0 and "decided so already" in output
    assert Path("d.toml").read_text("utf-8") == twice
    values = list_values(place, build(place, make("d.toml")))
    assert values[DEFEATED] == values[PRAISED] == len(PEOPLE)


@pytest.mark.slow
def test_the_file_may_lie_in_another_folder_and_comes_from_the_settings(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("review") / "of" / "may.toml"
    Path("kp.toml").write_text(f"[complete]\ndecisions = '{path}'\n", "utf-8")
    short = list_json()["defeated"]["short"]
    code, output = call("--accept", short, "--settings", "kp.toml", "--json")
    assert code == 0, output
    said = json.loads(output)
    assert said["file"] == str(path)
    assert [(d["label"], d["iri"]) for d in said["decided"]] == [("defeated", DEFEATED)]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert list_values(place, build(place, make(str(path))))[DEFEATED] == len(PEOPLE)


def test_a_file_that_was_not_there_is_named_with_its_folder(place: Path) -> None:
    rows = list_json()
    said = [
        call("--accept", rows[label]["short"], "--decisions", "d.toml")[1]
        for label in ("defeated", "praised")
    ]
    assert f"{place / 'd.toml'} is a new file.".casefold() in said[0].casefold()
    assert "new file" not in said[1] and "praised" in said[1]


def test_a_link_to_the_file_stays_a_link(place: Path) -> None:
    Path("real.toml").write_text("", "utf-8")
    Path("link.toml").symlink_to("real.toml")
    assert call("--accept", list_json()["defeated"]["short"], "--decisions", "link.toml")[0] == 0
    assert Path("link.toml").is_symlink()
    assert "defeated" in Path("real.toml").read_text("utf-8")


def test_a_file_that_contradicts_the_ontology_stops_the_build_before_any_work(place: Path) -> None:
    call("--accept", list_json()["defeated"]["short"], "--decisions", "d.toml")
    text = Path("d.toml").read_text("utf-8")
    Path("d.toml").write_text(text.replace(PERSON, GENERAL + "Knight"), "utf-8")
    runs = len(list((place / "w" / "runs").iterdir()))
    with pytest.raises(InputError, match=r"d\.toml, entry 1 .*Knight> is no class"):
        build(place, make("d.toml"))
    assert len(list((place / "w" / "runs").iterdir())) == runs
    with pytest.raises(SettingsError, match="there is no file"):
        build(place, make("not-there.toml"))


@each_row("words, code, said")
def test_what_goes_wrong_is_said_with_its_exit_code(
    words: tuple[str, ...], code: int, said: str, place: Path
) -> None:
    found, output = call(*words)
    assert (found, said in output) == (code, True), output
    assert not Path("d.toml").exists()


def test_a_broken_file_is_left_as_it_is(place: Path) -> None:
    Path("d.toml").write_text("[[proposal]\n", "utf-8")
    code, output = call("--accept", list_json()["defeated"]["short"], "--decisions", "d.toml")
    assert code == 3 and "not valid TOML" in output
    assert Path("d.toml").read_text("utf-8") == "[[proposal]\n"
