"""The layers point inward, stages are what `pipeline.py` declares."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kpyramid.pipeline import FUNCTIONS, PIPELINE, Stage

PACKAGE = Path(__file__).parent.parent / "etl" / "kpyramid"
MODULES = sorted(PACKAGE.rglob("*.py"))
STAGES = PACKAGE / "stages"

# What each module or folder of the package may import from the package, inner layers first.
# A line names only lines above it, so there are no cycles.
LAYERS: dict[str, str] = {
    "errors": "",
    "keys": "",
    "pipeline": "",
    "numerics": "",
    "declared": "errors",
    "contracts": "declared errors keys",
    "model_settings": "",
    "settings": "errors keys model_settings",
    "warehouse": "contracts errors keys",
    "llm": "errors keys model_settings settings warehouse",
    "embeddings": "errors keys llm model_settings settings",
    "extraction": "errors keys llm model_settings settings",
    "resolution": "embeddings errors extraction keys llm numerics",
    "ontology": "declared errors keys",
    "induction": "embeddings errors extraction keys llm model_settings numerics ontology settings",
    "paraphrase": "declared embeddings errors extraction keys",
    "completion": (
        "embeddings errors extraction induction keys llm model_settings numerics ontology "
        "paraphrase settings"
    ),
    "condensation": (
        "embeddings errors extraction keys llm model_settings numerics ontology paraphrase settings"
    ),
    "sources": "errors keys settings",
    "identity": "declared errors keys settings",
    "fingerprints": (
        "completion condensation contracts declared extraction identity induction keys llm "
        "model_settings ontology pipeline settings"
    ),
    "extractions": "errors extraction identity settings",
    "stages": (
        "completion condensation contracts embeddings errors extraction induction keys llm "
        "numerics ontology paraphrase resolution settings sources"
    ),
    "indexing": (
        "contracts embeddings errors extraction identity keys numerics ontology settings warehouse"
    ),
    "query": (
        "contracts embeddings errors extraction identity indexing keys llm model_settings "
        "numerics ontology settings warehouse"
    ),
    "answering": ("embeddings errors extraction indexing keys ontology query settings warehouse"),
    "evaluation": (
        "embeddings errors extraction identity induction keys llm numerics ontology query "
        "resolution settings"
    ),
    "gating": "errors evaluation keys query settings warehouse",
    "models": "errors extraction keys llm settings warehouse",
    "workers": "errors extraction",
    "cached": "embeddings errors fingerprints llm pipeline settings warehouse",
    "ports": (
        "cached completion condensation declared embeddings errors extraction fingerprints "
        "induction keys llm models ontology pipeline resolution settings warehouse workers"
    ),
    "runs": "errors keys settings warehouse",
    "publishing": (
        "cached condensation contracts declared errors fingerprints gating identity indexing keys "
        "models ontology paraphrase pipeline ports runs settings stages warehouse"
    ),
    "runner": (
        "contracts errors fingerprints keys llm models pipeline ports publishing runs sources "
        "warehouse"
    ),
    "batching": "keys llm models runs settings warehouse",
    "forecast": (
        "cached completion condensation contracts embeddings extraction induction keys llm models "
        "pipeline ports settings sources stages warehouse"
    ),
    "planning": (
        "extraction fingerprints forecast keys llm pipeline ports settings sources warehouse"
    ),
    "reporting": "completion errors extraction induction keys ontology",
    "report": "completion contracts errors keys llm pipeline reporting runs warehouse",
    "build": (
        "errors gating keys models planning pipeline ports report runner runs settings warehouse"
    ),
    "console": "pipeline ports query runs",
    "commands": (
        "batching build completion console declared errors evaluation keys llm model_settings "
        "models ontology pipeline planning query report runner runs settings warehouse"
    ),
    "cli": (
        "build commands console errors extractions pipeline planning query report runner settings "
        "warehouse"
    ),
    "__init__": "query",
    "__main__": "cli",
}

HEAVY = ("spacy", "sklearn", "owlready2", "pyarrow", "duckdb", "openai", "numpy", "pydantic")
RDF_LIBRARIES = {"owlready2", "rdflib", "pyoxigraph", "pyshacl"}
SHARED_BY_STAGES = {
    *("__init__", "derivations", "duplicates", "facts", "gain", "graph", "growth", "instances"),
    *("reading", "stated", "tables"),
}
"""Modules in `stages/` that are no stage."""


def name_module(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def find_unit(path: Path) -> str:
    """The line of `LAYERS` that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def list_imports(path: Path) -> Iterator[str]:
    """The dotted names that a file imports, wherever in the file."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_module(path)}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def list_public_functions(path: Path) -> list[ast.FunctionDef]:
    body = parse(path).body
    return [n for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]


def test_every_module_has_a_layer_and_every_layer_a_module() -> None:
    assert {find_unit(path) for path in MODULES} == LAYERS.keys()


def test_layers_name_only_layers_above_them() -> None:
    known: set[str] = set()
    for unit, allowed in LAYERS.items():
        assert set(allowed.split()) <= known, unit
        known.add(unit)


def test_imports_stay_within_the_allowed_layers() -> None:
    reaching = {}
    for path in MODULES:
        unit = find_unit(path)
        inner = {name.split(".")[1] for name in list_imports(path) if name.startswith("kpyramid.")}
        if outside := inner - {unit} - set(LAYERS.get(unit, "").split()):
            reaching[name_module(path)] = sorted(outside)
    assert reaching == {}


def test_rdf_libraries_are_imported_by_the_ontology_folder_only() -> None:
    importing = [
        name_module(path)
        for path in MODULES
        if find_unit(path) != "ontology"
        and {name.split(".")[0] for name in list_imports(path)} & RDF_LIBRARIES
    ]
    assert importing == []


def test_no_module_prints() -> None:
    calls = (
        (path, node.func)
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
    )
    printing = [
        f"{name_module(path)}:{function.lineno}"
        for path, function in calls
        if isinstance(function, ast.Name) and function.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize("module", ["kpyramid.pipeline", "kpyramid.errors"])
def test_what_a_dag_file_imports_is_cheap(module: str) -> None:
    code = f"import sys, {module}; print(*(set({HEAVY}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_stage_modules_are_the_declared_stages() -> None:
    modules = {path.stem for path in STAGES.glob("*.py")} - SHARED_BY_STAGES
    assert modules == {stage.name for stage in PIPELINE}


@pytest.mark.parametrize("stage", PIPELINE, ids=lambda stage: stage.name)
def test_stage_has_one_public_function_with_the_declared_parameters(stage: Stage) -> None:
    functions = list_public_functions(STAGES / f"{stage.name}.py")
    assert [function.name for function in functions] == ["run"]
    parameters = functions[0].args
    assert tuple(p.arg for p in parameters.args) == stage.reads
    assert {p.arg for p in parameters.kwonlyargs} == set(stage.ports)
    assert parameters.vararg is None
    assert parameters.kwarg is None


def test_every_table_that_is_read_was_written_by_an_earlier_stage() -> None:
    written: set[str] = set()
    for stage in PIPELINE:
        assert set(stage.reads) <= written, stage.name
        assert set(stage.shards) <= set(stage.reads), stage.name
        written |= set(stage.writes)


def test_every_port_is_known() -> None:
    known = {
        "corpus",
        "settings",
        "schema",
        "cascade",
        "disambiguator",
        "decisions",
        "inducer",
        "namer",
        "condenser",
        "reader",
        "shapes",
        *(function.name for function in FUNCTIONS),
    }
    assert {port for stage in PIPELINE for port in stage.ports} <= known


def test_stage_modules_can_be_imported() -> None:
    for stage in PIPELINE:
        assert callable(importlib.import_module(f"kpyramid.stages.{stage.name}").run)
