"""The rooms point inward without circles, stages are what `pipeline/stage.py` declares."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.wiring import Ports
from kpyramid.strategies import STRATEGIES
from tests.imports import ETL, find_file, list_imports, parse
from tests.processes import run_python
from tests.rows import each_row, read_rows
from tests.stage_versions import SHAPING

PACKAGE = ETL / "kpyramid"
MODULES = sorted(PACKAGE.rglob("*.py"))
STAGES = PACKAGE / "pipeline" / "stages"

# What each room may import from the package, inner rooms first. A line names only lines above it.
ROOMS: dict[str, str] = dict(read_rows("layers.rooms"))
LOADED_BY_NAME = {
    "query/answering.py": [module for module, _ in STRATEGIES.values()],
    "pipeline/wiring.py": [f"kpyramid.pipeline.stages.{stage.name}" for stage in PIPELINE],
}
"""Modules of the package that a file loads by a name from a table, and no other file does."""
CORE_OF_ONTOLOGY = {"errors", "keys", "storage"}
"""What `ontology` may import outside `ontology.population`, which reads texts."""

MOST_ROOT_MODULES, MOST_ROOMS = 6, 17
RDF_LIBRARIES = {"owlready2", "rdflib", "pyoxigraph", "pyshacl"}
SHARED_BY_STAGES = {"__init__", "instances", "tables"}
"""Modules in `pipeline/stages/` that are no stage."""

CARRYING = {"errors", "keys", "llm", "pipeline", "settings", "storage"}
"""What stages import that shapes nothing they make, or is in their keys by itself."""


def name_module(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def find_room(path: Path) -> str:
    """The line of `ROOMS` that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def map_imports() -> Mapping[Path, frozenset[Path]]:
    """The files of the package that each file imports."""
    found = {}
    for path in MODULES:
        names = [name for name in list_imports(path) if name.split(".")[0] == "kpyramid"]
        names += LOADED_BY_NAME.get(name_module(path), ())
        found[path] = frozenset(file for name in names if (file := find_file(name))) - {path}
    return found


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        return list(e.args[1])
    return []


def test_every_room_has_a_line_and_every_line_a_room() -> None:
    assert {find_room(path) for path in MODULES} == ROOMS.keys()


def test_every_room_says_what_lives_there_and_who_imports_it() -> None:
    for path in PACKAGE.glob("*/__init__.py"):
        said = ast.get_docstring(parse(path)) or ""
        assert re.search("import|load", said, re.IGNORECASE), name_module(path)


def test_lines_name_only_lines_above_them() -> None:
    known: set[str] = set()
    for room, allowed in ROOMS.items():
        assert set(allowed.split()) <= known, room
        known.add(room)


def test_imports_stay_within_the_allowed_rooms() -> None:
    wrong = {
        f"{name_module(path)} imports {name_module(other)}"
        for path, others in map_imports().items()
        for other in others
        if find_room(other) not in {find_room(path), *ROOMS[find_room(path)].split()}
    }
    assert not wrong


def test_only_the_population_of_ontologies_reads_texts() -> None:
    wrong = {
        f"{name_module(path)} imports {name_module(other)}"
        for path, others in map_imports().items()
        if find_room(path) == "ontology" and "population" not in path.parts
        for other in others
        if find_room(other) not in {"ontology", *CORE_OF_ONTOLOGY} or "population" in other.parts
        # The one parser of dates and numbers, and the one lemmatiser.
        if name_module(other) not in {"documents/values.py", "documents/words.py"}
    }
    assert not wrong


def test_files_import_each_other_in_no_circle() -> None:
    graph = {
        name_module(path): {name_module(other) for other in others}
        for path, others in map_imports().items()
    }
    assert not find_circle(graph)


def test_folders_inside_rooms_import_each_other_in_no_circle() -> None:
    def find_unit(path: Path) -> str:
        """The folder of a file inside a room, else the file itself."""
        place = path.relative_to(PACKAGE)
        return "/".join(place.parts[:2]) if len(place.parts) > 2 else place.as_posix()

    graph: dict[str, set[str]] = {}
    for path, others in map_imports().items():
        unit = find_unit(path)
        graph.setdefault(unit, set()).update(map(find_unit, others))
    assert not find_circle({unit: others - {unit} for unit, others in graph.items()})


def test_modules_are_loaded_by_name_from_the_two_tables_only() -> None:
    loading = {
        name_module(path)
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
        if not isinstance(node.args[0], ast.Constant) or "kpyramid" in str(node.args[0].value)
    }
    assert loading == LOADED_BY_NAME.keys()


def test_rdf_libraries_are_imported_by_the_ontology_room_only() -> None:
    wrong = [
        name_module(path)
        for path in MODULES
        if find_room(path) != "ontology"
        and {name.split(".")[0] for name in list_imports(path)} & RDF_LIBRARIES
    ]
    assert not wrong


@each_row("modules, heavy")
def test_what_is_imported_often_loads_no_heavy_library(modules: str, heavy: str) -> None:
    code = f"import sys, {modules}; print(*({set(heavy.split())} & sys.modules.keys()))"
    assert run_python(code).split() == []


def test_stage_modules_are_the_declared_stages() -> None:
    modules = {path.stem for path in STAGES.glob("*.py")} - SHARED_BY_STAGES
    assert modules == {stage.name for stage in PIPELINE}


def test_run_of_each_stage_has_the_declared_parameters() -> None:
    for stage in PIPELINE:
        body = parse(STAGES / f"{stage.name}.py").body
        functions = [
            n for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
        ]
        (run,) = [function for function in functions if function.name == "run"]
        parameters = run.args
        assert tuple(p.arg for p in parameters.args) == stage.reads, stage.name
        assert {p.arg for p in parameters.kwonlyargs} == set(stage.ports), stage.name
        assert parameters.vararg is None, stage.name
        assert parameters.kwarg is None, stage.name


def test_every_table_that_is_read_was_written_by_an_earlier_stage() -> None:
    written: set[str] = set()
    for stage in PIPELINE:
        assert set(stage.reads) <= written, stage.name
        assert set(stage.shards) <= set(stage.reads), stage.name
        written |= set(stage.writes)


def test_every_port_is_known() -> None:
    given = {"corpus", "former", "settings", *vars(Ports)}
    assert {port for stage in PIPELINE for port in stage.ports} <= given


def test_every_package_that_stages_import_is_watched() -> None:
    imported = {
        find_room(other)
        for path, others in map_imports().items()
        if path.parent == STAGES
        for other in others
    }
    assert imported - CARRYING == {name for name in SHAPING if name != "pipeline.stages"}
