"""The papers' own analyses of WTS, RoK and HyKGE, on the questions of a set and with any model.

A pyramid of the set's passages is built once. `--settings` names a file with a model, which then
takes all decisions, as in the papers; without it rules take them, and no ranks are given.

`depths`: WTS with a largest depth of 1 to 4 (Table 7; its first row of each set is Table 5): shares
of right answers, and the median seconds of an answer. `reached`: the share of questions whose
search ended at each depth (Figure 6). `evidence`: what answers rest on when the model may use its
own knowledge (Figure 8): facts, its knowledge alone, or there is no answer.
`hops`: HyKGE with chains of at most 1 to 5 hops, with the mean number of chains before they are
ranked (Figure 5, left); `kept`: with 5 to 50 chains for the reader (Figure 5, right), and the
median seconds (Table 4, whose variants ask a model for entities, ranks or a summary, and are worse
and slower there; they are not built).
`ranks`: the mean rank that the model gives the answers of each strategy, side by side and in an
order drawn by the question, where 1 is best (RoK, Table 2).
"""

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any

from options import explain_faults, print_figures, read_options, report
from passages import build_pyramid
from sets import musique

from kpyramid.evaluation.metrics import list_references, score_right
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.llm.task import (
    GUARD,
    Asker,
    Failure,
    FailureKind,
    Message,
    ReplyError,
    Request,
    Strict,
    fence,
    flatten,
    strict_schema,
)
from kpyramid.pipeline.models import open_backends
from kpyramid.query import Answer, Snapshot, answer
from kpyramid.query.types import RULES, Backends

FOLDER = "musique100"
PASSAGES = 10
"""Passages for each question of a quick look."""
DEPTHS = (1, 2, 3, 4)
HOPS = (1, 2, 3, 4, 5)
KEPT = (5, 10, 20, 50)
RANKED = ("naive", "kaping", "wts", "rok")
CHAINS = re.compile(r"\d+ of (\d+) chains")


class Order(Strict):
    """The numbers of the answers, the best first."""

    best_first: tuple[int, ...]


def ask_all(
    questions: Sequence[EvalQuestion],
    snapshot: Snapshot,
    strategy: str,
    backends: Backends,
    **options: Any,
) -> list[Answer]:
    """The answers of a strategy, as its paper has them: none is withheld."""
    return [
        answer(q.text, snapshot, strategy, candidates=q.candidates, backends=backends, **options)
        for q in questions
    ]


def score(questions: Sequence[EvalQuestion], answers: Sequence[Answer]) -> dict[str, float]:
    """The share of right answers, and the median seconds of one."""
    right = [score_right(q, a) for q, a in zip(questions, answers, strict=True)]
    return {
        "right": round(mean(value or 0.0 for value in right), 4),
        "seconds": round(median(a.seconds for a in answers), 4),
    }


def count_shares(kinds: Sequence[object]) -> dict[str, float]:
    """The share of each."""
    counts = Counter(map(str, kinds))
    return {kind: round(counts[kind] / len(kinds), 4) for kind in sorted(counts)}


def find_depth(found: Answer) -> int:
    """The depth at which a search of WTS ended."""
    return sum(step.query.startswith("depth ") for step in found.trace)


def name_evidence(found: Answer) -> str:
    """What an answer rests on."""
    return "none" if not found.answered else "facts" if found.evidence else "knowledge"


def count_chains(found: Answer) -> int:
    """The chains that HyKGE had before it ranked them."""
    numbers = [int(n) for step in found.trace for n in CHAINS.findall(step.reason)]
    return max(numbers, default=0)


def rank(question: EvalQuestion, answers: Sequence[Answer], asker: Asker) -> Sequence[int] | None:
    """The rank of each answer by the model; None without a usable reply."""
    order = [*range(len(answers))]
    Random(question.text).shuffle(order)  # noqa: S311  a place in a list, no secret
    shown = [f"{at}. {flatten(answers[i].text) or '(none)'}" for at, i in enumerate(order, 1)]
    system = f"You rank answers to a question by how right and complete they are. {GUARD}"
    lines = [f"Question: {flatten(question.text)}", *shown]
    lines.append(f"A right answer: {flatten('; '.join(list_references(question)))}")

    def parse(text: str) -> Sequence[int]:
        best = Order.model_validate_json(text).best_first
        if sorted(best) != [*range(1, len(order) + 1)]:
            raise ReplyError(FailureKind.INVALID, f"{best} is no order of {len(order)} answers")
        ranks = {order[number - 1]: at for at, number in enumerate(best, 1)}
        return [ranks[i] for i in range(len(order))]

    messages = (Message("system", system), Message("user", fence("\n".join(lines))))
    request = Request("rank_answers", 1, messages, strict_schema(Order), 200, "benchmarks")
    ranks = asker.ask(request, parse)
    return None if isinstance(ranks, Failure) else ranks


def analyse(
    questions: Sequence[EvalQuestion], snapshot: Snapshot, backends: Backends
) -> dict[str, Any]:
    """The figures of all analyses."""
    figures: dict[str, Any] = {"questions": len(questions), "depths": {}, "hops": {}, "kept": {}}
    for depth in DEPTHS:
        report(f"WTS, depth {depth}")
        found = ask_all(questions, snapshot, "wts", backends, depth=depth)
        figures["depths"][depth] = score(questions, found)
    figures["reached"] = count_shares([find_depth(each) for each in found])
    found = ask_all(questions, snapshot, "wts", backends, knowledge=True)
    figures["evidence"] = count_shares([name_evidence(each) for each in found])
    for hops in HOPS:
        report(f"HyKGE, {hops} hops")
        found = ask_all(questions, snapshot, "hykge", backends, hops=hops)
        chains = round(mean(map(count_chains, found)), 1)
        figures["hops"][hops] = {**score(questions, found), "chains": chains}
    for kept in KEPT:
        found = ask_all(questions, snapshot, "hykge", backends, paths=kept)
        figures["kept"][kept] = score(questions, found)
    if backends.asker is not None:
        report("Ranks")
        sets = [ask_all(questions, snapshot, name, backends) for name in RANKED]
        asked = zip(questions, zip(*sets, strict=True), strict=True)
        given = [rank(question, answers, backends.asker) for question, answers in asked]
        ranks = [each for each in given if each is not None]
        means = [
            round(mean(each[i] for each in ranks), 2) for i in range(len(RANKED) if ranks else 0)
        ]
        figures["ranks"] = {**dict(zip(RANKED, means, strict=False)), "ranked": len(ranks)}
    return figures


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions, of a pyramid of the first 10 N passages",
        values={
            "--settings": "a file of settings with the model that takes all decisions",
            "--keep": "a folder for the pyramid, which is then not built twice",
        },
    )
    with explain_faults(options.data, FOLDER):
        found = musique.read(options.data)
        if found is None:
            raise ValueError("no questions")
    corpus = found.corpus[: options.limit and PASSAGES * options.limit]
    questions = found.questions[: options.limit]
    with tempfile.TemporaryDirectory(prefix="kpyramid-analyses-") as folder, ExitStack() as held:
        place = Path(options.keep or folder)
        report("Building the pyramid")
        snapshot = build_pyramid(corpus, place)
        backends = RULES
        if options.settings:
            backends = held.enter_context(open_backends(options.settings, warehouse=place))
        print_figures(analyse(questions, snapshot, backends), options.json)


if __name__ == "__main__":
    main()
