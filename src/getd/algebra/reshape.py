r"""Reshaped rings: the core of the score, flattened row-major, is cut into other sizes than the vectors have.

The core has modes ``dims = (d_0, ..., d_{m-1})``, the ring has sizes ``ring_shape = (n_1, ..., n_k)`` with the same
product; ``k`` may be larger or smaller than ``m``. Three ways lead to the same environments; the first that fits is
taken:

1. each mode has whole cores of its own: multiply those together, one core per mode, and use the fast path of ``ring``
   (with ``ring_shape = dims`` there is nothing to multiply);
2. the cumulative products of ``dims`` and ``ring_shape``, sorted together, are a chain of divisors: split every vector
   and every core where either ends, and contract the small network along a path that ``opt_einsum`` finds once;
3. else multiply the ring out, if that fits in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from torch import Tensor

from getd.algebra.leave_one_out import chosen_places, read_vectors
from getd.algebra.ring import chain_to_tensor, check_ring, ring_environments, ring_to_tensor
from getd.algebra.split_network import contract, plan_environment, refine
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError

LARGEST_DENSE_CORE = 2**28  # numbers; 1 GiB in single precision


def check_reshape(ring_shape: Sequence[int], dims: Sequence[int]) -> None:
    """Refuse ring sizes that cannot stand for a core with modes ``dims``.

    Raises
    ------
    ShapeError
        If there are fewer than two sizes, the products differ, or the sizes are no chain of divisors and the core is
        too large to multiply out.

    >>> check_reshape((5, 5), (3, 2, 2, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    getd.errors.ShapeError: ring_shape (5, 5) holds 25 numbers but the core (3, 2, 2, 2) holds 24: ...
    """
    ring_shape, dims = tuple(ring_shape), tuple(dims)
    if len(ring_shape) < 2:
        raise ShapeError(
            f"a ring needs at least 2 cores, found {len(ring_shape)}: ring_shape {ring_shape}"
        )
    held, needed = prod(ring_shape), prod(dims)
    if held != needed:
        raise ShapeError(
            f"ring_shape {ring_shape} holds {held} numbers but the core {dims} holds {needed}: "
            "choose sizes with the same product"
        )
    if (
        needed > LARGEST_DENSE_CORE
        and cores_of_modes(dims, ring_shape) is None
        and refine(dims, ring_shape) is None
    ):
        raise ShapeError(
            f"ring_shape {ring_shape} does not split along the core {dims}, and its {needed} numbers are too many to "
            f"multiply out (at most {LARGEST_DENSE_CORE}): choose sizes whose cumulative products divide one another"
        )


@lru_cache(maxsize=256)
def cores_of_modes(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> tuple[tuple[int, int], ...] | None:
    """For each mode the cores ``start .. stop - 1`` that make it up; ``None`` where a core serves two modes.

    >>> cores_of_modes((4, 6), (2, 2, 3, 2))
    ((0, 2), (2, 4))
    >>> cores_of_modes((4, 6), (2, 6, 2)) is None
    True
    """
    groups: list[tuple[int, int]] = []
    stop = 0
    for dim in dims:
        start, held = stop, 1
        while stop < len(ring_shape) and (stop == start or held < dim):
            held *= ring_shape[stop]
            stop += 1
        if held != dim or stop == start:
            return None
        groups.append((start, stop))
    return (*groups[:-1], (groups[-1][0], len(ring_shape)))  # what is left has size 1


def reshaped_environments(
    cores: Sequence[Tensor],
    dims: Sequence[int],
    vectors: Sequence[Tensor | None],
    places: Sequence[int] | None = None,
) -> list[Tensor]:
    r"""The environments of a reshaped ring, for many places: ``W = ring_to_tensor(cores).reshape(dims)``, never built.

    .. math::
        q_j = W \times_0 v_0 \cdots \times_{j-1} v_{j-1} \times_{j+1} v_{j+1} \cdots \times_{m-1} v_{m-1}

    Parameters
    ----------
    cores
        ``k >= 2`` tensors of a ring; core ``i`` has shape ``(R_i, n_i, R_{i+1})``.
    dims
        The ``m >= 2`` sizes of the vectors, with the product of the ``n_i``.
    vectors
        ``m`` tensors; vector ``j`` has shape ``(b, dims[j])``.
    places
        Which environments to return, all where not given. Where one place stands alone, its vector is not read and
        may be ``None``.

    Returns
    -------
    For each place ``j`` a tensor of shape ``(b, dims[j])``.

    Raises
    ------
    ShapeError
        If the cores are not a ring, the sizes do not fit, or the core would have to be multiplied out and is too large.

    Notes
    -----
    Where each mode has whole cores of its own, the cost is that of :func:`ring_environments` and at most ``d R^3`` for
    each mode, once per batch. Else each place is a contraction of its own, of the cost of the path that dynamic
    programming finds; a plan is made once for each shape and kept.

    Examples
    --------
    >>> import torch
    >>> ones = [torch.ones(1, 4), torch.ones(1, 4)]
    >>> reshaped_environments([torch.ones(3, 2, 3), torch.ones(3, 4, 3), torch.ones(3, 2, 3)], (4, 4), ones, [0])
    [tensor([[108., 108., 108., 108.]])]
    """
    dims, ring_shape = tuple(dims), tuple(core.shape[1] for core in cores if core.dim() == 3)
    if ring_shape == dims:  # one core per mode: the case of every day
        return ring_environments(cores, vectors, places)
    check_ring(cores)
    check_reshape(ring_shape, dims)
    groups = cores_of_modes(dims, ring_shape)
    if groups is not None:
        return ring_environments(
            [_one_core(cores[start:stop]) for start, stop in groups], vectors, places
        )
    if refine(dims, ring_shape) is None:
        return tucker_environments(ring_to_tensor(cores).reshape(dims), vectors, places)
    places = chosen_places(places, len(dims))
    read = read_vectors(vectors, dims, places)
    ranks = tuple(core.shape[0] for core in cores)
    return [
        contract(plan_environment(dims, ring_shape, ranks, j), cores, read).reshape(-1, dims[j])
        for j in places
    ]


def reshaped_environment(
    cores: Sequence[Tensor], dims: Sequence[int], vectors: Sequence[Tensor | None], place: int
) -> Tensor:
    """The environment of one place, ``(b, dims[place])``; ``vectors[place]`` is not read and may be ``None``.

    >>> import torch
    >>> cores = [torch.ones(1, 2, 1), torch.ones(1, 8, 1)]
    >>> reshaped_environment(cores, (4, 4), [torch.ones(1, 4), None], 1)
    tensor([[4., 4., 4., 4.]])
    """
    return reshaped_environments(cores, dims, vectors, [place])[0]


def _one_core(cores: Sequence[Tensor]) -> Tensor:
    """Neighbouring cores as one, ``(R_first, product of their sizes, R_last)``."""
    return chain_to_tensor(cores).flatten(1, -2)
