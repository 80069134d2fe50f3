r"""The moving average of the weights, which is evaluated in their place.

.. math:: a_t = d_t a_{t-1} + (1 - d_t) w_t

A step never reads a whole table. A row that is not touched from step :math:`s` to step :math:`t`
keeps its :math:`w`, so its average catches up at once when it is next needed:
:math:`a_t = w + \frac{D_t}{D_s} (a_s - w)` with :math:`D_t = d_1 \cdots d_t`.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]
TouchedRows = Sequence[tuple[nn.Parameter, Tensor]]  # tables, and the rows that a step changes


class MovingAverage:
    """Follows the weights of a model; large tables row by row."""

    def __init__(self, model: nn.Module, decay: float, tables: Sequence[nn.Parameter]) -> None:
        self.decay = decay
        self.log_product = 0.0  # log D_t
        self._current: Weights = dict(model.state_dict())  # shares memory with the model
        self.average: Weights = {name: tensor.clone() for name, tensor in self._current.items()}

        names = {tensor.data_ptr(): name for name, tensor in self._current.items()}
        self._names = {table: names[table.data_ptr()] for table in tables}
        self.seen: Weights = {}  # log D_s of the step that each row was last brought up to
        for name in self._names.values():
            average = self.average[name]
            self.seen[name] = average.new_zeros(len(average), 1, dtype=torch.float64)

    @torch.no_grad()
    def before_step(self, touched: TouchedRows) -> None:
        """Bring the rows that are about to change up to the present."""
        for table, rows in touched:
            name = self._names[table]
            self.average[name].index_copy_(0, rows, self._caught_up(name, rows))

    @torch.no_grad()
    def after_step(self, touched: TouchedRows, steps: int) -> None:
        """Take the step; early steps weigh more, so that the first weights do not linger."""
        decay = min(self.decay, (1 + steps) / (10 + steps))
        self.log_product += math.log(decay)

        for table, rows in touched:
            name = self._names[table]
            average = self.average[name]
            average.index_copy_(0, rows, average[rows].lerp_(table[rows], 1 - decay))
            self.seen[name][rows] = self.log_product

        for name, tensor in self._current.items():
            if name in self.seen:
                continue
            if tensor.is_floating_point():
                self.average[name].lerp_(tensor, 1 - decay)
            else:
                self.average[name].copy_(tensor)

    @torch.no_grad()
    def weights(self) -> Weights:
        """The average now, with all rows up to the present."""
        weights = dict(self.average)
        for name in self.seen:
            weights[name] = self._caught_up(name, slice(None))
        return weights

    def _caught_up(self, name: str, rows: Tensor | slice) -> Tensor:
        """The average of rows of a table, up to the present."""
        current = self._current[name][rows]
        decay = (self.log_product - self.seen[name][rows]).exp_().to(current.dtype)
        return current + decay * (self.average[name][rows] - current)

    def state(self) -> Weights:
        """All that is needed to resume, by name."""
        state = dict(self.average)
        for name, seen in self.seen.items():
            state[f"seen/{name}"] = seen
        state["log_product"] = torch.tensor(self.log_product, dtype=torch.float64)
        return state

    def load_state(self, state: Weights) -> None:
        self.log_product = float(state["log_product"])
        for name, tensor in self.average.items():
            tensor.copy_(state[name])
        for name, seen in self.seen.items():
            seen.copy_(state[f"seen/{name}"])
