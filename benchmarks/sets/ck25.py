"""CK25 (eccenca, 2025): questions over an RDF graph with SPARQL, as in the TEXT2SPARQL challenge.

An answer is right when it has the same values as the gold query's, as sets over all variables:
an F1 of 1 in the challenge's own measure (`text2sparql evaluate`, set_F of pytrec_eval).
`read_lexicon` reads the words of any RDF graph from the graph itself.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from making.facts import read_number, say_value

from kpyramid.answering.lexicon import (
    PLACE_WORDS,
    Category,
    Compare,
    Lexicon,
    Phrase,
    Relation,
    Run,
    fold,
    split_lemmas,
    vary_name,
)
from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.ontology import names as n
from kpyramid.ontology.store import OntologyStore
from kpyramid.snapshot.snapshot import EntitiesByName
from sets.files import QuestionSet, read_licence


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question in English with the query that answers it."""

    id: str
    text: str
    sparql: str


def read_questions(path: Path) -> list[GoldQuestion]:
    """The questions of a YAML file: a list of `id`, `question.en` and `query.sparql`.

    Raises:
        InputError: it cannot be read, PyYAML is missing, or a question lacks one of the three.
    """
    try:
        import yaml
    except ImportError as e:
        raise InputError(f"{path}: YAML needs PyYAML; run `pip install 'kpyramid[dev]'`") from e
    try:
        data: object = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise InputError(f"{path}: {e}; give the questions as a YAML file") from e
    rows = data.get("questions") if isinstance(data, Mapping) else data
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: no questions; give a list of id, question.en and query.sparql")
    return [_read_question(row, f"{path}, question {n}") for n, row in enumerate(rows, 1)]


def _read_question(row: object, where: str) -> GoldQuestion:
    identifier = _pick(row, "id")
    if not isinstance(identifier, str | int):
        raise InputError(f"{where}: no id")
    texts = {name: _pick(row, *name.split(".")) for name in ("question.en", "query.sparql")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{where} (id {identifier}): no text as {name}; give one, in quotes")
    return GoldQuestion(str(identifier), str(texts["question.en"]), str(texts["query.sparql"]))


def _pick(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def collect_values(rows: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """All values of all variables of a result; of an ASK, its truth."""
    return frozenset(value for row in rows for value in row.values())


_ALL = 10**6
_LABELS = (
    "SELECT ?thing ?label WHERE { ?thing <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
)
_SECONDS = 60.0


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no questions beside graphs."""
    asked = sorted(folder.glob("*.yml")) + sorted(folder.glob("*.yaml"))
    graphs = sorted((folder / "graphs").glob("*.ttl"))
    if not asked or not graphs:
        return None
    gold = read_questions(asked[0])
    turtle = "\n".join(path.read_text("utf-8") for path in graphs)
    store = OntologyStore(turtle, "", seconds=_SECONDS)
    try:
        names: dict[str, list[str]] = {}
        for row in store.select_trusted(_LABELS, limit=_ALL):
            names.setdefault(row["thing"], []).append(row["label"])
        found = [_ask(question, store, names) for question in gold]
    finally:
        store.close()
    left_out = Counter(one for one in found if isinstance(one, str))
    return QuestionSet(
        folder.name,
        (),
        tuple(one for one in found if isinstance(one, EvalQuestion)),
        read_licence(folder),
        "the graph stands in for a corpus: these questions are put to the ontology layer",
        dict(left_out),
    )


def _ask(
    question: GoldQuestion, store: OntologyStore, names: Mapping[str, Sequence[str]]
) -> EvalQuestion | str:
    try:
        rows = store.select_trusted(question.sparql, limit=_ALL)
    except InputError:
        return "its query does not run"
    values = sorted(collect_values(rows)) if any(rows) else []
    if not values:
        return "its query finds nothing"
    if "ASK" in question.sparql.upper().split("WHERE")[0].split() or _is_truth(values):
        truth = "yes" if values == ["true"] else "no"
        return EvalQuestion(
            question.id, question.text, "yesno", ((truth,),), ("yes", "no"), group="ASK"
        )
    answers = tuple(_spell(value, names) for value in values)
    entities = tuple(
        answer[0] for value, answer in zip(values, answers, strict=True) if value in names
    )
    return EvalQuestion(question.id, question.text, "values", answers, entities=entities)


def _is_truth(values: Sequence[str]) -> bool:
    return len(values) == 1 and values[0] in ("true", "false")


def _spell(value: str, names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """How a value may be written: an individual's labels, a number as it is and rounded."""
    if value in names:
        return tuple(sorted(dict.fromkeys((*names[value], value)), key=lambda n: (n == value, n)))
    said, _ = say_value(value, counts=True)
    number = read_number(value)
    rounded = (f"{number:.2f}",) if number is not None and "." in value else ()
    return tuple(dict.fromkeys((value, said, *rounded)))


_META = (n.OWL, n.RDFS, n.RDF, n.SKOS, "http://rdfs.org/ns/void#", "http://purl.org/dc/",
         "http://purl.org/vocab/vann/", "http://creativecommons.org/", n.PROV, n.XSD)  # fmt: skip
"""Vocabularies that speak of data, not of what the data are about."""
_LONGEST_NAME = 80
"""Characters; longer literals are texts, which no question quotes."""
_WORDED = f"<{n.LABEL}>|<{n.ALT_LABEL}>|<{n.SKOS}prefLabel>"


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
_PERSON_WORDS = frozenset("person people human individual agent employee worker member".split())
_NAME_WORDS = frozenset("name title label".split())
_CODE_WORDS = frozenset("id identifier code number sku isbn doi".split())


class GraphNames(EntitiesByName):
    """The individuals of a graph by their names, all of them in memory."""

    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._names = names
        self._by_word: defaultdict[str, set[str]] = defaultdict(set)
        self._of: defaultdict[str, list[str]] = defaultdict(list)
        for name, iris in names.items():
            for iri in iris:
                self._of[iri].append(name)
            for word in name.split():
                self._by_word[word].update(iris)

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def with_word(self, word: str) -> tuple[str, ...]:
        """The individuals with a word in one of their names."""
        return tuple(sorted(self._by_word.get(word, ())))

    def with_start(self, start: str) -> tuple[str, ...]:
        """The individuals with a word in one of their names that begins so."""
        found = {i for word, iris in self._by_word.items() if word.startswith(start) for i in iris}
        return tuple(sorted(found))

    def list_names(self, entity_id: str) -> tuple[str, ...]:
        """The names of an individual."""
        return tuple(self._of.get(entity_id, ()))


def split_local_name(iri: str) -> str:
    """The words of an IRI's last part: `.../hasBomPart` gives `has Bom Part`."""
    local = re.split(r"[#/]", iri.rstrip("#/"))[-1]
    return " ".join(part for part in _CAMEL.split(local) if part)


def read_gloss(comment: str) -> str:
    """A synonym that a comment ends with in brackets: `city` of `The locality (city).`."""
    match = re.search(r"\(([\w -]+)\)\s*\.?\s*$", comment)
    return match.group(1) if match else ""


def is_naming(iri: str, labels: Iterable[str]) -> bool:
    """Whether the values of a property name the things that have it."""
    if iri in (n.LABEL, n.SKOS + "prefLabel", n.ALT_LABEL):
        return True
    phrases = [split_lemmas(label) for label in (*labels, split_local_name(iri))]
    return any(
        phrase
        and phrase[-1] in _NAME_WORDS | _CODE_WORDS
        and len(phrase) <= 2
        and not (phrase[-1] in _CODE_WORDS and len(phrase) > 1)
        for phrase in phrases
    )


def looks_like_person(phrases: Iterable[Phrase]) -> bool:
    """Whether a class is called as people are: by a word for them, or for who does something."""
    return any(
        phrase and (phrase[-1] in _PERSON_WORDS or phrase[-1].endswith(("er", "or", "ist", "ee")))
        for phrase in phrases
    )


def merge_names(*groups: Iterable[str]) -> tuple[str, ...]:
    """All names once, in order."""
    return tuple(dict.fromkeys(name for group in groups for name in group if name))


def read_lexicon(run: Run, compare: Compare) -> Lexicon:
    """The lexicon of the graph that `run` asks; ends of properties are those the data show.

    What has no label is called by the last part of its IRI. An end that the data do not show is
    the declared one.
    """
    labels = _read_words(run, _WORDED)
    comments = _read_words(run, f"<{n.COMMENT}>")
    categories = _read_categories(run, labels)
    relations = _read_relations(run, labels, comments, categories)
    naming = frozenset(
        iri for iri, r in relations.items() if r.is_literal and is_naming(iri, r.names)
    ) | {n.LABEL}
    names, values = _read_individuals(run, naming, relations, categories)
    return Lexicon(categories, relations, GraphNames(names), values, run, compare, naming)


def _read_words(run: Run, path: str) -> dict[str, list[str]]:
    """English or unmarked texts of what is declared or used as a class or property."""
    rows = run(
        f"SELECT DISTINCT ?s ?t WHERE {{ {{ ?s a ?k FILTER(STRSTARTS(STR(?k), '{n.OWL}') || "
        f"STRSTARTS(STR(?k), '{n.RDFS}') || ?k = <{n.RDF}Property>) }} UNION {{ ?x a ?s }} "
        f"?s {path} ?t FILTER(LANG(?t) = '' || LANGMATCHES(LANG(?t), 'en')) }} ORDER BY ?s ?t"
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        found[row["s"]].append(row["t"])
    return found


def _read_categories(run: Run, labels: dict[str, list[str]]) -> dict[str, Category]:
    used = {row["c"] for row in run(f"SELECT DISTINCT ?c WHERE {{ ?s <{n.RDF_TYPE}> ?c }}")}
    declared = {
        row["c"]
        for row in run(
            f"SELECT DISTINCT ?c WHERE {{ ?c a ?k VALUES ?k {{ <{n.CLASS}> <{n.RDFS}Class> }} "
            "FILTER isIRI(?c) }"
        )
    }
    parents: defaultdict[str, set[str]] = defaultdict(set)
    for row in run(f"SELECT ?c ?p WHERE {{ ?c <{n.SUBCLASS}> ?p FILTER(isIRI(?c) && isIRI(?p)) }}"):
        parents[row["c"]].add(row["p"])
    iris = sorted(iri for iri in used | declared if not iri.startswith(_META))
    found = {}
    for iri in iris:
        names = merge_names(labels.get(iri, ()), [split_local_name(iri)])
        phrases = [split_lemmas(v) for name in names for v in vary_name(name)]
        found[iri] = Category(
            iri,
            names,
            frozenset(parents[iri]),
            person=looks_like_person(phrases),
            place=any(PLACE_WORDS & set(phrase) for phrase in phrases),
        )
    return found


def _read_relations(
    run: Run,
    labels: dict[str, list[str]],
    comments: dict[str, list[str]],
    categories: dict[str, Category],
) -> dict[str, Relation]:
    kinds = f"<{n.OBJECT_PROPERTY}> <{n.DATATYPE_PROPERTY}> <{n.RDF}Property>"
    declared = run(
        f"SELECT DISTINCT ?p ?d ?r WHERE {{ ?p a ?k VALUES ?k {{ {kinds} }} "
        f"OPTIONAL {{ ?p <{n.DOMAIN}> ?d }} OPTIONAL {{ ?p <{n.RANGE}> ?r }} }}"
    )
    shown = run(
        "SELECT DISTINCT ?p ?c ?d ?t ?l WHERE { ?s ?p ?o . ?s a ?c . OPTIONAL { ?o a ?d } "
        "BIND(isLiteral(?o) AS ?l) BIND(DATATYPE(?o) AS ?t) }"
    )
    sources: defaultdict[str, set[str]] = defaultdict(set)
    targets: defaultdict[str, set[str]] = defaultdict(set)
    types: defaultdict[str, set[str]] = defaultdict(set)
    untyped: set[str] = set()
    for row in shown:
        iri = row["p"]
        if iri.startswith(_META) or row["c"] not in categories:
            continue
        sources[iri].add(row["c"])
        if row["l"] == "true":
            types[iri].add(row["t"])
        elif row.get("d") in categories:
            targets[iri].add(row["d"])
        else:
            untyped.add(iri)
    for row in declared:
        iri, domain, reach = row["p"], row.get("d", ""), row.get("r", "")
        if iri.startswith(_META):
            continue
        if iri not in sources or not sources[iri]:
            sources[iri].update({domain} & categories.keys())
            if reach.startswith(n.XSD):
                types[iri].add(reach)
        if not types[iri] and (not targets[iri] or iri in untyped):
            targets[iri].update({reach} & categories.keys())
    found = {}
    for iri in sorted(sources):
        names = merge_names(labels.get(iri, ()), [split_local_name(iri)])
        gloss = read_gloss(next(iter(comments.get(iri, ())), ""))
        ends = frozenset(sources[iri]), frozenset(targets[iri]), frozenset(types[iri])
        found[iri] = Relation(iri, names, *ends, gloss=gloss)
    return found


def _read_individuals(
    run: Run,
    naming: Iterable[str],
    relations: dict[str, Relation],
    categories: dict[str, Category],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[tuple[str, str], ...]]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    values: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    wanted = " ".join(f"<{iri}>" for iri in sorted(naming))
    for row in run(
        f"SELECT DISTINCT ?s ?o WHERE {{ VALUES ?p {{ {wanted} }} ?s ?p ?o FILTER(isIRI(?s) && "
        f"STRLEN(STR(?o)) <= {_LONGEST_NAME}) }}"
    ):
        if row["s"] not in relations and row["s"] not in categories:
            names[fold(row["o"])].add(row["s"])
    known = {iri for iris in names.values() for iri in iris}
    for row in run("SELECT DISTINCT ?o WHERE { ?s ?p ?o . ?s a ?c FILTER isIRI(?o) }"):
        iri = row["o"]
        if iri not in known and iri not in categories and not iri.startswith(_META):
            names[fold(split_local_name(iri))].add(iri)
    strings = " ".join(
        f"<{iri}>"
        for iri, r in relations.items()
        if r.is_literal and not r.is_numeric and iri not in set(naming)
    )
    for row in run(
        f"SELECT DISTINCT ?p ?o WHERE {{ VALUES ?p {{ {strings} }} ?s ?p ?o FILTER("
        f"STRLEN(STR(?o)) <= {_LONGEST_NAME}) }}"
    ):
        values[fold(row["o"])].add((row["p"], row["o"]))
    return (
        {name: tuple(sorted(iris)) for name, iris in names.items() if name},
        {value: tuple(sorted(pairs)) for value, pairs in values.items() if value},
    )
