"""Row optimisers step as those of whole parameters do."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from getd.training.optimisers import RowAdagrad, RowAdam


def test_rows_learn_as_whole_parameters_do() -> None:
    """RowAdam is Adam where every row is touched, and RowAdagrad its formula."""
    rows = torch.nn.Parameter(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)))
    whole, third = (
        torch.nn.Parameter(rows.detach().clone()),
        torch.nn.Parameter(rows.detach().clone()),
    )
    by_row, adam, adagrad = (
        RowAdam([rows], {"lr": 0.1}),
        torch.optim.Adam([whole], 0.1),
        RowAdagrad([third], {"lr": 0.1}),
    )
    sums, expected = torch.zeros(4), third.detach().clone()
    for seed in range(5):
        grad = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        whole.grad, rows.grad, third.grad = (
            grad,
            grad.to_sparse(1).coalesce(),
            grad.to_sparse(1).coalesce(),
        )
        for optimizer in (by_row, adam, adagrad):
            optimizer.step()
        for i in range(4):
            sums[i] += sum(float(g) ** 2 for g in grad[i]) / 3
            expected[i] -= 0.1 * grad[i] / (float(sums[i]) ** 0.5 + 1e-8)
    assert_close(rows, whole)
    assert_close(third.detach(), expected)
