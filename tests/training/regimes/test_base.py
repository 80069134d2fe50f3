"""Batches hold every row once, in a new order for every epoch; the next one is prepared ahead."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from getd.training.regimes.base import one_ahead, shuffled_batches


def test_every_row_is_in_one_batch_and_no_batch_has_one_row() -> None:
    batches = shuffled_batches([129, 64, 1, 200], 64, torch.Generator().manual_seed(0))
    for block, size in enumerate([129, 64, 1, 200]):
        rows = np.concatenate([batch.rows for batch in batches if batch.block == block])
        assert sorted(rows.tolist()) == list(range(size))
    assert all(len(batch.rows) > 1 for batch in batches if batch.block != 2)


def test_rows_are_shuffled_anew_for_every_epoch() -> None:
    generator = torch.Generator().manual_seed(0)
    epochs = [
        {frozenset(batch.rows.tolist()) for batch in shuffled_batches([60], 10, generator)}
        for _ in range(3)
    ]
    assert not epochs[0] & epochs[1]
    assert not epochs[1] & epochs[2]
    assert all(max(rows) - min(rows) > 9 for rows in epochs[0])


def test_what_fails_ahead_fails_in_its_turn() -> None:
    def half(number: int) -> float:
        return 1 / number

    results = one_ahead(half, [1, 2, 0])
    assert [next(results), next(results)] == [1.0, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(one_ahead(half, [])) == []
