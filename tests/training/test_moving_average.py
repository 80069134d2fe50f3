"""The moving average of rows that are touched now and then is that of all rows at every step."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from getd.training.moving_average import MovingAverage


def test_a_lazy_moving_average_is_the_eager_one() -> None:
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Embedding(
        6, 2, _weight=torch.randn(6, 2, generator=generator), sparse=True
    ).double()
    lazy, eager = MovingAverage(model, 0.9, [model.weight]), model.weight.detach().clone()
    for number in range(30):
        rows = torch.unique(torch.randint(6, (2,), generator=generator))
        touched = [(model.weight, rows)]
        lazy.before_step(touched)
        with torch.no_grad():
            model.weight[rows] += torch.randn(
                len(rows), 2, dtype=torch.float64, generator=generator
            )
        lazy.after_step(touched, number)
        eager.lerp_(model.weight.detach(), 1 - min(0.9, (1 + number) / (10 + number)))
        assert_close(lazy.weights()["weight"], eager)
    other = MovingAverage(model, 0.9, [model.weight])
    other.load_state(lazy.state())
    assert_close(other.weights()["weight"], eager)
