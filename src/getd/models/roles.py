"""Roles: a number for each position of each relation, for tables with a row per role."""

import torch
from torch import Tensor

from getd.models.base import ModelSizes


def number_positions(sizes: ModelSizes, by_name: bool = True) -> Tensor:
    """Return the row of the role at each position of each relation, ``(|R|, n)``.

    Where the data names roles, one name is one row in all relations; else, and unless ``by_name``,
    each position of each relation has its own. Positions that a relation does not have are 0.
    """
    width = max(sizes.arities)
    numbers = torch.arange(sizes.n_relations * width, device="cpu").view(-1, width)
    if sizes.roles is not None and by_name:
        numbers = torch.zeros_like(numbers)
        for row, roles in zip(numbers, sizes.roles, strict=False):
            row[: len(roles)] = torch.tensor(roles, device="cpu")
    return numbers
