"""Optimisers: torch's for whole parameters, and their like for the few rows of a table that a batch has touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings

EPS = 1e-8


class RowOptimizer(torch.optim.Optimizer):
    """Steps on the rows that a sparse gradient names; the others are never read."""

    def __init__(self, params: Sequence[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    rows, grad = table.grad._indices()[0], table.grad._values()  # coalesced
                    change = self._change(self.state[table], table, rows, grad)
                    table.index_add_(0, rows, change, alpha=-group["lr"])

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        raise NotImplementedError


class RowAdam(RowOptimizer):
    """Adam whose moments stand still while a row is not touched; each row counts its own steps."""

    BETA1, BETA2 = 0.9, 0.999

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        if not state:
            state |= {"mean": torch.zeros_like(table), "square": torch.zeros_like(table)}
            state["steps"] = torch.zeros(len(table), 1, device=table.device)
        steps = state["steps"][rows] + 1
        mean = state["mean"][rows].lerp_(grad, 1 - self.BETA1)
        square = state["square"][rows].mul_(self.BETA2).addcmul_(grad, grad, value=1 - self.BETA2)
        for name, value in (("steps", steps), ("mean", mean), ("square", square)):
            state[name].index_copy_(0, rows, value)
        scale = (
            (1 - self.BETA2**steps).sqrt_().div_(1 - self.BETA1**steps)
        )  # both corrections of the bias
        return mean.mul_(scale).div_(square.sqrt_().add_(EPS))


class RowAdagrad(RowOptimizer):
    """Adagrad with one sum of squares for each row, of the mean over its dimensions: a number a row is all it keeps."""

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        if not state:
            state["sum"] = torch.zeros(len(table), 1, device=table.device, dtype=table.dtype)
        total = state["sum"][rows].add_(grad.square().mean(dim=1, keepdim=True))
        state["sum"].index_copy_(0, rows, total)
        return grad / total.sqrt_().add_(EPS)


ROW_OPTIMIZERS: dict[str, type[RowOptimizer]] = {"adam": RowAdam, "adagrad": RowAdagrad}


class Optimizers:
    """The optimiser of whole parameters and that of rows, as one."""

    def __init__(self, model: ScoringModel, settings: TrainSettings) -> None:
        embeddings = model.entity_tables() if settings.regime == "sampled" else {}
        self.tables = [
            weight
            for table in embeddings.values()
            if isinstance(weight := table.weight, nn.Parameter)
        ]
        chosen = {id(table) for table in self.tables}
        self.whole = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
        self.parameters = [*self.whole, *self.tables]
        self._parts: dict[str, torch.optim.Optimizer] = {}
        if self.whole and settings.optimizer == "adam":
            self._parts["whole"] = torch.optim.Adam(
                self.whole, lr=settings.learning_rate, fused=True
            )
        elif self.whole:
            self._parts["whole"] = torch.optim.Adagrad(
                self.whole, lr=settings.learning_rate, eps=EPS, fused=True
            )
        if self.tables:
            self._parts["rows"] = ROW_OPTIMIZERS[settings.optimizer](
                self.tables, settings.learning_rate
            )

    def set_learning_rate(self, learning_rate: float) -> None:
        """Of the steps to come."""
        for part in self._parts.values():
            for group in part.param_groups:
                group["lr"] = learning_rate

    def forget_gradients(self) -> None:
        """Before a step."""
        for parameter in self.parameters:
            parameter.grad = None

    def gather_gradients(self, clip: float | None) -> None:
        """Make gradients what the optimisers expect, and no longer than ``clip`` all together."""
        for parameter in self.whole:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()
        for table in self.tables:
            if table.grad is not None:
                table.grad = table.grad.coalesce()
        if clip:
            found = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            values = [grad._values() if grad.is_sparse else grad for grad in found]
            norm = torch.linalg.vector_norm(
                torch.stack([torch.linalg.vector_norm(value) for value in values])
            )
            factor = (clip / (norm + 1e-6)).clamp_(max=1.0)
            for value in values:
                value.mul_(factor)

    def touched_rows(self) -> list[tuple[Tensor, Tensor]]:
        """The tables and those of their rows that the next step changes."""
        return [
            (table, table.grad._indices()[0]) for table in self.tables if table.grad is not None
        ]

    def step(self) -> None:
        """Change the parameters."""
        for part in self._parts.values():
            part.step()

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on, by name."""
        return {
            f"{part}/{number}/{name}": torch.as_tensor(value)
            for part, optimizer in self._parts.items()
            for number, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }

    def state_like(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Tensors, without numbers, as a :meth:`state` has them that names these parameters: to check one by."""
        given = {name.rpartition("/")[0] for name in names}
        return {
            f"{part}/{number}/{name}": tensor
            for part, optimizer in self._parts.items()
            for number, parameter in enumerate(optimizer.param_groups[0]["params"])
            if f"{part}/{number}" in given
            for name, tensor in _state_like(optimizer, parameter).items()
        }

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from a :meth:`state`."""
        states: dict[str, dict[int, dict[str, Any]]] = {part: {} for part in self._parts}
        for key, tensor in tensors.items():
            part, number, name = key.split("/")
            states[part].setdefault(int(number), {})[name] = tensor
        for part, optimizer in self._parts.items():
            optimizer.load_state_dict(optimizer.state_dict() | {"state": states[part]})


def _state_like(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """What an optimiser keeps for a parameter, without numbers."""
    whole = torch.empty_like(parameter, device="meta")
    number = torch.empty((), device="meta")
    if isinstance(optimizer, torch.optim.Adam):
        return {"step": number, "exp_avg": whole, "exp_avg_sq": whole}
    if isinstance(optimizer, torch.optim.Adagrad):
        return {"step": number, "sum": whole}
    by_row = torch.empty(len(parameter), 1, device="meta")
    if isinstance(optimizer, RowAdam):
        return {"mean": whole, "square": whole, "steps": by_row}
    return {"sum": by_row.to(parameter.dtype)}
