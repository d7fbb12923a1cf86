"""Priorities: how much a point is dense in the graph and thin in the ontology."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from kpyramid.numerics.moments import Array, Points, read_blocks, round_digits

Priority: TypeAlias = Literal["cross_entropy", "kl_difference", "pointwise_kl", "log_ratio"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """Numbers as sign (-1, 0, 1) and log of their absolute value in nats, 0.0 where the sign is 0.

    As plain numbers they would underflow, and be equal exactly where their order matters.
    """

    sign: npt.NDArray[np.int8]
    log_magnitude: Array

    def __len__(self) -> int:
        return len(self.sign)

    @classmethod
    def of(cls, values: Array) -> "Signed":
        """Plain numbers, shape (n,)."""
        with np.errstate(divide="ignore"):
            return _round(cls(np.sign(values).astype(np.int8), np.log(np.abs(values))))

    def order(self) -> npt.NDArray[np.int64]:
        """Indexes from the highest number to the lowest; equal ones in the order they came."""
        return np.lexsort((-self.sign * self.log_magnitude, -self.sign)).astype(np.int64)


def score_priority(kind: Priority, log_graph: Array, log_ontology: Array) -> Signed:
    """The priority at points of these log densities, shape (n,): higher is more missing from O.

    With the densities F_K of the graph and F_O of the ontology:

    - `cross_entropy`: F_K·log F_O - F_O·log F_K, which is PolyRAG's Eq. 7 to the letter and with
      its sign. Whether it is higher where more is missing depends on the unit (docs/priority.md).
    - `kl_difference`: (F_K + F_O)·(log F_K - log F_O), Eq. 7 of true KL integrands, sign turned.
    - `pointwise_kl`: F_K·(log F_K - log F_O), the integrand of KL(K‖O).
    - `log_ratio`: log F_K - log F_O.

    Rounded, so that ranks are the same on every processor. Raises ValueError on log densities that
    are not finite.
    """
    if not (np.isfinite(log_graph).all() and np.isfinite(log_ontology).all()):
        raise ValueError("a log density is not finite")
    return _round(_SCORES[kind](log_graph, log_ontology))


def measure_novelty(points: Points, known: Points) -> Array:
    """1 minus the largest cosine of each unit vector (n, d) to one of `known` (m, d).

    0 of what is known; higher is more missing. Raises ValueError where nothing is known.
    """
    columns = known.astype(np.float64).T
    nearest = np.concatenate(
        [np.zeros(0), *((block @ columns).max(axis=1) for _, block in read_blocks(points))]
    )
    return round_digits(np.maximum(1.0 - nearest, 0.0))


def _score_cross_entropy(log_graph: Array, log_ontology: Array) -> Signed:
    first = _times_log(log_ontology, log_graph)
    second = _times_log(log_graph, log_ontology)
    return _add(first, Signed(-second.sign, second.log_magnitude))


def _score_kl_difference(log_graph: Array, log_ontology: Array) -> Signed:
    return _times_log(log_graph - log_ontology, np.logaddexp(log_graph, log_ontology))


def _score_pointwise_kl(log_graph: Array, log_ontology: Array) -> Signed:
    return _times_log(log_graph - log_ontology, log_graph)


def _score_log_ratio(log_graph: Array, log_ontology: Array) -> Signed:
    return _times_log(log_graph - log_ontology, np.zeros(len(log_graph)))


_SCORES: Mapping[Priority, Callable[[Array, Array], Signed]] = {
    "cross_entropy": _score_cross_entropy,
    "kl_difference": _score_kl_difference,
    "pointwise_kl": _score_pointwise_kl,
    "log_ratio": _score_log_ratio,
}


def _times_log(factor: Array, log_other: Array) -> Signed:
    """Each factor times the number whose log is given; a product of zero has magnitude -inf."""
    with np.errstate(divide="ignore"):
        magnitude = np.log(np.abs(factor)) + log_other
    return Signed(np.sign(factor).astype(np.int8), magnitude)


def _add(one: Signed, other: Signed) -> Signed:
    """The sums, by a signed log-sum-exp: exp(larger) · (1 ± exp(smaller - larger))."""
    first = one.log_magnitude >= other.log_magnitude
    larger = np.where(first, one.log_magnitude, other.log_magnitude)
    smaller = np.where(first, other.log_magnitude, one.log_magnitude)
    sign = np.where(first, one.sign, other.sign).astype(np.int8)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(smaller), -np.inf, smaller - larger)
        same = one.sign == other.sign
        part = np.where(same, np.log1p(np.exp(gap)), np.log(-np.expm1(gap)))
    magnitude = larger + part
    sign[np.isneginf(magnitude)] = 0
    return Signed(sign, magnitude)


def _round(scores: Signed) -> Signed:
    magnitude = np.where(scores.sign == 0, 0.0, scores.log_magnitude)
    return Signed(scores.sign, round_digits(magnitude))
