"""Array types and the array idioms that many rooms share."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def mark(size: int, indices: Iterable[npt.NDArray[np.integer]]) -> Bools:
    """A mask of a size that is true at these indices.

    >>> mark(4, [np.array([2]), np.array([[0, 2]])]).tolist()
    [True, False, True, False]
    """
    mask = np.zeros(size, dtype=bool)
    for array in indices:
        mask[array] = True
    return mask


def expand_spans(starts: Ids, counts: Ids) -> Ids:
    """Concatenate the spans ``[start, start + count)`` into flat indices, as CSR arrays need them.

    The span that each index belongs to is ``np.repeat(np.arange(len(counts)), counts)``; with
    zeros as ``starts``, each index counts from 0 within its span.

    >>> expand_spans(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)


def find_sorted(keys: Ids, values: Ids) -> Ids:
    """Find values among sorted distinct keys: the index of each, -1 where it is missing.

    >>> find_sorted(np.array([2, 3, 7]), np.array([7, 4, 2, 9])).tolist()
    [2, -1, 0, -1]
    """
    if len(keys) == 0:
        return np.full(values.shape, -1, dtype=np.int64)

    index = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[index] == values, index, -1)
