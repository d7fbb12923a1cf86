"""HermiT asked in a limited Java process, and why an ontology contradicts itself.

HermiT is the one that owlready2 carries. owlready2 itself reads nothing here: it runs code that an
ontology names (`python_module`) and fetches imports even when told not to. HermiT is given our own
file, in which neither can stand.
"""

import os
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pyoxigraph as ox

from kpyramid.errors import PyramidError
from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import run_limited
from kpyramid.ontology.turtle import walk
from kpyramid.ontology.validation.theory import Axiom, Node, ReasonerText, Theory

# HermiT in a Java process.

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
        self._command = _list_command(heap)
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


def _list_command(heap: int) -> list[str]:
    java, found = find_java(), find_spec("owlready2")
    if java is None:
        raise NotJudgedError("no Java on PATH; install one, such as Debian's default-jre-headless")
    if found is None or found.origin is None:
        raise NotJudgedError("owlready2, which brings HermiT, is not installed")
    hermit = Path(found.origin).parent / "hermit"
    return [
        *(java, f"-Xmx{heap}m"),
        "-XX:+ExitOnOutOfMemoryError",
        # The demo takes 1.8 s of processor time with these, and 4.1 s without.
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
        "-Dfile.encoding=UTF-8",
        # owlready2's corrected classes come before those of the archive, as in its own call.
        *("-cp", f"{hermit}{os.pathsep}{hermit / 'HermiT.jar'}"),
        "org.semanticweb.HermiT.cli.CommandLine",
    ]


# Explanations: a smallest set of statements that contradict each other.

_MOST_PARTS = 24
"""Parts asked about in one call of HermiT: starting Java takes longer than judging small ones."""
_MOST_STATEMENTS = 200_000
"""Statements written for one call."""

_EQUALS = {n.EQUIVALENT_CLASS, n.OWL + "equivalentProperty", n.OWL + "sameAs"}
_MUTUAL = _EQUALS | {n.DISJOINT_WITH, n.OWL + "propertyDisjointWith", n.INVERSE_OF}

Item = Axiom | ox.Triple


def explain_contradiction(theory: Theory, reasoner: Reasoner) -> list[Item]:
    """A set of axioms and facts that contradict each other, none of which can be left out.

    Raises:
        NotJudgedError: the reasoner's time is over.
    """
    return shrink([*theory.axioms, *theory.facts], reasoner.find_inconsistent)


def explain_class(theory: Theory, iri: str, reasoner: Reasoner) -> list[Item]:
    """A smallest set of axioms by which a class can have no instance.

    Raises:
        NotJudgedError: the reasoner's time is over.
    """
    instance = ox.Triple(ox.NamedNode("urn:an-instance"), _TYPE, ox.NamedNode(iri))
    near = _select_axioms(theory, [instance])
    found = reasoner.find_inconsistent([(near, [instance])])
    axioms = near if found is not None else theory.axioms
    shrunk = shrink([*axioms, instance], reasoner.find_inconsistent)
    return [item for item in shrunk if item != instance]


_TYPE = ox.NamedNode(n.RDF_TYPE)


def shrink(
    items: Sequence[Item], find_inconsistent: Callable[[Iterable[Part]], int | None]
) -> list[Item]:
    """A smallest contradictory subset of contradictory items.

    `find_inconsistent` gives the index of the first part that contradicts itself, or None.
    The last item of the shortest contradictory beginning is needed; with it put aside the same
    is asked of what stands before it, until what was put aside contradicts itself.
    """
    kept: list[Item] = []
    rest = list(items)
    while True:
        low, high = -1, len(rest)  # a beginning of `low` items is consistent, of `high` it is not
        while high - low > 1:
            most = max(2, min(_MOST_PARTS, _MOST_STATEMENTS // high))
            cuts = sorted({low + 1 + (high - low - 1) * i // most for i in range(most)})
            found = find_inconsistent(_split([*kept, *rest[:cut]]) for cut in cuts)
            if found is None:
                low = cuts[-1]
            else:
                high = cuts[found]
                low = cuts[found - 1] if found else low
        if high == 0:
            return sorted(kept, key=lambda item: (isinstance(item, Axiom), str(item)), reverse=True)
        kept.append(rest[high - 1])
        rest = rest[: high - 1]


def _split(items: Iterable[Item]) -> Part:
    listed = list(items)
    axioms = [item for item in listed if isinstance(item, Axiom)]
    return axioms, [item for item in listed if isinstance(item, ox.Triple)]


def _name(node: Node) -> str:
    return node.value if isinstance(node, ox.NamedNode) else ""


def _select_axioms(theory: Theory, facts: Iterable[ox.Triple]) -> list[Axiom]:
    """The axioms about what the facts name, and about what those name in turn."""
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for index, axiom in enumerate(theory.axioms):
        own, is_mutual = _name(axiom.head.subject), axiom.head.predicate.value in _MUTUAL
        for iri in {own} - {""} | (axiom.list_iris() if is_mutual or not own else set()):
            by_name[iri].append(index)

    def list_beside(iri: str) -> Iterator[str]:
        for index in by_name.get(iri, ()):
            yield from theory.axioms[index].list_iris()

    reached = walk((iri for t in facts for iri in Axiom((t,)).list_iris()), list_beside)
    chosen = {index for iri in reached for index in by_name.get(iri, ())}
    return [theory.axioms[index] for index in sorted(chosen)]


# Axioms and facts in words.

_SENTENCES: dict[str, str] = {
    n.SUBCLASS: "every {s} is {a} {o}",
    n.DOMAIN: "what has “{s}” is {a} {o}",
    n.RANGE: "a value of “{s}” is {a} {o}",
    n.INVERSE_OF: "“{s}” is the inverse of “{o}”",
    n.SUBPROPERTY: "“{s}” implies “{o}”",
    n.DISJOINT_WITH: "no {s} is {a} {o}",
    n.EQUIVALENT_CLASS: "{s} is the same class as {o}",
}
_CHARACTERISTICS = {
    n.FUNCTIONAL_PROPERTY: "“{s}” has at most one value",
    n.INVERSE_FUNCTIONAL_PROPERTY: "a value of “{s}” belongs to one subject only",
    n.ASYMMETRIC_PROPERTY: "“{s}” never holds in both directions",
    n.IRREFLEXIVE_PROPERTY: "nothing has itself as its “{s}”",
}


def state_item(
    item: Item, labels: Mapping[str, str], find_place: Callable[[ox.Triple], str | None]
) -> str:
    """An axiom or a fact in words; a fact with the place in a text that states it."""
    if isinstance(item, Axiom):
        return _state_axiom(item, labels)
    subject, value = _say(item.subject, labels), _say(item.object, labels)
    if item.predicate.value == n.RDF_TYPE:
        said = f"“{subject}” is {_choose_article(value)} {value}"
    else:
        said = f"“{subject}” has {_say(item.predicate, labels)} “{value}”"
    place = find_place(item)
    return f"{said} [{place}]" if place else said


def _say(node: Node, labels: Mapping[str, str]) -> str:
    if isinstance(node, ox.NamedNode):
        return labels.get(node.value) or node.value.rpartition("#")[2].rpartition("/")[2]
    return node.value if isinstance(node, ox.Literal) else "something"


def _choose_article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"


def _state_axiom(axiom: Axiom, labels: Mapping[str, str]) -> str:
    head = axiom.head
    predicate, kind = head.predicate.value, _name(head.object)
    if any(_name(t.object) == n.ALL_DISJOINT_CLASSES for t in axiom.triples):
        members = sorted(labels.get(iri, iri) for iri in axiom.list_iris())
        return f"no two of these share an instance: {', '.join(members)}"
    subject, value = _say(head.subject, labels), _say(head.object, labels)
    if len(axiom.triples) > 1:
        value = f"thing with ({', '.join(_list_parts(axiom, labels))})"
    form = _SENTENCES.get(predicate, "{s} " + _say(head.predicate, labels) + " {o}")
    if predicate == n.RDF_TYPE:
        form = _CHARACTERISTICS.get(kind, "“{s}” is {a} {o}")
    return form.format(s=subject, o=value, a=_choose_article(value))


def _list_parts(axiom: Axiom, labels: Mapping[str, str]) -> Iterator[str]:
    """The statements of an axiom's unnamed nodes in words, without those that only build lists."""
    for t in axiom.triples[1:]:
        builds = _name(t.object) in (n.RDF_NIL, n.RESTRICTION, n.CLASS)
        if not (builds or isinstance(t.object, ox.BlankNode)):
            predicate = "" if t.predicate.value == n.RDF_FIRST else _say(t.predicate, labels)
            yield f"{predicate} {_say(t.object, labels)}".strip()
