"""Fingerprints: everything but the input that shapes what a function or a stage makes.

One place names all ingredients, so that one test can flip each of them.
"""

import platform
from collections.abc import Mapping, Sequence

from kpyramid.contracts import hash_contract
from kpyramid.identity import (
    Identity,
    identify_embedding,
    identify_ontology,
    identify_parser,
    library_version,
)
from kpyramid.keys import JsonValue, hash_value
from kpyramid.pipeline import FUNCTIONS, Function, Stage
from kpyramid.settings import Settings

_PORTABLE: Mapping[str, str] = {"extract": "parser", "embed": "model", "induce": "ontology"}
"""Settings that may hold a path: the identity of the files stands in for them."""


def identify_resource(resource: str, settings: Settings) -> Identity:
    """The files behind one resource name: `parser`, `embedding` or `ontology`.

    Raises:
        SettingsError: they are not there.
    """
    if resource == "parser":
        return identify_parser(settings.extract.parser)
    if resource == "embedding":
        return identify_embedding(settings.embed.model)
    return identify_ontology(settings.induce.ontology)


def describe_settings(section: str, settings: Settings) -> dict[str, JsonValue]:
    """A section's settings without paths of this machine.

    None for publish: its gates judge a snapshot and do not shape it.
    """
    if section == "publish":
        return {}
    hidden = _PORTABLE.get(section)
    return {k: v for k, v in settings.section(section).items() if k != hidden}


def fingerprint_function(function: Function, settings: Settings) -> str:
    """The hash of a function's version, settings, model files and libraries."""
    resource = function.resource and identify_resource(function.resource, settings).describe()
    return hash_value(
        {
            "function": function.name,
            "version": function.version,
            "settings": describe_settings(function.section, settings),
            "resource": resource,
            "libraries": _list_versions(function.libraries),
        }
    )


def fingerprint_stage(stage: Stage, settings: Settings) -> str:
    """The hash of a stage's version, settings, functions, ontology, contracts and libraries."""
    functions = {
        function.name: fingerprint_function(function, settings)
        for function in FUNCTIONS
        if function.name in stage.ports
    }
    uses_ontology = "schema" in stage.ports
    return hash_value(
        {
            "stage": stage.name,
            "version": stage.version,
            "settings": describe_settings(stage.name, settings),
            "functions": functions,
            "ontology": (
                identify_resource("ontology", settings).describe() if uses_ontology else None
            ),
            "contracts": {name: hash_contract(name) for name in {*stage.reads, *stage.writes}},
            "libraries": _list_versions(("pyarrow", *stage.libraries)),
        }
    )


def _list_versions(libraries: Sequence[str]) -> dict[str, JsonValue]:
    """Python's is one of them: its html.parser, csv and unicodedata shape documents and names."""
    return {"python": platform.python_version(), **{n: library_version(n) for n in libraries}}


def key_row(fingerprint: str, text: str) -> str:
    """The key of a function's result for one text."""
    return hash_value([fingerprint, text])


def key_result(fingerprint: str, inputs: Mapping[str, JsonValue]) -> str:
    """The key of a stage's tables for given inputs (the hashes of what it reads)."""
    return hash_value([fingerprint, inputs])
