"""RDF without questions: an ontology's definitions and hierarchy, or individuals and their facts.

Of an ontology the definitions are the corpus, and choice questions ask for what a class is a kind
of. Of individuals open questions ask for the values of properties that name things with labels.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from making.facts import Fact, Thing, say_value
from making.questions import make_questions

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.importing.files import read_outside
from kpyramid.ontology.turtle import Graph
from kpyramid.ontology.turtle import make_iri as _node
from sets.files import QuestionSet, read_licence

_ENDINGS = (".owl", ".rdf", ".ttl", ".n3", ".nt")
_DEFINITIONS = (
    "http://purl.obolibrary.org/obo/IAO_0000115",
    "http://www.w3.org/2004/02/skos/core#definition",
    n.RDFS + "comment",
)
_SPELLINGS = (
    "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym",
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "https://www.omg.org/spec/Commons/AnnotationVocabulary/synonym",
)
_LABEL = n.RDFS + "label"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_NOTES = (
    "overview",
    "abstract",
    "description",
    "comment",
    "label",
    "type",
    "dateTime",
    "relates",
    "relatedBy",
)
"""Local names of what is text about something, or says nothing in particular of it."""


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when the folder holds no RDF."""
    paths = [p for p in sorted(folder.rglob("*")) if p.suffix in _ENDINGS]
    if not paths:
        return None
    graph = Graph(triple for path in paths for triple in read_outside(path).triples)
    classes = graph.find_typed(n.OWL + "Class")
    found = _read_classes(folder, graph, classes) if classes else _read_things(folder, graph)
    if not found.questions:
        raise InputError(f"{folder}: RDF in which nothing with a label says anything to ask about")
    return found


def _read_classes(folder: Path, graph: Graph, classes: list[str]) -> QuestionSet:
    things = {
        iri: thing
        for iri in classes
        if (thing := _name_thing(graph, iri)) and not graph.find_texts(_node(iri), _DEPRECATED)
    }
    texts = {iri: _define(graph, iri, thing) for iri, thing in things.items()}
    facts = [
        Fact(thing, "is a kind of", things[parent], ("", ""), (_cut(iri),), (texts[iri],))
        for iri, thing in things.items()
        for parent in graph.find_iris(_node(iri), n.RDFS + "subClassOf")
        if parent in things
    ]
    made = make_questions(facts, grounded=True)
    corpus = tuple(
        {"id": _cut(iri), "title": thing.name, "text": texts[iri]}
        for iri, thing in things.items()
        if texts[iri]
    )
    return QuestionSet(
        folder.name,
        corpus,
        made.questions,
        read_licence(folder),
        "choice questions made from the hierarchy, where a definition names the class above",
        made.left_out,
    )


def _define(graph: Graph, iri: str, thing: Thing) -> str:
    """A class's definition, after its name where it does not say it; empty if it has none."""
    said = [text for p in _DEFINITIONS for text in graph.find_texts(_node(iri), p)]
    if not said:
        return ""
    return said[0] if thing.name.lower() in said[0].lower() else f"{thing.name}: {said[0]}"


def _read_things(folder: Path, graph: Graph) -> QuestionSet:
    subjects = [s.value for s in graph.list_subjects() if str(s).startswith("<")]
    things = {iri: thing for iri in subjects if (thing := _name_thing(graph, iri))}
    left_out: Counter[str] = Counter()
    facts = list(_list_facts(graph, things, left_out))
    made = make_questions(facts, kind="open", sides=("object",))
    return QuestionSet(
        folder.name,
        (),
        made.questions,
        read_licence(folder),
        "the graph stands in for a corpus: it has too few things of a class for eight options, so "
        "the questions are open",
        dict(left_out + Counter(made.left_out)),
    )


def _list_facts(graph: Graph, things: dict[str, Thing], left_out: Counter[str]) -> Iterator[Fact]:
    for iri, thing in things.items():
        for predicate in graph.list_predicates(_node(iri)):
            label = _cut(predicate)
            if label in _NOTES:
                continue
            if any(c.isdigit() for c in label):
                left_out["its property has no name in words"] += 1
                continue
            for text in graph.find_texts(_node(iri), predicate):
                said, form = say_value(text)
                yield Fact(thing, label, Thing(said, said, form=form or "text"))
            for value in graph.find_iris(_node(iri), predicate):
                if value in things:
                    yield Fact(thing, label, things[value])
                else:
                    left_out["its value has no label"] += 1


def _name_thing(graph: Graph, iri: str) -> Thing | None:
    """What an IRI stands for, by its English label; None without one."""
    labels = graph.find_texts(_node(iri), _LABEL)
    if not labels:
        return None
    last, comma, first = labels[0].partition(", ")
    name = f"{first} {last}" if comma and " " not in last and len(first.split()) <= 2 else labels[0]
    spellings = [text for p in _SPELLINGS for text in graph.find_texts(_node(iri), p)]
    return Thing(iri, name, (), tuple(dict.fromkeys((*labels, *spellings))))


def _cut(iri: str) -> str:
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2]
