"""Sums of log-sums against scores written out, and Newton's method on bowls one can check."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.algebra.convex import Bowl, log_sums, minimise


def test_log_sums_and_their_derivatives_are_those_that_autograd_finds() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 4, generator=generator, dtype=torch.float64)
    offsets = torch.randn(12, generator=generator, dtype=torch.float64)
    rows = torch.tensor([0, 0, 0, 1, 1, 3, 3, 3, 3, 3, 0, 1])
    rest = torch.tensor([0.3, -2.0, 1.0, 700.0], dtype=torch.float64)

    def value(theta: Tensor) -> Tensor:
        scores = features @ theta + offsets
        groups = [torch.cat([rest[q : q + 1], scores[rows == q]]) for q in range(4)]
        return torch.stack([group.logsumexp(dim=0) for group in groups]).sum()

    theta = torch.linspace(-1, 1, 4, dtype=torch.float64)
    bowl = log_sums(features @ theta + offsets, features, rows, rest)
    assert_close(bowl.value, value(theta))
    assert_close(bowl.gradient, torch.autograd.functional.jacobian(value, theta))
    assert_close(bowl.hessian, torch.autograd.functional.hessian(value, theta))


def parabola(bottom: list[float]) -> tuple[Tensor, Tensor]:
    return torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double(), torch.tensor(bottom).double()


@pytest.mark.parametrize("start", [[0.0, 0.0], [9.0, 4.0]])
def test_the_minimum_of_a_parabola_takes_one_step(start: list[float]) -> None:
    matrix, bottom = parabola([1.0, -2.0])
    calls = 0

    def loss(theta: Tensor) -> Bowl:
        nonlocal calls
        calls += 1
        off = theta - bottom
        return Bowl(off @ matrix @ off / 2, matrix @ off, matrix)

    first = torch.tensor(start).double()
    theta, least = minimise(loss, first, torch.zeros(2).double(), prior=0.0)
    assert_close(theta, bottom)
    assert least == pytest.approx(0, abs=1e-9)
    assert calls == 2


@pytest.mark.parametrize(("gain", "is_taken"), [(1.5e-10, True), (0.7e-10, False)])
def test_a_step_is_taken_while_it_promises_more_than_a_ten_billionth(
    gain: float, is_taken: bool
) -> None:
    slope = gain**0.5

    def loss(theta: Tensor) -> Bowl:
        value = slope * theta.sum() + theta @ theta / 2
        return Bowl(value, slope + theta, torch.eye(1, dtype=theta.dtype))

    start = torch.zeros(1).double()
    theta, _ = minimise(loss, start, start, prior=0.0)
    assert theta.item() == pytest.approx(-slope if is_taken else 0.0, rel=1e-6)


def test_no_weight_goes_below_the_bound_and_the_others_make_up_for_it() -> None:
    matrix, bottom = parabola([1.0, -2.0])

    def loss(theta: Tensor) -> Bowl:
        off = theta - bottom
        return Bowl(off @ matrix @ off / 2, matrix @ off, matrix)

    start = torch.ones(2).double()
    theta, _ = minimise(loss, start, start, prior=0.0, non_negative=True)
    # With the second weight at 0 the slope of the first one, 2 (x - 1) + 0.5 * 2, is 0.
    assert_close(theta, torch.tensor([0.5, 0.0]).double())


def test_a_step_that_is_too_long_is_halved() -> None:
    """Newton's method on log cosh leaves the bowl from 2 on, unless steps are held back."""

    def loss(theta: Tensor) -> Bowl:
        value = torch.log(torch.cosh(theta)).sum()
        return Bowl(value, torch.tanh(theta), torch.diag(1 - torch.tanh(theta) ** 2))

    start = torch.tensor([2.0], dtype=torch.float64)
    theta, least = minimise(loss, start, torch.zeros_like(start), prior=0.0)
    assert float(theta) == pytest.approx(0, abs=1e-3)
    assert least == pytest.approx(0, abs=1e-6)


def test_a_weight_that_the_bound_holds_is_0() -> None:
    """One that has come close to 0, and that the loss pushes further down, goes all the way."""
    centre = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    start = torch.tensor([1e-8, 1.0], dtype=torch.float64)

    def loss(weights: Tensor) -> Bowl:
        nothing = torch.zeros_like(weights)
        return Bowl(nothing.sum(), nothing, torch.zeros(2, 2, dtype=torch.float64))

    weights, _ = minimise(loss, start, centre, prior=1.0, non_negative=True)
    assert weights.tolist() == [0.0, 2.0]
