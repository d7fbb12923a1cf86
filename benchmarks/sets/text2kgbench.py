"""Text2KGBench (Mihindukulasooriya et al., ISWC 2023): the official scores; gold as questions.

Figures are means over the sentences of an ontology. Triples whose relation the sentence's gold
does not have are left out before precision, recall and F1: the official filter.

As a set of questions its sentences are the corpus, their gold triples the facts, the ontology's
domains and ranges the classes. Of each ontology the folder `ground_truth` is asked about; the
triples of the other folders are true as well, so they are never wrong options.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from making.facts import Fact, Thing, fold_words, is_said, read_date, say_value
from making.questions import make_questions

from kpyramid.errors import InputError
from sets.files import QuestionSet, read_json, read_json_lines

Triple = tuple[str, str, str]

_BLANKS = re.compile(r"(_|\s+)")
# A tokenizer of the Penn Treebank's kind, as far as it moves the borders of words to be stemmed.
_OPENING_QUOTE = re.compile(r'(?:(?<=^)|(?<=[\s(\[{<]))"|^"')
_TOKEN_RULES = (
    (re.compile(r"([^\w\s'.,_-]|[«»“”‘’])"), r" \1 "),
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"\.\.\."), r" ... "),
    (re.compile(r"([^.])(\.)([\])}>\"'»”’ ]*)\s*$"), r"\1 \2 \3 "),
    (re.compile(r"([^' ])('[sSmMdD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T|')(?=\s|$)"), r"\1 \2 "),
    (re.compile(r"--"), r" -- "),
)


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over sentences; `precision_unfiltered`: the share of all stated triples in the gold."""

    precision: float
    recall: float
    f1: float
    conformance: float
    subject_hallucination: float
    relation_hallucination: float
    object_hallucination: float
    precision_unfiltered: float
    triples: float


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence with the triples that it states."""

    text: str
    triples: tuple[Triple, ...]


def score_ontology(
    gold: Mapping[str, GoldSentence],
    stated: Mapping[str, Sequence[Triple]],
    relations: Iterable[str],
    concepts: Iterable[str],
) -> Scores:
    """The scores of what a system stated, sentence by sentence, both under the sentences' ids.

    `relations` and `concepts` are the ontology's labels. A sentence without an entry in `stated`
    counts zero in all figures; one with an empty entry conforms.

    Raises:
        ValueError: there is no gold.
    """
    if not gold:
        raise ValueError("no gold sentence to score on")
    known = {relation.replace(" ", "_") for relation in relations}
    concept_words = " ".join(concepts)
    sums = dict.fromkeys((f.name for f in fields(Scores)), 0.0)
    right = total = 0
    for key, sentence in gold.items():
        if key not in stated:
            continue
        triples = stated[key]
        wanted = {join_triple(t) for t in sentence.triples}
        allowed = {relation.replace(" ", "_") for _, relation, _ in sentence.triples}
        kept = {join_triple(t) for t in triples if t[1] in allowed}
        everything = {join_triple(t) for t in triples}
        right += len(everything & wanted)
        total += len(everything)
        hits = len(kept & wanted)
        sums["precision"] += hits / len(kept) if kept else 0.0
        sums["recall"] += hits / len(wanted) if kept else 0.0
        sums["f1"] += 2 * hits / (len(kept) + len(wanted)) if kept else 0.0
        sums["triples"] += len(everything)
        if not triples:
            sums["conformance"] += 1.0
            continue
        conform = sum(t[1] in known for t in triples) / len(triples)
        sums["conformance"] += conform
        sums["relation_hallucination"] += 1 - conform
        words = stem_text(sentence.text + concept_words)
        for name, place in (("subject", 0), ("object", 2)):
            absent = sum(_stem_end(t[place]) not in words for t in triples)
            sums[f"{name}_hallucination"] += absent / len(triples)
    means = {name: value / len(gold) for name, value in sums.items()}
    return Scores(**means | {"precision_unfiltered": right / total if total else 0.0})


def join_triple(triple: Triple) -> str:
    """The form in which two triples are compared: small letters, no blanks, no underscores."""
    return "".join(_BLANKS.sub("", part).lower() for part in triple)


@cache
def _load_stemmer() -> Any:
    """The official scorer's: NLTK's variant of Porter's algorithm; NLTK takes seconds to load."""
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


def stem_text(text: str) -> str:
    """The stems of a text's words, run together."""
    stem = _load_stemmer().stem
    return _BLANKS.sub("", "".join(stem(word) for word in split_tokens(text))).lower()


def _stem_end(text: str) -> str:
    # The official scorer forgives that a year is given as its first day.
    return stem_text(text).replace("01januari", "")


def split_tokens(text: str) -> list[str]:
    """The words and marks of a text."""
    text = _OPENING_QUOTE.sub(" `` ", text)
    for pattern, form in _TOKEN_RULES:
        text = pattern.sub(form, text)
    return text.replace(' " ', " '' ").split()


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


_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_APART_BEFORE = re.compile(r"\s+([,:;.!?)\]](?=\s|$)|['’](?:s|t|m|ve|re|ll|d)\b|n['’]t\b)")
_APART_AFTER = re.compile(r"([(\[])\s+")
"""What a tokenizer parts from the word beside it."""


def clean_name(name: str) -> str:
    """A name of a data set as a text writes it: no underscores, quotes or qualifier in brackets."""
    plain = " ".join(name.replace("_", " ").split()).strip('"').strip()
    plain = _APART_BEFORE.sub(r"\1", _APART_AFTER.sub(r"\1", plain))
    short = _QUALIFIER.sub("", plain)
    return short or plain


def fit_date(text: str, words: tuple[str, ...]) -> str:
    """A date as precise as words say it: "1 January 1986" is "1986" where no month is named."""
    date = read_date(text)
    if date is None or not date.month or is_said(text, "date", words):
        return text
    return str(date.year)


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
