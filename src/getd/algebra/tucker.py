"""Tucker: a dense core with one mode per vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import prod

import torch
from torch import Tensor

from getd.algebra.leave_one_out import Vectors, chosen_modes, read_vectors


def tucker_environments(
    core: Tensor,
    vectors: Vectors,
    modes: Sequence[int] | None = None,
    groups: Tensor | None = None,
) -> list[Tensor]:
    r"""Contract a dense core with every vector but one, for many modes at once.

    .. math::
        q_j[i_j] = \sum_{i_0 \dots i_{m-1} \text{ without } i_j}
        W[i_0, \dots, i_{m-1}] \prod_{l \neq j} v_l[i_l]

    Parameters
    ----------
    core
        ``(d_0, ..., d_{m-1})``, ``m >= 2``.
    vectors
        ``m`` tensors; vector ``j`` has shape ``(b, d_j)``.
    modes
        Which environments to return; all by default. The vector of a single mode is not read and
        may be ``None``.
    groups
        ``(b,)`` row numbers: ``vectors[0]`` then holds ``u`` distinct rows ``(u, d_0)``, of which
        fact ``i`` uses row ``groups[i]``. The core meets each distinct row once, where that saves
        work (``4 u <= b``).

    Returns
    -------
    For each mode ``j`` a tensor of shape ``(b, d_j)``.

    Raises
    ------
    ShapeError
        If the vectors do not fit the core.

    Notes
    -----
    Each half of the modes is contracted in turn, and the other half is halved again. Only the first
    step meets the whole core, with the outer products of half the vectors. So the cost is two
    matrix products of ``d^m`` multiply-adds per fact for all modes (one for one mode), and no
    intermediate is larger than ``b d^ceil(m/2)``. With ``groups`` the first step is ``u d^m`` for
    all facts together, and ``u d^(m-1)`` numbers.

    Examples
    --------
    >>> ones = [torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 4)]
    >>> tucker_environments(torch.ones(2, 3, 4), ones)
    [tensor([[12., 12.]]), tensor([[8., 8., 8.]]), tensor([[6., 6., 6., 6.]])]
    """
    modes = chosen_modes(modes, core.dim())
    first, *others = vectors
    if groups is not None and first is not None and set(modes) != {0}:
        if core.dim() > 2 and 0 < 4 * len(first) <= len(groups):
            return _environments_by_group(core, first, others, groups, modes)
        vectors = [first[groups], *others]
    read = read_vectors(vectors, core.shape, modes)

    # The core has no batch, so to contract one half of its modes is one matrix product.
    half = core.dim() // 2
    left = range(half)
    right = range(half, core.dim())
    matrix = core.reshape(prod(core.shape[:half]), prod(core.shape[half:]))

    environments: dict[int, Tensor] = {}
    if not set(modes).isdisjoint(left):
        rest = _outer_rows(read, right) @ matrix.T
        environments |= _halve(rest, core.shape, read, left, modes)
    if not set(modes).isdisjoint(right):
        rest = _outer_rows(read, left) @ matrix
        environments |= _halve(rest, core.shape, read, right, modes)
    return [environments[mode] for mode in modes]


def _halve(
    rest: Tensor,
    sizes: Sequence[int],
    vectors: Mapping[int, Tensor],
    open_modes: range,
    modes: Sequence[int],
) -> dict[int, Tensor]:
    """Contract ``rest (b, product of sizes of open_modes)`` down to each of its chosen modes."""
    if len(open_modes) == 1:
        return {open_modes[0]: rest}

    half = len(open_modes) // 2
    left = open_modes[:half]
    right = open_modes[half:]
    rows = prod(sizes[j] for j in left)
    columns = prod(sizes[j] for j in right)
    matrix = rest.view(rest.shape[0], rows, columns)

    environments: dict[int, Tensor] = {}
    if not set(modes).isdisjoint(left):
        column = _outer_rows(vectors, right).unsqueeze(2)
        product = torch.bmm(matrix, column).squeeze(2)
        environments |= _halve(product, sizes, vectors, left, modes)
    if not set(modes).isdisjoint(right):
        row = _outer_rows(vectors, left).unsqueeze(1)
        product = torch.bmm(row, matrix).squeeze(1)
        environments |= _halve(product, sizes, vectors, right, modes)
    return environments


def _outer_rows(vectors: Mapping[int, Tensor], modes: Iterable[int]) -> Tensor:
    """Return the outer products of the vectors of modes, row by row: ``(b, product of d_j)``."""
    return reduce(
        lambda left, right: (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1),
        (vectors[j] for j in modes),
    )


def _environments_by_group(
    core: Tensor, first: Tensor, others: Vectors, groups: Tensor, modes: Sequence[int]
) -> list[Tensor]:
    """Contract each distinct row of mode 0 with the core once: a smaller core for its own facts."""
    expanded = first[:1].expand(len(groups), -1)
    read_vectors([expanded, *others], core.shape, modes)

    # The facts of a group lie together, so that each vector splits into parts of whole groups.
    order = torch.argsort(groups, stable=True)
    counts = torch.bincount(groups, minlength=len(first)).tolist()
    missing = (None,) * len(first)
    parts = [missing if v is None else torch.split(v[order], counts) for v in others]

    smaller_cores = (first @ core.flatten(1)).view(len(first), *core.shape[1:])
    entity_modes = [mode for mode in dict.fromkeys(modes) if mode > 0]
    by_group = []
    for smaller_core, *group in zip(smaller_cores.unbind(), *parts, strict=True):
        by_group.append(tucker_environments(smaller_core, group, [j - 1 for j in entity_modes]))

    back = torch.argsort(order)
    environments: dict[int, Tensor] = {}
    for mode, groups_of_mode in zip(entity_modes, zip(*by_group, strict=True), strict=True):
        environments[mode] = torch.cat(groups_of_mode)[back]
    if 0 in modes:
        environments[0] = tucker_environments(core, [None, *others], [0])[0]
    return [environments[mode] for mode in modes]
