"""Questions that no passage answers, asked as typed questions: lists, counts, superlatives, more.

The measure is our own, on Text2KGBench (Mihindukulasooriya et al., ISWC 2023). Each sentence is a
document, a pyramid per ontology with that ontology; the documents are the sentences of the folders
`ground_truth` and `validation`, of an ontology without the latter also half of its train
sentences, and the other train sentences are the examples of its reader. The questions are made
from the gold triples that the documents state in words (`making/structure.py`), each as the call
that asks it: `find`, with conditions, order and count, or `compare`. With `--calls` those of a
model are run instead, and compared: lines of JSON with `question`, its words, and `tool` and
`arguments`, as the model called them (`kpyramid.query.tools`).

Right is a list when at least half of its members are gold and half of the gold are among them; a
count "at least N" that is true and says half of the gold count at least; any other answer that
names the gold one. Names agree when one is within the other. The triples of a sentence are not all
that it says, so that a true member may count as wrong. `near` says how near lists (F1) and counts
(exactly) come. `wrong` are the questions answered wrongly; a count that is true and says too
little, or a list whose members are all gold and too few, is neither right nor wrong. A call that
is refused, and one that finds nothing, answers nothing.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from choice_pyramids import Corpus, build_pyramid, read_text2kgbench
from making.facts import Fact, fold_words
from making.structure import TypedQuestion, make_structure_questions
from options import explain_faults, print_figures, read_options, refuse, report
from sets.text2kgbench import list_facts

from kpyramid.documents.measures import SIZES, list_measures
from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query import Snapshot, call_tool
from kpyramid.snapshot.typed import Comparison, Members

FOLDER = "text2kgbench_public"
Call = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True)
class Graded:
    """A question with the values that a call gave, and how near they come (1: exactly)."""

    question: EvalQuestion
    values: tuple[str, ...]
    right: bool = False
    near: float = 0.0
    is_true: bool = False
    """Nothing wrong is said: "at least 2" of six, or a list with gold members alone."""

    @property
    def is_wrong(self) -> bool:
        return bool(self.values) and not (self.right or self.is_true)


def make_corpus_questions(corpus: Corpus, seed: int) -> Sequence[TypedQuestion]:
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
            for written in list_measures(text):
                if written.unit in SIZES and written.number == float(fact.object.name):
                    size = SIZES[written.unit][1]
                    sizes[fact.subject.key, fact.relation, fact.object.name].add(size)
    converted = []
    for fact in facts:
        found = sizes[fact.subject.key, fact.relation, fact.object.name]
        if len(found) == 1:
            number = float(fact.object.name) * next(iter(found))
            fact = replace(fact, object=replace(fact.object, name=f"{number:.10g}"))
        converted.append(fact)
    return converted


def ask(question: EvalQuestion, call: Call, snapshot: Snapshot) -> tuple[str, ...]:
    """The values that a call gives as the answer to a question; none where it gives none."""
    try:
        found = call_tool(call[0], call[1], snapshot)
    except InputError:
        return ()
    if isinstance(found, Members):
        if question.group.startswith("count"):
            return (str(int(found.count)),) if found.count else ()
        return tuple(member.name for member in found.members)
    if not isinstance(found, Comparison) or found.order not in ("less", "greater"):
        return ()
    wants_less = bool(_LESS.search(question.text))
    is_first = (found.order == "less") is wants_less
    if question.kind == "yesno":
        return ("yes" if is_first else "no",)
    return (found.first.name if is_first else found.second.name,)


_LESS = re.compile(r"\b(?:earlier|before|lower|fewer|less|shorter|smaller)\b")


def grade(question: EvalQuestion, values: tuple[str, ...]) -> Graded:
    """How good an answer is; none is never right."""
    gold = question.values
    if not values:
        return Graded(question, values)
    if question.kind == "values":
        right = sum(any(agree(one, value) for value in gold) for one in values)
        found = sum(any(agree(one, value) for one in values) for value in gold)
        precision, recall = right / len(values), found / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        is_true = right == len(values)
        return Graded(question, values, min(precision, recall) >= 0.5, f1, is_true)
    if question.group.startswith("count"):
        least, all_of_it = int(values[0]), int(gold[0])
        right = least <= all_of_it <= 2 * least
        return Graded(question, values, right, float(least == all_of_it), least <= all_of_it)
    right = agree(values[0], gold[0])
    return Graded(question, values, right, float(right))


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


def describe(graded: Sequence[Graded]) -> dict[str, float]:
    """The shares of all questions."""
    return {
        "right": round(mean(one.right for one in graded), 4),
        "wrong": round(mean(one.is_wrong for one in graded), 4),
        "answered": round(mean(bool(one.values) for one in graded), 4),
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


def read_calls(path: Path | None) -> dict[str, Call]:
    """A model's calls by the question's words, the last of each; none without a file."""
    lines = path.read_text("utf-8").splitlines() if path else ()
    rows = [json.loads(line) for line in lines if line.strip()]
    return {row["question"]: (row["tool"], row["arguments"]) for row in rows}


def measure(options: Any, folder: Path) -> dict[str, Any]:
    """All figures."""
    with explain_faults(options.data, FOLDER):
        calls = read_calls(Path(options.calls) if options.calls else None)
        corpora = list(read_text2kgbench(options.data, "whole", options.limit, options.seed))
        if not corpora:
            raise ValueError("no ontologies/*.json")
    only = options.only.split(",") if options.only else [corpus.name for corpus in corpora]
    arms: dict[str, list[Graded]] = {"typed": [], **({"model": []} if calls else {})}
    for corpus in corpora:
        questions = make_corpus_questions(corpus, options.seed)
        if corpus.name not in only or not questions:
            continue
        snapshot = build_pyramid(corpus, folder / "corpora", folder)
        report(f"asks {corpus.name}: {len(questions)} questions")
        for typed in questions:
            asked = typed.question
            given = ask(asked, (typed.tool, typed.arguments), snapshot)
            arms["typed"].append(grade(asked, given))
            if calls:
                call = calls.get(asked.text)
                given = ask(asked, call, snapshot) if call else ()
                arms["model"].append(grade(asked, given))
    if not arms["typed"]:
        refuse(f"no questions; --only names some of {', '.join(c.name for c in corpora)}")
    figures = {name: describe(graded) for name, graded in arms.items()}
    return {
        **{
            measure: {name: shares[measure] for name, shares in figures.items()}
            for measure in ("right", "wrong", "answered")
        },
        "best": max(figures, key=lambda name: figures[name]["right"]),
        "questions": len(arms["typed"]),
        "forms": describe_forms(arms["typed"]),
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
            "--calls": "a file of a model's calls, lines of JSON",
        },
    )
    place = nullcontext(options.warehouse) if options.warehouse else tempfile.TemporaryDirectory()
    with place as folder:
        print_figures(measure(options, Path(folder).resolve()), options.json)


if __name__ == "__main__":
    main()
