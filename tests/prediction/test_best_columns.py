"""The best columns are those of a stable sort, however they are compared."""

from __future__ import annotations

import pytest
import torch

from getd.prediction import best_columns as module
from getd.prediction.best_columns import best_columns


@pytest.mark.parametrize("block", [1, 3, 8, 1000])
@pytest.mark.parametrize("n_values", [3, 20, 10**6])  # few values make many ties
@pytest.mark.parametrize("n", [1, 8, 61, 64])
def test_the_best_columns_are_those_of_a_stable_sort(
    n: int, n_values: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "MIN_SCORES", 0)
    monkeypatch.setattr(module, "MIN_BLOCKS", 1)
    generator = torch.Generator().manual_seed(n)
    scores = torch.randint(n_values, (40, n), generator=generator).float()
    scores[:, ::5] = -torch.inf
    expected = scores.sort(dim=1, descending=True, stable=True)

    for top in (1, 4, 60):
        best, columns = best_columns(scores, top)
        assert torch.equal(best, expected.values[:, :top])
        is_finite = best > -torch.inf
        assert torch.equal(columns[is_finite], expected.indices[:, :top][is_finite])


@pytest.mark.parametrize("shape", [(1, 100_003), (32, 10_000)])
def test_many_scores_are_compared_by_block(shape: tuple[int, int]) -> None:
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert scores.numel() >= module.MIN_SCORES
    best, columns = best_columns(scores, 10)
    expected = scores.topk(10)
    assert torch.equal(best, expected.values)
    assert torch.equal(columns, expected.indices)
