"""Fingerprints: hashes of all but the input that shapes the result of a function or a stage.

One place names all ingredients, so that one test can flip each of them.
"""

import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from kpyramid.errors import PyramidError
from kpyramid.graph import synonyms
from kpyramid.keys import ID_DIGITS, JsonValue, hash_bytes, hash_value
from kpyramid.ontology.validation.consistency import find_java
from kpyramid.pipeline.stage import FUNCTIONS, PIPELINE, Function, Stage
from kpyramid.settings import AUTO, Settings
from kpyramid.storage.contracts import hash_contract
from kpyramid.storage.declarations import OntologyFiles, identify_ontology, locate_ontology
from kpyramid.storage.former import Former
from kpyramid.storage.identity import (
    Identity,
    hash_files,
    identify_embedding,
    identify_parser,
    is_installed,
    library_version,
)
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import Result, find_result
from kpyramid.storage.runs import open_run, read_mark

_PORTABLE: Mapping[str, str] = {
    "extract": "parser",
    "induce": "ontology",
    "complete": "decisions",
}
"""Settings that may hold a path: the identity of the files stands in for them."""

INPUTS = "inputs"
"""The detail of a stage's mark that is `key_inputs`."""

_SYNONYMS = Path(synonyms.__file__).parent
_COMPARING = frozenset({"resolve", "induce", "complete", "condense"})
"""Stages that compare meanings of words, by our lexicon or WordNet."""

_WITH_DOMAIN = frozenset({"resolve", "complete", "condense"})
"""Stages whose prompts state the domain and the language of [cascade]."""


def identify_resource(resource: str, settings: Settings) -> Identity:
    """The files behind one resource name: `parser`, `embedding` or `ontology`.

    Raises:
        SettingsError: they are not there.
    """
    if resource == "parser":
        return identify_parser(settings.extract.parser)
    if resource == "embedding":
        return identify_embedding(settings.embed)
    return identify_ontology(settings.induce.ontology)


def locate_files(settings: Settings) -> OntologyFiles:
    """The files of the seed ontology that the settings name.

    Raises:
        SettingsError: there is none of that name.
    """
    identify_resource("ontology", settings)
    files = locate_ontology(settings.induce.ontology)
    assert files is not None  # it was identified
    return files


def _identify_lexicon() -> Identity:
    """The package's knowledge of wordings: its lexicon and its extract of WordNet."""
    files = [_SYNONYMS / "lexicon" / "lexicon.tsv", *_SYNONYMS.glob("wordnet/*.gz")]
    return hash_files("lexicon", {path.name: path for path in files})


def describe_settings(section: str, settings: Settings) -> dict[str, JsonValue]:
    """A section's settings without paths of this machine.

    Empty for publish: its gates judge a snapshot without shaping it, and its `min_confidence` is in
    the key of the stage that takes it. Empty for embed: the model's identity has all that shapes
    vectors, and leaves out where a model is served.
    """
    if section in ("publish", "embed"):
        return {}
    hidden = _PORTABLE.get(section)
    return {k: v for k, v in settings.section(section).items() if k != hidden}


def fingerprint_function(function: Function, settings: Settings) -> str:
    """The hash of a function's version, settings, model files and libraries."""
    identity = identify_resource(function.resource, settings) if function.resource else None
    version, libraries = function.version, _list_versions(function.libraries)
    if identity is not None and identity.version is not None:
        version = identity.version
    if identity is not None and identity.libraries is not None:
        libraries = _list_versions(identity.libraries) if identity.libraries else {}
    return hash_value(
        {
            "function": function.name,
            "version": version,
            "settings": describe_settings(function.section, settings),
            "resource": identity.describe() if identity else None,
            "libraries": libraries,
        }
    )


def list_row_folders(warehouse: Warehouse, runs: Iterable[str]) -> frozenset[str] | None:
    """The folders of the row cache that builds with the settings of these runs use.

    As FUNCTION/FINGERPRINT; None where a run's settings, or a model in them, are unknown to this
    release or this machine.
    """
    known = (name for name in runs if name and warehouse.store.read(f"runs/{name}/run.json"))
    try:
        settings = {repr(s): s for s in (open_run(warehouse, name).settings for name in known)}
        return frozenset(
            f"{function.name}/{fingerprint_function(function, each)[:ID_DIGITS]}"
            for each in settings.values()
            for function in FUNCTIONS
        )
    except PyramidError:
        return None


def describe_model_part(stage: str, settings: Settings) -> dict[str, JsonValue] | None:
    """What shapes a language model's part in a stage; None where rules do all of it."""
    if not settings.asks_model:
        return None
    from kpyramid.llm.cache import describe_source  # both load what rules have no use for
    from kpyramid.pipeline.tasks import list_tasks

    asked = list_tasks(stage, settings)
    if not asked:
        return None
    tasks = [task.describe(settings) for task in asked]
    part: dict[str, JsonValue] = {
        "model": describe_source(settings.llm),
        "max_tokens": settings.llm.max_tokens,
        "tasks": [*tasks],
        "libraries": _list_versions(("json-repair",)),  # mends replies
    }
    cascade = asdict(settings.cascade)
    if stage == "extract":
        schemas = [{"schema": task.schema, "examples": cascade["examples"]} for task in asked]
        steps: list[JsonValue] = [{**t, **s} for t, s in zip(tasks, schemas, strict=True)]
        part["tasks"] = {"mode": settings.cascade.mode, "tasks": steps}
        if settings.cascade.mode == "merged":
            del cascade["disambiguation"]  # it is asked for in stage resolve
            part["ontology"] = identify_resource("ontology", settings).describe()
        else:
            del cascade["window"]
        part["cascade"] = cascade
    if stage in _WITH_DOMAIN:
        part["cascade"] = {name: cascade[name] for name in ("domain", "language")}
    return part


def fingerprint_stage(stage: Stage, settings: Settings) -> str:
    """The hash of all that shapes a stage: version, settings, models, files, libraries."""
    functions = {
        function.name: fingerprint_function(function, settings)
        for function in FUNCTIONS
        if function.name in stage.ports
    }
    ontology = identify_resource("ontology", settings) if "schema" in stage.ports else None
    rereads = stage.name == "induce" and settings.cascade.reads_windows  # what extract was replied
    return hash_value(
        {
            "stage": stage.name,
            "version": stage.version,
            "settings": describe_settings(stage.name, settings),
            "model": describe_model_part(stage.name, settings),
            "functions": functions,
            "ontology": ontology.describe() if ontology else None,
            "contracts": {name: hash_contract(name) for name in {*stage.reads, *stage.writes}},
            "libraries": _list_versions(("pyarrow", *stage.libraries)),
            **{name: read(settings) for name, read in _BY_PORT.items() if name in stage.ports},
            **({"replies": describe_model_part("extract", settings)} if rereads else {}),
            **({"lexicon": _identify_lexicon().describe()} if stage.name in _COMPARING else {}),
        }
    )


def _list_corrections(settings: Settings) -> list[JsonValue]:
    if settings.publish.corrections is None:
        return []
    from kpyramid.completion.corrections import load_corrections
    from kpyramid.ontology.schema import parse_schema

    turtle = locate_files(settings).turtle
    schema = parse_schema(turtle.read_text("utf-8-sig"), source=str(turtle))
    return load_corrections(settings.publish.corrections, schema).describe()


def _describe_decisions(settings: Settings) -> list[JsonValue]:
    if settings.complete.decisions is None:
        return []
    from kpyramid.completion.decisions import load_decisions

    return [*load_decisions(settings.complete).describe()]


_BY_PORT: Mapping[str, Callable[[Settings], JsonValue]] = {
    "decisions": _describe_decisions,
    "drafting": lambda settings: (
        _describe_decisions(settings) if settings.induce.ontology == AUTO else None
    ),
    "corrections": _list_corrections,
    "min_confidence": lambda settings: settings.publish.min_confidence,
}
"""What shapes a stage by its ports, besides functions, models and the ontology."""


def _list_versions(libraries: Sequence[str]) -> dict[str, JsonValue]:
    """Versions of libraries, with Python's: html.parser, csv and unicodedata shape documents too.

    Null for a library of an extra that is missing: rows that need it are rejects.
    """
    versions = {n: library_version(n) if is_installed(n) else None for n in libraries}
    return {"python": platform.python_version(), **versions}


def key_row(fingerprint: str, row: JsonValue) -> str:
    """The key of a function's result for one text, or for a text with its title."""
    return hash_value([fingerprint, row])


def key_inputs(stage: Stage, settings: Settings, inputs: Mapping[str, JsonValue]) -> str:
    """The key of all that shapes a stage's tables but former names; `inputs` are hashes."""
    return hash_value([fingerprint_stage(stage, settings), inputs])


def hash_judges(settings: Settings) -> str:
    """The hash of what judges a snapshot without shaping it: checks, questions, floor, limits."""
    files, publish, evaluate = locate_files(settings), settings.publish, settings.evaluate
    paths = [*files.checks, *([files.questions] if files.questions else [])]
    texts: list[JsonValue] = [[path.name, hash_bytes(path.read_bytes())] for path in paths]
    parts: list[JsonValue] = [publish.max_violation_share, publish.min_kept_share, texts]
    if evaluate.questions is not None:
        path, floor = Path(evaluate.questions), dict[str, JsonValue](sorted(evaluate.floor.items()))
        asked = hash_bytes(path.read_bytes()) if path.is_file() else None
        parts.append([evaluate.strategy, floor, asked])
    return hash_value(parts)


_PUBLISHING = (
    *("duckdb", "faiss-cpu", "kpyramid", "numpy", "owlready2", "pyarrow"),
    *("pyoxigraph", "pyshacl", "PyStemmer", "rdflib", "simplemma"),
)
"""Distributions that shape or judge a snapshot."""


def key_publishing(settings: Settings, judges: str, keys: Sequence[str]) -> str:
    """The key of a snapshot and of the gates' verdicts on it, beside this release's code.

    `judges`: the hash of what judges without shaping; `keys`: those of all stages' tables.
    """
    return hash_value(
        [
            fingerprint_stage(PIPELINE[-1], settings),
            [judges, settings.publish.reasoner_seconds, find_java() is not None, *keys],
            settings.section("index"),
            _list_versions(_PUBLISHING),
        ]
    )


def find_stored(
    warehouse: Warehouse, settings: Settings, stage: Stage, key: str, former: Former | None
) -> tuple[str, Result | None]:
    """The key of a stage's tables, and the stored tables or None.

    `key` is that of the inputs. The former snapshot's tables are taken if it had the same inputs;
    else the former names are part of the key.
    """
    is_asked = "drafting" not in stage.ports or settings.induce.ontology == AUTO
    if former is not None and "former" in stage.ports and is_asked:
        mark = former.run and read_mark(former.run, stage.name)
        same = mark and mark.details.get(INPUTS) == key
        key = mark.key if mark and same else hash_value([key, former.snapshot])
    return key, find_result(warehouse, stage.name, key)


def walk_stored(
    warehouse: Warehouse, settings: Settings, corpus: str, former: Former | None
) -> Iterator[tuple[Stage, Result]]:
    """The leading stages of a build whose results are all stored, with these results.

    `corpus`: its fingerprint, without erased documents. Publish stores nothing and is left out.
    """
    made: dict[str, list[JsonValue]] = defaultdict(list)
    for stage in PIPELINE[:-1]:
        inputs: dict[str, JsonValue] = {table: made[table] for table in stage.reads}
        if "corpus" in stage.ports:
            inputs["corpus"] = corpus
        _, result = find_stored(
            warehouse, settings, stage, key_inputs(stage, settings, inputs), former
        )
        if result is None:
            return
        for name, file in result.tables.items():
            made[name].append(file.content)
        yield stage, result
