"""How well the probability holds that facts answer a question, and the weights it is made of.

Questions are made from the train triples of text2kgbench's Wikidata group, asked of one pyramid of
their sentences with default settings: a triple's property in words, its subject or its value asked
for; half of them with candidates (values of the same property). Questions about subjects that no
sentence names (of the validation triples) have no answer, nor have those for a property that things
of the kind do not have (a song's voice type), and what a graph misses has none either: whatever is
answered to these is wrong. A value is right when it is a gold one, in normal form or as
most of its words; of a date, its year.

The weights are fitted on three ontologies and judged on the two others, whose properties differ;
neither the test sentences of text2kgbench nor their triples are read. With `--hops` they are
judged on the natural questions of MuSiQue's single hops as well (`musique100` beside the folder;
its pyramid takes minutes). `ece` is the expected calibration error over ten equal bins (Guo et al.,
ICML 2017), `brier` the mean squared error beside that of the bare share of right answers;
`answered`,
`right` and `wrong` are shares of all questions at the threshold in force, `precision` the share of
right ones among those answered. `in_force` judges the weights of the module, `fitted` those fitted
in this run.

`--write` puts the weights of this run into the module.
"""

import hashlib
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from making.questions import word_for_subject, word_for_value
from options import print_figures, read_options, refuse
from sklearn.linear_model import LogisticRegression

from kpyramid.answering import rules
from kpyramid.answering.rules import SUFFICIENCY, weigh_best
from kpyramid.documents.words import normalise_name
from kpyramid.pipeline.build import build
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.query import facts as facts_module
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import SUFFICIENT
from kpyramid.query.facts import (
    RELEVANCE,
    RatedFact,
    apply_weights,
    find_chance,
    gather_facts,
    rate_facts,
)
from kpyramid.query.types import Question
from kpyramid.settings import Settings
from kpyramid.storage.layout import open_warehouse

FOLDER = "text2kgbench_public"
UNSEEN = ("culture", "computer")
"""Ontologies that the weights are judged on and not fitted on."""
_SHARED = frozenset(("author", "composer", "creator", "publication date", "genre", "part of",
                     "developer", "language of work or name", "producer", "performer"))  # fmt: skip
"""Properties that things of other ontologies have as well under another name."""
CANDIDATES = 8
MOST = 40
"""Facts of a question that are learnt from, best first by the weights in force."""
BINS = 10
STRENGTH = 1.0
_YEAR = re.compile(r"\b[12]\d{3}\b")


@dataclass(frozen=True)
class Asked:
    """A question with its right values; none when nothing is right."""

    question: Question
    golds: tuple[str, ...]
    group: str


def read_asked(data: Path, limit: int | None) -> tuple[list[Asked], dict[str, str]]:
    """The questions, and the sentences by number."""
    base = next((p for p in sorted(data.rglob("train")) if "tekgen" in str(p)), None)
    if base is None:
        refuse(f"{data}: no */train/*.jsonl of the Wikidata group")
    sentences: dict[str, str] = {}
    found: list[Asked] = []
    known_kinds: dict[str, dict[str, tuple[str, str]]] = {}
    known_rows: dict[str, list[Any]] = {}
    for path in sorted(base.glob("*.jsonl")):
        group = path.name.split("_")[2]
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()][:limit]
        sentences |= {row["id"]: row["sent"] for row in rows}
        other = base.parent / "validation" / path.name.replace("_train", "_validation")
        strange = [json.loads(line) for line in other.read_text("utf-8").splitlines()]
        known = normalise_name(" ".join(row["sent"] for row in rows))
        strange = [r for r in strange if normalise_name(r["sub_label"]) not in known]
        kinds = _read_kinds(base.parent, group)
        found += list(_word(rows, kinds, group, rows))
        found += list(_word(strange[: len(rows) // 6], kinds, group, rows, none=True))
        known_kinds[group], known_rows[group] = kinds, rows
    for group, rows in known_rows.items():
        others = sorted(set(known_kinds) - {group})
        found += list(_word_foreign(rows, group, others, known_kinds))
    unique = dict.fromkeys(sentences.values())
    return found, {str(at): text for at, text in enumerate(unique)}


def _read_kinds(base: Path, group: str) -> dict[str, tuple[str, str]]:
    """The kinds of subject and value of each property, in words."""
    (path,) = [p for p in (base / "ontologies").glob("*.json") if group in p.name]
    ontology = json.loads(path.read_text("utf-8"))
    labels = {row["qid"]: row["label"].strip() for row in ontology["concepts"]}
    return {
        row["label"]: (labels.get(row["domain"], ""), labels.get(row["range"], ""))
        for row in ontology["relations"]
    }


def _word(
    rows: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, tuple[str, str]],
    group: str,
    known: Sequence[Mapping[str, Any]],
    *,
    none: bool = False,
) -> Iterator[Asked]:
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    subjects: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_relation: dict[str, set[str]] = defaultdict(set)
    for row in known:
        values[row["sub_label"], row["rel_label"]].add(row["obj_label"])
        subjects[row["obj_label"], row["rel_label"]].add(row["sub_label"])
        by_relation[row["rel_label"]].add(row["obj_label"])
    for row in rows:
        subject, label, value = row["sub_label"], row["rel_label"], row["obj_label"]
        domain, range_ = kinds.get(label, ("", ""))
        draw = hashlib.sha256(f"{subject} {label} {value}".encode()).digest()
        form = "date" if _YEAR.search(value) and ("date" in label or "inception" in label) else ""
        turned = draw[0] % 4 == 0 and not form
        if turned:
            wordings = word_for_subject(label, value, domain, range_)
            golds, pool = subjects[value, label], {row["sub_label"] for row in known}
        else:
            wordings = word_for_value(label, subject, range_, form)
            golds, pool = values[subject, label], by_relation[label]
        if turned and none:
            continue
        candidates: tuple[str, ...] = ()
        others = sorted(pool - golds, key=lambda v: hashlib.sha256(draw + v.encode()).digest())
        if draw[1] % 2 and len(others) >= CANDIDATES - 1:
            right = sorted(golds)[:1] or [value]
            candidates = tuple(sorted([*right, *others[: CANDIDATES - 1]]))
        text = wordings[draw[2] % len(wordings)]
        yield Asked(Question(text, candidates), () if none else tuple(sorted(golds)), group)


def _word_foreign(
    rows: Sequence[Mapping[str, Any]],
    group: str,
    others: Sequence[str],
    kinds: Mapping[str, Mapping[str, tuple[str, str]]],
) -> Iterator[Asked]:
    """Questions for a property that something does not have: one of another ontology."""
    own = set(kinds[group])
    foreign = sorted(
        (label, *ends) for other in others for label, ends in kinds[other].items()
        if label not in own and label not in _SHARED
    )  # fmt: skip
    for row in rows[::2]:
        draw = hashlib.sha256(f"foreign {row['sub_label']} {row['obj_label']}".encode()).digest()
        label, _, range_ = foreign[(draw[0] * 256 + draw[1]) % len(foreign)]
        form = "date" if "date" in label or label == "inception" else ""
        wordings = word_for_value(label, row["sub_label"], range_, form)
        yield Asked(Question(wordings[draw[2] % len(wordings)]), (), group)


def read_hops(folder: Path) -> tuple[list[Asked], list[Mapping[str, str]]]:
    """The single-hop questions of MuSiQue that stand by themselves, and the passages."""
    questions = json.loads((folder / "musique_train.json").read_text("utf-8"))
    corpus = json.loads((folder / "musique_train_corpus.json").read_text("utf-8"))
    found = {}
    for hop in (hop for question in questions for hop in question["question_decomposition"]):
        text = hop["question"]
        if "#" not in text:
            if ">>" in text:
                subject, _, label = (part.strip() for part in text.partition(">>"))
                text = f"What is the {label} of {subject}?"
            found[text] = Asked(Question(text), (hop["answer"],), "musique")
    rows = [
        {"id": str(at), "title": row["title"], "text": row["text"]} for at, row in enumerate(corpus)
    ]
    return list(found.values()), rows


def is_right(value: str, golds: Sequence[str]) -> bool:
    """Whether a value is one of some gold ones."""
    own = normalise_name(value)
    for gold in golds:
        other = normalise_name(gold)
        if own == other:
            return True
        short, long = sorted((own, other), key=len)
        if f" {short} " in f" {long} " and 2 * len(short) >= len(long):
            return True
        if set(_YEAR.findall(other)) & set(_YEAR.findall(own)) and len(own.split()) <= 6:
            return True
    return False


@dataclass(frozen=True)
class Case:
    """A question with its weighed facts, the right ones among them."""

    asked: Asked
    facts: tuple[RatedFact, ...]
    right: tuple[bool, ...]


def weigh_all(asked: Sequence[Asked], snapshot: Snapshot) -> list[Case]:
    """What the graph puts forward for each question."""
    cases = []
    for number, one in enumerate(asked):
        if number % 100 == 0:
            sys.stderr.write(f"\r{number} of {len(asked)} questions")
        asked_one = QuestionAnalysis(one.question, snapshot)
        facts = rate_facts(asked_one, gather_facts(asked_one))
        kept = tuple(b for b in facts if b.value)[:MOST]
        cases.append(Case(one, kept, tuple(is_right(b.value, one.golds) for b in kept)))
    sys.stderr.write("\n")
    return cases


def fit_relevance(cases: Sequence[Case]) -> dict[str, float]:
    """Weights of the measures of single facts, two decimals, the bias first."""
    rows = [
        (relevance.measures, right)
        for case in cases
        for relevance, right in zip(case.facts, case.right, strict=True)
        if not relevance.measures["unfounded"]  # a rule has judged the others
    ]
    return _fit(rows, without={"unfounded", "missing", "stated"})


def fit_sufficiency(cases: Sequence[Case], snapshot: Snapshot) -> dict[str, float]:
    """Weights of the best fact's measures: of each half, by facts' weights fitted on the other.

    Weights fitted on the same facts would make their best ones look surer than new ones are.
    """
    rows = []
    for half in (0, 1):
        others = fit_relevance([case for case in cases if _choose_half(case) != half])
        rows += [
            measure_best(case, others, snapshot) for case in cases if _choose_half(case) == half
        ]
    return _fit([(measures, right) for measures, right in rows if measures])


def _choose_half(case: Case) -> int:
    return hashlib.sha256(case.asked.question.text.encode()).digest()[5] % 2


def measure_best(
    case: Case, relevance: Mapping[str, float], snapshot: Snapshot
) -> tuple[Mapping[str, float], bool]:
    """The measures of the best fact by some weights, and whether its value is right."""
    weighed = [replace(b, chance=find_chance(b.measures, relevance)) for b in case.facts]
    weighed.sort(key=lambda b: (-b.chance, -b.fact.cosine, b.fact.condensed_id))
    best = weigh_best(QuestionAnalysis(case.asked.question, snapshot), weighed)
    if best is None:
        return {}, False
    values = best.values[:1]
    return best.measures, bool(values) and is_right(values[0], case.asked.golds)


def _fit(
    rows: Sequence[tuple[Mapping[str, float], bool]], without: Collection[str] = ()
) -> dict[str, float]:
    names = sorted({name for measures, _ in rows for name in measures} - set(without))
    if len({right for _, right in rows}) < 2:
        refuse(f"{len(rows)} facts are too few to fit weights; give more questions")
    matrix = np.array([[measures.get(name, 0.0) for name in names] for measures, _ in rows])
    model = LogisticRegression(C=1 / STRENGTH, max_iter=2000)
    model.fit(matrix, np.array([right for _, right in rows]))
    weights = {"bias": float(model.intercept_[0])}
    weights |= {name: float(w) for name, w in zip(names, model.coef_[0], strict=True)}
    return {name: round(weight, 2) for name, weight in weights.items()}


def judge(rows: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Calibration and the errors at the threshold; chances of questions with a best fact."""
    bins: list[list[int]] = [[] for _ in range(BINS)]
    for at, (chance, _) in enumerate(rows):
        bins[min(int(chance * BINS), BINS - 1)].append(at)
    table = [
        {
            "questions": len(group),
            "probability": round(statistics.fmean(rows[at][0] for at in group), 3),
            "right": round(statistics.fmean(rows[at][1] for at in group), 3),
        }
        for group in bins
        if group
    ]
    error = sum(row["questions"] * abs(row["probability"] - row["right"]) for row in table)
    sure = [right for chance, right in rows if chance >= SUFFICIENT]
    share = statistics.fmean(right for _, right in rows)
    return {
        "questions": len(rows),
        "ece": round(error / len(rows), 4),
        "brier": round(statistics.fmean((c - r) ** 2 for c, r in rows), 4),
        "brier_of_share": round(share * (1 - share), 4),
        "answered": round(len(sure) / len(rows), 4),
        "right": round(sum(sure) / len(rows), 4),
        "wrong": round((len(sure) - sum(sure)) / len(rows), 4),
        "precision": round(sum(sure) / len(sure), 4) if sure else None,
        "bins": table,
    }


def open_pyramid(rows: Sequence[Mapping[str, str]], folder: Path) -> Snapshot:
    """A pyramid of some texts with default settings."""
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    warehouse = open_warehouse(folder / "warehouse")
    build(corpus, warehouse, Settings())
    return open_snapshot("main", warehouse.root)


def measure(data: Path, limit: int | None, *, hops: bool, write: bool) -> dict[str, Any]:
    """All figures."""
    asked, sentences = read_asked(data, limit)
    with TemporaryDirectory(prefix="sufficiency-") as place:
        folder = Path(place)
        (folder / "train").mkdir()
        rows = [{"id": key, "text": text} for key, text in sentences.items()]
        snapshot = open_pyramid(rows, folder / "train")
        cases = weigh_all(asked, snapshot)
        judged = {"unseen ontologies": ([c for c in cases if c.asked.group in UNSEEN], snapshot)}
        if hops:
            questions, passages = read_hops(data.parent / "musique100")
            (folder / "hops").mkdir()
            natural = open_pyramid(passages, folder / "hops")
            judged["natural hops"] = (weigh_all(questions, natural), natural)
        seen = [case for case in cases if case.asked.group not in UNSEEN]
        relevance, best = fit_relevance(seen), fit_sufficiency(seen, snapshot)
        if write:
            write_weights(relevance, best)
        return {
            "questions": len(cases),
            "fitted_on": len(seen),
            "reachable": round(statistics.fmean(any(case.right) for case in cases), 4),
            "in_force": {
                name: judge(rate(found, RELEVANCE, SUFFICIENCY, where))
                for name, (found, where) in judged.items()
            },
            "fitted": {
                name: judge(rate(found, relevance, best, where))
                for name, (found, where) in judged.items()
            },
        }


def rate(
    cases: Sequence[Case],
    relevance: Mapping[str, float],
    best: Mapping[str, float],
    snapshot: Snapshot,
) -> list[tuple[float, bool]]:
    """The probability of each question's best value, and whether it is right."""
    rows = [measure_best(case, relevance, snapshot) for case in cases]
    return [(apply_weights(found, best) if found else 0.0, right) for found, right in rows]


def write_weights(relevance: Mapping[str, float], best: Mapping[str, float]) -> None:
    """Both tables of the module in place of those there."""
    tables = (("RELEVANCE", relevance, facts_module), ("SUFFICIENCY", best, rules))
    for name, table, module in tables:
        path = Path(str(module.__file__))
        text = path.read_text("utf-8")
        lines = "".join(f'    "{key}": {weight},\n' for key, weight in table.items())
        text = re.sub(
            rf"(?<=^{name}: Mapping\[str, float\] = \{{\n)[^}}]*(?=^\}})",
            lines,
            text,
            flags=re.MULTILINE,
        )
        path.write_text(text, "utf-8")


def main() -> None:
    options = read_options(
        __doc__,
        limit="the first N train sentences of each ontology only",
        folder=FOLDER,
        flags={"--hops": "judge on MuSiQue's hops too", "--write": "put the weights in force"},
    )
    figures = measure(options.data, options.limit, hops=options.hops, write=options.write)
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
