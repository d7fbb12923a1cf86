"""Choice questions made from gold facts, with eight options each, in the form of AcadChall.

Figures are PolyRAG's (section V): precision, recall and F1 of the chosen options, means over the
questions. The facts are the data's own, not what we extracted; a pyramid is built of the corpus
that states them, and each strategy answers from it with the same reader by rules.
`gap_closed` = (f1 of polyrag - f1 of naive) / (1 - f1 of naive); `layers` is the share of questions
that each layer of polyrag answered; `ablation` holds a row per combination of its layers, and of
the pyramid without completion, without condensation, and without both (Table III).

Of text2kgbench_public the corpus are the sentences of an ontology, a pyramid per ontology with that
ontology and the train sentences as examples. `--part train` asks about half of the train sentences,
taught by the other half, and reads no test row: tune on it, with any seed. Of musique100 the facts
are the hop triples; `halves` are the figures of each half of the facts, of which only the first
(`--part train`) is for tuning. With `--part train` `mistakes` counts what went wrong, by kind.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from choice_pyramids import (
    PARTS,
    Corpus,
    build_pyramid,
    make_corpus_questions,
    read_musique,
    read_text2kgbench,
)
from embedding import MemoEmbedder
from making.ablation import take_away
from making.facts import fold_words, holds_run
from options import explain_faults, print_figures, read_options, refuse, report

from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query import STRATEGIES, Answer, Snapshot, answer

FOLDERS = ("musique100", "text2kgbench_public")
ASKED = ("direct", "naive", "kaping", "exact", "polyrag")
LAYERS = ("ontology", "graph", "text")
QUESTIONS = 60
"""Questions of a corpus by default: fifteen ontologies have 900 then."""


@dataclass(frozen=True)
class Asked:
    """A question with the answer of one arm, and how good it is."""

    question: EvalQuestion
    answer: Answer
    precision: float
    recall: float
    f1: float


def ask_all(
    questions: Sequence[EvalQuestion], snapshot: Snapshot, strategy: str, **options: bool
) -> list[Asked]:
    """Every question's answer by one strategy."""
    found = []
    for question in questions:
        said = answer(question.text, snapshot, strategy, candidates=question.candidates, **options)
        gold, chosen = set(question.values), set(said.choices)
        hits = len(gold & chosen)
        found.append(
            Asked(
                question,
                said,
                precision=hits / len(chosen) if chosen else 0.0,
                recall=hits / len(gold),
                f1=2 * hits / (len(gold) + len(chosen)),
            )
        )
    return found


def list_combinations() -> list[tuple[str, ...]]:
    """The layers alone and together, as in the paper's ablation."""
    o, g, t = LAYERS
    return [(o,), (g,), (t,), (o, t), (g, t), (o, g), (o, g, t)]


ABLATED = (("completion",), ("condensation",), ("completion", "condensation"))


def name_ablated(parts: Sequence[str]) -> str:
    """The row of the pyramid without some parts."""
    return " and ".join(f"no {part}" for part in parts)


def measure_corpus(
    corpus: Corpus, snapshot: Snapshot, questions: Sequence[EvalQuestion], *, ablate: bool
) -> dict[str, list[Asked]]:
    """The answers of each strategy, and of polyrag with each combination of layers."""
    report(f"asks {corpus.name}: {len(questions)} questions")
    # The arms embed the same texts: each is embedded once.
    snapshot.embedder = MemoEmbedder(snapshot.embedder, {})
    found = {}
    for strategy in ASKED:
        if strategy in STRATEGIES:
            found[strategy] = ask_all(questions, snapshot, strategy)
    for layers in list_combinations() if ablate else ():
        switches = {layer: layer in layers for layer in LAYERS}
        name = " + ".join(layers)
        whole = layers == LAYERS  # asked already
        found[name] = (
            found["polyrag"] if whole else ask_all(questions, snapshot, "polyrag", **switches)
        )
    for parts in ABLATED if ablate else ():
        with take_away(snapshot, parts) as left:
            left.embedder = snapshot.embedder
            found[name_ablated(parts)] = ask_all(questions, left, "polyrag")
    return found


def describe_arms(arms: Mapping[str, Sequence[Asked]]) -> dict[str, Any]:
    """The figures of answers by arm."""
    figures: dict[str, Any] = {"questions": len(next(iter(arms.values())))}
    for strategy in ASKED:
        if strategy in arms:
            figures[f"f1_{strategy}"] = average(arms[strategy], "f1")
    best, base = figures["f1_polyrag"], figures["f1_naive"]
    figures["gap_closed"] = round((best - base) / (1 - base), 4) if base < 1 else 1.0
    for strategy in ("naive", "polyrag"):
        figures[f"precision_{strategy}"] = average(arms[strategy], "precision")
        figures[f"recall_{strategy}"] = average(arms[strategy], "recall")
    polyrag = arms["polyrag"]
    counts = Counter(asked.answer.layer or "none" for asked in polyrag)
    figures["layers"] = {k: round(n / len(polyrag), 4) for k, n in counts.most_common()}
    figures["f1_of_layer"] = {
        layer: average([a for a in polyrag if (a.answer.layer or "none") == layer], "f1")
        for layer in figures["layers"]
    }
    return figures


def average(asked: Sequence[Asked], name: str) -> float:
    return round(mean(getattr(a, name) for a in asked), 4) if asked else 0.0


def find_mistake(asked: Asked, snapshot: Snapshot) -> str:
    """What went wrong with an answer, as far as a program can tell."""
    question, said = asked.question, asked.answer
    if asked.f1 == 1:
        return "right"
    subject = fold_words(question.entities[0])
    ends = [fold_words(value) for value in question.values]
    joined = is_joined(snapshot, subject, ends)
    shown = {
        place.source.rpartition("#")[2] for item in said.context for place in item.evidence
    } & set(question.gold_documents)
    if asked.f1 > 0:
        return "a part is right"
    if not said.choices:
        where = "shown" if shown else "not shown"
        return f"nothing chosen; the gold row is {where}"
    if not shown:
        where = "in the graph" if joined else "not in the graph"
        return f"wrong; the gold row is not shown, the fact {where}"
    return f"wrong from {said.layer}; the gold row is shown"


def is_joined(snapshot: Snapshot, subject: tuple[str, ...], ends: list[tuple[str, ...]]) -> bool:
    """Whether a condensed fact or an instance joins what is asked about with a right answer."""
    names = snapshot.names
    for table, head, tail in (
        ("condensed", "head_id", "tail_id"),
        ("instances", "subject_id", "object_id"),
    ):
        rows = snapshot.table(table).select([head, tail, "literal"]).to_pylist()
        for row in rows:
            one = fold_words(names[row[head]])
            other = fold_words(names[row[tail]] if row[tail] else row["literal"] or "")
            for a, b in ((one, other), (other, one)):
                if holds_run(a, subject) and any(holds_run(b, end) for end in ends):
                    return True
    return False


def measure(options: Any, warehouse: Path) -> dict[str, Any]:
    """All figures of one set."""
    data, part, seed = options.data, options.part, options.seed
    with explain_faults(data, " or ".join(FOLDERS)):
        if list(data.glob("*_corpus.json")):
            corpora = [read_musique(data, options.limit)]
        else:
            corpora = list(read_text2kgbench(data, part, options.limit, seed))
        if not corpora:
            raise ValueError("neither *_corpus.json nor ontologies/*.json")
    wanted = options.only.split(",") if options.only else None
    arms: dict[str, list[Asked]] = {}
    rows: dict[str, Any] = {}
    mistakes: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    shown: list[dict[str, Any]] = []
    for corpus in corpora:
        if wanted and corpus.name not in wanted:
            continue
        snapshot = build_pyramid(corpus, warehouse / "corpora" / part, warehouse)
        made = make_corpus_questions(corpus, snapshot, int(options.questions or QUESTIONS), seed)
        left_out.update(made.left_out)
        questions = made.questions
        if corpus.is_halved and part == "train":
            questions = tuple(q for q in questions if is_first_half(q))
        if not questions:
            report(f"{corpus.name}: no question")
            continue
        found = measure_corpus(corpus, snapshot, questions, ablate=not options.quick)
        for arm, asked in found.items():
            arms.setdefault(arm, []).extend(asked)
        rows[corpus.name] = {
            k: v for k, v in describe_arms(found).items() if k.startswith(("f1_", "gap", "que"))
        }
        if part == "train":
            mistakes.update(find_mistake(a, snapshot) for a in found["polyrag"])
            shown += [show_mistake(a, corpus) for a in found["polyrag"] if a.f1 < 1]
    if not arms:
        refuse(f"no questions; --only names some of {', '.join(c.name for c in corpora)}")
    figures = {"part": part, "seed": seed} | describe_arms(arms)
    if not options.quick:
        figures["ablation"] = {
            name: average(arms[name], "f1")
            for name in (
                *(" + ".join(layers) for layers in list_combinations()),
                *map(name_ablated, ABLATED),
            )
        }
    if corpora[0].is_halved and part == "test":
        figures["halves"] = {
            name: describe_half(arms, first=first)
            for name, first in (("tuned", True), ("held out", False))
        }
    if mistakes:
        figures["mistakes"] = dict(mistakes.most_common())
    if options.mistakes:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in shown)
        Path(options.mistakes).write_text(lines, "utf-8")
    figures["left_out"] = dict(left_out.most_common())
    figures["corpora"] = rows
    return figures


def is_first_half(question: EvalQuestion) -> bool:
    """Whether a question is of the half that may be tuned on: drawn by its own id."""
    return int(question.id.rpartition("-")[2], 16) % 2 == 0


def describe_half(arms: Mapping[str, Sequence[Asked]], *, first: bool) -> dict[str, Any]:
    half = {k: [a for a in v if is_first_half(a.question) == first] for k, v in arms.items()}
    figures = describe_arms(half)
    return {k: v for k, v in figures.items() if k.startswith(("f1_p", "f1_n", "gap", "que"))}


def show_mistake(asked: Asked, corpus: Corpus) -> dict[str, Any]:
    """A wrong answer of the part for tuning, as a line to read."""
    question, said = asked.question, asked.answer
    return {
        "corpus": corpus.name,
        "question": question.text,
        "gold": question.values,
        "chosen": said.choices,
        "layer": said.layer,
        "trace": [str(step) for step in said.trace],
        "options": question.candidates,
        "evidence": question.evidence,
    }


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDERS[1],
        limit="the first N sentences of each ontology, or hop triples, only",
        seed="draws the questions and, of --part train, the halves of the sentences",
        flags={"--quick": "leave the ablation out"},
        values={
            "--part": "test (by default) or train; tune on train only",
            "--only": "names of corpora, parted by commas: tekgen-music,webnlg-film",
            "--questions": f"at most so many of each corpus, {QUESTIONS} by default",
            "--warehouse": "folder that keeps the pyramids, else one that is thrown away",
            "--mistakes": "a file for the wrong answers of --part train, one a line",
        },
    )
    options.part = options.part or PARTS[0]
    if options.part not in PARTS:
        refuse(f"--part {options.part}: give {' or '.join(PARTS)}")
    if options.mistakes and options.part != "train":
        refuse("--mistakes needs --part train: rows of the test part are measured, not read")
    if options.questions and not options.questions.isdecimal():
        refuse(f"--questions {options.questions}: give a whole number")
    with tempfile.TemporaryDirectory(prefix="kpyramid-choice-") as folder:
        warehouse = Path(options.warehouse or folder).resolve()
        print_figures(measure(options, warehouse), options.json)


if __name__ == "__main__":
    main()
