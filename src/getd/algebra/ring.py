r"""Tensor rings: ``k`` cores in a circle that stand for a tensor with ``k`` modes.

.. math::
    W[i_0, \dots, i_{k-1}] = \operatorname{trace}\bigl(
        Z_0[:, i_0, :] \; Z_1[:, i_1, :] \cdots Z_{k-1}[:, i_{k-1}, :] \bigr)

Core ``j`` has shape ``(R_j, d_j, R_{j+1})`` and the ring closes, so ``R_k = R_0``; ranks and sizes may all differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor

from getd.algebra.leave_one_out import chosen_places, products_of_others, read_vectors
from getd.errors import ShapeError


def check_ring(cores: Sequence[Tensor]) -> None:
    """Refuse cores that do not make a ring.

    Raises
    ------
    ShapeError
        If there are fewer than two cores, one has not three axes, or two neighbours disagree about the rank they share.

    >>> check_ring([torch.zeros(2, 4, 3), torch.zeros(3, 4, 5)])
    Traceback (most recent call last):
    getd.errors.ShapeError: ring core 1 ends with rank 5 but core 0 begins with rank 2
    """
    if len(cores) < 2:
        raise ShapeError(f"a ring needs at least 2 cores, found {len(cores)}")
    for number, core in enumerate(cores):
        if core.dim() != 3:
            raise ShapeError(
                f"ring core {number} needs 3 axes (rank, size, rank), found shape {tuple(core.shape)}"
            )
    for number, core in enumerate(cores):
        after = (number + 1) % len(cores)
        if core.shape[2] != cores[after].shape[0]:
            raise ShapeError(
                f"ring core {number} ends with rank {core.shape[2]} "
                f"but core {after} begins with rank {cores[after].shape[0]}"
            )


def expand_ranks(ranks: int | Sequence[int], k: int) -> tuple[int, ...]:
    """One rank per bond: ``R_j`` lies before core ``j``.

    Raises
    ------
    ShapeError
        If there are not ``k`` ranks, or one is below 1.

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


def ring_parameters(shape: Sequence[int], ranks: int | Sequence[int]) -> int:
    r"""How many numbers a ring holds, :math:`\sum_j R_j d_j R_{j+1}`.

    >>> ring_parameters((2, 3), (4, 5)), ring_parameters((25,) * 5, 40)
    (100, 200000)
    """
    bonds = expand_ranks(ranks, len(shape))
    return sum(
        size * left * right
        for size, (left, right) in zip(shape, pairwise((*bonds, bonds[0])), strict=True)
    )


def ring_entry(cores: Sequence[Tensor], index: Sequence[int]) -> Tensor:
    """One entry of the tensor that a ring stands for: the trace of the product of its slices.

    Cost: ``k R^3`` multiply-adds.

    >>> ring_entry([torch.ones(2, 3, 2)] * 4, (0, 1, 2, 0)).item()      # R^k = 2^4
    16.0
    """
    check_ring(cores)
    slices = [core[:, i, :] for core, i in zip(cores, index, strict=True)]
    return torch.trace(reduce(torch.matmul, slices))


def ring_to_tensor(cores: Sequence[Tensor]) -> Tensor:
    r"""Multiply a ring out into the tensor it stands for: the oracle and the fallback, not the hot path.

    Parameters
    ----------
    cores
        ``k >= 2`` tensors of shape ``(R_j, d_j, R_{j+1})``.

    Returns
    -------
    Tensor of shape ``(d_0, ..., d_{k-1})``.

    Raises
    ------
    ShapeError
        If the cores are not a ring (:func:`check_ring`).

    Notes
    -----
    The ring is cut into two open chains that one matrix product joins, so the largest intermediate holds
    ``R^2 d^ceil(k/2)`` numbers (beside the ``d^k`` of the result) instead of ``R^2 d^(k-1)``.

    Examples
    --------
    >>> tensor = ring_to_tensor([torch.ones(2, 3, 2)] * 4)
    >>> tensor.shape, tensor.unique().item()      # every entry is R^k = 2^4
    (torch.Size([3, 3, 3, 3]), 16.0)
    """
    check_ring(cores)
    half = len(cores) // 2
    left, right = (
        chain_to_tensor(cores[:half]),
        chain_to_tensor(cores[half:]),
    )  # (a, ..., b), (b, ..., a)
    tensor: Tensor = torch.tensordot(left, right, dims=([left.dim() - 1, 0], [0, right.dim() - 1]))
    return tensor


def chain_to_tensor(cores: Sequence[Tensor]) -> Tensor:
    """Multiply neighbouring cores: an open chain of shape ``(R_first, d_i, ..., d_j, R_last)``.

    >>> chain_to_tensor([torch.ones(2, 5, 3), torch.ones(3, 6, 4)]).shape
    torch.Size([2, 5, 6, 4])
    """
    return reduce(lambda done, core: torch.tensordot(done, core, dims=1), cores)


def ring_environments(
    cores: Sequence[Tensor], vectors: Sequence[Tensor | None], places: Sequence[int] | None = None
) -> list[Tensor]:
    r"""The ring's tensor contracted with every vector but one, for many places at once, without building the tensor.

    .. math::
        M_j &= \textstyle\sum_i v_j[i] \, Z_j[:, i, :] \\
        A_j &= M_{j+1} \cdots M_{m-1} \; M_0 \cdots M_{j-1} \\
        q_j[i] &= \operatorname{trace}\bigl( Z_j[:, i, :] \, A_j \bigr), \qquad
        \operatorname{trace}(M_0 \cdots M_{m-1}) = q_j \cdot v_j

    Parameters
    ----------
    cores
        ``m >= 2`` tensors; core ``j`` has shape ``(R_j, d_j, R_{j+1})``.
    vectors
        ``m`` tensors; vector ``j`` has shape ``(b, d_j)``.
    places
        Which environments to return, all where not given. Where one place stands alone, its vector is not read and
        may be ``None``.

    Returns
    -------
    For each place ``j`` a tensor of shape ``(b, d_j)``.

    Raises
    ------
    ShapeError
        If the cores are not a ring, or the vectors do not fit them.

    Notes
    -----
    ``d R^2`` multiply-adds per fact for each projection and each environment (one matrix product each), ``R^3`` for
    each of the ``3 (m - 2)`` products between (one less for each end that is not asked for). Batched tensors are
    used as they are made: only the cores, which are small, are laid out anew, once.

    Examples
    --------
    >>> ones = [torch.ones(1, 3)] * 4
    >>> ring_environments([torch.ones(2, 3, 2)] * 4, ones, places=[2])      # 3 vectors of 3 entries, each R^4
    [tensor([[432., 432., 432.]])]
    """
    check_ring(cores)
    places = chosen_places(places, len(cores))
    read = read_vectors(vectors, [core.shape[1] for core in cores], places)
    slices = {
        j: cores[j].transpose(0, 1).flatten(1) for j in {*read, *places}
    }  # (d, R R'), the one copy
    transposed = {
        j: _project(cores[j], slices[j], vector) for j, vector in read.items()
    }  # (b, R_{j+1}, R_j)
    around = products_of_others(
        transposed, len(cores), places, _multiply_transposed
    )  # (b, R_j, R_{j+1})
    return [matrix.flatten(1) @ slices[j].t() for j, matrix in zip(places, around, strict=True)]


def ring_environment(
    cores: Sequence[Tensor], vectors: Sequence[Tensor | None], place: int
) -> Tensor:
    """The environment of one place, ``(b, d_place)``; see :func:`ring_environments`.

    ``vectors[place]`` is not read and may be ``None``. Cost per fact: ``m d R^2 + (m - 2) R^3`` multiply-adds.

    >>> ring_environment([torch.ones(2, 3, 2)] * 2, [None, torch.ones(1, 3)], 0)
    tensor([[12., 12., 12.]])
    """
    return ring_environments(cores, vectors, [place])[0]


def _project(core: Tensor, slices: Tensor, vector: Tensor) -> Tensor:
    """The transposes of the matrices ``v · Z``, ``(b, R', R)``: a view."""
    return (vector @ slices).view(vector.shape[0], core.shape[0], core.shape[2]).transpose(1, 2)


def _multiply_transposed(left: Tensor, right: Tensor) -> Tensor:
    """The transposes of products, from those of their factors: the ring's traces then read a core as it lies."""
    return torch.bmm(right, left)
