"""HermiT, as owlready2 carries it, asked in a Java process with limits on time and memory.

owlready2 itself reads nothing here: it runs code that an ontology names (`python_module`) and
fetches imports even when told not to. HermiT is given our own file, in which neither can stand.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pyoxigraph as ox

from kpyramid.errors import PyramidError
from kpyramid.ontology.judging.theory import Axiom, ReasonerText, Theory
from kpyramid.ontology.limited import run_limited

_HEAP = 2048
"""MiB; a million statements about 300,000 individuals took 1.6 GiB and 75 s of processor time."""
_CONSISTENT = b"is satisfiable."
_INCONSISTENT = b"InconsistentOntologyException"
_EMPTY_CLASSES = "Classes equivalent to 'owl:Nothing':\n"
_OUT_OF_MEMORY = 3
"""Java's exit code with -XX:+ExitOnOutOfMemoryError."""

Part = tuple[Sequence[Axiom], Sequence[ox.Triple]]
"""Axioms and facts that are judged together."""


class NotJudgedError(PyramidError):
    """The reasoner gave no verdict; the message says why."""


class Reasoner:
    """Judges parts of one theory until its time is over; use it in a `with`."""

    def __init__(self, theory: Theory, *, seconds: float, heap: int = _HEAP) -> None:
        """Looks for Java.

        Raises:
            NotJudgedError: there is none, or owlready2 brings no HermiT.
        """
        self._text = ReasonerText(theory)
        self._names = {self._text.name(iri): iri for iri in theory.declared}
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._command = [_find_java(), f"-Xmx{heap}m", *_list_options()]
        self._folder = tempfile.TemporaryDirectory(prefix="kpyramid-hermit-")

    def find_inconsistent(self, parts: Iterable[Part]) -> int | None:
        """The index of the first part that contradicts itself, or None.

        Raises:
            NotJudgedError: time or memory ran out, or HermiT does not know what it was given.
        """
        listed = list(parts)
        code, output = self._run(["-k"], listed)
        if _INCONSISTENT in output:
            return output.count(_CONSISTENT)
        self._require_end(code, output, len(listed))
        return None

    def find_unsatisfiable(self, part: Part) -> list[str] | None:
        """The classes that can have no instance, sorted; None when the part contradicts itself.

        Raises:
            NotJudgedError: as above.
        """
        code, output = self._run(["-k", "-U"], [part])
        if _INCONSISTENT in output:
            return None
        self._require_end(code, output, 1)
        _, said, listed = output.decode("utf-8", "replace").partition(_EMPTY_CLASSES)
        if not said:
            raise _describe_failure(output)
        found = re.findall(r"^\t<?(urn:x:[0-9]+)>?$", listed, re.MULTILINE)
        return sorted({self._names[f"<{name}>"] for name in found})

    def _run(self, actions: list[str], parts: Iterable[Part]) -> tuple[int, bytes]:
        folder = Path(self._folder.name)
        files = []
        for number, (axioms, facts) in enumerate(parts):
            path = folder / f"{number}.nt"
            path.write_text(self._text.write(axioms, facts), "ascii")
            files.append(path.as_uri())
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            return run_limited([*self._command, *actions, *files], seconds=left)
        except TimeoutError as e:
            raise NotJudgedError(
                f"HermiT was stopped after {self._seconds:g} seconds; raise "
                "publish.reasoner_seconds (of `ontology check`: --seconds) to give it more"
            ) from e

    def _require_end(self, code: int, output: bytes, verdicts: int) -> None:
        if code == _OUT_OF_MEMORY:
            raise NotJudgedError(f"HermiT needs more than {self._command[1][4:-1]} MiB of memory")
        # It ends with 0 even after a file that it could not read.
        if code or output.count(_CONSISTENT) != verdicts:
            raise _describe_failure(output)

    def __enter__(self) -> "Reasoner":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _describe_failure(output: bytes) -> NotJudgedError:
    said = output.decode("utf-8", "replace").replace(_CONSISTENT.decode(), " ")
    return NotJudgedError(f"HermiT failed: {' '.join(said.split())[:300]}")


def find_java() -> str | None:
    """The Java of JAVA_HOME, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    inside = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    return inside or shutil.which("java")


def _find_java() -> str:
    java = find_java()
    if java is None:
        raise NotJudgedError("no Java on PATH; install one, such as Debian's default-jre-headless")
    return java


def _list_options() -> list[str]:
    found = find_spec("owlready2")
    if found is None or found.origin is None:
        raise NotJudgedError("owlready2, which brings HermiT, is not installed")
    hermit = Path(found.origin).parent / "hermit"
    return [
        "-XX:+ExitOnOutOfMemoryError",
        # The demo takes 1.8 s of processor time with these, and 4.1 s without.
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
        "-Dfile.encoding=UTF-8",
        # owlready2's corrected classes come before those of the archive, as in its own call.
        *("-cp", f"{hermit}{os.pathsep}{hermit / 'HermiT.jar'}"),
        "org.semanticweb.HermiT.cli.CommandLine",
    ]
