"""Numbers as tables keep them: processors of different make differ in the last digits."""

import numpy as np
import numpy.typing as npt

DIGITS = 6
"""Significant digits, and decimals, that are kept at most."""


def round_digits(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The values to six significant digits and six decimals, whichever is coarser; never -0."""
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.abs(wide)))
    decimals = np.clip(DIGITS - 1 - exponent, None, DIGITS)
    # Powers of ten to 22 are exact; dividing by one rounds correctly, multiplying by 1e-6 does not.
    power = 10.0 ** np.abs(decimals)
    fine = np.rint(wide * power) / power
    coarse = np.rint(wide / power) * power
    kept: npt.NDArray[np.float64] = np.where(decimals >= 0, fine, coarse) + 0.0
    return kept
