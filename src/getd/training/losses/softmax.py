"""The softmax over all candidates, from scores that are no dot products, for autograd."""

import torch
from torch import Tensor

from getd.training.losses.base import Pairs


def softmax_loss(scores: Tensor, target: Tensor, left_out: Pairs, smoothing: float) -> Tensor:
    """The mean of the loss of :mod:`~getd.training.losses.fused_softmax`; scores are ``(b, m)``.

    >>> nothing = torch.tensor([], dtype=torch.long)
    >>> softmax_loss(torch.zeros(2, 4), torch.tensor([1, 3]), (nothing, nothing), 0.0).exp()
    tensor(4.)
    """
    answers = scores.gather(1, target[:, None]).squeeze(1)
    filtered = scores.index_put(left_out, scores.new_tensor(-torch.inf))
    loss = filtered.logsumexp(dim=1) - (1 - smoothing) * answers
    if smoothing:
        taking_part = torch.ones_like(scores).index_put_(left_out, scores.new_tensor(0.0))
        mean = smoothing * (scores * taking_part).sum(dim=1) / taking_part.sum(dim=1)
        loss = loss - mean
    return loss.mean()
