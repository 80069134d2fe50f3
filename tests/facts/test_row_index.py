"""Rows of integers get numbers, and are found by them."""

from __future__ import annotations

import numpy as np
import pytest

from getd.facts.row_index import RowIndex


@pytest.mark.parametrize("size", [2, 40_000, 3_000_000, 2**31])
def test_rows_are_found_whatever_the_size_of_the_vocabulary(size: int) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, size, (50, 6))
    table[:25, 2:] = table[25:, 2:]  # rows that differ in some columns only
    index, numbers = RowIndex.build(list(table.T))
    distinct = sorted(set(map(tuple, table.tolist())))
    assert len(index) == len(distinct)
    assert [distinct.index(row) for row in map(tuple, table.tolist())] == numbers.tolist()
    assert index.find(list(table.T)).tolist() == numbers.tolist()
    other = table.copy()
    other[:, 0] = (other[:, 0] + 1) % size
    expected = [
        distinct.index(row) if row in distinct else -1 for row in map(tuple, other.tolist())
    ]
    assert index.find(list(other.T)).tolist() == expected
