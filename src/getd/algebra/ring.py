r"""Tensor rings: ``k`` cores in a circle that stand for a tensor with ``k`` modes.

.. math::
    W[i_0, \dots, i_{k-1}] = \operatorname{trace}\bigl(
        Z_0[:, i_0, :] \; Z_1[:, i_1, :] \cdots Z_{k-1}[:, i_{k-1}, :] \bigr)

Core ``j`` has shape ``(R_j, d_j, R_{j+1})`` and the ring closes, so ``R_k = R_0``; ranks and sizes
may all differ.
"""

from collections.abc import Sequence
from functools import reduce
from math import prod

import torch
from torch import Tensor

from getd.algebra.aliases import Cores, Environments, Modes, Ranks, Sizes, Vectors
from getd.algebra.leave_one_out import chosen_modes, products_of_others, read_vectors
from getd.errors import ShapeError


def check_ring(cores: Cores) -> None:
    """Refuse cores that do not make a ring.

    There must be two or more, of three axes, and neighbours agree about the rank they share.

    >>> check_ring([torch.zeros(2, 4, 3), torch.zeros(3, 4, 5)])
    Traceback (most recent call last):
    getd.errors.ShapeError: ring core 1 ends with rank 5 but core 0 begins with rank 2
    """
    if len(cores) < 2:
        raise ShapeError(f"a ring needs at least 2 cores, found {len(cores)}")
    for j, core in enumerate(cores):
        if core.dim() != 3:
            raise ShapeError(
                f"ring core {j} needs 3 axes (rank, size, rank), found shape {tuple(core.shape)}"
            )

    for j, core in enumerate(cores):
        following = (j + 1) % len(cores)
        end = core.shape[2]
        begin = cores[following].shape[0]
        if end != begin:
            raise ShapeError(
                f"ring core {j} ends with rank {end} but core {following} begins with rank {begin}"
            )


def expand_ranks(ranks: Ranks, k: int) -> Sizes:
    """Return one rank per bond, all at least 1: ``R_j`` lies before core ``j``.

    >>> expand_ranks(3, 4), expand_ranks([1, 2], 2)
    ((3, 3, 3, 3), (1, 2))
    """
    expanded = (ranks,) * k if isinstance(ranks, int) else tuple(ranks)
    if len(expanded) != k:
        raise ShapeError(
            f"a ring of {k} cores needs 1 rank or {k}, found {len(expanded)}: {expanded}"
        )
    if min(expanded) < 1:
        raise ShapeError(f"ranks are at least 1, found {min(expanded)}")
    return expanded


def ring_shapes(shape: Sequence[int], ranks: Ranks) -> list[tuple[int, int, int]]:
    """Return the shapes ``(R_j, d_j, R_{j+1})`` of the cores of a ring.

    >>> ring_shapes((2, 3), (4, 5))
    [(4, 2, 5), (5, 3, 4)]
    """
    left = expand_ranks(ranks, len(shape))
    right = (*left[1:], left[0])
    return list(zip(left, shape, right, strict=True))


def ring_parameters(shape: Sequence[int], ranks: Ranks) -> int:
    r"""Count the numbers that a ring holds, :math:`\sum_j R_j d_j R_{j+1}`.

    >>> ring_parameters((2, 3), (4, 5)), ring_parameters((25,) * 5, 40)
    (100, 200000)
    """
    return sum(map(prod, ring_shapes(shape, ranks)))


def ring_to_tensor(cores: Cores) -> Tensor:
    r"""Multiply a ring out into its tensor: an oracle and a fallback, not the hot path.

    Turns ``k >= 2`` cores of shape ``(R_j, d_j, R_{j+1})`` into a tensor ``(d_0, ..., d_{k-1})``.
    The ring is cut into two open chains that one matrix product joins. The largest intermediate
    holds ``R^2 d^ceil(k/2)`` numbers (apart from the ``d^k`` of the result), not ``R^2 d^(k-1)``.

    >>> tensor = ring_to_tensor([torch.ones(2, 3, 2)] * 4)
    >>> tensor.shape, tensor.unique().item()  # every entry is R^k = 2^4
    (torch.Size([3, 3, 3, 3]), 16.0)
    """
    check_ring(cores)
    half = len(cores) // 2
    left = chain_to_tensor(cores[:half])  # (a, ..., b)
    right = chain_to_tensor(cores[half:])  # (b, ..., a)
    bonds = [left.dim() - 1, 0], [0, right.dim() - 1]
    tensor: Tensor = torch.tensordot(left, right, dims=bonds)
    return tensor


def chain_to_tensor(cores: Cores) -> Tensor:
    """Multiply neighbouring cores into an open chain of shape ``(R_first, d_i, ..., d_j, R_last)``.

    >>> chain_to_tensor([torch.ones(2, 5, 3), torch.ones(3, 6, 4)]).shape
    torch.Size([2, 5, 6, 4])
    """
    return reduce(lambda chain, core: torch.tensordot(chain, core, dims=1), cores)


def ring_environments(cores: Cores, vectors: Vectors, modes: Modes | None = None) -> Environments:
    r"""Contract a ring with every vector but one, for many modes; its tensor is never built.

    .. math::
        M_j &= \textstyle\sum_i v_j[i] \, Z_j[:, i, :] \\
        A_j &= M_{j+1} \cdots M_{m-1} \; M_0 \cdots M_{j-1} \\
        q_j[i] &= \operatorname{trace}\bigl( Z_j[:, i, :] \, A_j \bigr), \qquad
        \operatorname{trace}(M_0 \cdots M_{m-1}) = q_j \cdot v_j

    Takes ``m >= 2`` cores ``(R_j, d_j, R_{j+1})`` of a ring, and as many vectors ``(b, d_j)``.
    Returns an environment ``(b, d_j)`` for each of ``modes``, by default all. The vector of a
    single mode is not read and may be ``None``.

    That is ``d R^2`` multiply-adds per fact for each projection and each environment (one matrix
    product each), ``R^3`` for each of the ``3 (m - 2)`` products between (one less for each end
    that is not chosen). Only the cores, which are small, are copied, once; batched tensors never
    are.

    >>> ones = [torch.ones(1, 3)] * 4
    >>> ring_environments([torch.ones(2, 3, 2)] * 4, ones, modes=[2])  # 3^3 entries of R^4
    [tensor([[432., 432., 432.]])]
    """
    check_ring(cores)
    modes = chosen_modes(modes, len(cores))
    read = read_vectors(vectors, [core.shape[1] for core in cores], modes)

    slices = {}  # (d_j, R_j R_{j+1}): the one copy
    for j in {*read, *modes}:
        slices[j] = cores[j].transpose(0, 1).flatten(1)

    # The transposes of the matrices M_j, as views: the traces below then read A_j as it lies.
    transposed = {}
    for j, vector in read.items():
        matrices = vector @ slices[j]
        left, _, right = cores[j].shape
        transposed[j] = matrices.view(vector.shape[0], left, right).transpose(1, 2)

    around = products_of_others(transposed, len(cores), modes, _multiply_transposed)
    environments = []
    for j, matrices in zip(modes, around, strict=True):  # (b, R_j, R_{j+1})
        environments.append(matrices.flatten(1) @ slices[j].t())
    return environments


def _multiply_transposed(left: Tensor, right: Tensor) -> Tensor:
    """Multiply matrices that are given, and returned, as their transposes."""
    return right.bmm(left)
