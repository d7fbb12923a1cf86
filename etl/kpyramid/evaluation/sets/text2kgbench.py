"""Text2KGBench (Mihindukulasooriya et al., ISWC 2023): questions from the gold triples.

Its sentences are the corpus, their gold triples the facts, the ontology's domains and ranges the
classes. Of each ontology the folder `ground_truth` is asked about; the triples of the other folders
are true as well, so they are never wrong options.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.evaluation.facts import Fact, Thing, clean_name, fold_words
from kpyramid.evaluation.making import make_questions
from kpyramid.evaluation.questions import QuestionSet
from kpyramid.evaluation.sets.files import read_json, read_json_lines
from kpyramid.evaluation.values import fit_date, say_value

Triple = tuple[str, str, str]
LICENCE = (
    "wikidata_tekgen: CC BY-SA 2.0 (TekGen); dbpedia_webnlg: CC BY-NC-SA 4.0 (WebNLG 3.0), "
    "for measurement only"
)
_OPEN_ENDS = frozenset(("", "string", "thing"))
_COUNTS = frozenset(("number", "integer"))
_PARTS = ("train", "validation", "test", "ground_truth", "unseen_sentences")


def find_ontologies(folder: Path) -> list[Path]:
    """The ontologies below a folder in Text2KGBench's JSON, in the order of their numbers."""
    found = [path for path in folder.rglob("*.json") if path.parent.name == "ontologies"]
    return sorted(found, key=lambda p: (p.parent.parent.name, find_number(p.name)))


def find_number(name: str) -> int:
    """The number in "ont_7_company" or "7_company_ontology.json".

    Raises:
        InputError: there is none.
    """
    match = re.search(r"(?:^|_)(\d+)_", name + "_")
    if match is None:
        raise InputError(f"{name}: no number of an ontology in the name")
    return int(match[1])


def read_ends(ontology: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """The labels of domain and range of each relation; empty where none is declared."""
    concepts = ontology.get("concepts")
    relations = ontology.get("relations")
    if not isinstance(concepts, list) or not isinstance(relations, list):
        raise InputError("no `concepts` and `relations`; give an ontology of Text2KGBench")
    labels = {str(row["qid"]): str(row["label"]) for row in concepts}

    def name_end(iri: object) -> str:
        text = str(iri or "").strip()
        label = labels.get(text, "" if re.fullmatch(r"Q\d+", text) else text).strip()
        return "" if label.lower() in _OPEN_ENDS else label

    return {
        str(row["label"]): (name_end(row.get("domain")), name_end(row.get("range")))
        for row in relations
    }


def list_facts(
    rows: Iterable[tuple[str, str, Iterable[Triple]]], ends: Mapping[str, tuple[str, str]]
) -> list[Fact]:
    """The facts of sentences: id, text and triples; relations without ends are left out.

    A date is taken as precisely as its sentence says it: Wikidata writes years as their first day.
    A subject that other triples have as a value is of that value's class: domains were set per
    ontology (a `leader` belongs to an airport in that of airports), ranges with more care.
    """
    listed = [(row, text, [t for t in triples if t[1] in ends]) for row, text, triples in rows]
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    for _, _, triples in listed:
        for _, relation, value in triples:
            if ends[relation][1]:
                classes[value][ends[relation][1]] += 1
    facts = []
    for row, text, triples in listed:
        words = fold_words(text)
        for subject, relation, value in triples:
            domain, range_ = ends[relation]
            known = classes.get(subject)
            if known and domain not in known:
                domain = max(sorted(known), key=known.__getitem__)
            said, form = say_value(clean_name(value), counts=range_.lower() in _COUNTS)
            said = fit_date(said, words) if form == "date" else said
            kinds = (range_,) if range_ and not form else ()
            facts.append(
                Fact(
                    subject=Thing(subject, clean_name(subject), (domain,) if domain else ()),
                    relation=relation,
                    object=Thing(said if form else value, said, kinds, form=form),
                    kinds=(domain, range_),
                    documents=(row,),
                    evidence=(text,),
                )
            )
    return facts


def list_known(triples: Iterable[Triple]) -> list[tuple[str, str]]:
    """Subject and object of triples, as questions name them."""
    return [(clean_name(subject), clean_name(value)) for subject, _, value in triples]


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when the folder holds no ontologies of Text2KGBench."""
    paths = [p for p in find_ontologies(folder) if "relations" in read_json(p, default={})]
    if not paths:
        return None
    corpus: list[Mapping[str, str]] = []
    questions = []
    left_out: dict[str, int] = {}
    for path in paths:
        base, number = path.parent.parent, find_number(path.name)
        rows = list(_read_rows(base / "ground_truth", number))
        known = [t for part in _PARTS for _, _, ts in _read_rows(base / part, number) for t in ts]
        facts = list_facts(rows, read_ends(read_json(path)))
        made = make_questions(facts, known=list_known(known), grounded=True)
        corpus += [{"id": row, "text": text} for row, text, _ in rows]
        questions += list(made.questions)
        for reason, count in made.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
    if not corpus:
        raise InputError(f"{folder}: ontologies, but no ground_truth/*.jsonl beside them")
    by_id = {question.id: question for question in questions}
    return QuestionSet(
        folder.name,
        tuple({row["id"]: row for row in corpus}.values()),
        tuple(by_id.values()),
        LICENCE,
        "choice questions made from the gold triples of each ontology; each ontology is a domain "
        "of its own, so benchmarks/choice.py builds a pyramid for each",
        left_out,
    )


def _read_rows(folder: Path, number: int) -> Iterator[tuple[str, str, list[Triple]]]:
    """Id, sentence and triples of the rows that belong to an ontology."""
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else []
    for path in paths:
        if find_number(path.name) != number:
            continue
        for row in read_json_lines(path):
            if triples := list(_read_triples(row)):
                yield str(row["id"]), str(row["sent"]), triples


def _read_triples(row: Mapping[str, object]) -> Iterator[Triple]:
    triples = row.get("triples")
    if isinstance(triples, list):
        for t in triples:
            yield str(t["sub"]), str(t["rel"]), str(t["obj"])
    elif "rel_label" in row:
        yield str(row["sub_label"]), str(row["rel_label"]), str(row["obj_label"])
