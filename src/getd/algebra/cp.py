"""CP: the core is the identity, so a score is a sum of products."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from getd.algebra.leave_one_out import Vectors, chosen_modes, products_of_others, read_vectors


def cp_environments(vectors: Vectors, modes: Sequence[int] | None = None) -> list[Tensor]:
    r"""Multiply every vector but one, element by element, for many modes at once.

    .. math::
        q_j = \prod_{i \neq j} v_i, \qquad \sum_s \prod_i v_i[s] = q_j \cdot v_j

    Parameters
    ----------
    vectors
        ``m >= 2`` tensors of shape ``(b, d)``.
    modes
        Which environments to return; all by default. The vector of a single mode is not read and
        may be ``None``.

    Returns
    -------
    For each mode a tensor of shape ``(b, d)``.

    Raises
    ------
    ShapeError
        If the vectors differ in shape.

    Notes
    -----
    ``3 (m - 2) d`` multiplications per fact for all modes, from prefix and suffix products; nothing
    is divided, so zeros do no harm.

    Examples
    --------
    >>> cp_environments([torch.tensor([[2.0]]), torch.tensor([[3.0]]), torch.tensor([[5.0]])])
    [tensor([[15.]]), tensor([[10.]]), tensor([[6.]])]
    """
    count = len(vectors)
    modes = chosen_modes(modes, count)
    size = next((vector.shape[-1] for vector in vectors if vector is not None), 0)
    read = read_vectors(vectors, [size] * count, modes)
    return products_of_others(read, count, modes, torch.mul)
