"""The losses of answers against drawn negatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from getd.runs.config import TrainSettings


def sampled_loss(
    answer: Tensor,
    negative: Tensor,
    left_out: Tensor,
    log_weights: Tensor | None,
    settings: TrainSettings,
) -> Tensor:
    r"""The mean loss of answers against their negatives, one of three.

    .. math::
        -\phi_t + \log\Bigl(e^{\phi_t} + \sum_c w_c e^{\phi_c}\Bigr), \qquad
        \sum_c a_c \max(0, \gamma - \phi_t + \phi_c), \qquad
        \log(1 + e^{-\phi_t - \beta}) + \sum_c a_c \log(1 + e^{\phi_c + \beta})

    With :math:`w_c = 1 / (m q_c)`, where ``m`` are drawn with the probabilities :math:`q_c`, the sum is an unbiased
    estimate of that over all candidates. The :math:`a_c` are alike, or a softmax of the scores (self-adversarial).

    Parameters
    ----------
    answer
        ``(b, n, 1)``, the scores of the answers.
    negative
        ``(b, n, m)``, those of their negatives.
    left_out
        Places in the latter, flattened, of those that take no part.
    log_weights
        Logarithms of the ``w_c``, for all facts alike or each; ``None``: all are 0.
    """
    if settings.sampled_loss == "softmax":
        loss: Tensor = _SampledSoftmax.apply(
            answer, negative, left_out, log_weights, settings.label_smoothing
        )  # type: ignore[no-untyped-call]
        return loss
    adversarial = (
        (settings.self_adversarial * negative)
        .detach()
        .flatten()
        .index_fill_(0, left_out, -torch.inf)
    )
    weights = torch.softmax(
        adversarial.view(negative.shape), dim=2
    ).nan_to_num()  # NaN: no negative is left
    if settings.sampled_loss == "margin":
        return (weights * torch.relu(settings.margin - answer + negative)).sum(dim=2).mean()
    softplus = torch.nn.functional.softplus
    wrong = (weights * softplus(negative + settings.score_shift)).sum(dim=2)
    return (softplus(-answer - settings.score_shift).squeeze(2) + wrong).mean()


class _SampledSoftmax(torch.autograd.Function):
    """The softmax loss; all that it makes of the negatives' scores is made in one room, at last their gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        answer: Tensor,
        negative: Tensor,
        left_out: Tensor,
        log_weights: Tensor | None,
        smoothing: float,
    ) -> Tensor:
        room = negative.clone(memory_format=torch.contiguous_format)  # (b, n, m)
        mean = None
        if smoothing:
            shares = (
                torch.ones_like(room)
                if log_weights is None
                else log_weights.exp().expand(room.shape).clone()
            )
            shares.view(-1).index_fill_(0, left_out, 0)
            shares = shares.div_(1 + shares.sum(dim=2, keepdim=True))
            own_share = 1 - shares.sum(dim=2, keepdim=True)
            mean = (shares * room).sum(dim=2, keepdim=True) + own_share * answer
        if log_weights is not None:
            room.add_(log_weights)
        room.view(-1).index_fill_(0, left_out, -torch.inf)
        largest = torch.maximum(room.amax(dim=2, keepdim=True), answer)
        room.sub_(largest).exp_()
        own = (answer - largest).exp_()
        total = room.sum(dim=2, keepdim=True).add_(own)
        loss = total.log() + largest - (1 - smoothing) * answer
        scale = 1 / answer.numel()
        room.mul_(scale / total)
        own = own.mul_(scale / total).sub_(scale * (1 - smoothing))
        if mean is not None:
            loss = loss - smoothing * mean
            room.sub_(shares, alpha=scale * smoothing)
            own = own.sub_(own_share, alpha=scale * smoothing)
        ctx.save_for_backward(own, room)
        return loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        own, room = ctx.saved_tensors
        return own.mul_(grad), room.mul_(grad), None, None, None
