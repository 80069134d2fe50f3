"""Tucker: a dense core with one mode per vector."""

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

import torch
from torch import Tensor

from getd.algebra.aliases import ByMode, Environments, Modes, Vectors
from getd.algebra.leave_one_out import chosen_modes, read_vectors


def tucker_environments(
    core: Tensor, vectors: Vectors, modes: Modes | None = None, groups: Tensor | None = None
) -> Environments:
    r"""Contract a dense core with every vector but one, for many modes at once.

    .. math::
        q_j[i_j] = \sum_{i_0 \dots i_{m-1} \text{ without } i_j}
        W[i_0, \dots, i_{m-1}] \prod_{l \neq j} v_l[i_l]

    Takes a core ``(d_0, ..., d_{m-1})``, ``m >= 2``, and as many vectors ``(b, d_j)``. Returns an
    environment ``(b, d_j)`` for each of ``modes``, by default all. The vector of a single mode is
    not read and may be ``None``. With ``groups`` ``(b,)``, ``vectors[0]`` holds ``u`` distinct rows
    ``(u, d_0)``, of which fact ``i`` uses row ``groups[i]``: the core meets each distinct row once,
    where that saves work (``4 u <= b``).

    Each half of the modes is contracted in turn, and the other half is halved again. Only the first
    step meets the whole core, with the outer products of half the vectors. So the cost is two
    matrix products of ``d^m`` multiply-adds per fact for all modes (one for one mode), and no
    intermediate is larger than ``b d^ceil(m/2)``. With ``groups`` the first step is ``u d^m`` for
    all facts together, and ``u d^(m-1)`` numbers.

    >>> ones = [torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 4)]
    >>> tucker_environments(torch.ones(2, 3, 4), ones)
    [tensor([[12., 12.]]), tensor([[8., 8., 8.]]), tensor([[6., 6., 6., 6.]])]
    """
    count = core.dim()
    modes = chosen_modes(modes, count)
    chosen = set(modes)
    first, *others = vectors
    if groups is not None and first is not None and chosen != {0}:
        if count > 2 and 0 < 4 * len(first) <= len(groups):
            return _environments_by_group(core, first, others, groups, modes)
        vectors = [first[groups], *others]
    read = read_vectors(vectors, core.shape, modes)

    # The core has no batch, so to contract one half of its modes is one matrix product.
    half = count // 2
    left = range(half)
    right = range(half, count)
    matrix = core.reshape(prod(core.shape[:half]), -1)

    environments: ByMode = {}
    if not chosen.isdisjoint(left):
        rest = _outer_rows(read, right) @ matrix.T
        environments |= _halve(rest, core.shape, read, left, chosen)
    if not chosen.isdisjoint(right):
        rest = _outer_rows(read, left) @ matrix
        environments |= _halve(rest, core.shape, read, right, chosen)
    return [environments[mode] for mode in modes]


def _halve(
    rest: Tensor, sizes: Sequence[int], vectors: ByMode, open_modes: range, chosen: set[int]
) -> ByMode:
    """Contract ``rest (b, product of sizes of open_modes)`` down to each of its chosen modes."""
    half = len(open_modes) // 2
    if not half:
        return {open_modes[0]: rest}
    left = open_modes[:half]
    right = open_modes[half:]
    rows = prod(sizes[j] for j in left)
    matrix = rest.view(rest.shape[0], rows, rest.shape[1] // rows)

    environments: ByMode = {}
    if not chosen.isdisjoint(left):
        column = _outer_rows(vectors, right).unsqueeze(2)
        product = matrix.bmm(column).squeeze(2)
        environments |= _halve(product, sizes, vectors, left, chosen)
    if not chosen.isdisjoint(right):
        row = _outer_rows(vectors, left).unsqueeze(1)
        product = row.bmm(matrix).squeeze(1)
        environments |= _halve(product, sizes, vectors, right, chosen)
    return environments


def _outer_rows(vectors: ByMode, modes: Iterable[int]) -> Tensor:
    """Return the outer products of the vectors of modes, row by row: ``(b, product of d_j)``."""
    return reduce(
        lambda left, right: (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1),
        (vectors[j] for j in modes),
    )


def _environments_by_group(
    core: Tensor, first: Tensor, others: Vectors, groups: Tensor, modes: Modes
) -> Environments:
    """Contract each distinct row of mode 0 with the core once: a smaller core for its own facts."""
    expanded = first[:1].expand(len(groups), -1)
    read_vectors([expanded, *others], core.shape, modes)

    # The facts of a group lie together, so that each vector splits into parts of whole groups.
    order = groups.argsort(stable=True)
    n_groups = len(first)
    counts = groups.bincount(minlength=n_groups).tolist()
    missing = (None,) * n_groups
    parts = [missing if v is None else torch.split(v[order], counts) for v in others]

    smaller_cores = (first @ core.flatten(1)).view(n_groups, *core.shape[1:])
    smaller_modes = sorted({mode - 1 for mode in modes if mode > 0})
    by_group = []
    for smaller_core, *group in zip(smaller_cores, *parts, strict=True):
        by_group.append(tucker_environments(smaller_core, group, smaller_modes))

    back = order.argsort()
    environments = {}
    for mode, groups_of_mode in zip(smaller_modes, zip(*by_group, strict=True), strict=True):
        environments[mode + 1] = torch.cat(groups_of_mode)[back]
    if 0 in modes:
        environments[0] = tucker_environments(core, [None, *others], [0])[0]
    return [environments[mode] for mode in modes]
