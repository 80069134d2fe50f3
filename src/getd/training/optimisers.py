"""Optimisers: torch's for whole parameters, and row optimisers for tables.

A batch of the regime ``sampled`` touches few rows of an entity table. Its gradient is sparse, and
a row optimiser reads and changes these rows alone.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings

EPS = 1e-8
BETA1 = 0.9  # of Adam
BETA2 = 0.999
State = dict[str, Tensor]


class RowOptimiser(torch.optim.Optimizer):
    """Steps on the rows that a sparse, coalesced gradient names; never reads the others."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if not state:
                    state |= self.first_state(table)
                rows = table.grad._indices()[0]
                change = self._change(state, rows, table.grad._values())
                table.index_add_(0, rows, change, alpha=-group["lr"])

    def first_state(self, table: Tensor) -> State:
        """The state of a table before its first step."""
        raise NotImplementedError

    def _change(self, state: State, rows: Tensor, grad: Tensor) -> Tensor:
        """Update the state; return what a learning rate of 1 subtracts from these rows."""
        raise NotImplementedError


class RowAdam(RowOptimiser):
    """Adam whose moments rest while a row is not touched; each row counts its own steps."""

    def first_state(self, table: Tensor) -> State:
        steps = torch.zeros(len(table), 1, device=table.device)
        return {"mean": torch.zeros_like(table), "square": torch.zeros_like(table), "steps": steps}

    def _change(self, state: State, rows: Tensor, grad: Tensor) -> Tensor:
        steps = state["steps"][rows] + 1
        mean = state["mean"][rows].lerp_(grad, 1 - BETA1)
        square = state["square"][rows].mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
        for name, value in (("steps", steps), ("mean", mean), ("square", square)):
            state[name].index_copy_(0, rows, value)

        # Both corrections of the bias in one factor.
        scale = (1 - BETA2**steps).sqrt_().div_(1 - BETA1**steps)
        return mean.mul_(scale).div_(square.sqrt_().add_(EPS))


class RowAdagrad(RowOptimiser):
    """Adagrad with one sum of squares per row, of the mean over its dimensions."""

    def first_state(self, table: Tensor) -> State:
        return {"sum": table.new_zeros(len(table), 1)}

    def _change(self, state: State, rows: Tensor, grad: Tensor) -> Tensor:
        total = state["sum"][rows].add_(grad.square().mean(dim=1, keepdim=True))
        state["sum"].index_copy_(0, rows, total)
        return grad / total.sqrt_().add_(EPS)


ROW_OPTIMISERS: dict[str, type[RowOptimiser]] = {"adam": RowAdam, "adagrad": RowAdagrad}


class Optimisers:
    def __init__(self, model: ScoringModel, settings: TrainSettings) -> None:
        embeddings = model.entity_tables().values() if settings.regime == "sampled" else ()
        weights = [embedding.weight for embedding in embeddings]
        self.tables = [weight for weight in weights if isinstance(weight, nn.Parameter)]
        tables = set(self.tables)
        self.whole = [parameter for parameter in model.parameters() if parameter not in tables]

        rate = settings.learning_rate
        self.by_name: dict[str, torch.optim.Optimizer] = {}
        if self.whole and settings.optimizer == "adam":
            self.by_name["whole"] = torch.optim.Adam(self.whole, rate, fused=True)
        elif self.whole:
            self.by_name["whole"] = torch.optim.Adagrad(self.whole, rate, eps=EPS, fused=True)
        if self.tables:
            self.by_name["rows"] = ROW_OPTIMISERS[settings.optimizer](self.tables, {"lr": rate})

    def set_learning_rate(self, learning_rate: float) -> None:
        for optimiser in self.by_name.values():
            for group in optimiser.param_groups:
                group["lr"] = learning_rate

    def state(self) -> State:
        """All that is needed to resume, by optimiser, number of the parameter, and name."""
        state = {}
        for kind, optimiser in self.by_name.items():
            for number, values in optimiser.state_dict()["state"].items():
                for name, value in values.items():
                    state[f"{kind}/{number}/{name}"] = torch.as_tensor(value)
        return state

    def state_like(self, names: Iterable[str]) -> State:
        """What a :meth:`state` with the parameters in these names holds; shapes and types only."""
        expected = {name.rpartition("/")[0] for name in names}
        state: State = {}
        for kind, optimiser in self.by_name.items():
            for number, parameter in enumerate(optimiser.param_groups[0]["params"]):
                key = f"{kind}/{number}"
                if key in expected:
                    first = _first_state(optimiser, torch.empty_like(parameter, device="meta"))
                    state |= {f"{key}/{name}": tensor for name, tensor in first.items()}
        return state

    def load_state(self, tensors: State) -> None:
        states: dict[str, dict[int, State]] = {kind: {} for kind in self.by_name}
        for key, tensor in tensors.items():
            kind, number, name = key.split("/")
            states[kind].setdefault(int(number), {})[name] = tensor
        for kind, optimiser in self.by_name.items():
            optimiser.load_state_dict(optimiser.state_dict() | {"state": states[kind]})


def _first_state(optimiser: torch.optim.Optimizer, parameter: Tensor) -> State:
    """What an optimiser keeps of a parameter."""
    if isinstance(optimiser, RowOptimiser):
        return optimiser.first_state(parameter)
    step = torch.empty((), device=parameter.device)
    if isinstance(optimiser, torch.optim.Adam):
        return {"step": step, "exp_avg": parameter, "exp_avg_sq": parameter}
    return {"step": step, "sum": parameter}
