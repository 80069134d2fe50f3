r"""Reshaped rings: the core, flattened row-major, is cut into other sizes than the vectors have.

The core has modes ``dims = (d_0, ..., d_{m-1})``, the ring sizes ``ring_shape = (n_1, ..., n_k)``
with the same product; ``k`` may be larger or smaller than ``m``. Three ways lead to the same
environments, and the first that fits is taken:

1. each mode has whole cores of its own: multiply those together, one core per mode, and use the
   fast path of ``ring`` (with ``ring_shape = dims`` there is nothing to multiply);
2. the cumulative products of ``dims`` and ``ring_shape``, sorted together, are a chain of divisors:
   split every vector and every core where either ends, and contract the small network along a path
   that ``opt_einsum`` finds once;
3. else multiply the ring out, if that fits in memory.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from torch import Tensor

from getd.algebra.aliases import Cores, Environments, Modes, Sizes, Vectors
from getd.algebra.leave_one_out import chosen_modes, read_vectors
from getd.algebra.ring import chain_to_tensor, check_ring, ring_environments, ring_to_tensor
from getd.algebra.split_network import contract, plan_environment, refine
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError

MAX_DENSE_CORE = 2**28  # numbers; 1 GiB in single precision


def check_reshape(ring_shape: Sequence[int], dims: Sequence[int]) -> None:
    """Refuse ring sizes that cannot stand for a core with modes ``dims``.

    There must be two sizes or more, with the product of ``dims``; where they are no chain of
    divisors, the core must not be too large to multiply out.

    >>> check_reshape((5, 5), (3, 2, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    getd.errors.ShapeError: ring_shape (5, 5) holds 25 numbers but the core (3, 2, 2) holds 12: ...
    """
    ring_shape = tuple(ring_shape)
    dims = tuple(dims)
    if len(ring_shape) < 2:
        raise ShapeError(
            f"a ring needs at least 2 cores, found {len(ring_shape)}: ring_shape {ring_shape}"
        )

    ring_size = prod(ring_shape)
    size = prod(dims)
    if ring_size != size:
        raise ShapeError(
            f"ring_shape {ring_shape} holds {ring_size} numbers but the core {dims} holds {size}: "
            "choose sizes with the same product"
        )

    splits = cores_of_modes(dims, ring_shape) is not None or refine(dims, ring_shape) is not None
    if size > MAX_DENSE_CORE and not splits:
        raise ShapeError(
            f"ring_shape {ring_shape} does not split along the core {dims}, and its {size} numbers "
            f"are too many to multiply out (at most {MAX_DENSE_CORE}): "
            "choose sizes whose cumulative products divide one another"
        )


@lru_cache(maxsize=256)
def cores_of_modes(dims: Sizes, ring_shape: Sizes) -> tuple[slice, ...] | None:
    """Return for each mode the cores that make it up; None where a core serves two modes.

    >>> cores_of_modes((4, 6), (2, 2, 3, 2))
    (slice(0, 2, None), slice(2, 4, None))
    >>> cores_of_modes((4, 6), (2, 6, 2)) is None
    True
    """
    groups = []
    stop = 0
    for dim in dims:
        start = stop
        size = 1
        while stop < len(ring_shape) and (stop == start or size < dim):
            size *= ring_shape[stop]
            stop += 1
        if size != dim or stop == start:
            return None
        groups.append(slice(start, stop))

    groups[-1] = slice(groups[-1].start, len(ring_shape))  # cores that are left have size 1
    return tuple(groups)


def reshaped_environments(
    cores: Cores, dims: Sequence[int], vectors: Vectors, modes: Modes | None = None
) -> Environments:
    r"""Contract a reshaped ring with every vector but one, for many modes.

    .. math::
        q_j = W \times_0 v_0 \cdots \times_{j-1} v_{j-1} \times_{j+1} v_{j+1} \cdots
        \times_{m-1} v_{m-1}

    ``W = ring_to_tensor(cores).reshape(dims)`` is not built, but for the last of the three ways.

    Takes ``k >= 2`` cores ``(R_i, n_i, R_{i+1})`` of a ring, and ``m >= 2`` vectors
    ``(b, dims[j])``, whose sizes have the product of the ``n_i``. Returns an environment
    ``(b, dims[j])`` for each of ``modes``, by default all. The vector of a single mode is not read
    and may be ``None``.

    Where each mode has whole cores of its own, the cost is that of :func:`ring_environments` and at
    most ``d R^3`` for each mode, once per batch. Else each mode is a contraction of its own, of the
    cost of the path that dynamic programming finds; a plan is made once for each shape and kept.

    >>> import torch
    >>> cores = [torch.ones(3, 2, 3), torch.ones(3, 4, 3), torch.ones(3, 2, 3)]
    >>> reshaped_environments(cores, (4, 4), [torch.ones(1, 4), torch.ones(1, 4)], [0])
    [tensor([[108., 108., 108., 108.]])]
    """
    dims = tuple(dims)
    ring_shape = tuple(core.shape[1] for core in cores if core.dim() == 3)
    if ring_shape == dims:  # one core per mode: the usual case
        return ring_environments(cores, vectors, modes)
    check_ring(cores)
    check_reshape(ring_shape, dims)

    groups = cores_of_modes(dims, ring_shape)
    if groups is not None:
        return ring_environments([_one_core(cores[group]) for group in groups], vectors, modes)
    if refine(dims, ring_shape) is None:
        core = ring_to_tensor(cores).reshape(dims)
        return tucker_environments(core, vectors, modes)

    modes = chosen_modes(modes, len(dims))
    read = read_vectors(vectors, dims, modes)
    ranks = tuple(core.shape[0] for core in cores)
    environments = []
    for j in modes:
        plan = plan_environment(dims, ring_shape, ranks, j)
        environments.append(contract(plan, cores, read).reshape(-1, dims[j]))
    return environments


def _one_core(cores: Cores) -> Tensor:
    """Multiply neighbouring cores into one, ``(R_first, product of their sizes, R_last)``."""
    return chain_to_tensor(cores).flatten(1, -2)
