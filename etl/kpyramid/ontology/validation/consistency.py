"""The gate `consistent`: schema and instances contradict neither each other nor themselves."""

import os
import re
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pyoxigraph as ox

from kpyramid.errors import InputError, PyramidError
from kpyramid.keys import JsonValue, hash_value
from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import run_limited
from kpyramid.ontology.turtle import walk
from kpyramid.ontology.validation.owl import classify
from kpyramid.ontology.validation.parts import JOINING, Keyed, Lines, Passed, group_joined
from kpyramid.storage.items import split_by_size

# The logical part of an ontology, and its text for HermiT.

Node = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple

_KINDS = {n.CLASS, n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY, n.RDFS + "Datatype"}
_LEFT_OUT = {
    n.OWL + name
    for name in (
        "imports versionIRI versionInfo priorVersion backwardCompatibleWith incompatibleWith "
        "deprecated annotatedSource annotatedProperty annotatedTarget"
    ).split()
}
_LOGICAL = {n.DOMAIN, n.RANGE, n.SUBCLASS, n.SUBPROPERTY, n.RDF_FIRST, n.RDF_REST}
_NO_LOGIC = {n.ONTOLOGY, n.ANNOTATION_PROPERTY, n.OWL + "Axiom", n.OWL + "Annotation"}
_OF_CLASSES = {n.SUBCLASS, n.EQUIVALENT_CLASS, n.DISJOINT_WITH, n.DOMAIN}
_EQUAL, _UNLIKE = n.OWL + "equivalentProperty", n.OWL + "propertyDisjointWith"
_OF_PROPERTIES = {n.SUBPROPERTY, n.INVERSE_OF, _EQUAL, _UNLIKE}
# The datatype map of OWL 2, https://www.w3.org/TR/owl2-syntax/#Datatype_Maps.
_KNOWN_DATATYPES = {
    n.XSD + name
    for name in (
        "string normalizedString token language Name NCName NMTOKEN boolean decimal integer "
        "nonNegativeInteger nonPositiveInteger positiveInteger negativeInteger long int short byte "
        "unsignedLong unsignedInt unsignedShort unsignedByte double float hexBinary base64Binary "
        "anyURI dateTime dateTimeStamp"
    ).split()
} | {n.RDFS + "Literal", n.RDF + "PlainLiteral", n.RDF + "XMLLiteral", n.RDF + "langString"}
_TEXT = n.XSD + "string"
_IDENTITY = "<urn:x:identity>"
_MOST_SHARED = 50
"""Most copies of an axiom's unnamed nodes; one is usual, for axioms of OWL are trees."""


@dataclass(frozen=True, slots=True)
class Axiom:
    """Statements that have a meaning only together: one, with the unnamed nodes it refers to."""

    triples: tuple[ox.Triple, ...]

    @property
    def head(self) -> ox.Triple:
        """The statement that the others complete."""
        return self.triples[0]

    def list_iris(self) -> set[str]:
        """All IRIs in it outside OWL's vocabulary."""
        terms = {t for triple in self.triples for t in (triple.subject, triple.object)}
        terms |= {triple.predicate for triple in self.triples}
        iris = {t.value for t in terms if isinstance(t, ox.NamedNode)}
        return {iri for iri in iris if not iri.startswith(n.BUILT_IN)}


@dataclass(slots=True)
class Theory:
    """The axioms of a schema and the facts about individuals.

    `declared`: kind by IRI, such as `owl:Class`. `labels`: by IRI. `unknown`: classes and
    properties that facts use without a declaration.
    """

    declared: dict[str, str] = field(default_factory=dict)
    axioms: list[Axiom] = field(default_factory=list)
    facts: list[ox.Triple] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)


def read_theory(schema_turtle: str, instances_nt: str = "") -> Theory:
    """The logical part of our own schema and instances.

    Raises:
        InputError: too many axioms share their unnamed nodes.
        SyntaxError: one of the texts is no Turtle or no N-Triples.
    """
    stated = [quad.triple for quad in ox.parse(schema_turtle, format=ox.RdfFormat.TURTLE)]
    theory = Theory()
    _declare(stated, theory)
    _group([t for t in stated if _is_logical(t, theory)], theory)
    for quad in ox.parse(instances_nt, format=ox.RdfFormat.N_TRIPLES):
        _take_fact(quad.triple, theory)
    return theory


def _declare(stated: Iterable[ox.Triple], theory: Theory) -> None:
    kinds = theory.declared
    triples = [(t.subject.value, t) for t in stated if isinstance(t.subject, ox.NamedNode)]
    for subject, t in triples:
        predicate = t.predicate.value
        if predicate == n.RDF_TYPE and isinstance(t.object, ox.NamedNode):
            if t.object.value in _KINDS or t.object.value == n.ANNOTATION_PROPERTY:
                kinds[subject] = t.object.value
        elif (
            predicate == n.LABEL
            and isinstance(t.object, ox.Literal)
            and (t.object.language or "en").lower().startswith("en")
        ):
            theory.labels.setdefault(subject, t.object.value)
    for subject, t in triples:  # what an axiom names beside something declared is of its kind
        if isinstance(t.object, ox.NamedNode) and not t.object.value.startswith(n.BUILT_IN):
            if t.predicate.value in _OF_CLASSES:
                kinds.setdefault(t.object.value, n.CLASS)
            elif t.predicate.value in _OF_PROPERTIES and subject in kinds:
                kinds.setdefault(t.object.value, kinds[subject])


def _is_logical(t: ox.Triple, theory: Theory) -> bool:
    predicate = t.predicate.value
    if isinstance(t.subject, ox.Triple) or isinstance(t.object, ox.Triple):
        return False
    is_named = isinstance(t.subject, ox.NamedNode)
    if is_named and theory.declared.get(t.subject.value) == n.ANNOTATION_PROPERTY:
        return False
    if predicate == n.RDF_TYPE:
        stated = t.object.value if isinstance(t.object, ox.NamedNode) else ""
        return stated not in (_KINDS | _NO_LOGIC if is_named else _NO_LOGIC)
    if predicate.startswith(n.OWL):
        return predicate not in _LEFT_OUT
    kind = theory.declared.get(predicate)
    return (
        predicate in _LOGICAL
        or predicate.startswith(n.XSD)  # the bounds of a datatype
        or kind in (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY)
    )


def _group(stated: Sequence[ox.Triple], theory: Theory) -> None:
    """Axioms: every statement of a named subject, or of an unnamed one that nothing points to."""
    of_node: defaultdict[Node, list[ox.Triple]] = defaultdict(list)
    pointed = {t.object for t in stated}
    for t in stated:
        if isinstance(t.subject, ox.BlankNode):
            of_node[t.subject].append(t)
    count = 0
    for t in stated:
        if not isinstance(t.subject, ox.NamedNode):
            continue
        theory.axioms.append(Axiom((t, *_follow(t.object, of_node))))
        count += len(theory.axioms[-1].triples)
        if count > _MOST_SHARED * (len(stated) + 1000):
            raise InputError(
                f"the ontology's {len(stated)} statements share their unnamed nodes so often that "
                f"its axioms have over {count}; give what is shared a name"
            )
    for node in of_node:
        if node not in pointed:
            theory.axioms.append(Axiom(tuple(_follow(node, of_node))))


def _follow(start: Node, of_node: Mapping[Node, Sequence[ox.Triple]]) -> Iterator[ox.Triple]:
    """The statements of an unnamed node, and of those that it refers to."""
    for node in walk([start], lambda node: (t.object for t in of_node.get(node, ()))):
        yield from of_node.get(node, ())


def _take_fact(t: ox.Triple, theory: Theory) -> None:
    predicate, value = t.predicate.value, t.object
    if predicate == n.RDF_TYPE:
        if isinstance(value, ox.NamedNode) and theory.declared.get(value.value) == n.CLASS:
            theory.facts.append(t)
        elif isinstance(value, ox.NamedNode) and not value.value.startswith(n.BUILT_IN):
            theory.unknown.add(value.value)
    elif predicate == n.LABEL and isinstance(t.subject, ox.NamedNode):
        if isinstance(value, ox.Literal):
            theory.labels.setdefault(t.subject.value, value.value)
    elif theory.declared.get(predicate) in (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY):
        theory.facts.append(t)
    elif (
        not predicate.startswith((*n.BUILT_IN, n.PROV, n.DCT)) and predicate not in theory.declared
    ):
        theory.unknown.add(predicate)


_OF_SOME_TEXTS = {n.OWL + "withRestrictions"} | {
    n.XSD + name for name in "normalizedString token language Name NCName NMTOKEN".split()
}
_ROUNDS = 3
"""Rounds of hashing over neighbours that tell the individuals of a part apart."""


def part_facts(theory: Theory) -> dict[str, list[ox.Triple]]:
    """Facts in parts that cannot contradict one another, each kind of part once.

    Individuals joined by facts are of one part. The key of a part is its facts with numbers for
    individuals and texts: parts with equal keys differ in names only, and have equal verdicts.
    Axioms that name individuals, keys, or universal properties make all facts one part. The first
    part is empty: it stands for the schema alone.
    """
    terms = {term for axiom in theory.axioms for t in axiom.triples for term in t}
    named = {term.value for term in terms if isinstance(term, ox.NamedNode)}
    strange = {i for i in named if not i.startswith(n.BUILT_IN)} - theory.declared.keys()
    if strange or named & JOINING:
        return {"": [], "\n".join(sorted(map(str, theory.facts))): theory.facts}
    parts = group_joined(theory.facts, lambda t: (t.subject, t.object if _joins(t) else t.subject))
    # Where the words of a text count: a pattern, say, or a datatype of some texts only.
    literals = (t.object for t in theory.facts if isinstance(t.object, ox.Literal))
    bounded = not _OF_SOME_TEXTS.isdisjoint(named | {value.datatype.value for value in literals})
    return {"": []} | {_describe(part, bounded): part for part in parts}


def _joins(t: ox.Triple) -> bool:
    return t.predicate.value != n.RDF_TYPE and not isinstance(t.object, ox.Literal)


def _describe(facts: Sequence[ox.Triple], bounded: bool) -> str:
    """The facts of a part with numbers for its individuals and texts."""

    def say(value: Node) -> str:
        if not isinstance(value, ox.Literal) or bounded or value.language:
            return str(value)
        is_known = value.datatype.value in _KNOWN_DATATYPES - {_TEXT}
        return str(value) if is_known else f"^^{value.datatype}"

    joined = [t for t in facts if _joins(t)]
    around = {str(node): "" for t in facts for node in (t.subject, *([t.object] * _joins(t)))}
    for _ in range(_ROUNDS):
        near: defaultdict[str, list[str]] = defaultdict(list)
        for t in facts:
            value = around[str(t.object)] if _joins(t) else say(t.object)
            near[str(t.subject)].append(f"{t.predicate} {value}")
        for t in joined:
            near[str(t.object)].append(f"{around[str(t.subject)]} {t.predicate}")
        around = {node: hash_value(sorted(near[node])) for node in around}
    order = sorted(around, key=lambda node: (around[node], node))
    number = {node: f"_{i}" for i, node in enumerate(order)}
    texts: dict[str, str] = {}
    lines = []
    for t in sorted(facts, key=lambda t: (number[str(t.subject)], str(t))):
        value = number[str(t.object)] if _joins(t) else say(t.object)
        if value.startswith("^^"):
            value = texts.setdefault(str(t.object), f"{len(texts)}{value}")
        lines.append(f"{number[str(t.subject)]} {t.predicate} {value}")
    return "\n".join(sorted(lines))


_OF_SUBJECT = {n.SUBCLASS, n.DOMAIN, n.RANGE, n.SUBPROPERTY, n.DISJOINT_WITH}
_OF_BOTH = {n.INVERSE_OF, n.EQUIVALENT_CLASS, _EQUAL}
"""Axioms that hold where their subject, or subject and object, are empty classes or properties."""


def key_parts(
    theory: Theory, schema_turtle: str, parts: Mapping[str, list[ox.Triple]]
) -> dict[str, list[ox.Triple]]:
    """The facts of `part_facts` by the hash of the part and of the axioms that bear on it.

    All bear on the empty part.
    """
    describe = _open_modules(theory)
    keyed = {}
    for text, facts in parts.items():
        used = {
            _name(t.object) if t.predicate.value == n.RDF_TYPE else t.predicate.value for t in facts
        }
        keyed[hash_value([describe(used) if facts else schema_turtle, text])] = facts
    return keyed


def add_modules(schema_turtle: str, parts: Sequence[Lines]) -> list[Keyed]:
    """The parts of `list_parts`, each with the hash of the axioms that bear on it.

    That is the whole schema for the empty part, and where all lines are one.
    """
    whole, kind = hash_value(schema_turtle), f"<{n.RDF_TYPE}>"
    try:
        describe = _open_modules(read_theory(schema_turtle))
    except InputError:  # the judge says so
        return [(whole, part) for part in parts]
    key = cache(lambda used: hash_value(describe(used)))
    keyed = []
    for part in parts:
        words = ([*line.split(" ", 2), "", ""] for line in part)
        used = frozenset((o.removesuffix(" .") if p == kind else p)[1:-1] for _, p, o, *_ in words)
        keyed.append((whole if parts[0] or not part else key(used), part))
    return keyed


def _open_modules(theory: Theory) -> Callable[[Iterable[str]], list[JsonValue]]:
    """A function that gives, for names that facts use, the axioms that bear on these facts.

    The others hold where all that neither the facts nor these axioms name is empty, so a model of
    these is one of all (bottom-locality, Cuenca Grau et al. 2008).
    """
    bearing = defaultdict[str, list[Axiom]](list)
    for axiom in theory.axioms:
        for iri in _list_bearers(axiom):
            bearing[iri].append(axiom)
    near = {iri: {*chain(*(a.list_iris() for a in axioms))} for iri, axioms in bearing.items()}
    words = {iri: hash_value(sorted(map(_write_axiom, axioms))) for iri, axioms in bearing.items()}

    def describe(used: Iterable[str]) -> list[JsonValue]:
        found = sorted(walk(["", *used], lambda iri: near.get(iri, ())))
        return [[iri, theory.declared.get(iri), words.get(iri)] for iri in found]

    return describe


def _write_axiom(axiom: Axiom) -> str:
    """The statements of an axiom, with numbers for unnamed nodes."""
    numbers: dict[Node, str] = {}
    return "\n".join(
        numbers.setdefault(term, f"_:{len(numbers)}")
        if isinstance(term, ox.BlankNode)
        else str(term)
        for triple in axiom.triples
        for term in triple
    )


def _list_bearers(axiom: Axiom) -> Sequence[str]:
    """The names whose use makes an axiom bear on facts; "" where it always does."""
    head = axiom.head
    kind = head.predicate.value if head.predicate.value != n.RDF_TYPE else _name(head.object)
    bearers = [_name(head.subject)] if kind in _OF_SUBJECT | _CHARACTERISTICS.keys() else []
    if kind in _OF_BOTH and len(axiom.triples) == 1:
        bearers = [_name(head.subject), _name(head.object)]
    is_named = bearers and not any(not iri or iri.startswith(n.BUILT_IN) for iri in bearers)
    return bearers if is_named else [""]


class ReasonerText:
    """Writes axioms and facts of one theory as N-Triples for HermiT, with numbers for names.

    Annotations, `owl:imports` and IRIs from outside never reach the reasoner. Two things are said
    in other words, with the same meaning:

    - HermiT knows OWL 2's datatypes only, without `xsd:date` and `xsd:gYear`. A value of another
      datatype becomes a text in a language of its own, and the datatype the texts in that
      language: values of two datatypes stay different, and none of them is a string.
    - OWL takes two names for one thing where that makes a statement true, so a second birth place
      would be no fault but a discovery. Our entities are distinct, as resolution has merged what is
      one. `owl:AllDifferent` of n entities costs HermiT n² statements; a functional property that
      gives each its own number says the same in n.
    """

    def __init__(self, theory: Theory) -> None:
        self._declared = theory.declared
        self._numbers: dict[str, str] = {}
        self._tags: dict[str, str] = {}

    def name(self, iri: str) -> str:
        """The IRI for HermiT, in angle brackets."""
        if iri in _KNOWN_DATATYPES or (iri.startswith(n.BUILT_IN) and not iri.startswith(n.XSD)):
            return f"<{iri}>"
        if iri.startswith(n.XSD) and self._declared.get(iri) is None:
            facet = iri.removeprefix(n.XSD)
            if facet.startswith(("min", "max", "length", "pattern", "total", "fraction")):
                return f"<{iri}>"
            return f"<urn:d:{self._tag(iri)}>"
        if iri not in self._numbers:
            self._numbers[iri] = f"<urn:x:{len(self._numbers)}>"
        return self._numbers[iri]

    def _tag(self, datatype: str) -> str:
        """A language tag for a datatype: from qaa on they are for private use."""
        if datatype not in self._tags:
            first, second = divmod(len(self._tags), 26)
            self._tags[datatype] = f"q{chr(97 + first % 20)}{chr(97 + second)}"
        return self._tags[datatype]

    def _write_term(self, term: Node) -> str:
        if isinstance(term, ox.NamedNode):
            return self.name(term.value)
        if isinstance(term, ox.Literal):
            text, datatype = _spell(term.value), term.datatype.value
            if term.language:
                return f'"{text}"@{term.language}'
            if datatype == _TEXT:
                return f'"{text}"'
            if datatype in _KNOWN_DATATYPES:
                return f'"{text}"^^<{datatype}>'
            return f'"{text}"@{self._tag(datatype)}'
        return str(term)

    def write(self, axioms: Iterable[Axiom], facts: Iterable[ox.Triple]) -> str:
        """N-Triples: declarations, axioms, facts, and distinctness of individuals."""
        lines = [
            f"{self.name(iri)} <{n.RDF_TYPE}> <{kind}> .\n"
            for iri, kind in self._declared.items()
            if kind in _KINDS
        ]
        lines += [self._write_line(t) for axiom in axioms for t in axiom.triples]
        individuals: dict[str, None] = {}
        for t in facts:
            line = self._write_line(t)
            lines.append(line)
            individuals[line.partition(" ")[0]] = None
            if t.predicate.value != n.RDF_TYPE and isinstance(t.object, ox.NamedNode):
                individuals[self.name(t.object.value)] = None
        lines += [
            f"{_IDENTITY} <{n.RDF_TYPE}> <{n.DATATYPE_PROPERTY}> .\n",
            f"{_IDENTITY} <{n.RDF_TYPE}> <{n.FUNCTIONAL_PROPERTY}> .\n",
        ]
        lines += [f'{node} {_IDENTITY} "{number}" .\n' for number, node in enumerate(individuals)]
        return "".join([*lines, *map(_define, self._tags.values())])

    def _write_line(self, t: ox.Triple) -> str:
        subject, value = self._write_term(t.subject), self._write_term(t.object)
        return f"{subject} {self.name(t.predicate.value)} {value} .\n"


def _spell(text: str) -> str:
    """Plain ASCII, another for every other text: HermiT's parser reads escapes its own way."""
    return "".join(c if " " <= c <= "~" and c not in '"\\{' else f"{{{ord(c):x}}}" for c in text)


def _define(tag: str) -> str:
    """Statements that define a datatype: its values are the texts in its language."""
    return (
        f"<urn:d:{tag}> <{n.RDF_TYPE}> <{n.RDFS}Datatype> .\n"
        f"<urn:d:{tag}> <{n.OWL}equivalentClass> _:d{tag} .\n"
        f"_:d{tag} <{n.RDF_TYPE}> <{n.RDFS}Datatype> .\n"
        f"_:d{tag} <{n.OWL}onDatatype> <{n.RDF}PlainLiteral> .\n"
        f"_:d{tag} <{n.OWL}withRestrictions> _:l{tag} .\n"
        f"_:l{tag} <{n.RDF_FIRST}> _:f{tag} .\n_:l{tag} <{n.RDF_REST}> <{n.RDF_NIL}> .\n"
        f'_:f{tag} <{n.RDF}langRange> "{tag}" .\n'
    )


# The gate `consistent`: schema and instances contradict neither each other nor themselves.

# HermiT in a Java process.

_HEAP = 2048
"""MiB; a million statements about 300,000 individuals took 1.6 GiB and 75 s of processor time."""
_CONSISTENT = b"is satisfiable."
_INCONSISTENT = b"InconsistentOntologyException"
_EMPTY_CLASSES = "Classes equivalent to 'owl:Nothing':\n"
_OUT_OF_MEMORY = 3
"""Java's exit code with -XX:+ExitOnOutOfMemoryError."""

_MOST_CLASSIFIED = 1000
"""Axioms of an ontology that is judged by owlready2's API: 200 take .3 s longer than by HermiT's
command, 11,000 took 104 s for 7."""
_Answer = TypeVar("_Answer")

Part = tuple[Sequence[Axiom], Sequence[ox.Triple]]
"""Axioms and facts that are judged together."""


class NotJudgedError(PyramidError):
    """The reasoner gave no verdict; the message says why."""


class Reasoner:
    """Judges parts of one theory until its time is over; use it in a `with`."""

    def __init__(self, theory: Theory, *, seconds: float, heap: int = _HEAP) -> None:
        """Looks for Java and HermiT.

        Raises:
            NotJudgedError: there is none, or owlready2 brings no HermiT.
        """
        self._text = ReasonerText(theory)
        self._names = {self._text.name(iri): iri for iri in theory.declared}
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._command = _list_command(heap)
        self._java = self._command[0], heap
        self._folder = tempfile.TemporaryDirectory(prefix="kpyramid-hermit-")

    def find_inconsistent(self, parts: Iterable[Part]) -> int | None:
        """The index of the first inconsistent part, or None.

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
        """The sorted classes that can have no instance; None when the part is inconsistent.

        Raises:
            NotJudgedError: as above.
        """
        if len(part[0]) <= _MOST_CLASSIFIED:
            text = self._text.write(*part)
            empty, error = self._wait(lambda left: classify(text, *self._java, seconds=left))
            if "OutOfMemoryError" in error:
                raise self._describe_memory()
            if not error:
                return None if empty is None else sorted({self._names[f"<{iri}>"] for iri in empty})
            # owlready2 cannot hold the types that HermiT infers in some ontologies (PROV-O)
        code, output = self._run(["-k", "-U"], [part])
        if _INCONSISTENT in output:
            return None
        self._require_end(code, output, 1)
        _, heading, listed = output.decode("utf-8", "replace").partition(_EMPTY_CLASSES)
        if not heading:
            raise _describe_failure(output)
        names = re.findall(r"^\t<?(urn:x:[0-9]+)>?$", listed, re.MULTILINE)
        return sorted({self._names[f"<{name}>"] for name in names})

    def _run(self, actions: list[str], parts: Iterable[Part]) -> tuple[int, bytes]:
        folder = Path(self._folder.name)
        files = []
        for number, (axioms, facts) in enumerate(parts):
            path = folder / f"{number}.nt"
            path.write_text(self._text.write(axioms, facts), "ascii")
            files.append(path.as_uri())
        command = [*self._command, *actions, *files]
        return self._wait(lambda left: run_limited(command, seconds=left))

    def _wait(self, call: Callable[[float], _Answer]) -> _Answer:
        """What a call returns in the seconds that are left."""
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            return call(left)
        except TimeoutError as e:
            raise NotJudgedError(
                f"HermiT was stopped after {self._seconds:g} seconds; raise "
                "publish.reasoner_seconds (of `ontology check`: --seconds) to give it more"
            ) from e

    def _require_end(self, code: int, output: bytes, verdicts: int) -> None:
        if code == _OUT_OF_MEMORY:
            raise self._describe_memory()
        # It ends with 0 even after a file that it could not read.
        if code or output.count(_CONSISTENT) != verdicts:
            raise _describe_failure(output)

    def _describe_memory(self) -> NotJudgedError:
        return NotJudgedError(f"HermiT needs more than {self._java[1]} MiB of memory")

    def __enter__(self) -> "Reasoner":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _describe_failure(output: bytes) -> NotJudgedError:
    text = output.decode("utf-8", "replace").replace(_CONSISTENT.decode(), " ")
    return NotJudgedError(f"HermiT failed: {' '.join(text.split())[:300]}")


def find_java() -> str | None:
    """The Java of JAVA_HOME, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    inside = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    return inside or shutil.which("java")


def _list_command(heap: int) -> list[str]:
    java, spec = find_java(), find_spec("owlready2")
    if java is None:
        raise NotJudgedError("no Java on PATH; install one, such as Debian's default-jre-headless")
    if spec is None or spec.origin is None:
        raise NotJudgedError("owlready2, which brings HermiT, is not installed")
    hermit = Path(spec.origin).parent / "hermit"
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
"""Parts in one call of HermiT: starting Java takes longer than judging small ones."""
_MOST_STATEMENTS = 200_000
"""Most statements written for one call."""

Item = Axiom | ox.Triple


def explain_contradiction(theory: Theory, reasoner: Reasoner) -> list[Item]:
    """A minimal set of contradicting axioms and facts.

    Raises:
        NotJudgedError: the reasoner's time is over.
    """
    return shrink([*theory.axioms, *theory.facts], reasoner.find_inconsistent)


def explain_class(theory: Theory, iri: str, reasoner: Reasoner) -> list[Item]:
    """A minimal set of axioms by which a class can have no instance.

    Raises:
        NotJudgedError: the reasoner's time is over.
    """
    instance = ox.Triple(ox.NamedNode("urn:an-instance"), _TYPE, ox.NamedNode(iri))
    of: defaultdict[str, list[Axiom]] = defaultdict(list)
    for axiom in theory.axioms:
        of[_name(axiom.head.subject)].append(axiom)
    near = walk([iri], lambda node: (end for axiom in of[node] for end in axiom.list_iris()))
    # What is near comes first: of the shortest beginning that contradicts itself nothing is far.
    axioms = dict.fromkeys(chain(of[""], *(of[each] for each in near), theory.axioms))
    shrunk = shrink([instance, *axioms], reasoner.find_inconsistent)
    return [item for item in shrunk if item != instance]


_TYPE = ox.NamedNode(n.RDF_TYPE)


def shrink(
    items: Sequence[Item], find_inconsistent: Callable[[Iterable[Part]], int | None]
) -> list[Item]:
    """A minimal contradictory subset of contradictory items.

    `find_inconsistent` gives the index of the first inconsistent part, or None. The last item of
    the shortest contradictory beginning is needed; it is set aside, and the search goes on in the
    items before it, until the items set aside contradict each other.
    """
    core: list[Item] = []
    rest = list(items)
    while True:
        low, high = -1, len(rest)  # a beginning of `low` items is consistent, of `high` it is not
        while high - low > 1:
            most = max(2, min(_MOST_PARTS, _MOST_STATEMENTS // high))
            cuts = sorted({low + 1 + (high - low - 1) * i // most for i in range(most)})
            index = find_inconsistent(_split([*core, *rest[:cut]]) for cut in cuts)
            if index is None:
                low = cuts[-1]
            else:
                high = cuts[index]
                low = cuts[index - 1] if index else low
        if high == 0:
            return sorted(core, key=lambda item: (isinstance(item, Axiom), str(item)), reverse=True)
        core.append(rest[high - 1])
        rest = rest[: high - 1]


def _split(items: Iterable[Item]) -> Part:
    listed = list(items)
    axioms = [item for item in listed if isinstance(item, Axiom)]
    return axioms, [item for item in listed if isinstance(item, ox.Triple)]


def _name(node: Node) -> str:
    return node.value if isinstance(node, ox.NamedNode) else ""


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
        text = f"“{subject}” is {_choose_article(value)} {value}"
    else:
        text = f"“{subject}” has {_say(item.predicate, labels)} “{value}”"
    place = find_place(item)
    return f"{text} [{place}]" if place else text


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
    """The statements of an axiom's unnamed nodes in words, without those of RDF lists."""
    for t in axiom.triples[1:]:
        builds = _name(t.object) in (n.RDF_NIL, n.RESTRICTION, n.CLASS)
        if not (builds or isinstance(t.object, ox.BlankNode)):
            predicate = "" if t.predicate.value == n.RDF_FIRST else _say(t.predicate, labels)
            yield f"{predicate} {_say(t.object, labels)}".strip()


# The gate `consistent`: schema and instances contradict neither each other nor themselves.

_MOST_NAMED = 5
_MOST_FACTS = 100_000
"""Most facts judged at a time: HermiT takes 1.6 GiB for a million."""


def judge_consistency(
    schema_turtle: str,
    instances_nt: str,
    *,
    seconds: float,
    provenance_nt: str = "",
    passed: Passed | None = None,
) -> str:
    """`pass`, `fail: why`, or `not run: why`, by HermiT in `seconds`.

    It fails for an undeclared class or property, for a class that can have no instance, and for a
    contradiction. The reason names a minimal set of contradicting statements in words, each fact
    with the place in the text that states it. Parts that HermiT `passed` before are not judged
    again; of the rest each kind of part is judged once.
    """
    given = schema_turtle, instances_nt, seconds, provenance_nt
    verdict, empty = _judge(*given, explained=1, passed=passed)
    if not empty:
        return verdict
    labels = read_theory(schema_turtle).labels
    named = ", ".join(labels.get(iri, iri) for iri in [*empty][:_MOST_NAMED])
    return (
        f"fail: {len(empty)} classes can have no instance ({named}): {next(iter(empty.values()))}"
    )


def judge_schema(schema_turtle: str, *, seconds: float) -> tuple[str, dict[str, str]]:
    """The verdict on a schema, and its classes that can have no instance.

    These are by IRI, the first of them with the statements that imply it.
    """
    return _judge(schema_turtle, "", seconds, "", explained=_MOST_NAMED)


def _judge(
    schema_turtle: str,
    instances_nt: str,
    seconds: float,
    provenance_nt: str,
    *,
    explained: int,
    passed: Passed | None = None,
) -> tuple[str, dict[str, str]]:
    try:
        theory = read_theory(schema_turtle, instances_nt)
    except InputError as e:
        return f"fail: {e}", {}
    if theory.unknown:
        named = ", ".join(f"<{iri}>" for iri in sorted(theory.unknown)[:_MOST_NAMED])
        return f"fail: instances use what the schema does not declare: {named}", {}
    parts = key_parts(theory, schema_turtle, part_facts(theory))
    known = passed.load(parts) if passed is not None else {}
    parts = {key: facts for key, facts in parts.items() if key not in known}
    if not parts:
        return "pass", {}
    try:
        with Reasoner(theory, seconds=seconds) as reasoner:
            groups = split_by_size(parts.values(), len, weight=_MOST_FACTS)
            first, *others = ((theory.axioms, [*chain(*group)]) for group in groups)
            empty = reasoner.find_unsatisfiable(first)
            if others and reasoner.find_inconsistent(others) is not None:
                empty = None
            if empty is None:
                find = partial(explain_contradiction, theory, reasoner)
                return f"fail: inconsistent: {_explain(theory, find, provenance_nt)}", {}
            reasons = dict.fromkeys(empty, "")
            for iri in empty[:explained]:
                reasons[iri] = _explain(theory, partial(explain_class, theory, iri, reasoner))
            if passed is not None and not empty:
                passed.store(dict.fromkeys(parts, b""))
            return "pass", reasons
    except NotJudgedError as e:
        return f"not run: {e}", {}


def _explain(theory: Theory, find: Callable[[], list[Item]], provenance_nt: str = "") -> str:
    """Contradicting statements in words, each fact with the place that states it."""
    try:
        return "; ".join(
            state_item(item, theory.labels, lambda fact: _find_place(fact, provenance_nt))
            for item in find()
        )
    except NotJudgedError as e:
        return f"which statements do so was not found: {e}"


def _find_place(fact: ox.Triple, provenance_nt: str) -> str | None:
    """The place that states a fact, by its reified statement; None without any."""
    parts = (("subject", fact.subject), ("predicate", fact.predicate), ("object", fact.object))
    wanted = {f"<{n.RDF}{name}> {term} ." for name, term in parts}
    counts = Counter[str]()
    places: dict[str, str] = {}
    for line in provenance_nt.split("\n"):  # literals may hold other ends of lines
        statement, _, rest = line.partition(" ")
        counts[statement] += rest in wanted
        if rest.startswith(f"<{n.DERIVED_FROM}> "):
            places.setdefault(statement, rest.split(" ")[1].strip("<>").rpartition("/")[2])
    return min(((s, places[s]) for s in places if counts[s] == len(parts)), default=(None, None))[1]
