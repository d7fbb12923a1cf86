"""Types of arrays by their content."""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Indices of rows or of words, codes, counts."""
Mask = npt.NDArray[np.bool_]
"""Selected rows, shape (n,)."""
