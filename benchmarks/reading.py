"""How well the reader by rules reads: what it chooses, what it answers, how sure it rightly is.

Choice and open questions are made from the train triples of text2kgbench's Wikidata group and asked
of one pyramid of their sentences with default settings; no test row is read. Each is read from five
contexts: the 5 nearest chunks, the 10 nearest facts, both, the chunks with those that speak for an
option, and the chunks without those that state the answer, from which little should be read.
Invented sentences that say several things of their subject (`reading_invented.py`) are asked about
as well. Questions are parted into two halves by their documents, and the figures are those of each
half with the weights in force.

`f1` is of the chosen options, a mean over questions; `right` the share of open questions whose text
is a gold name in normal form, or its date or number; `within` the share whose context says a right
value at all, a bound of both; `brier` the mean squared error of the probability of the answer.

`--write` fits the weights on both halves and writes `etl/kpyramid/answering/reader.json`;
`--write half` on the first half alone, so that the second is unseen.
"""

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt
from choice_pyramids import Corpus, build_pyramid, make_corpus_questions, read_text2kgbench
from options import explain_faults, print_figures, read_options, report
from reading_invented import invent
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from kpyramid.answering import reader
from kpyramid.answering.reader import (
    STATED,
    Candidate,
    Features,
    Hit,
    cut_items,
    drop_echoes,
    find_candidates,
    gather_values,
    measure_hits,
    read_candidates,
)
from kpyramid.documents.values import agree, read_value
from kpyramid.documents.words import normalise_name
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query import Snapshot
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import find_facts, state_item
from kpyramid.query.options import Number, find_for_options, read_names, read_number
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Item, Question

Matrix = npt.NDArray[np.float64]

FOLDER = "text2kgbench_public"
GROUP = "tekgen-"
SENTENCES = 160
"""Of an ontology by default; five ontologies have 800 then."""
QUESTIONS = 400
INVENTED = 400
CHOICES_OF_INVENTED = 2
"""One invented passage in so many is asked with options: options of real facts seldom share a
sentence, and weights that expect it read real sentences less well."""
CHUNKS, FACTS = 5, 10
STRENGTH = 0.3
"""The inverse of the L2 penalty."""
ROUNDS = 4
"""Of choosing the best place of each value by the weights and fitting them again."""
AGAINST = frozenset({"astray", "sentence_echo"})
EITHER = frozenset({"fact", "sentence", "fact_tail", "nameless"})
"""Features that speak against a value only, or for it or against it; all others only for it."""
SAME = 0.85
"""How far a date or number must say the gold one."""


@dataclass(frozen=True)
class Case:
    """The values that one context offers for one question, with what speaks for each place."""

    question: EvalQuestion
    kind: reader.Kind
    context: str
    values: tuple[str, ...]
    hits: tuple[Hit, ...]
    features: tuple[Features, ...]
    number: Number

    @property
    def half(self) -> int:
        """0 or 1, by the documents that state the answer."""
        return sha256(" ".join(self.question.gold_documents).encode()).digest()[0] % 2

    def is_right(self, value: int) -> bool:
        """Whether a value is a gold one."""
        if self.kind == "choice":
            return self.values[value] in self.question.values
        return is_gold(self.values[value], self.question)


def is_gold(text: str, question: EvalQuestion) -> bool:
    """Whether a text is one of the gold names, or its date or number."""
    stated = read_value(text)
    for name in (name for names in question.answers for name in names):
        if normalise_name(name) == normalise_name(text):
            return True
        gold = read_value(name)
        known = gold is not None and stated is not None
        if known and max(agree(gold, stated), agree(stated, gold)) >= SAME:
            return True
    return False


def make_cases(question: EvalQuestion, snapshot: Snapshot) -> Iterator[Case]:
    """The question with its options and without them, read from each context."""
    asked = QuestionAnalysis(Question(question.text, question.candidates), snapshot)
    for name, items in list_contexts(question, snapshot).items():
        pieces = cut_items(items, snapshot)
        offered = read_candidates(question.candidates, snapshot)
        hits = drop_echoes(find_candidates(offered, pieces), asked)
        features = tuple(measure_hits(asked, hits, pieces)) if hits else ()
        number = read_number(asked.text)
        yield Case(question, "choice", name, question.candidates, tuple(hits), features, number)
        values, found = gather_values(asked, pieces)
        features = tuple(measure_hits(asked, found)) if found else ()
        yield Case(question, "open", name, tuple(values), tuple(found), features, number)


def make_invented(count: int, seed: int, snapshot: Snapshot) -> Iterator[Case]:
    """Cases of invented sentences that say several things of one subject; no pyramid holds them."""
    for number, one in enumerate(invent(count, seed, snapshot)):
        question = EvalQuestion(
            f"invented-{number}",
            one.asked.text,
            "choice",
            ((one.answer,),),
            one.options,
            gold_documents=(str(number),),
        )
        names = read_names(one.options, [()] * len(one.options))
        options = [Candidate(name, frozenset(), "") for name in names]
        hits = drop_echoes(find_candidates(options, one.pieces), one.asked)
        values, found = gather_values(one.asked, one.pieces)
        for kind, offered, places in (
            ("choice", one.options, hits),
            ("open", tuple(values), found),
        ):
            if kind == "choice" and number % CHOICES_OF_INVENTED:
                continue
            shown = one.pieces if kind == "choice" else ()
            counted = tuple(measure_hits(one.asked, places, shown)) if places else ()
            wanted = read_number(one.asked.text)
            yield Case(question, kind, "invented", offered, tuple(places), counted, wanted)  # type: ignore[arg-type]


def list_contexts(question: EvalQuestion, snapshot: Snapshot) -> dict[str, list[Item]]:
    """Chunks, facts, both, chunks with what speaks for an option, and chunks without the answer."""
    asked = QuestionAnalysis(Question(question.text, question.candidates), snapshot)
    many = find_passages(asked, CHUNKS + 10, by="both")
    facts = find_facts(asked, FACTS, anchored=False)
    stated = [state_item(fact, snapshot, fact.cosine) for fact in facts]
    gold = set(question.gold_documents)
    astray = [i for i in many if i.evidence[0].source.rpartition("#")[2] not in gold]
    chunks = many[:CHUNKS]
    known = {item.key for item in chunks}
    witnesses = find_for_options(asked, CHUNKS, without=known)
    return {
        "chunks": chunks,
        "facts": stated,
        "both": [*chunks, *stated],
        "witnesses": [*chunks, *witnesses, *stated[:CHUNKS]],
        "astray": astray[:CHUNKS],
    }


def fit(cases: Sequence[Case]) -> dict[str, Any]:
    """The weights of one kind of question: of a place by its features, of a value by its best."""
    names = sorted({name for case in cases for counted in case.features for name in counted})
    odds = np.zeros(len(names))
    odds[names.index("strength")] = odds[names.index("rank")] = 1.0
    bias = 0.0
    for _ in range(ROUNDS):
        rows, labels, shares = [], [], []
        for case in cases:
            places = group_places(case, names)
            for value, rows_of in places.items():
                rows.append(rows_of[int(np.argmax(rows_of @ odds))])
                labels.append(case.is_right(value))
                shares.append(1 / math.sqrt(len(places)))
        odds, bias = fit_places(np.array(rows), np.array(labels, float), np.array(shares), names)
    hit = {name: round(float(w), 3) for name, w in zip(names, odds, strict=True)}
    rows, labels = [], []
    for case in cases:
        best = {v: float(np.max(r @ odds)) + bias for v, r in group_places(case, names).items()}
        counts = {v: sum(hit.candidate == v for hit in case.hits) for v in best}
        for value in best:
            rows.append(reader.compare(value, best, counts[value], case.number))
            labels.append(case.is_right(value))
    final = LogisticRegression(C=STRENGTH, max_iter=5000).fit(np.array(rows), labels)
    value = [round(float(w), 3) for w in (*final.coef_[0], final.intercept_[0])]
    fields = ("best", "behind", "ahead", "repeated", "several", "bias")
    return {"hit": hit | {"bias": round(bias, 3)}, **dict(zip(fields, value, strict=True))}


def fit_places(
    rows: Matrix, labels: Matrix, shares: Matrix, names: Sequence[str]
) -> tuple[Matrix, float]:
    """Log-odds by logistic regression in which nothing speaks against what it can only speak for.

    That a sentence says more of the question's words is never a reason against its values, however
    the questions at hand fall out; an echo of the question is never one for them.
    """

    def lose(weights: Matrix) -> tuple[float, Matrix]:
        odds = rows @ weights[:-1] + weights[-1]
        penalty = weights[:-1] / STRENGTH
        loss = shares @ (np.logaddexp(0, odds) - labels * odds) + weights[:-1] @ penalty / 2
        slope = shares * (1 / (1 + np.exp(-odds)) - labels)
        return float(loss), np.append(rows.T @ slope + penalty, slope.sum())

    bounds = [
        (None, 0) if n in AGAINST else (None, None) if n in EITHER else (0, None) for n in names
    ]
    found = minimize(
        lose, np.zeros(len(names) + 1), jac=True, bounds=[*bounds, (None, None)], method="L-BFGS-B"
    )
    return found.x[:-1], float(found.x[-1])


def group_places(case: Case, names: Sequence[str]) -> dict[int, Matrix]:
    """For each value that is said a row of features per place."""
    places: dict[int, list[list[float]]] = defaultdict(list)
    for hit, counted in zip(case.hits, case.features, strict=True):
        places[hit.candidate].append([counted.get(name, 0.0) for name in names])
    return {value: np.array(rows) for value, rows in places.items()}


def measure(cases: Sequence[Case]) -> dict[str, float]:
    """Figures of cases of one kind and context with the weights in force."""
    kind = cases[0].kind
    scores, within, errors, answered = [], [], [], []
    for case in cases:
        weighed = reader.weigh(case.hits, case.features, kind, case.number) if case.hits else []
        right = {v for v in {hit.candidate for hit in case.hits} if case.is_right(v)}
        within.append(bool(right))
        errors += [(w.probability - (w.candidate in right)) ** 2 for w in weighed[:1]]
        if kind == "choice":
            chosen = reader.pick(weighed, case.number)
            held = {w.candidate for w in chosen}
            gold = len(case.question.answers)
            scores.append(2 * len(held & right) / (len(held) + gold))
            answered.append(bool(held))
        else:
            sure = bool(weighed) and weighed[0].probability >= STATED
            scores.append(sure and weighed[0].candidate in right)
            answered.append(sure)
    return {
        "f1" if kind == "choice" else "right": mean(scores),
        "answered": mean(answered),
        "within": mean(within),
        "brier": mean(errors) if errors else 0.0,
    }


def pool(data: Path, limit: int | None, seed: int) -> Corpus:
    """The train sentences of all ontologies of the group as one corpus."""
    found = [
        c
        for c in read_text2kgbench(data, "train", limit or SENTENCES, seed)
        if c.name.startswith(GROUP)
    ]
    ends: dict[str, tuple[str, str]] = {}
    for corpus in reversed(found):
        ends |= corpus.ends or {}
    return Corpus(
        name="tekgen-train",
        rows=tuple({row["id"]: row for c in found for row in c.rows}.values()),
        facts=tuple(fact for c in found for fact in c.facts),
        known=tuple(triple for c in found for triple in c.known),
        ends=ends,
    )


def run(data: Path, limit: int | None, seed: int, write: str, place: Path) -> Mapping[str, Any]:
    """All figures; with `write` the weights are fitted first."""
    corpus = pool(data, limit, seed)
    snapshot = build_pyramid(corpus, place, place / "warehouse")
    made = make_corpus_questions(corpus, snapshot, QUESTIONS, seed).questions
    report(f"reads {len(made)} questions")
    cases = [case for question in made for case in make_cases(question, snapshot)]
    cases += make_invented(INVENTED, seed, snapshot)
    if write:
        learnt = [c for c in cases if write != "half" or c.half == 0]
        kinds: tuple[reader.Kind, ...] = ("choice", "open")
        weights = {kind: fit([c for c in learnt if c.kind == kind and c.hits]) for kind in kinds}
        path = Path(reader.__file__).with_name("reader.json")
        path.write_text(
            json.dumps({"source": SOURCE, "weights": weights}, indent=1) + "\n", "utf-8"
        )
        reader.load_weights.cache_clear()
    groups: dict[tuple[str, str, int], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.kind, case.context, case.half].append(case)
    figures = {f"{k} {c} half {h}": measure(part) for (k, c, h), part in sorted(groups.items())}
    return {"questions": len(made), "sentences": len(corpus.rows), **figures}


SOURCE = (
    "Fitted by benchmarks/reading.py on questions made from train triples of Text2KGBench's"
    " Wikidata-TekGen group (Mihindukulasooriya et al., ISWC 2023, CC BY-SA; no text goes in) and"
    " of invented sentences."
)


def parse_options() -> argparse.Namespace:
    """The options of the script."""
    return read_options(
        __doc__,
        folder=FOLDER,
        limit=f"sentences of an ontology, by default {SENTENCES}",
        seed="draws the sentences and the questions",
        values={
            "--write": "all or half: fits the weights on both halves or on the first, and writes",
            "--place": "folder where the pyramid is kept for another run",
        },
    )


def main() -> None:
    """Reads, and fits if asked to."""
    options = parse_options()
    with explain_faults(options.data, FOLDER), tempfile.TemporaryDirectory() as folder:
        place = Path(options.place or folder)
        figures = run(options.data, options.limit, options.seed, options.write or "", place)
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
