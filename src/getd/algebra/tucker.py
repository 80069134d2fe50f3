"""Tucker: a dense core with one mode per vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

import torch
from torch import Tensor

from getd.algebra.leave_one_out import chosen_places, read_vectors


def tucker_environments(
    core: Tensor,
    vectors: Sequence[Tensor | None],
    places: Sequence[int] | None = None,
    groups: Tensor | None = None,
) -> list[Tensor]:
    r"""A dense core contracted with every vector but one, for many places at once.

    .. math::
        q_j[i_j] = \sum_{i_0 \dots i_{m-1} \text{ without } i_j} W[i_0, \dots, i_{m-1}] \prod_{l \neq j} v_l[i_l]

    Parameters
    ----------
    core
        ``(d_0, ..., d_{m-1})``, ``m >= 2``.
    vectors
        ``m`` tensors; vector ``j`` has shape ``(b, d_j)``.
    places
        Which environments to return, all where not given. Where one place stands alone, its vector is not read and
        may be ``None``.
    groups
        ``(b,)`` row numbers: ``vectors[0]`` then holds ``u`` distinct rows ``(u, d_0)``, of which fact ``i`` uses row
        ``groups[i]``. The core meets each distinct row once, where that saves work (``4 u <= b``).

    Returns
    -------
    For each place ``j`` a tensor of shape ``(b, d_j)``.

    Raises
    ------
    ShapeError
        If the vectors do not fit the core.

    Notes
    -----
    One half of the modes is contracted, the other half goes on in the same way, and the other way round. Only the
    first step meets the whole core, with the outer products of half the vectors, so the cost is two matrix products
    of ``d^m`` multiply-adds per fact for all places (one for one place), and no intermediate is larger than
    ``b d^ceil(m/2)``. With ``groups`` the first step is ``u d^m`` for all facts together, and ``u d^(m-1)`` numbers.

    Examples
    --------
    >>> tucker_environments(torch.ones(2, 3, 4), [torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 4)])
    [tensor([[12., 12.]]), tensor([[8., 8., 8.]]), tensor([[6., 6., 6., 6.]])]
    """
    places = chosen_places(places, core.dim())
    first, *others = vectors
    if groups is None or first is None or set(places) == {0}:
        found = _environments(core, read_vectors(vectors, core.shape, places), places)
    elif core.dim() > 2 and 0 < 4 * len(first) <= len(groups):
        found = _environments_by_group(core, first, others, groups, places)
    else:
        found = _environments(
            core, read_vectors([first[groups], *others], core.shape, places), places
        )
    return [found[place] for place in places]


def tucker_environment(
    core: Tensor, vectors: Sequence[Tensor | None], place: int, groups: Tensor | None = None
) -> Tensor:
    """The environment of one place, ``(b, d_place)``; ``vectors[place]`` is not read and may be ``None``.

    >>> tucker_environment(torch.ones(2, 3, 4), [torch.ones(1, 2), None, torch.ones(1, 4)], 1)
    tensor([[8., 8., 8.]])
    """
    return tucker_environments(core, vectors, [place], groups)[0]


def _environments(
    core: Tensor, vectors: Mapping[int, Tensor], places: Sequence[int]
) -> dict[int, Tensor]:
    """The first halving: the core has no batch, so each half costs one matrix product."""
    half = core.dim() // 2
    left, right = range(half), range(half, core.dim())
    matrix = core.reshape(prod(core.shape[:half]), prod(core.shape[half:]))
    found: dict[int, Tensor] = {}
    if any(place in left for place in places):
        found |= _halve(
            _outer_rows([vectors[j] for j in right]) @ matrix.T, core.shape, vectors, left, places
        )
    if any(place in right for place in places):
        found |= _halve(
            _outer_rows([vectors[j] for j in left]) @ matrix, core.shape, vectors, right, places
        )
    return found


def _halve(
    rest: Tensor,
    sizes: Sequence[int],
    vectors: Mapping[int, Tensor],
    modes: range,
    places: Sequence[int],
) -> dict[int, Tensor]:
    """Environments from ``rest (b, product of the sizes of modes)``, where all other modes are contracted already."""
    if len(modes) == 1:
        return {modes[0]: rest}
    left, right = modes[: len(modes) // 2], modes[len(modes) // 2 :]
    matrix = rest.view(rest.shape[0], prod(sizes[j] for j in left), prod(sizes[j] for j in right))
    found: dict[int, Tensor] = {}
    if any(place in left for place in places):
        column = _outer_rows([vectors[j] for j in right]).unsqueeze(2)
        found |= _halve(torch.bmm(matrix, column).squeeze(2), sizes, vectors, left, places)
    if any(place in right for place in places):
        row = _outer_rows([vectors[j] for j in left]).unsqueeze(1)
        found |= _halve(torch.bmm(row, matrix).squeeze(1), sizes, vectors, right, places)
    return found


def _outer_rows(vectors: Sequence[Tensor]) -> Tensor:
    """Row by row the outer product of vectors ``(b, d_i)``, flattened row-major: ``(b, product of d_i)``."""
    return reduce(lambda left, right: (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1), vectors)


def _environments_by_group(
    core: Tensor,
    first: Tensor,
    vectors: Sequence[Tensor | None],
    groups: Tensor,
    places: Sequence[int],
) -> dict[int, Tensor]:
    """Environments where ``first`` holds the distinct rows of mode 0: each of them makes a core for its own facts."""
    read_vectors([first[:1].expand(len(groups), -1), *vectors], core.shape, places)
    others = [place for place in dict.fromkeys(places) if place > 0]
    slices = (first @ core.flatten(1)).view(len(first), *core.shape[1:])
    order = torch.argsort(groups, stable=True)
    counts = torch.bincount(groups, minlength=len(first)).tolist()
    rows = [[None] * len(first) if v is None else torch.split(v[order], counts) for v in vectors]
    parts = [
        tucker_environments(slice_, vectors_of_group, [place - 1 for place in others])
        for slice_, vectors_of_group in zip(slices.unbind(), zip(*rows, strict=True), strict=True)
    ]
    back = torch.argsort(order)
    found = {
        place: torch.cat(part)[back]
        for place, part in zip(others, zip(*parts, strict=True), strict=True)
    }
    if 0 in places:
        found[0] = tucker_environment(core, [None, *vectors], 0)
    return found
