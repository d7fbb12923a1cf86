"""The code that each stage and function version stands for; `make versions` records it.

A stored result is used again when its key is the same, and the key holds a version, not the code.
So a change of code asks for a decision: does the stage now make something else?
"""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path

from kpyramid.pipeline.stage import FUNCTIONS, PIPELINE
from kpyramid.storage.identity import EMBEDDER_VERSIONS
from tests.imports import list_imports, locate_module

RECORD = Path(__file__).parent / "stage_versions.json"
SHAPING = (
    "pipeline.stages",
    "extraction",
    "graph",
    "embeddings",
    "numerics",
    "ontology",
    "completion",
    "condensation",
    "documents",
)
"""Packages whose code shapes what a stage makes; the others only carry it."""
DATA = ("*.json", "*.toml", "lexicon/*.tsv", "wordnet/*.gz")
"""Fitted weights, the lexicon and the like, which shape results as code does, in a package."""
ENTRIES = {
    "converter": "kpyramid.documents.conversion",
    "splitter": "kpyramid.documents.sentences",
    "extractor": "kpyramid.extraction.openie",
    "annotator": "kpyramid.extraction.syntax.tree",
    "embedder": "kpyramid.embeddings.onnx",
    "reasoner": "kpyramid.ontology.validation.shapes",
}
EMBEDDERS = {
    "instructor": "kpyramid.embeddings.instructor",
    "openai": "kpyramid.embeddings.served",
}
"""Modules of the providers whose versions `identity.py` holds."""


@cache
def describe_versions() -> dict[str, dict[str, object]]:
    """Version and hash of code of every stage and cached function."""
    entries = {f.name: (f.version, ENTRIES[f.name]) for f in FUNCTIONS}
    entries |= {s.name: (s.version, f"kpyramid.pipeline.stages.{s.name}") for s in PIPELINE}
    entries |= {f"embedder {p}": (v, EMBEDDERS[p]) for p, v in EMBEDDER_VERSIONS.items()}
    return {
        name: {"version": version, "code": _hash_code(module)}
        for name, (version, module) in entries.items()
    }


def _hash_code(module: str) -> str:
    found: set[str] = set()
    queue = [module]
    while queue:
        current = queue.pop()
        if current not in found:
            found.add(current)
            queue += _list_imports(current)
    parts = [f"{name} {_dump(name)}".encode() for name in sorted(found)]
    folders = {_locate(name).parent for name in found}
    parts += [path.read_bytes() for folder in sorted(folders) for path in _list_data(folder)]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def _list_data(folder: Path) -> list[Path]:
    return sorted(path for pattern in DATA for path in folder.glob(pattern))


def _locate(module: str) -> Path:
    path = locate_module(module)
    assert path is not None, module
    return path


@cache
def _list_imports(module: str) -> list[str]:
    named = {n for name in list_imports(_locate(module)) for n in (name.rpartition(".")[0], name)}
    return [
        n
        for n in named
        if n.startswith(tuple(f"kpyramid.{p}" for p in SHAPING)) and locate_module(n)
    ]


@cache
def _dump(module: str) -> str:
    """The module without docstrings and attribute docs: words do not change what code makes."""
    tree = ast.parse(_locate(module).read_text("utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                line
                for line in body
                if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ]
    return ast.dump(tree)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(describe_versions(), indent=1) + "\n", "utf-8")
