"""CP: the core is the identity, so a score is a sum of products."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from getd.algebra.leave_one_out import chosen_places, products_of_others, read_vectors


def cp_environments(
    vectors: Sequence[Tensor | None], places: Sequence[int] | None = None
) -> list[Tensor]:
    r"""The Hadamard product of every vector but one, for many places at once.

    .. math::
        q_j = \prod_{i \neq j} v_i, \qquad \sum_s \prod_i v_i[s] = q_j \cdot v_j

    Parameters
    ----------
    vectors
        ``m >= 2`` tensors of shape ``(b, d)``.
    places
        Which environments to return, all where not given. Where one place stands alone, its vector is not read and
        may be ``None``.

    Returns
    -------
    For each place a tensor of shape ``(b, d)``.

    Raises
    ------
    ShapeError
        If the vectors differ in shape.

    Notes
    -----
    ``3 (m - 2) d`` multiplications per fact for all places, from prefix and suffix products; nothing is divided, so
    zeros do no harm.

    Examples
    --------
    >>> cp_environments([torch.tensor([[2.0]]), torch.tensor([[3.0]]), torch.tensor([[5.0]])])
    [tensor([[15.]]), tensor([[10.]]), tensor([[6.]])]
    """
    places = chosen_places(places, len(vectors))
    size = next((vector.shape[-1] for vector in vectors if vector is not None), 0)
    read = read_vectors(vectors, [size] * len(vectors), places)
    return products_of_others(read, len(vectors), places, torch.mul)


def cp_environment(vectors: Sequence[Tensor | None], place: int) -> Tensor:
    """The environment of one place, ``(b, d)``; ``vectors[place]`` is not read and may be ``None``.

    >>> cp_environment([torch.tensor([[2.0]]), None, torch.tensor([[5.0]])], 1)
    tensor([[10.]])
    """
    return cp_environments(vectors, [place])[0]
