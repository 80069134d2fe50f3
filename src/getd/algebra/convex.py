"""Convex functions of a few weights: sums of log-sums, and Newton's method."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

NEWTON_STEPS = 50
TOLERANCE = 1e-10  # of the minimum, relative
DESCENT = 1e-4  # the share of the expected gain that a step must make
HALVINGS = 20  # of a step that gains less
NEGLIGIBLE = 1e-6  # a weight that the bound of 0 may hold


class Bowl(NamedTuple):
    """A convex function at a point, with its derivatives."""

    value: Tensor
    gradient: Tensor  # (f,)
    hessian: Tensor  # (f, f)

    def plus(self, other: "Bowl") -> "Bowl":
        """Add another function of the same weights."""
        value = self.value + other.value
        gradient = self.gradient + other.gradient
        return Bowl(value, gradient, self.hessian + other.hessian)


Convex = Callable[[Tensor], Bowl]


def log_sums(scores: Tensor, features: Tensor, rows: Tensor, rest: Tensor) -> Bowl:
    r"""Add up the log-sums of groups of scores that are linear in the weights.

    .. math:: \sum_q \log \Bigl( e^{\rho_q} + \sum_{i \in q} e^{s_i} \Bigr)

    ``scores`` ``(t,)`` have the gradients ``features`` ``(t, f)`` and belong to the groups ``rows``
    ``(t,)``; ``rest`` ``(b,)`` does not depend on the weights.

    >>> scores, rows = torch.zeros(3), torch.tensor([0, 0, 1])
    >>> bowl = log_sums(scores, torch.ones(3, 1), rows, torch.zeros(2))  # log 3 + log 2
    >>> bowl.value.exp(), bowl.gradient
    (tensor(6.), tensor([1.1667]))
    """
    top = rest.scatter_reduce(0, rows, scores, "amax")
    exponentials = torch.exp(scores - top[rows])
    totals = torch.exp(rest - top).index_add(0, rows, exponentials)
    value = (top + totals.log()).sum()

    # The mean of the features under the softmax, and how they vary under it.
    weighted = features * (exponentials / totals[rows]).unsqueeze(1)
    means = features.new_zeros(len(rest), features.shape[1])
    means.index_add_(0, rows, weighted)
    spread = features.T @ weighted - means.T @ means
    return Bowl(value, means.sum(dim=0), spread)


def minimise(
    loss: Convex, start: Tensor, centre: Tensor, prior: float, *, non_negative: bool = False
) -> tuple[Tensor, float]:
    """Minimise a loss plus the weighted squared distance from a centre, by Newton's method.

    With ``non_negative`` no weight goes below 0; the steps are projected. Returns the point and the
    minimum, which is never above the value at the start.
    """

    def penalised(weights: Tensor) -> Bowl:
        distance = weights - centre
        identity = torch.eye(len(weights), dtype=weights.dtype)
        penalty = Bowl(prior * distance @ distance, 2 * prior * distance, 2 * prior * identity)
        return loss(weights).plus(penalty)

    weights = start
    bowl = penalised(weights)
    for _ in range(NEWTON_STEPS):
        step = _newton_step(bowl, weights, non_negative)
        promised = -float(bowl.gradient @ step)
        if promised < TOLERANCE * (1 + abs(float(bowl.value))):
            break
        before = bowl
        weights, bowl = _descend(penalised, weights, step, bowl, non_negative)
        if bowl is before:
            break
    return weights, float(bowl.value)


def _newton_step(bowl: Bowl, weights: Tensor, non_negative: bool) -> Tensor:
    """Return the step to the minimum of the parabola; a weight that the bound holds goes to 0."""
    is_free = torch.ones_like(weights, dtype=torch.bool)
    if non_negative:
        is_free = (weights > NEGLIGIBLE) | (bowl.gradient < 0)
    step = -weights
    hessian = bowl.hessian[is_free][:, is_free]
    step[is_free] = -torch.linalg.solve(hessian, bowl.gradient[is_free])
    return step


def _descend(
    loss: Convex, weights: Tensor, step: Tensor, bowl: Bowl, non_negative: bool
) -> tuple[Tensor, Bowl]:
    """Take a step, or as much of it as leads down."""
    for _ in range(HALVINGS):
        moved = weights + step
        if non_negative:
            moved = moved.clamp(min=0)

        after = loss(moved)
        expected = bowl.gradient @ (moved - weights)
        if after.value <= bowl.value + DESCENT * expected:
            return moved, after
        step = step / 2

    return weights, bowl
