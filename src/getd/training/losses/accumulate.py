"""A sum of losses, some of which have made the gradients of their last step themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from getd.training.losses.softmax import Gradients, softmax_gradients
from getd.training.regimes.base import Pairs


class LossSum:
    """A sum of losses whose last step has its gradients already; gradients of tables stand in buffers that stay."""

    def __init__(self, buffers: dict[Tensor, Tensor], smoothing: float) -> None:
        self._buffers, self._smoothing = buffers, smoothing
        self._outputs: list[Tensor] = []
        self._grads: list[Tensor | None] = []
        self._values: list[Tensor] = []

    def softmax(
        self, query: Tensor, table: Tensor, target: Tensor | Pairs, left_out: Pairs, weight: float
    ) -> None:
        """Add :func:`~getd.training.losses.softmax.softmax_gradients`."""
        into = Gradients(torch.empty_like(query), self._table_grad(table))
        with torch.no_grad():
            value = softmax_gradients(query, table, target, left_out, self._smoothing, weight, into)
        self._values.append(value)
        self._outputs.append(query)
        self._grads.append(into.query)

    def add(self, loss: Tensor) -> None:
        """Add a loss of autograd's."""
        self._values.append(loss.detach())
        self._outputs.append(loss)
        self._grads.append(None)

    def backward(self) -> Tensor:
        """Leave all gradients; the value of the sum."""
        torch.autograd.backward(self._outputs, self._grads)
        return torch.stack(self._values).sum()

    def _table_grad(self, table: Tensor) -> Tensor:
        """Where the gradient of a table is to be written; each table is asked for once."""
        if not table.is_leaf:
            self._outputs.append(table)
            self._grads.append(grad := torch.empty_like(table))
            return grad
        if table not in self._buffers:
            self._buffers[table] = torch.empty_like(table)
        assert table.grad is None
        table.grad = self._buffers[table]
        return table.grad
