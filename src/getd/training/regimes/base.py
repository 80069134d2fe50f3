"""Batches of one arity each, drawn in proportion, and what a training regime is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings
from getd.training.statistics import take_statistics

Pairs = tuple[Tensor, Tensor]
Work = Callable[[ScoringModel], Tensor]  # on a batch: leaves gradients, returns the mean loss
Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Batch:
    """Facts of one arity, or questions with one position open; rows of a block of the regime."""

    block: int
    rows: np.ndarray
    place: tuple[int, int] = (1, 0)  # its epoch and number there: the seed of what is drawn for it


class Regime:
    """What a model learns from, batch by batch."""

    def __init__(
        self,
        blocks: Mapping[int, Facts],
        known: KnownAnswers,
        n_entities: int,
        settings: TrainSettings,
        device: torch.device,
    ) -> None:
        self._facts = blocks
        self._blocks, self._known, self._n_entities = list(blocks.values()), known, n_entities
        self._settings, self._device = settings, device
        self.sizes = self.set_up()

    def set_up(self) -> list[int]:
        """Get ready to serve batches; how many rows each block has."""
        raise NotImplementedError

    def prepare(self, batch: Batch) -> Work:
        """Gather what a step must know of a batch; done in a thread, one batch ahead."""
        raise NotImplementedError

    def take_statistics(self, model: ScoringModel) -> None:
        """Get a model ready to be evaluated: its batch norms see what it learns from, under its present weights."""
        take_statistics(model, self._facts, self._settings.seed, self._device)

    def state(self) -> dict[str, Tensor]:
        """What has to be kept, beside the model, to go on later."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from a :meth:`state`."""


def shuffled_batches(
    sizes: Sequence[int], batch_size: int, generator: torch.Generator, epoch: int = 1
) -> list[Batch]:
    """Every row of every block once, in a random order, a last batch of one row joined to the one before."""
    batches = []
    for block, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator).numpy()
        starts = list(range(0, size, batch_size))
        if len(starts) > 1 and size - starts[-1] == 1:
            starts.pop()
        batches += [(block, order[a:b]) for a, b in zip(starts, [*starts[1:], size], strict=True)]
    order_of_all = torch.randperm(len(batches), generator=generator).tolist()
    return [
        Batch(batches[i][0], batches[i][1], (epoch, number))
        for number, i in enumerate(order_of_all)
    ]


def one_ahead(work: Callable[[Item], Done], items: Sequence[Item]) -> Iterator[Done]:
    """``map``, with the next result made in a thread while this one is used.

    >>> list(one_ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(1) as thread:
        coming = [thread.submit(work, item) for item in items[:1]]
        for item in items[1:]:
            done = coming.pop().result()
            coming.append(thread.submit(work, item))
            yield done
        yield from (last.result() for last in coming)


def cubes(factors: Sequence[Tensor]) -> Tensor:
    """N3: the cubes of embeddings ``(b, d)``, summed over dimensions and factors, averaged over facts."""
    return torch.stack([(factor.abs() ** 3).sum() for factor in factors]).sum() / len(factors[0])


def to_device(arrays: Sequence[np.ndarray], device: torch.device) -> list[Tensor]:
    """Arrays as tensors there."""
    return [torch.tensor(array, device=device) for array in arrays]
