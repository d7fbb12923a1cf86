"""Arrays by what they hold, under one name each."""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Places of rows or of words, codes, counts."""
Mask = npt.NDArray[np.bool_]
"""Which rows are meant."""
