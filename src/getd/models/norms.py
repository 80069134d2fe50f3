r"""Norms: what keeps the vectors of a model at one scale.

.. math::
    \operatorname{rms}(x) = g \odot \frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}}, \qquad
    \operatorname{batch}(x) = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b

An RMS norm reads nothing but the vector itself, so a vector is the same in training and in
evaluation, whatever else is in its batch. Batch norm takes :math:`\mu` and :math:`\sigma` from the
batch while it learns. It evaluates with those of the training facts under the weights that are
evaluated (:func:`taking_statistics`), never with a moving average that lags behind the weights:
where a vector hardly varies, as that of the only relation of an arity, the lag is many times its
deviation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Module, RMSNorm

from getd.choices import NormKind
from getd.models.base import evaluation_mode

RMS_EPS = 1e-6
# A dimension is constant where its variance is no more than this share of its squared mean:
# rounding alone makes that much.
CONSTANT = 1e-10


class BatchNorm(BatchNorm1d):
    """Batch norm over all axes but the second, whose statistics can be taken again."""

    running_mean: Tensor
    running_var: Tensor
    momentum: float
    batches_taken: int | None = None  # since statistics were begun; None: a moving average

    def forward(self, rows: Tensor) -> Tensor:
        # One row has no variance: it is normalised by what was seen so far.
        of_batch = self.training and rows.numel() > rows.shape[1]
        rate = self.rate() if of_batch else 0.0
        statistics = self.running_mean, self.running_var
        parameters = self.weight, self.bias
        return torch.batch_norm(rows, *parameters, *statistics, of_batch, rate, self.eps, False)

    def keep(self, mean: Tensor, variance: Tensor) -> None:
        """Let the statistics of a batch count in those that are kept."""
        rate = self.rate()
        self.running_mean.lerp_(mean.detach(), rate)
        self.running_var.lerp_(variance.detach(), rate)

    def end_statistics(self) -> None:
        """Keep what was taken; a constant dimension is not scaled, as that only scales rounding."""
        taken = self.batches_taken
        self.batches_taken = None
        if taken:
            self.running_var[self.running_var <= CONSTANT * self.running_mean**2] = 1.0

    def rate(self) -> float:
        """Return the weight of this batch in the statistics that are kept."""
        if self.batches_taken is None:
            return self.momentum
        self.batches_taken += 1
        return 1 / self.batches_taken


def make_norm(kind: NormKind, dim: int) -> Module | None:
    """Make a norm of vectors of that many dimensions."""
    if kind == "rms":
        return RMSNorm(dim, eps=RMS_EPS)
    return BatchNorm(dim) if kind == "batch" else None


def batch_norms(model: Module) -> list[BatchNorm]:
    """Return the parts of a model that hold statistics."""
    return [part for part in model.modules() if isinstance(part, BatchNorm)]


@contextmanager
def taking_statistics(model: Module, norms: Sequence[BatchNorm]) -> Iterator[None]:
    """Give norms the statistics of all that passes through the model; nothing is dropped out."""
    with evaluation_mode(model):
        for norm in norms:
            norm.train()
            norm.batches_taken = 0
        try:
            yield
        finally:
            for norm in norms:
                norm.end_statistics()
