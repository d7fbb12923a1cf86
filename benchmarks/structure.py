"""Questions that no passage answers, made from gold triples: lists, counts, superlatives, more.

The measure is our own, on Text2KGBench (Mihindukulasooriya et al., ISWC 2023). Each sentence is a
document, a pyramid per ontology with that ontology; the documents are the sentences of the folders
`ground_truth` and `validation`, of an ontology without the latter also half of its train
sentences, and the other train sentences are the examples of its reader. The questions are those of
`kpyramid questions make --structure`, from the gold triples that the documents state in words.

Right is a list when at least half of its members are gold and half of the gold are among them; a
count "at least N" that is true and says half of the gold count at least; any other answer that
names the gold one. Names agree when one is within the other. The triples of a sentence are not all
that it says, so that a true member may count as wrong. `near` says how near lists (F1) and counts
(exactly) come. `wrong_confident` are the questions answered wrongly with a probability of a half
or more; a count that is true and says too little, or a list whose members are all gold and too few,
is neither right nor wrong. `naive` reads 20 passages.
Halves: a question is of half 0 when the first byte of the SHA-256 of each of its
properties' labels is even. Weights were fitted on half 0 alone and only its mistakes were read, but
for fifteen questions for two conditions of half 1; the shares of half 1 were seen while thresholds
were chosen, so it is not wholly unseen.
"""

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

from choice_pyramids import Corpus, build_pyramid, read_text2kgbench
from embedding import MemoEmbedder
from options import explain_faults, print_figures, read_options, refuse, report
from sets.text2kgbench import list_facts

from kpyramid.answering.related import SIZES, list_measures
from kpyramid.evaluation.facts import Fact, fold_words
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.evaluation.structure import make_structure_questions
from kpyramid.query import Answer, Snapshot, answer

FOLDER = "text2kgbench_public"
ASKED: Mapping[str, Mapping[str, Any]] = {
    "polyrag": {},
    "naive": {"chunks": 20},
    "kaping": {},
    "exact": {},
}
CONFIDENT = 0.5


@dataclass(frozen=True)
class Graded:
    """A question with an answer to it, and how near that comes (1: exactly)."""

    question: EvalQuestion
    answer: Answer
    right: bool
    near: float
    is_true: bool = False
    """Nothing wrong is said: "at least 2" of six, or a list with gold members alone."""

    @property
    def is_confident(self) -> bool:
        return bool(self.answer.text) and self.answer.confidence >= CONFIDENT


def make_corpus_questions(corpus: Corpus, seed: int) -> Sequence[EvalQuestion]:
    """The questions of a corpus."""
    texts = {row["id"]: row["text"] for row in corpus.rows}
    rows = [(key, texts[key], [triple]) for triple, key in corpus.facts]
    facts = convert(list_facts(rows, corpus.ends or {}))
    return make_structure_questions(facts, seed=seed).questions


def convert(facts: Iterable[Fact]) -> list[Fact]:
    """Facts with their numbers in one unit: 185 cm, as a sentence has it, is less than 1.93 m."""
    facts = list(facts)
    sizes: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for fact in facts:
        for text in fact.evidence if fact.object.form == "number" else ():
            for value, unit, _ in list_measures(text, dated=False):
                if unit and float(str(value)) == float(fact.object.name):
                    sizes[fact.subject.key, fact.relation, fact.object.name].add(SIZES[unit][1])
    converted = []
    for fact in facts:
        found = sizes[fact.subject.key, fact.relation, fact.object.name]
        if len(found) == 1:
            number = float(fact.object.name) * next(iter(found))
            fact = replace(fact, object=replace(fact.object, name=f"{number:.10g}"))
        converted.append(fact)
    return converted


def grade(question: EvalQuestion, said: Answer) -> Graded:
    """How good an answer is; none is never right."""
    gold = question.values
    if not said.text:
        return Graded(question, said, False, 0.0)
    if question.kind == "values":
        given = said.choices or tuple(said.text.split("; "))
        right = sum(any(agree(one, value) for value in gold) for one in given)
        found = sum(any(agree(one, value) for one in given) for value in gold)
        precision, recall = right / len(given), found / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return Graded(question, said, min(precision, recall) >= 0.5, f1, right == len(given))
    if question.group.startswith("count"):
        number = re.search(r"\d+", said.text.replace(",", ""))
        least, all_of_it = int(number[0]) if number else 0, int(gold[0])
        right = least <= all_of_it <= 2 * least
        return Graded(question, said, right, float(least == all_of_it), least <= all_of_it)
    right = agree(said.text, gold[0])
    return Graded(question, said, right, float(right))


def agree(one: str, other: str) -> bool:
    """Whether one name is within the other, word by word or, of several words, run together.

    Or one has middle names: "Erkki Ossi Olavi Pulliainen", whom the triples call Erkki Pulliainen.
    """
    first, second = fold_words(one), fold_words(other)
    if f" {' '.join(first)} " in f" {' '.join(second)} ":
        return True
    if f" {' '.join(second)} " in f" {' '.join(first)} ":
        return True
    joined, beside = "".join(first), "".join(second)
    several = min(len(first), len(second)) > 1
    short, long = sorted((first, second), key=len)
    ends = several and (short[0], short[-1]) == (long[0], long[-1])
    return several and (joined in beside or beside in joined or (ends and {*short} <= {*long}))


def find_half(question: EvalQuestion) -> int:
    """The half of a question: 0 when all its properties are of it."""
    labels = question.group.partition(": ")[2].split(" + ")
    return max(sha256(label.encode()).digest()[0] % 2 for label in labels)


def describe(graded: Sequence[Graded]) -> dict[str, float]:
    """The shares of all questions."""
    if not graded:
        return {}
    return {
        "right": round(mean(one.right for one in graded), 4),
        "wrong_confident": round(
            mean(one.is_confident and not (one.right or one.is_true) for one in graded), 4
        ),
        "answered": round(mean(bool(one.answer.text) for one in graded), 4),
        "questions": len(graded),
    }


def describe_forms(graded: Sequence[Graded]) -> dict[str, dict[str, float]]:
    """The same for each form of question, with how near lists and counts come."""
    forms: dict[str, list[Graded]] = defaultdict(list)
    for one in graded:
        forms[one.question.group.partition(":")[0]].append(one)
    return {
        form: {**describe(found), "near": round(mean(one.near for one in found), 4)}
        for form, found in sorted(forms.items())
    }


def describe_bands(graded: Sequence[Graded]) -> dict[str, dict[str, float]]:
    """Stated against actual probability of what is answered, tenth by tenth."""
    bands: dict[int, list[Graded]] = defaultdict(list)
    for one in graded:
        if one.answer.text:
            bands[min(int(one.answer.confidence * 10), 9)].append(one)
    return {
        f"{band / 10:.1f}": {
            "stated": round(mean(one.answer.confidence for one in found), 3),
            "right": round(mean(one.right or one.is_true for one in found), 3),
            "answers": len(found),
        }
        for band, found in sorted(bands.items())
    }


def ask_all(
    questions: Sequence[EvalQuestion], snapshot: Snapshot, strategies: Sequence[str]
) -> dict[str, list[Graded]]:
    """The graded answers of each strategy."""
    snapshot.embedder = MemoEmbedder(snapshot.embedder, {})
    return {
        name: [grade(q, answer(q.text, snapshot, name, **ASKED[name])) for q in questions]
        for name in strategies
    }


def measure(options: Any, folder: Path) -> dict[str, Any]:
    """All figures."""
    with explain_faults(options.data, FOLDER):
        corpora = list(read_text2kgbench(options.data, "whole", options.limit, options.seed))
        if not corpora:
            raise ValueError("no ontologies/*.json")
    only = options.only.split(",") if options.only else [corpus.name for corpus in corpora]
    arms: dict[str, list[Graded]] = {name: [] for name in ASKED}
    for corpus in corpora:
        questions = make_corpus_questions(corpus, options.seed)
        if corpus.name not in only or not questions:
            continue
        snapshot = build_pyramid(corpus, folder / "corpora", folder)
        report(f"asks {corpus.name}: {len(questions)} questions")
        for name, graded in ask_all(questions, snapshot, list(ASKED)).items():
            arms[name] += graded
    if not arms["polyrag"]:
        refuse(f"no questions; --only names some of {', '.join(c.name for c in corpora)}")
    halves = {
        half: {
            name: describe([one for one in found if find_half(one.question) == at])
            for name, found in arms.items()
        }
        for at, half in enumerate(("fitted", "other"))
    }
    polyrag = arms["polyrag"]
    counted = Counter(one.answer.layer or "none" for one in polyrag if one.answer.text)
    figures = {name: describe(graded) for name, graded in arms.items()}
    best = max(figures, key=lambda name: figures[name]["right"])
    return {
        **{
            measure: {name: shares[measure] for name, shares in figures.items()}
            for measure in ("right", "wrong_confident", "answered")
        },
        "best": best,
        "questions": len(polyrag),
        "fitted_half": halves["fitted"],
        "other_half": halves["other"],
        "forms": describe_forms(polyrag),
        "bands": describe_bands(polyrag),
        "layers": dict(counted.most_common()),
    }


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N documents of each ontology only",
        seed="draws the questions and the halves of train sentences",
        values={
            "--only": "names of corpora, parted by commas: tekgen-music,webnlg-food",
            "--warehouse": "a folder for the pyramids, which a next run finds built",
        },
    )
    place = nullcontext(options.warehouse) if options.warehouse else tempfile.TemporaryDirectory()
    with place as folder:
        print_figures(measure(options, Path(folder).resolve()), options.json)


if __name__ == "__main__":
    main()
