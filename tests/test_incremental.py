"""A changed corpus costs what changed; what nobody supports any more is gone."""

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.graph.names import parse_name
from kpyramid.keys import content_id
from kpyramid.pipeline import publish
from kpyramid.pipeline.gates import Judgement
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.settings import Settings
from kpyramid.snapshot.diff import Counts, compare
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries
from tests.corpora import (
    SETTINGS,
    TEXTS,
    HashEmbedder,
    build_corpus,
    copy_shared_build,
    count_recomputed,
    hash_tree,
    list_marks,
    read_snapshot,
    write_corpus,
)
from tests.rows import each_row

EDITED = TEXTS["batt.txt"].replace("Leon Batt was a Norwegian", "Leon Batt was a Danish")
CHANGES: Mapping[str, Mapping[str, str]] = {
    "deleted": {k: v for k, v in TEXTS.items() if k != "zorblax.txt"},
    "renamed": {("moved.txt" if k == "batt.txt" else k): v for k, v in TEXTS.items()},
    "fuller name": {**TEXTS, "new.txt": "Dr. Leon Batt founded Elk Horn."},
    "all at once": {
        **{k: v for k, v in TEXTS.items() if k != "zorblax.txt"},
        "batt.txt": EDITED,
        "new.txt": "Hugh Marsh founded Elk Horn.",
    },
}


pytestmark = pytest.mark.usefixtures("quick_models")


def list_texts(tables: Mapping[str, pa.Table], owners: set[str]) -> set[str]:
    rows = tables["vectors"].select(["owner_table", "text"]).to_pylist()
    return {row["text"] for row in rows if row["owner_table"] in owners}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_corpus_computes_the_new_texts_alone_and_equals_a_build_from_scratch(
    tmp_path: Path, name: str
) -> None:
    warehouse, before = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "corpus", CHANGES[name])
    old = read_snapshot(warehouse, before)
    known = set(old["vectors"]["text"].to_pylist())
    if name != "renamed":
        shutil.rmtree(warehouse.cache / "rows" / "extractor")  # the former run's tables do
    HashEmbedder.history.clear()

    outcome = build_corpus(corpus, warehouse)

    new = read_snapshot(warehouse, outcome.snapshot)
    fresh = {*new["documents"]["text"].to_pylist()} - {*old["documents"]["text"].to_pylist()}
    counts = count_recomputed(outcome)
    assert counts["chunk"] == counts["extract"] == len(fresh)
    embedded = list_texts(new, {"chunks", "entities", "triples"})
    assert counts["embed"] == len({*HashEmbedder.history} & (embedded - known)) > -1
    assert embedded - known <= {*HashEmbedder.history}
    assert len(HashEmbedder.history) == len({*HashEmbedder.history}), "embedded twice"
    assert not {*HashEmbedder.history} & known, "embedded though it was known"
    assert (counts["extract"] == 0) == (name in {"renamed", "deleted"})

    snapshot, nothing = outcome.snapshot, Warehouse(tmp_path / "new")
    anew = build_corpus(corpus, nothing).snapshot
    if name != "fuller name":
        assert anew == snapshot
        return
    # A build from nothing gives the entity another id; names go on from the ref's snapshot.
    same, _ = copy_shared_build(tmp_path / "same")
    shutil.rmtree(same.cache)
    assert build_corpus(corpus, same).snapshot == snapshot
    folders = nothing.snapshots / anew, warehouse.snapshots / snapshot
    with compare(*(Snapshot(folder, scope=EVERYTHING) for folder in folders)) as found:
        assert found.count("facts") == Counts(), "facts that say the same are one"
    past, now = (
        {
            form: row["entity_id"]
            for row in read_snapshot(warehouse, each)["entities"].to_pylist()
            for form in row["surface_forms"]
        }
        for each in (before, snapshot)
    )
    assert now["Dr. Leon Batt"] == now["Leon Batt"] == past["Leon Batt"]
    assert content_id("entity", parse_name("Dr. Leon Batt").key) not in now.values()


def edit(texts: dict[str, str], chooser: random.Random) -> None:
    """Adds, takes away or renames a document, or gives it another one's first sentence."""
    name, other = chooser.sample(sorted(texts), 2)
    match chooser.randrange(4):
        case 0:
            texts[f"{chooser.randrange(10**6)}.txt"] = texts[name].replace("Batt", "Marsh")
        case 1 if len(texts) > 3:
            del texts[name]
        case 2:
            texts[f"{chooser.randrange(10**6)}.txt"] = texts.pop(name)
        case _:
            texts[name] += " " + texts[other].partition(". ")[0] + "."


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_nights_of_random_edits_equal_builds_from_scratch(tmp_path: Path, seed: int) -> None:
    chooser, texts = random.Random(seed), dict(TEXTS)
    warehouse, _ = copy_shared_build(tmp_path / "w")
    for night in range(2):
        for _ in range(chooser.randint(1, 3)):
            edit(texts, chooser)
        corpus = write_corpus(tmp_path / f"corpus{night}", texts)
        same = Warehouse(tmp_path / f"same{night}")  # names go on from the ref's snapshot
        shutil.copytree(warehouse.root, same.root)
        shutil.rmtree(same.cache)

        snapshots = [build_corpus(corpus, one).snapshot for one in (warehouse, same)]

        trees = [
            hash_tree(one.snapshots / name)
            for one, name in zip((warehouse, same), snapshots, strict=True)
        ]
        assert trees[0] == trees[1]


@pytest.mark.slow
def test_a_label_recomputes_no_fact_and_judges_no_ontology_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str, labels: list[str]) -> Path:
        rows = [{"id": k, "text": text, "access": labels} for k, text in TEXTS.items()]
        lines = [json.dumps(row) for row in rows]
        return write_corpus(tmp_path / name, {"texts.jsonl": "\n".join(lines)})

    warehouse = Warehouse(tmp_path / "w")
    before = build_corpus(write("public", []), warehouse)
    with monkeypatch.context() as patch:
        patch.setattr(publish, "judge_ontology", None)  # a call would fail
        outcome = build_corpus(write("hidden", ["board"]), warehouse)

    assert count_recomputed(outcome) == {
        stage.name: {"ingest": len(TEXTS), "publish": 1}.get(stage.name, 0) for stage in PIPELINE
    }
    assert outcome.snapshot != before.snapshot
    rows = read_snapshot(warehouse, outcome.snapshot)["documents"].to_pylist()
    assert [row["access"] for row in rows] == [["board"]] * len(TEXTS)
    verdicts = [outcome.report["gates"], before.report["gates"]]
    assert verdicts[0]["consistent"] == verdicts[1]["consistent"]
    anew = build_corpus(tmp_path / "hidden", Warehouse(tmp_path / "new"))
    assert anew.snapshot == outcome.snapshot


@pytest.mark.slow
def test_what_was_not_run_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["not run: HermiT was stopped", "pass"])

    def judge(*_: object, **__: object) -> Judgement:
        return Judgement({"consistent": next(said), "shapes": "pass"})

    monkeypatch.setattr(publish, "judge_ontology", judge)
    for labels, verdict in (([], "not run: HermiT was stopped"), (["board"], "pass"), ([], "pass")):
        row = {"id": "a", "text": TEXTS["batt.txt"], "access": labels}
        corpus = write_corpus(tmp_path / "corpus", {"texts.jsonl": json.dumps(row)})
        outcome = build_corpus(corpus, Warehouse(tmp_path / "w"))
        assert outcome.report["gates"]["consistent"] == verdict


@pytest.mark.slow
def test_what_only_a_deleted_document_said_is_gone_from_every_file(tmp_path: Path) -> None:
    warehouse, before = copy_shared_build(tmp_path / "w")
    said_in = {
        name
        for name, table in read_snapshot(warehouse, before).items()
        if "Quuxville" in str(table.to_pylist()) or "Zorblax" in str(table.to_pylist())
    }
    assert {"documents", "entities", "chunks", "claims", "raw_triples", "vectors"} <= said_in
    zorblax = [
        row["entity_id"]
        for row in read_snapshot(warehouse, before)["entities"].to_pylist()
        if "Zorblax" in row["name"]
    ]
    used_in = {
        name
        for name, table in read_snapshot(warehouse, before).items()
        if zorblax[0] in str(table.to_pylist())
    }
    assert {"triples", "instances", "condensed"} <= used_in

    corpus = write_corpus(tmp_path / "corpus", CHANGES["deleted"])
    snapshot = build_corpus(corpus, warehouse).snapshot

    for name, table in read_snapshot(warehouse, snapshot).items():
        text = str(table.to_pylist())
        assert not [word for word in ("Zorblax", "Quuxville", *zorblax) if word in text], name
    for path in (warehouse.snapshots / snapshot / "ontology").iterdir():
        assert "Zorblax" not in path.read_text("utf-8")


def test_an_unchanged_corpus_computes_nothing_and_commits_nothing(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "moved")
    cache = hash_tree(warehouse.cache)
    HashEmbedder.history.clear()

    outcome = build_corpus(corpus, warehouse)

    assert outcome.snapshot == snapshot
    assert count_recomputed(outcome) == {stage.name: 0 for stage in PIPELINE}
    assert HashEmbedder.history == []
    assert len(list_entries(warehouse, "main")) == 1
    assert [path.name for path in warehouse.snapshots.iterdir()] == [snapshot]
    assert hash_tree(warehouse.cache) == cache


class _StageError(Exception):
    """A stage was run."""


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()  # a snapshot may share its bytes
    path.write_bytes(data[:-9] + b"x" + data[-8:])


@each_row("change, runs")
def test_a_night_that_changes_nothing_runs_no_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, runs: bool
) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    corpus, settings = write_corpus(tmp_path / "corpus"), SETTINGS
    first = build_corpus(corpus, warehouse)
    if change == "the folder":
        corpus = corpus.rename(tmp_path / "moved")
    elif change == "a document":
        write_corpus(corpus, CHANGES["fuller name"])
    elif change == "a setting":
        settings = vary("complete", seed=7)
    elif change == "a limit of a gate":
        settings = vary("publish", min_kept_share=0.5)
    elif change == "a check":
        (tmp_path / "checks.toml").write_text("")
        settings = vary("publish", checks=str(tmp_path / "checks.toml"))
    elif change == "a stored result":
        damage(next(warehouse.cache.glob("results/resolve/*/triples.parquet")))
    elif change == "the snapshot":
        damage(warehouse.snapshots / snapshot / "tables/claims.parquet")
    elif change == "the code":
        monkeypatch.setattr("kpyramid.pipeline.build.read_git_sha", lambda: "another")

    def refuse(*_: object, **__: object) -> None:
        raise _StageError

    monkeypatch.setattr("kpyramid.pipeline.runner.run_stage", refuse)
    if runs:
        with pytest.raises(_StageError):
            build_corpus(corpus, warehouse, settings)
        return
    outcome = build_corpus(corpus, warehouse, settings)

    before, after = (
        json.loads((made.run.folder / "report.json").read_bytes()) for made in (first, outcome)
    )
    assert after.keys() == before.keys()
    differing = {name for name, said in after.items() if said != before[name]}
    assert differing <= {
        *("run", "corpus", "started", "ended", "took", "seconds", "stages", "trend", "gates")
    }
    pages = [run.folder / "report.html" for run in (first.run, outcome.run)]
    assert pages[0].read_text().count("<svg") == pages[1].read_text().count("<svg") > 0


def vary(section: str, **values: object) -> Settings:
    part = replace(getattr(SETTINGS, section), **values)
    return replace(SETTINGS, **{section: part})


ORDER = [stage.name for stage in PIPELINE]


@pytest.mark.parametrize(
    ("settings", "first", "silent"),
    [
        (vary("complete", seed=7), "complete", set()),
        pytest.param(vary("complete", min_support=3), "complete", set(), marks=pytest.mark.slow),
        pytest.param(
            vary("condense", anchor_similarity=0.99), "condense", set(), marks=pytest.mark.slow
        ),
        (vary("ingest", max_document_bytes=10**6), "ingest", {*ORDER[1:5]}),
        (vary("chunk", max_tokens=12), "chunk", set()),
    ],
    ids=["seed", "min_support", "anchor_similarity", "max_document_bytes", "max_tokens"],
)
def test_changed_settings_rerun_only_what_depends_on_them(
    tmp_path: Path, settings: Settings, first: str, silent: set[str]
) -> None:
    warehouse, before = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "corpus")
    old = list_marks(build_corpus(corpus, warehouse))

    outcome = build_corpus(corpus, warehouse, settings)

    new = list_marks(outcome)
    changed = {name for name in ORDER if old[name].key != new[name].key}
    assert first in changed
    assert not changed & {*ORDER[: ORDER.index(first)], *silent}
    assert all(new[name].recomputed == 0 for name in set(ORDER) - changed)
    assert new[first].recomputed > 0
    assert outcome.snapshot != before


def test_the_plan_says_what_the_build_then_computes(tmp_path: Path) -> None:
    warehouse, _ = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "corpus", CHANGES["all at once"])
    stored = hash_tree(warehouse.root)

    plan = {str(row["stage"]): row for row in plan_build(corpus, warehouse, SETTINGS)}

    assert hash_tree(warehouse.root) == stored
    counts = count_recomputed(build_corpus(corpus, warehouse))
    for stage in ("ingest", "chunk", "extract"):
        assert plan[stage]["rows"] - plan[stage]["cached"] == counts[stage]  # type: ignore[operator]
    after = plan_build(corpus, warehouse, SETTINGS)
    assert all(row["rows"] == row["cached"] is not None for row in after)
