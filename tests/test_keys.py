"""Every ingredient of a result is in its key: each is flipped in turn, and only that key moves."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.extraction.types import Titled
from kpyramid.keys import JsonValue, canonical_json, content_id, hash_value
from kpyramid.pipeline import fingerprints
from kpyramid.pipeline.stage import FUNCTIONS, PIPELINE, Stage
from kpyramid.settings import Settings
from kpyramid.storage import contracts, identity
from kpyramid.storage.declarations import locate_declarations
from tests.corpora import ROOT, make_settings
from tests.imports import list_imports, locate_module
from tests.processes import run_python
from tests.rows import read_bodies

PARSER = {"extractor", "annotator", "extract", "induce"}
EMBEDDING = {"embedder", "resolve", "embed", "induce", "complete", "condense"}
ONTOLOGY = {"induce", "complete", "condense", "publish"}
LEXICON = {"induce", "resolve", "complete", "condense"}


def key_stage(stage: Stage, settings: Settings, inputs: dict[str, JsonValue]) -> str:
    return fingerprints.key_inputs(stage, settings, inputs)


def compute_keys(settings: Settings, text: str = "a text", changed: str = "") -> dict[str, str]:
    """The key of every function for one text, and of every stage for one input per table."""
    functions = {
        f.name: fingerprints.key_row(fingerprints.fingerprint_function(f, settings), text)
        for f in fingerprints.FUNCTIONS
    }
    stages = {
        s.name: key_stage(
            s, settings, {table: ["2" if table == changed else "1"] for table in s.reads}
        )
        for s in PIPELINE
    }
    return functions | stages


def test_title_is_part_of_the_key_of_a_titled_text() -> None:
    titled = [Titled("a text", title) for title in ("", "A title", "B title")]
    assert len({fingerprints.key_row("f", row) for row in (*titled, "a text")}) == 4


@dataclass
class Bench:
    """Copies of all files that keys depend on, free to be changed."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    settings: Settings

    def touch(self, path: str) -> None:
        with (self.folder / path).open("ab") as file:
            file.write(b"\n# changed")
        forget()


def forget() -> None:
    for function in (
        identity.identify_parser,
        identity.identify_model,
        contracts.hash_contract,
    ):
        function.cache_clear()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    (tmp_path / "parser" / "model").mkdir(parents=True)
    (tmp_path / "parser" / "model" / "config.cfg").write_text("config")
    (tmp_path / "model").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / "model" / name).write_text(name)
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    shutil.copy(locate_declarations("ontology")["general"], tmp_path / "general.ttl")
    shutil.copytree(ROOT / "etl" / "kpyramid" / "graph" / "synonyms", tmp_path / "paraphrase")
    monkeypatch.setattr(fingerprints, "_SYNONYMS", tmp_path / "paraphrase")
    monkeypatch.setattr(identity, "_find_package", lambda name: tmp_path / "parser")
    monkeypatch.setattr(
        contracts,
        "locate_declarations",
        lambda kind: {path.stem: path for path in (tmp_path / kind).glob("*.toml")},
    )
    monkeypatch.setattr(fingerprints, "library_version", cache(identity.library_version))
    forget()
    settings = make_settings(
        embed={"model": str(tmp_path / "model")},
        induce={"ontology": str(tmp_path / "general.ttl")},
    )
    yield Bench(tmp_path, monkeypatch, settings)
    forget()


def change_version(kind: str, name: str) -> Callable[[Bench], dict[str, str]]:
    def flip(bench: Bench) -> dict[str, str]:
        if kind == "function":
            changed = tuple(
                replace(f, version=f.version + 1) if f.name == name else f for f in FUNCTIONS
            )
            bench.monkeypatch.setattr(fingerprints, "FUNCTIONS", changed)
            return compute_keys(bench.settings)
        keys = compute_keys(bench.settings)
        (stage,) = (s for s in PIPELINE if s.name == name)
        newer = replace(stage, version=stage.version + 1)
        inputs = {table: ["1"] for table in stage.reads}
        key = key_stage(newer, bench.settings, inputs)
        return keys | {name: key}

    return flip


def change_library(name: str) -> Callable[[Bench], dict[str, str]]:
    def flip(bench: Bench) -> dict[str, str]:
        real = fingerprints.library_version
        bench.monkeypatch.setattr(
            fingerprints, "library_version", lambda d: "99" if d == name else real(d)
        )
        return compute_keys(bench.settings)

    return flip


def change_file(path: str) -> Callable[[Bench], dict[str, str]]:
    def flip(bench: Bench) -> dict[str, str]:
        bench.touch(path)
        return compute_keys(bench.settings)

    return flip


def change_setting(section: str, name: str) -> Callable[[Bench], dict[str, str]]:
    def flip(bench: Bench) -> dict[str, str]:
        part = getattr(bench.settings, section)
        value = getattr(part, name)
        other: object = None
        if name == "priority":
            other = "log_ratio"
        elif name == "phrases":
            other = "names"
        elif name == "columns":
            other = {"subject": "name"}
        elif isinstance(value, tuple):
            other = (*value, "more")
        elif value is None:
            other = "latin-1"
        elif isinstance(value, str):
            other = value + "x"
        elif isinstance(value, float):
            other = value / 2
        else:
            other = value + 1
        changed = replace(bench.settings, **{section: replace(part, **{name: other})})
        return compute_keys(changed)

    return flip


def demand_confidence(bench: Bench) -> dict[str, str]:
    publish = replace(bench.settings.publish, min_confidence=0.5)
    return compute_keys(replace(bench.settings, publish=publish))


def change_form(bench: Bench) -> dict[str, str]:
    bench.monkeypatch.setattr(contracts, "_VECTOR_FORM", b"other\n")
    forget()
    return compute_keys(bench.settings)


def users_of_library(name: str) -> set[str]:
    functions = {f.name for f in FUNCTIONS if name in f.libraries}
    stages = {s.name for s in PIPELINE if name in s.libraries or functions & {*s.ports}}
    return {s.name for s in PIPELINE} if name == "pyarrow" else functions | stages


NOT_FLIPPED = {
    ("extract", "language"),  # it has one value yet
    ("complete", "decisions"),  # the file stands in for its path
    ("complete", "naming"),  # these three need a model: see below
    ("condense", "mode"),
    ("condense", "summarise"),
}


def list_flips() -> Iterator[tuple[str, Callable[[Bench], dict[str, str]], set[str]]]:
    """Name of the ingredient, how to change it, whose keys must change (and nobody else's)."""
    for function in FUNCTIONS:
        users = {function.name} | {s.name for s in PIPELINE if function.name in s.ports}
        yield f"version of {function.name}", change_version("function", function.name), users
    for stage in PIPELINE:
        yield f"version of {stage.name}", change_version("stage", stage.name), {stage.name}
    names = {n for x in (*FUNCTIONS, *PIPELINE) for n in x.libraries} | {"pyarrow"}
    for name in sorted(names):
        yield f"library {name}", change_library(name), users_of_library(name)
    for name in sorted(contracts.load_contracts()):
        users = {s.name for s in PIPELINE if name in {*s.reads, *s.writes}}
        yield f"contract {name}", change_file(f"schemas/{name}.toml"), users
    users = {s.name for s in PIPELINE if "vectors" in {*s.reads, *s.writes}}
    yield "form of vectors", change_form, users
    yield "parser files", change_file("parser/model/config.cfg"), PARSER
    yield "model file", change_file("model/model.onnx"), EMBEDDING
    yield "tokenizer file", change_file("model/tokenizer.json"), EMBEDDING
    yield "ontology file", change_file("general.ttl"), ONTOLOGY
    yield "lexicon file", change_file("paraphrase/lexicon/lexicon.tsv"), LEXICON
    yield "WordNet file", change_file("paraphrase/wordnet/extract.txt.gz"), LEXICON
    yield (
        "row text",
        lambda bench: compute_keys(bench.settings, text="a text "),
        {f.name for f in FUNCTIONS},
    )
    for name in sorted({table for stage in PIPELINE for table in stage.reads}):
        users = {s.name for s in PIPELINE if name in s.reads}
        yield (
            f"input {name}",
            lambda bench, name=name: compute_keys(bench.settings, changed=name),
            users,
        )
    yield "setting publish.min_confidence", demand_confidence, {"resolve", "induce"}
    for section in fields(Settings):
        made = {f.name for f in FUNCTIONS if f.section == section.name}
        owners = {section.name} | made | {s.name for s in PIPELINE if made & {*s.ports}}
        for part in fields(getattr(Settings(), section.name)):
            if section.name in {"embed", "induce", "cascade", "llm"}:
                # Files stand in for the first two, the others matter where a model takes part:
                # see below.
                continue
            if section.name in {"index", "query", "publish", "evaluate"}:
                # No stage's result depends on how it is indexed, asked or judged, see below for
                # what is published.
                continue
            if (section.name, part.name) in NOT_FLIPPED:
                continue
            yield (
                f"setting {section.name}.{part.name}",
                change_setting(section.name, part.name),
                owners,
            )


FLIPS = list(list_flips())
EXTRAS_OF = {
    f"library {name}": ("files",) for name in ("kreuzberg", "mwparserfromhell", "python-calamine")
}


@pytest.mark.parametrize(
    ("flip", "owners"),
    [
        pytest.param(*f[1:], id=f[0], marks=pytest.mark.needs(*EXTRAS_OF.get(f[0], ())))
        for f in FLIPS
    ],
)
def test_each_ingredient_changes_exactly_the_keys_that_depend_on_it(
    bench: Bench, flip: Callable[[Bench], dict[str, str]], owners: set[str]
) -> None:
    before = compute_keys(bench.settings)
    forget()
    assert compute_keys(bench.settings) == before

    after = flip(bench)

    assert {name for name in before if before[name] != after[name]} == owners


MODEL_SETTINGS = make_settings(
    cascade={step: "llm" for step in ("paraphrase", "entities", "relations", "disambiguation")},
    complete={"naming": "llm"},
    condense={"mode": "llm", "summarise": "llm"},
    llm={"provider": "openai", "model": "a-model"},
)
MODEL_FLIPS = read_bodies("keys.model_flips")


@pytest.mark.parametrize(("section", "values", "owners"), MODEL_FLIPS, ids=str)
def test_a_models_settings_change_the_keys_of_the_stages_that_ask_it(
    section: str, values: dict[str, object], owners: list[str]
) -> None:
    parts = ("cascade", "complete", "condense", "llm")
    given = {name: asdict(getattr(MODEL_SETTINGS, name)) for name in parts}
    given[section] |= values

    before, after = compute_keys(MODEL_SETTINGS), compute_keys(make_settings(**given))

    assert {name for name in before if before[name] != after[name]} == {*owners}


def test_without_a_model_its_settings_change_nothing() -> None:
    other = make_settings(cascade={"domain": "d", "mode": "paper"}, llm={"model": "m", "seed": 3})

    assert compute_keys(other) == compute_keys(make_settings())


NO_INGREDIENT = read_bodies("keys.no_ingredient")
DISTRIBUTIONS = read_bodies("keys.distributions")


@cache
def reach(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """The modules of kpyramid, and the packages of others, that one reaches by all it imports."""
    modules, packages, queue = {module}, set[str](), [module]
    while queue:
        path = locate_module(queue.pop())
        assert path is not None
        for name in list_imports(path):
            top = name.partition(".")[0]
            if top == "kpyramid":
                ours = {n for n in (name.rpartition(".")[0], name) if locate_module(n)} - modules
                modules |= ours
                queue += ours
            elif top not in sys.stdlib_module_names:
                packages.add(top)
    return frozenset(modules), frozenset(packages)


@pytest.mark.parametrize("stage", PIPELINE, ids=lambda stage: stage.name)
def test_every_library_that_a_stage_reaches_is_in_its_key(stage: Stage) -> None:
    _, packages = reach(f"kpyramid.pipeline.stages.{stage.name}")
    needed = {DISTRIBUTIONS.get(name, name) for name in packages - NO_INGREDIENT.keys()}
    assert needed <= {"pyarrow", *stage.libraries}


def test_the_lexicon_is_in_the_key_of_every_stage_that_reaches_it() -> None:
    lexicon = {"kpyramid.graph.synonyms.lexicon", "kpyramid.graph.synonyms.words"}
    reached = {s.name: reach(f"kpyramid.pipeline.stages.{s.name}")[0] for s in PIPELINE}
    assert {name for name, modules in reached.items() if lexicon & modules} == LEXICON


def test_a_model_and_an_ontology_that_only_moved_keep_their_keys(bench: Bench) -> None:
    before = compute_keys(bench.settings)
    moved = bench.folder / "elsewhere"
    moved.mkdir()
    (bench.folder / "model").rename(moved / "model")
    (bench.folder / "general.ttl").rename(moved / "general.ttl")
    settings = make_settings(
        embed={"model": str(moved / "model")}, induce={"ontology": str(moved / "general.ttl")}
    )

    assert compute_keys(settings) == before


@pytest.mark.slow
def test_keys_are_the_same_in_every_process(tmp_path: Path) -> None:
    script = (
        "import json; from tests.test_keys import *; print(json.dumps(compute_keys(Settings())))"
    )
    seen = []
    for seed, folder in (("1", tmp_path), ("2", Path("/"))):
        printed = run_python(script, env={"PYTHONHASHSEED": seed}, cwd=folder)
        seen.append(json.loads(printed))

    assert seen[0] == seen[1] == compute_keys(Settings())


def test_the_form_of_an_id_never_changes_unnoticed() -> None:
    assert content_id("doc", "ä", None, 1.5, {"b": 1, "a": [True]}) == "doc-5dd960de3deb0c95e0d7"


def test_the_parts_of_an_id_do_not_run_together() -> None:
    assert content_id("x", "ab", "c") != content_id("x", "a", "bc")
    assert content_id("x", "1") != content_id("x", 1)
    assert content_id("x", None) != content_id("x", "")
    assert content_id("x") != content_id("y")


def test_what_is_no_json_number_has_no_key() -> None:
    with pytest.raises(ValueError, match="JSON"):
        hash_value(float("nan"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=8,
)


@given(JSON, JSON)
def test_values_have_one_key_exactly_when_they_are_equal(one: object, other: object) -> None:
    same = repr(_sort(one)) == repr(_sort(other))
    assert (canonical_json(one) == canonical_json(other)) == same
    assert canonical_json(json.loads(canonical_json(one))) == canonical_json(one)


def _sort(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value)}
    return [_sort(item) for item in value] if isinstance(value, list) else value
