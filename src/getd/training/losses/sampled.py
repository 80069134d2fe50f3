r"""Losses of answers against drawn negatives.

.. math::
    -\phi_t + \log\Bigl(e^{\phi_t} + \sum_c w_c e^{\phi_c}\Bigr), \qquad
    \sum_c a_c \max(0, \gamma - \phi_t + \phi_c), \qquad
    \log(1 + e^{-\phi_t - \beta}) + \sum_c a_c \log(1 + e^{\phi_c + \beta})

With :math:`w_c = 1 / (m q_c)`, where the ``m`` negatives are drawn with the probabilities
:math:`q_c`, the first sum is an unbiased estimate of the sum over all candidates. The weights
:math:`a_c` are equal, or a softmax of the scores (self-adversarial).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from getd.runs.config import TrainSettings
from getd.training.losses.base import SampledScores


def sampled_softmax(batch: SampledScores, settings: TrainSettings) -> Tensor:
    """The first formula: a softmax over the answer and its weighted negatives."""
    loss: Tensor = _SampledSoftmax.apply(batch.answer, batch.negative, batch, settings)  # type: ignore[no-untyped-call]
    return loss


def margin(batch: SampledScores, settings: TrainSettings) -> Tensor:
    r"""The second formula: an answer scores higher than its negatives by :math:`\gamma`."""
    weights = _negative_weights(batch, settings)
    missing = torch.relu(settings.margin - batch.answer + batch.negative)
    return (weights * missing).sum(dim=2).mean()


def logistic(batch: SampledScores, settings: TrainSettings) -> Tensor:
    r"""The third formula: true or false, with :math:`\beta` added to all scores."""
    weights = _negative_weights(batch, settings)
    false = (weights * softplus(batch.negative + settings.score_shift)).sum(dim=2)
    true = softplus(-batch.answer - settings.score_shift).squeeze(2)
    return (true + false).mean()


def _negative_weights(batch: SampledScores, settings: TrainSettings) -> Tensor:
    """The weights :math:`a_c` of the negatives, ``(b, n, m)``; 0 for those left out."""
    scores = (settings.self_adversarial * batch.negative).detach().flatten()
    scores.index_fill_(0, batch.left_out, -torch.inf)
    weights = torch.softmax(scores.view(batch.negative.shape), dim=2)
    return weights.nan_to_num()  # NaN: no negative of the question is left


class _SampledSoftmax(torch.autograd.Function):
    """The softmax loss, computed in one buffer that ends as the gradient of the negatives."""

    @staticmethod
    def forward(
        ctx: Any, answer: Tensor, negative: Tensor, batch: SampledScores, settings: TrainSettings
    ) -> Tensor:
        buffer = negative.clone(memory_format=torch.contiguous_format)  # (b, n, m)
        log_weights = batch.log_weights
        smoothing = settings.label_smoothing

        # Label smoothing raises the mean score of all candidates that negatives stand for.
        if smoothing:
            shares = torch.ones_like(buffer)
            if log_weights is not None:
                shares.copy_(log_weights.exp())
            shares.view(-1).index_fill_(0, batch.left_out, 0)
            shares.div_(1 + shares.sum(dim=2, keepdim=True))
            own_share = 1 - shares.sum(dim=2, keepdim=True)
            mean = (shares * buffer).sum(dim=2, keepdim=True) + own_share * answer

        # Exponentials, with the largest score taken off.
        if log_weights is not None:
            buffer.add_(log_weights)
        buffer.view(-1).index_fill_(0, batch.left_out, -torch.inf)
        largest = torch.maximum(buffer.amax(dim=2, keepdim=True), answer)
        buffer.sub_(largest).exp_()
        own = (answer - largest).exp_()
        total = buffer.sum(dim=2, keepdim=True).add_(own)
        loss = total.log() + largest - (1 - smoothing) * answer

        # Gradients of the mean loss: of the answers in ``own``, of the negatives in ``buffer``.
        scale = 1 / answer.numel()
        buffer.mul_(scale / total)
        own.mul_(scale / total).sub_(scale * (1 - smoothing))
        if smoothing:
            loss = loss - smoothing * mean
            buffer.sub_(shares, alpha=scale * smoothing)
            own.sub_(own_share, alpha=scale * smoothing)
        ctx.save_for_backward(own, buffer)
        return loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        own, buffer = ctx.saved_tensors
        return own.mul_(grad), buffer.mul_(grad), None, None
