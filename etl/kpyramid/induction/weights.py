"""Linear models over named features: what is fitted here, and the weights that come along."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

# The inverse of the L2 penalty; of 0.05, 0.2, 1 and 3 the best in cross-validation.
_STRENGTH = 1.0


@dataclass(frozen=True)
class General:
    """Log-odds for any ontology: of a value by `WordMatcher.measure`, of a subject by its features.

    Fitted by `benchmarks/reader_weights.py` on passages with recorded triples and on the examples
    of the project's own ontologies; features that few of them show are left out, so that no
    field's words are among them. `source` in the file says whose data they are.
    """

    role: Matrix
    role_bias: float
    subject: Mapping[str, float]
    subject_bias: float


@cache
def load_general() -> General:
    """The weights of `general.json`."""
    data = json.loads(Path(__file__).with_name("general.json").read_text("utf-8"))
    return General(np.array(data["role"]), data["role_bias"], data["subject"], data["subject_bias"])


class Vocabulary:
    """The features that are known, each with its column; others are passed over."""

    def __init__(self, rows: Iterable[Iterable[str]], least: int) -> None:
        counts: dict[str, int] = {}
        for row in rows:
            for name in set(row):
                counts[name] = counts.get(name, 0) + 1
        known = sorted(name for name, count in counts.items() if count >= least)
        self.columns: Mapping[str, int] = {name: at for at, name in enumerate(known)}

    def encode(self, rows: Iterable[Iterable[str]]) -> Any:
        """A sparse matrix of ones, one row each."""
        from scipy.sparse import csr_matrix

        columns = self.columns
        starts = [0]
        indices: list[int] = []
        for row in rows:
            indices.extend(sorted({columns[name] for name in row if name in columns}))
            starts.append(len(indices))
        shape = (len(starts) - 1, len(columns))
        return csr_matrix((np.ones(len(indices)), indices, starts), shape=shape)


def add_column(matrix: Any, column: Matrix) -> Any:
    """A sparse matrix with one more column."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([matrix, csr_matrix(column[:, None])], format="csr")


def fit_weights(matrix: Any, labels: Matrix, importance: Matrix) -> tuple[Matrix, float]:
    """Weights and bias of the logistic regression of labels (0 and 1, both present) on rows."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_STRENGTH, solver="liblinear", max_iter=100, tol=1e-3)
    model.fit(matrix, labels, sample_weight=importance)
    return np.asarray(model.coef_[0]), float(model.intercept_[0])


def squash(scores: Matrix) -> Matrix:
    """Probabilities of log-odds."""
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))))
