"""The array idioms against loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from getd.arrays import expand_spans, find_sorted

SPANS = st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 4)))
NUMBERS = st.lists(st.integers(-10, 10))


@given(SPANS)
def test_spans_expand_to_their_numbers_one_after_the_other(spans: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    counts = np.array([count for _, count in spans], dtype=np.int64)
    indices = [start + i for start, count in spans for i in range(count)]
    assert expand_spans(starts, counts).tolist() == indices


@given(NUMBERS, NUMBERS)
def test_a_value_is_found_at_its_index_among_the_keys_or_nowhere(
    keys: list[int], values: list[int]
) -> None:
    keys = sorted(set(keys))
    indices = [keys.index(value) if value in keys else -1 for value in values]
    index = find_sorted(np.array(keys, dtype=np.int64), np.array(values, dtype=np.int64))
    assert index.tolist() == indices
