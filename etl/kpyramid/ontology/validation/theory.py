"""The logical part of an ontology, and its text for HermiT."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.keys import hash_value
from kpyramid.ontology import names as n
from kpyramid.ontology.turtle import walk

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
"""Times that an axiom's unnamed nodes may be written out; once is usual, for OWL makes trees."""


@dataclass(frozen=True, slots=True)
class Axiom:
    """Statements that only say something together: one, with the unnamed nodes it points to."""

    triples: tuple[ox.Triple, ...]

    @property
    def head(self) -> ox.Triple:
        """The statement that the others belong to."""
        return self.triples[0]

    def list_iris(self) -> set[str]:
        """All IRIs in it that are no word of OWL."""
        terms = {t for triple in self.triples for t in (triple.subject, triple.object)}
        terms |= {triple.predicate for triple in self.triples}
        found = {t.value for t in terms if isinstance(t, ox.NamedNode)}
        return {iri for iri in found if not iri.startswith(n.BUILT_IN)}


@dataclass(slots=True)
class Theory:
    """The axioms of a schema and the facts about individuals.

    `declared`: kind by IRI, such as `owl:Class`. `labels`: of everything. `unknown`: classes and
    properties that facts use and nothing declares.
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
    """The statements of an unnamed node, and of those that it points to."""
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


_JOINING = {
    n.OWL + name for name in "hasKey hasValue oneOf topDataProperty topObjectProperty".split()
}
_OF_SOME_TEXTS = {n.OWL + "withRestrictions"} | {
    n.XSD + name for name in "normalizedString token language Name NCName NMTOKEN".split()
}
_ROUNDS = 3
"""How far around an individual its place among the others of its part is looked for."""


def part_facts(theory: Theory) -> dict[str, list[ox.Triple]]:
    """Facts that no other fact can contradict, part by part, each kind of part once.

    Individuals are of one part when facts join them. The key of a part is its facts with numbers
    for individuals and texts: parts with one key differ in names only, and a reasoner says the same
    of them. Axioms that name individuals, keys, or what holds between all things join everything.
    The first part is empty: it stands for the schema alone.
    """
    terms = {term for axiom in theory.axioms for t in axiom.triples for term in t}
    named = {term.value for term in terms if isinstance(term, ox.NamedNode)}
    strange = {i for i in named if not i.startswith(n.BUILT_IN)} - theory.declared.keys()
    if strange or named & _JOINING:
        return {"": [], "\n".join(sorted(map(str, theory.facts))): theory.facts}
    first: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while (above := first.setdefault(node, node)) != node:
            first[node] = node = first[above]
        return node

    for t in theory.facts:
        first[find(t.subject)] = find(t.object if _joins(t) else t.subject)
    parts: defaultdict[Node, list[ox.Triple]] = defaultdict(list)
    for t in theory.facts:
        parts[find(t.subject)].append(t)
    # Where the words of a text count: a pattern, say, or a datatype of some texts only.
    bounded = not _OF_SOME_TEXTS.isdisjoint(named | {_read_datatype(t) for t in theory.facts})
    return {"": []} | {_describe(part, bounded): part for part in parts.values()}


def _read_datatype(t: ox.Triple) -> str:
    return t.object.datatype.value if isinstance(t.object, ox.Literal) else ""


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
    number = {node: f"_{at}" for at, node in enumerate(order)}
    texts: dict[str, str] = {}
    lines = []
    for t in sorted(facts, key=lambda t: (number[str(t.subject)], str(t))):
        value = number[str(t.object)] if _joins(t) else say(t.object)
        if value.startswith("^^"):
            value = texts.setdefault(str(t.object), f"{len(texts)}{value}")
        lines.append(f"{number[str(t.subject)]} {t.predicate} {value}")
    return "\n".join(sorted(lines))


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
        """The IRI as HermiT sees it, in angle brackets."""
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
        """A language of its own for a datatype: from qaa on they are for private use."""
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
        """N-Triples: declarations, the axioms, the facts, and that individuals are distinct."""
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
