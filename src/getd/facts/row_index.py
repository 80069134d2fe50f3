"""An index of rows of integers: the basis of known answers, duplicates, overlaps and leakage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from getd.arrays import Ids, find_sorted

KEY_LIMIT = 2**62  # packed keys stay below, so that 64 bits hold them


@dataclass(frozen=True, eq=False)
class RowIndex:
    """Numbers the distinct rows of a table of integers, and finds the number of any row.

    Columns are packed into one 64-bit key while their sizes allow it. The sorted distinct keys
    number the rows so far, and this number becomes part of the key of the next columns. A look-up
    is one binary search per level.
    """

    sizes: Sequence[int]  # column j holds 0 .. sizes[j] - 1
    levels: Sequence[Ids]  # sorted distinct keys

    @classmethod
    def build(cls, columns: Sequence[Ids]) -> tuple[Self, Ids]:
        """Index a table given by its columns; also return the number of each of its rows."""
        sizes = [1 + int(column.max(initial=0)) for column in columns]
        levels: list[Ids] = []
        numbers = np.zeros_like(columns[0], dtype=np.int64)
        size = 1
        start = 0
        while start < len(columns):
            numbers, start = _pack(numbers, size, columns, sizes, start)
            keys, numbers = np.unique(numbers, return_inverse=True)
            levels.append(keys)
            size = max(len(keys), 1)
        return cls(sizes, levels), numbers

    def __len__(self) -> int:
        return len(self.levels[-1])

    def find(self, columns: Sequence[Ids]) -> Ids:
        """The number of each row, -1 for a row that is not in the index."""
        table = np.stack(columns)
        limits = np.array(self.sizes, dtype=np.uint64).reshape(-1, 1)
        in_range = (table.view(np.uint64) < limits).all(axis=0)  # negative numbers become large

        # A missing row has the number -1, so its later keys are negative: it stays missing.
        numbers = np.zeros_like(table[0])
        size = 1
        start = 0
        for keys in self.levels:
            numbers, start = _pack(numbers, size, table, self.sizes, start)
            numbers = find_sorted(keys, numbers)
            size = max(len(keys), 1)
        return np.where(in_range, numbers, -1)


def may_repeat(columns: Sequence[Ids]) -> bool:
    """Whether any row may occur twice: a quick check by hashes, which never misses a repetition."""
    hashes = np.zeros_like(columns[0], dtype=np.uint64)
    for column in columns:
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes += column.astype(np.uint64)
        hashes ^= hashes >> np.uint64(29)
    hashes.sort()
    return bool((hashes[1:] == hashes[:-1]).any())


def _pack(
    numbers: Ids, size: int, columns: Sequence[Ids] | Ids, sizes: Sequence[int], start: int
) -> tuple[Ids, int]:
    """Extend ``numbers`` to mixed-radix keys with as many further columns as fit, at least one.

    Also return the column at which the next key starts.
    """
    stop = start
    while stop < len(columns) and (stop == start or size * sizes[stop] < KEY_LIMIT):
        numbers = numbers * sizes[stop] + columns[stop]
        size *= sizes[stop]
        stop += 1
    return numbers, stop
