"""Negatives: entities drawn against the answer of a question.

Shapes: ``b`` facts of ``n`` entities, ``m`` negatives for each position. Question
``fact * n + position`` opens a position of a fact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.facts.facts import Facts
from getd.models.counts import expand_spans
from getd.training.losses.base import Pairs


class Negatives(NamedTuple):
    """Entities drawn for the facts of a batch."""

    ids: Tensor  # (n, m): shared by all facts; (b, n, m): each fact has its own
    log_weights: Tensor | None = None  # log of how many candidates each stands for; None: unused


class NegativeSampler:
    """Draws negatives uniformly, or in proportion to a power of their frequency in facts.

    A draw costs at most the logarithm of the number of entities.
    """

    def __init__(self, blocks: Sequence[Facts], n_entities: int, power: float) -> None:
        self.n_entities = n_entities
        self._cumulative: Floats | None = None
        if power:
            counts = np.zeros(n_entities, dtype=np.int64)
            for facts in blocks:
                counts += np.bincount(facts.entities.ravel(), minlength=n_entities)
            # Entities without facts count as one: what is never drawn is never learnt.
            self._cumulative = np.cumsum(np.maximum(counts, 1.0) ** power)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ids:
        """Draw entities with replacement."""
        if self._cumulative is None:
            return rng.integers(0, self.n_entities, shape)
        points = rng.random(shape) * self._cumulative[-1]
        ids: Ids = np.searchsorted(self._cumulative, points, side="right")
        return np.minimum(ids, self.n_entities - 1, out=ids)

    def log_weights(self, ids: Ids, m: int) -> npt.NDArray[np.float32]:
        """Minus the logarithm of how often ``m`` draws are expected to give each entity."""
        if self._cumulative is None:
            return np.full(ids.shape, np.log(self.n_entities / m), dtype=np.float32)
        before = np.where(ids > 0, self._cumulative[ids - 1], 0.0)
        share = (self._cumulative[ids] - before) / self._cumulative[-1]
        expected: Floats = m * share
        return -np.log(expected).astype(np.float32)


def shared_left_out(ids: Tensor, left_out: Pairs, target: Tensor, n_entities: int) -> Tensor:
    """Which shared negatives are no negatives of a question: indices into flat ``(b, n, m)``.

    ``ids`` ``(n, m)`` are the negatives of each position, in which one may occur several times;
    ``left_out`` are questions and their other answers, ``target`` ``(b, n)`` their own answers.

    >>> ids, target = torch.tensor([[3, 5, 5]]), torch.tensor([[3], [4]])
    >>> others = (torch.tensor([1]), torch.tensor([5]))
    >>> shared_left_out(ids, others, target, n_entities=6)  # of 2 x 3 scores
    tensor([4, 5, 0])
    """
    n, m = ids.shape
    positions = torch.arange(n, device=ids.device)
    keys, order = torch.sort((positions[:, None] * n_entities + ids).flatten())

    # The span of equal keys that each pair of a question and an answer has; most have none.
    questions = torch.cat([left_out[0], torch.arange(target.numel(), device=ids.device)])
    answers = torch.cat([left_out[1], target.flatten()])
    searched = questions % n * n_entities + answers
    first = torch.searchsorted(keys, searched)
    last = torch.searchsorted(keys, searched, right=True)
    indices, pairs = expand_spans(first, last - first)
    return questions[pairs] * m + order[indices] % m


def own_left_out(ids: Tensor, left_out: Pairs, target: Tensor, n_entities: int) -> Tensor:
    """The same for negatives ``(b, n, m)`` of each fact; pairs of ``left_out`` ascend.

    >>> ids, target = torch.tensor([[[3, 5, 5]], [[4, 5, 1]]]), torch.tensor([[3], [4]])
    >>> own_left_out(ids, (torch.tensor([1]), torch.tensor([5])), target, n_entities=6)
    tensor([0, 3, 4])
    """
    is_left_out = (ids == target.unsqueeze(2)).flatten()
    known = left_out[0] * n_entities + left_out[1]
    if len(known):
        questions = torch.arange(target.numel(), device=ids.device).view(*target.shape, 1)
        searched = (questions * n_entities + ids).flatten()
        indices = torch.searchsorted(known, searched).clamp_(max=len(known) - 1)
        is_left_out |= known[indices] == searched
    return torch.nonzero(is_left_out).squeeze(1)


def draw_hardest(ids: Tensor, scores: Tensor, left_out: Tensor, size: int) -> Tensor:
    """Draw ``size`` of candidates ``(b, n, m)``, each once, in proportion to ``exp(score)``.

    Those ``left_out``, and repeated ones, are drawn only where there are not enough others.
    """
    # The largest sums of scores and Gumbel noise are such a draw.
    noise = -torch.empty_like(scores).exponential_().log_()
    noisy = (scores + noise).flatten().index_fill_(0, left_out, -torch.inf).view_as(scores)

    ordered, order = torch.sort(ids, dim=2, stable=True)
    is_equal = ordered.diff(dim=2) == 0
    is_repeated = torch.zeros_like(ids, dtype=torch.bool)
    is_repeated.scatter_(2, order[:, :, 1:], is_equal)
    noisy.masked_fill_(is_repeated, -torch.inf)
    return ids.gather(2, noisy.topk(size, dim=2).indices)
