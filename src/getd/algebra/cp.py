"""CP: the core is the identity, so a score is a sum of products."""

import torch

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.leave_one_out import chosen_modes, products_of_others, read_vectors


def cp_environments(vectors: Vectors, modes: Modes | None = None) -> Environments:
    r"""Multiply every vector but one, element by element, for many modes at once.

    .. math::
        q_j = \prod_{i \neq j} v_i, \qquad \sum_s \prod_i v_i[s] = q_j \cdot v_j

    Takes ``m >= 2`` vectors of one shape ``(b, d)`` and returns an environment ``(b, d)`` for each
    of ``modes``, by default all. The vector of a single mode is not read and may be ``None``.

    That is ``3 (m - 2) d`` multiplications per fact for all modes, from prefix and suffix products;
    nothing is divided, so zeros do no harm.

    >>> cp_environments([torch.tensor([[2.0]]), torch.tensor([[3.0]]), torch.tensor([[5.0]])])
    [tensor([[15.]]), tensor([[10.]]), tensor([[6.]])]
    """
    count = len(vectors)
    modes = chosen_modes(modes, count)
    size = next((vector.shape[-1] for vector in vectors if vector is not None), 0)
    read = read_vectors(vectors, [size] * count, modes)
    return products_of_others(read, count, modes, torch.mul)
