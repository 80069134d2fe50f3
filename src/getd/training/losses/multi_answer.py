"""Losses of questions with all their answers."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from getd.runs.config import TrainSettings
from getd.training.losses.base import LabelledScores


def answer_softmax(batch: LabelledScores, settings: TrainSettings) -> Tensor:
    """The cross entropy between the uniform distribution over the answers and the softmax."""
    shares = batch.labels / batch.labels.sum(dim=1, keepdim=True)
    shares = _smoothed(shares, settings.label_smoothing)
    losses = -(shares * torch.log_softmax(batch.scores, dim=1)).sum(dim=1)
    if batch.weights is None:
        return losses.mean()
    return (batch.weights.squeeze(1).to(losses.dtype) * losses).sum()


def each_answer(batch: LabelledScores, settings: TrainSettings) -> Tensor:
    """The softmax of each answer alone against all that are no answers: the loss of ``1vsall``."""
    is_answer = batch.labels.bool()
    rows, columns = is_answer.nonzero(as_tuple=True)
    n_answers = is_answer.sum(dim=1)
    others = batch.scores.masked_fill(is_answer, -torch.inf)
    own = batch.scores[rows, columns]
    log_totals = torch.logaddexp(others.logsumexp(dim=1)[rows], own)

    smoothing = settings.label_smoothing
    sums = batch.scores.masked_fill(is_answer, 0.0).sum(dim=1)[rows] + own
    mean = sums / (batch.scores.shape[1] - n_answers[rows] + 1)
    losses = log_totals - (1 - smoothing) * own - smoothing * mean
    weights = batch.scores.new_full((len(batch.scores),), 1 / len(batch.scores))
    if batch.weights is not None:
        weights = batch.weights.squeeze(1).to(losses.dtype)
    return ((weights / n_answers)[rows] * losses).sum()


def bce(batch: LabelledScores, settings: TrainSettings) -> Tensor:
    """The binary cross entropy of each score."""
    labels = _smoothed(batch.labels, settings.label_smoothing)
    return binary_cross_entropy_with_logits(batch.scores, labels)


def bce_over_softmax(batch: LabelledScores, settings: TrainSettings) -> Tensor:
    """The binary cross entropy of each probability of the softmax."""
    # fidelity: the authors take BCE over softmax; see docs/fidelity.md#loss
    labels = _smoothed(batch.labels, settings.label_smoothing)
    return binary_cross_entropy(torch.softmax(batch.scores, dim=1), labels)


def _smoothed(labels: Tensor, smoothing: float) -> Tensor:
    """Spread a share of the weight over all candidates."""
    return (1 - smoothing) * labels + smoothing / labels.shape[1]
