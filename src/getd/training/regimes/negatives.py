"""Negatives: entities drawn to stand against the answer of a question, and those that may not.

Shapes: ``b`` facts of ``n`` entities, ``m`` negatives for each position. Question ``fact * n + position`` opens one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from getd.arrays import Ids
from getd.facts.facts import Facts


class Negatives(NamedTuple):
    """Entities drawn for some facts."""

    ids: Tensor  # (n, m) for all facts alike, or (b, n, m) for each fact its own
    log_weights: (
        Tensor | None
    )  # minus the logarithm of how often each was to be expected; None: no need of it


class Drawing:
    """Draws negatives uniformly, or in proportion to a power of how often an entity stands in the given facts.

    A draw costs the logarithm of the number of entities at most.
    """

    def __init__(self, blocks: Sequence[Facts], n_entities: int, power: float) -> None:
        self.n_entities = n_entities
        self._cumulative: np.ndarray | None = None
        if power:
            counts = np.zeros(n_entities, dtype=np.int64)
            for facts in blocks:
                counts += np.bincount(facts.entities.ravel(), minlength=n_entities)
            shares = (
                np.maximum(counts, 1).astype(np.float64) ** power
            )  # what is never drawn could never be learnt of
            self._cumulative = np.cumsum(shares)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Ids:
        """Entities, with replacement."""
        if self._cumulative is None:
            return rng.integers(0, self.n_entities, shape)
        found: Ids = np.searchsorted(
            self._cumulative, rng.random(shape) * self._cumulative[-1], side="right"
        )
        return np.minimum(found, self.n_entities - 1, out=found)

    def log_weights(self, ids: Ids, m: int) -> npt.NDArray[np.float32]:
        """Minus the logarithm of how often each entity is to be expected among ``m`` draws, float32."""
        if self._cumulative is None:
            return np.full(ids.shape, np.log(self.n_entities / m), dtype=np.float32)
        before = np.where(ids > 0, self._cumulative[ids - 1], 0.0)
        share = (self._cumulative[ids] - before) / self._cumulative[-1]
        weights: npt.NDArray[np.float32] = -np.log(m * share).astype(np.float32)
        return weights


def shared_left_out(
    ids: Tensor, left_out: tuple[Tensor, Tensor], target: Tensor, n_entities: int
) -> Tensor:
    """Which shared negatives are no negatives of a question: places in scores ``(b, n, m)``, flattened.

    Parameters
    ----------
    ids
        ``(n, m)``, the negatives of each position; one may come several times.
    left_out
        Questions and other answers of theirs.
    target
        ``(b, n)``, their own answers, which are left out too.

    Examples
    --------
    >>> ids, target = torch.tensor([[3, 5, 5]]), torch.tensor([[3], [4]])
    >>> shared_left_out(ids, (torch.tensor([1]), torch.tensor([5])), target, n_entities=6)  # of 2 x 3 scores
    tensor([4, 5, 0])
    """
    n, m = ids.shape
    positions = torch.arange(n, device=ids.device)
    keys, order = torch.sort((positions[:, None] * n_entities + ids).flatten())
    questions = torch.cat([left_out[0], torch.arange(target.numel(), device=ids.device)])
    answers = torch.cat([left_out[1], target.flatten()])
    wanted = questions % n * n_entities + answers
    first = torch.searchsorted(keys, wanted)
    counts = torch.searchsorted(keys, wanted, right=True) - first
    found = torch.nonzero(counts).squeeze(1)  # few
    first, counts, questions = first[found], counts[found], questions[found]
    rows = torch.repeat_interleave(torch.arange(len(found), device=ids.device), counts)
    places = torch.arange(len(rows), device=ids.device) + (first - counts.cumsum(0) + counts)[rows]
    return questions[rows] * m + order[places] % m


def own_left_out(
    ids: Tensor, left_out: tuple[Tensor, Tensor], target: Tensor, n_entities: int
) -> Tensor:
    """The same for negatives ``(b, n, m)`` that each fact has of its own; pairs of ``left_out`` ascend.

    >>> ids, target = torch.tensor([[[3, 5, 5]], [[4, 5, 1]]]), torch.tensor([[3], [4]])
    >>> own_left_out(ids, (torch.tensor([1]), torch.tensor([5])), target, n_entities=6)
    tensor([0, 3, 4])
    """
    questions = torch.arange(target.numel(), device=ids.device).view(*target.shape, 1)
    known = left_out[0] * n_entities + left_out[1]
    wanted = (questions * n_entities + ids).flatten()
    is_out = ids.flatten() == target.unsqueeze(2).expand_as(ids).flatten()
    if len(known):
        places = torch.searchsorted(known, wanted).clamp_(max=len(known) - 1)
        is_out |= known[places] == wanted
    return torch.nonzero(is_out).squeeze(1)
