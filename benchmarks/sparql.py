"""How many questions over an RDF graph the rules turn into SPARQL with the right answer.

The measure is that of the TEXT2SPARQL challenge (ESWC 2025): values of the written query against
those of the gold query, as sets; right is an F1 of 1. What ends the waterfall is judged as the
waterfall judges it: a question that the rules leave alone, whose query finds nothing, counts none
or is untrue, finds more than an answer holds, or names nothing in particular, is unanswered; a
wrong answer that they stand by is `wrong_confident`. Questions whose gold query does not run on
pyoxigraph are left out and counted.
"""

import time
from pathlib import Path
from typing import Any

from embedding import open_embedder
from options import explain_faults, print_figures, read_options
from sets.ck25 import GoldQuestion, collect_values, read_lexicon, read_questions

from kpyramid.answering.lexicon import PhraseComparer
from kpyramid.answering.sparql import MOST_VALUES, Unwritten, judge_reading, read_question
from kpyramid.errors import InputError
from kpyramid.ontology.store import OntologyStore
from kpyramid.query.types import Outcome

FOLDER = "ck25"
ALL = 10**7


def open_graph(data: Path) -> OntologyStore:
    """All Turtle files below `graphs` as one graph."""
    files = sorted((data / "graphs").glob("*.ttl"))
    if not files:
        raise InputError("no graphs/*.ttl")
    return OntologyStore("\n".join(path.read_text("utf-8") for path in files), "", seconds=60.0)


def answer_gold(store: OntologyStore, question: GoldQuestion) -> frozenset[str] | None:
    """The values of the gold query; None when it does not run.

    An expression in error leaves its variable unbound: a result of empty rows has not run.
    """
    try:
        rows = store.select_trusted(question.sparql, limit=ALL)
    except InputError:
        return None
    return collect_values(rows) if any(rows) or not rows else None


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """All figures."""
    with explain_faults(data, FOLDER):
        found = sorted(data.glob("*.yml")) + sorted(data.glob("*.yaml"))
        if not found:
            raise InputError("no questions as *.yml")
        questions = read_questions(found[0])[:limit]
        store = open_graph(data)
        gold = {q.id: answer_gold(store, q) for q in questions}
        started = time.perf_counter()
        lexicon = read_lexicon(
            lambda q: store.select_trusted(q, limit=ALL),
            PhraseComparer(open_embedder().embed).compare,
        )
        opened = time.perf_counter() - started
    verdicts: dict[str, dict[str, str]] = {}
    started = time.perf_counter()
    for question in questions:
        if gold[question.id] is None:
            continue
        read = read_question(question.text, lexicon)
        if isinstance(read, Unwritten):
            verdict, why = "unanswered", read.reason
        else:
            rows = store.select_trusted(read.sparql, limit=MOST_VALUES + 1)
            found = judge_reading(read, rows, MOST_VALUES)
            why = found.reason
            verdict = "right" if frozenset(found.values) == gold[question.id] else "WRONG"
            verdict = verdict if found.outcome is Outcome.ANSWERED else "unanswered"
        verdicts[question.id] = {"verdict": verdict, "question": question.text, "why": why}
    seconds = time.perf_counter() - started
    store.close()
    counts = [row["verdict"] for row in verdicts.values()]
    total = max(len(counts), 1)
    return {
        "right": round(counts.count("right") / total, 4),
        "wrong_confident": round(counts.count("WRONG") / total, 4),
        "answered": round(1 - counts.count("unanswered") / total, 4),
        "questions": len(counts),
        "gold_failed": len(questions) - len(counts),
        "lexicon_seconds": round(opened, 2),
        "seconds_per_question": round(seconds / total, 4),
        "by_question": verdicts,
    }


def main() -> None:
    options = read_options(__doc__, folder=FOLDER, limit="the first N questions only")
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
