"""What a loss is, and what it is computed from.

Shapes: ``b`` questions or facts, ``n`` positions of a fact, ``m`` candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from getd.runs.config import TrainSettings

Pairs = tuple[Tensor, Tensor]  # rows, ascending, and columns
Target = Tensor | Pairs  # the answer of each question (b,), or rows and columns of several answers
Weight = float | Tensor  # of every question, or of each, (b, 1)
Scored = TypeVar("Scored")
Loss = Callable[[Scored, TrainSettings], Tensor]  # the mean loss of a batch, for autograd


@dataclass(frozen=True)
class LabelledScores:
    """The scores of all candidates of questions, and which candidates are answers."""

    scores: Tensor  # (b, m)
    labels: Tensor  # (b, m), 1 for an answer, 0 for the others
    weights: Tensor | None = None  # (b, 1), of the questions, with sum 1; None: all the same


@dataclass(frozen=True)
class SampledScores:
    """The scores of answers and of the negatives drawn for them."""

    answer: Tensor  # (b, n, 1)
    negative: Tensor  # (b, n, m)
    left_out: Tensor  # flat indices into ``negative`` of candidates that are no negatives
    log_weights: Tensor | None = None  # (n, m) or (b, n, m), of the negatives; None: all 0
