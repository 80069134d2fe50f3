"""What a regime is: it cuts the training facts into batches and prepares a step for each."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Blocks
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings
from getd.training.moving_average import Weights

Buffers = dict[Tensor, Tensor]  # for the gradients of tables, by table
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Batch:
    """Rows of one block of a regime: facts of one arity, or questions with one open position."""

    block: int
    rows: np.ndarray
    seed: tuple[int, int] = (1, 0)  # of what is drawn for it: its epoch, and its number there


class TrainStep(Protocol):
    """A prepared batch: all that an optimiser step needs beside the model."""

    def backward(self, model: ScoringModel) -> float:
        """Leave the gradients of the mean loss in the parameters (they have none); return it."""


@dataclass(eq=False)
class Regime:
    """What a model learns from, batch by batch."""

    facts: Blocks  # for training
    known: KnownAnswers  # of these facts
    n_entities: int
    settings: TrainSettings
    device: torch.device

    def __post_init__(self) -> None:
        self.blocks = list(self.facts.values())
        self.sizes = [len(facts) for facts in self.blocks]  # rows that batches are cut from
        self.buffers: Buffers = {}

    def prepare(self, batch: Batch) -> TrainStep:
        """Gather what the step on a batch needs; runs in a thread, one batch ahead."""
        raise NotImplementedError

    def state(self) -> Weights:
        """What a checkpoint keeps of the regime."""
        return {}

    def load_state(self, state: Weights) -> None:
        """Resume from a :meth:`state`."""


def shuffled_batches(
    sizes: Sequence[int], batch_size: int, generator: torch.Generator, epoch: int = 1
) -> list[Batch]:
    """Cut every block into batches, rows and batches in random order.

    A last batch of one row joins the one before.
    """
    batches = []
    for block, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator).numpy()
        starts = list(range(0, size, batch_size))
        if len(starts) > 1 and size - starts[-1] == 1:
            starts.pop()
        for start, end in pairwise([*starts, size]):
            batches.append(Batch(block, order[start:end]))

    shuffled = torch.randperm(len(batches), generator=generator).tolist()
    return [replace(batches[index], seed=(epoch, i)) for i, index in enumerate(shuffled)]


def one_ahead(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Map lazily; a thread computes the next result while the caller uses this one.

    >>> list(one_ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(1) as thread:
        pending = [thread.submit(function, item) for item in items[:1]]
        for item in items[1:]:
            result = pending.pop().result()
            pending.append(thread.submit(function, item))
            yield result
        yield from (last.result() for last in pending)
