r"""The moving average of the weights that is evaluated in place of them.

.. math:: a_t = d_t a_{t-1} + (1 - d_t) w_t

A row that is not touched from step :math:`s` to step :math:`t` keeps its :math:`w`, so its average is made up for at
once, :math:`a_t = w + \frac{D_t}{D_s} (a_s - w)` with :math:`D_t = d_1 \cdots d_t`: a step never reads a whole table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]


class MovingAverage:
    """Follows a model, its large tables row by row."""

    def __init__(self, model: nn.Module, decay: float, tables: Sequence[nn.Parameter]) -> None:
        self.decay, self.log_product = decay, 0.0
        self._current = dict(model.state_dict())  # these share memory with the model
        self.average: Weights = {name: tensor.clone() for name, tensor in self._current.items()}
        names = {tensor.data_ptr(): name for name, tensor in self._current.items()}
        self._rows = {id(table): names[table.data_ptr()] for table in tables}
        self.seen: Weights = {  # the logarithm of the product at the step that each row was last brought up to
            name: torch.zeros(
                len(self.average[name]), 1, dtype=torch.float64, device=self.average[name].device
            )
            for name in self._rows.values()
        }

    @torch.no_grad()
    def before_step(self, touched: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Bring the rows that are about to change up to the present."""
        for table, rows in touched:
            name = self._rows[id(table)]
            late = (self.log_product - self.seen[name][rows]).exp_().to(table.dtype)
            current = table[rows]
            self.average[name].index_copy_(
                0, rows, current + late * (self.average[name][rows] - current)
            )

    @torch.no_grad()
    def after_step(self, touched: Sequence[tuple[Tensor, Tensor]], steps: int) -> None:
        """Take a step; a short one at first, so that the first weights do not linger."""
        decay = min(self.decay, (1 + steps) / (10 + steps))
        self.log_product += math.log(decay)
        for table, rows in touched:
            name = self._rows[id(table)]
            self.average[name].index_copy_(
                0, rows, self.average[name][rows].lerp_(table[rows], 1 - decay)
            )
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
        """The average as it is now, all rows up to the present."""
        found = dict(self.average)
        for name, seen in self.seen.items():
            current = self._current[name]
            late = (self.log_product - seen).exp_().to(current.dtype)
            found[name] = current + late * (self.average[name] - current)
        return found

    def state(self) -> Weights:
        """All that is needed to go on, by name."""
        product = torch.tensor(self.log_product, dtype=torch.float64)
        return (
            self.average
            | {f"seen/{name}": seen for name, seen in self.seen.items()}
            | {"log_product": product}
        )

    def load_state(self, state: Weights) -> None:
        """Go on from a :meth:`state`."""
        self.log_product = float(state["log_product"])
        for name, tensor in self.average.items():
            tensor.copy_(state[name])
        for name, seen in self.seen.items():
            seen.copy_(state[f"seen/{name}"])
