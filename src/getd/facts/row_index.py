"""Rows of integers, found by value: the ground of known answers, duplicates, overlaps and leakage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from getd.arrays import Ids

_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class RowIndex:
    """The distinct rows of a table of integers, numbered, and the number of any row.

    Columns are packed into one 64-bit key as long as their sizes allow; the sorted distinct keys give each row a
    number, which takes part in the key of the next columns, and so on. A look-up is one binary search per level.
    """

    sizes: tuple[int, ...]  # column j holds 0 .. sizes[j] - 1
    levels: tuple[
        tuple[int, Ids], ...
    ]  # (how many columns are packed in by then, sorted distinct keys)

    @classmethod
    def build(cls, columns: Sequence[Ids], sizes: Sequence[int]) -> tuple[RowIndex, Ids]:
        """The index of a table given by its columns, and the number of each of its rows."""
        levels: list[tuple[int, Ids]] = []
        numbers, size = np.zeros(len(columns[0]), dtype=np.int64), 1
        start = 0
        while start < len(columns):
            stop, numbers, _ = _pack(numbers, size, columns, sizes, start)
            keys, numbers = np.unique(numbers, return_inverse=True)
            numbers = numbers.reshape(-1).astype(np.int64, copy=False)
            levels.append((stop, keys))
            start, size = stop, max(len(keys), 1)
        return cls(tuple(sizes), tuple(levels)), numbers

    def __len__(self) -> int:
        return len(self.levels[-1][1])

    def find(self, columns: Sequence[Ids]) -> Ids:
        """The number of each row, -1 for a row that is not in the index."""
        numbers, size, start = np.zeros(len(columns[0]), dtype=np.int64), 1, 0
        found = np.ones(len(numbers), dtype=bool)
        for column, limit in zip(columns, self.sizes, strict=True):
            found &= (column >= 0) & (column < limit)
        for _, keys in self.levels:
            start, numbers, _ = _pack(numbers, size, columns, self.sizes, start)
            places = np.minimum(np.searchsorted(keys, numbers), max(len(keys) - 1, 0))
            found &= (keys[places] == numbers) if len(keys) else False
            numbers, size = places, max(len(keys), 1)
        return np.where(found, numbers, -1)


def may_repeat(columns: Sequence[Ids]) -> bool:
    """Whether any row could stand twice; a quick no is certain, for equal rows have equal hashes."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes += column.astype(np.uint64)
        hashes ^= hashes >> np.uint64(29)
    hashes.sort()
    return bool((hashes[1:] == hashes[:-1]).any())


def _pack(
    numbers: Ids, size: int, columns: Sequence[Ids], sizes: Sequence[int], start: int
) -> tuple[int, Ids, int]:
    """Mixed-radix keys from ``numbers`` and as many further columns as fit, at least one."""
    stop = start
    while stop < len(columns) and (stop == start or size * max(sizes[stop], 1) < _LIMIT):
        numbers = numbers * sizes[stop] + columns[stop]
        size *= max(sizes[stop], 1)
        stop += 1
    return stop, numbers, size
