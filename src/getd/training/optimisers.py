"""Optimisers: torch's for whole parameters, and row optimisers for tables.

A batch of the regime ``sampled`` touches few rows of an entity table. Its gradient is sparse, and
a row optimiser reads and changes these rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings

EPS = 1e-8


class RowOptimiser(torch.optim.Optimizer):
    """Steps on the rows that a sparse, coalesced gradient names; never reads the others."""

    def __init__(self, params: Sequence[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                rows = table.grad._indices()[0]
                change = self._change(self.state[table], table, rows, table.grad._values())
                table.index_add_(0, rows, change, alpha=-group["lr"])

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        """What a learning rate of 1 subtracts from these rows; updates the state."""
        raise NotImplementedError

    def empty_state(self, table: Tensor) -> dict[str, Tensor]:
        """The state of a table before its first step."""
        raise NotImplementedError


class RowAdam(RowOptimiser):
    """Adam whose moments rest while a row is not touched; each row counts its own steps."""

    BETA1 = 0.9
    BETA2 = 0.999

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        if not state:
            state |= self.empty_state(table)
        steps = state["steps"][rows] + 1
        mean = state["mean"][rows].lerp_(grad, 1 - self.BETA1)
        square = state["square"][rows].mul_(self.BETA2).addcmul_(grad, grad, value=1 - self.BETA2)
        for name, value in (("steps", steps), ("mean", mean), ("square", square)):
            state[name].index_copy_(0, rows, value)

        # Both corrections of the bias in one factor.
        scale = (1 - self.BETA2**steps).sqrt_().div_(1 - self.BETA1**steps)
        return mean.mul_(scale).div_(square.sqrt_().add_(EPS))

    def empty_state(self, table: Tensor) -> dict[str, Tensor]:
        return {
            "mean": torch.zeros_like(table),
            "square": torch.zeros_like(table),
            "steps": torch.zeros(len(table), 1, device=table.device),
        }


class RowAdagrad(RowOptimiser):
    """Adagrad with one sum of squares per row, of the mean over its dimensions."""

    def _change(
        self, state: dict[str, Tensor], table: Tensor, rows: Tensor, grad: Tensor
    ) -> Tensor:
        if not state:
            state |= self.empty_state(table)
        total = state["sum"][rows].add_(grad.square().mean(dim=1, keepdim=True))
        state["sum"].index_copy_(0, rows, total)
        return grad / total.sqrt_().add_(EPS)

    def empty_state(self, table: Tensor) -> dict[str, Tensor]:
        return {"sum": torch.zeros(len(table), 1, device=table.device, dtype=table.dtype)}


ROW_OPTIMISERS: dict[str, type[RowOptimiser]] = {"adam": RowAdam, "adagrad": RowAdagrad}


class Optimisers:
    """The optimisers of a model."""

    def __init__(self, model: ScoringModel, settings: TrainSettings) -> None:
        embeddings = model.entity_tables().values() if settings.regime == "sampled" else ()
        weights = [embedding.weight for embedding in embeddings]
        self.tables = [weight for weight in weights if isinstance(weight, nn.Parameter)]
        table_ids = {id(table) for table in self.tables}
        self.whole = [
            parameter for parameter in model.parameters() if id(parameter) not in table_ids
        ]

        learning_rate = settings.learning_rate
        self.by_name: dict[str, torch.optim.Optimizer] = {}
        if self.whole and settings.optimizer == "adam":
            adam = torch.optim.Adam(self.whole, lr=learning_rate, fused=True)
            self.by_name["whole"] = adam
        elif self.whole:
            adagrad = torch.optim.Adagrad(self.whole, lr=learning_rate, eps=EPS, fused=True)
            self.by_name["whole"] = adagrad
        if self.tables:
            by_row = ROW_OPTIMISERS[settings.optimizer](self.tables, learning_rate)
            self.by_name["rows"] = by_row

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the steps to come."""
        for optimiser in self.by_name.values():
            for group in optimiser.param_groups:
                group["lr"] = learning_rate

    def state(self) -> dict[str, Tensor]:
        """All that is needed to resume, by optimiser, number of the parameter, and name."""
        state = {}
        for kind, optimiser in self.by_name.items():
            for number, values in optimiser.state_dict()["state"].items():
                for name, value in values.items():
                    state[f"{kind}/{number}/{name}"] = torch.as_tensor(value)
        return state

    def state_like(self, names: Iterable[str]) -> dict[str, Tensor]:
        """What a :meth:`state` with the parameters in these names holds; shapes and types only."""
        parameters = {name.rpartition("/")[0] for name in names}
        state = {}
        for kind, optimiser in self.by_name.items():
            for number, parameter in enumerate(optimiser.param_groups[0]["params"]):
                if f"{kind}/{number}" in parameters:
                    for name, tensor in _state_like(optimiser, parameter).items():
                        state[f"{kind}/{number}/{name}"] = tensor
        return state

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Resume from a :meth:`state`."""
        states: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in self.by_name}
        for key, tensor in tensors.items():
            kind, number, name = key.split("/")
            states[kind].setdefault(int(number), {})[name] = tensor
        for kind, optimiser in self.by_name.items():
            optimiser.load_state_dict(optimiser.state_dict() | {"state": states[kind]})


def _state_like(optimiser: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """What an optimiser keeps of a parameter, without numbers."""
    whole = torch.empty_like(parameter, device="meta")
    if isinstance(optimiser, RowOptimiser):
        return optimiser.empty_state(whole)
    step = torch.empty((), device="meta")
    if isinstance(optimiser, torch.optim.Adam):
        return {"step": step, "exp_avg": whole, "exp_avg_sq": whole}
    return {"step": step, "sum": whole}
