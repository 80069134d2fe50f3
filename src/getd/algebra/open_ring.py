r"""A ring with one open mode ``p``: what fills it, several vectors for each question, shares work.

.. math::
    A_j = (M_{j+1} \cdots M_{p-1}) \; M_p \; (M_{p+1} \cdots M_{j-1})

The two products on the sides of :math:`M_p` are those of the question
(:mod:`~getd.algebra.ring`, where the other letters are explained).
"""

from itertools import pairwise

import torch
from torch import Tensor

from getd.algebra.aliases import ByMode, Cores, Environments, Modes, Vectors

FILLED = 128  # vectors whose matrices are held at a time: they stay in the caches


class OpenRing:
    """A ring contracted with the vectors ``(b, d_j)`` of all modes but one, where it is None.

    >>> ring = OpenRing([torch.ones(2, 3, 2)] * 4, [None, *[torch.ones(1, 3)] * 3], 0)
    >>> ring.environment  # 3^3 entries of R^4
    tensor([[432., 432., 432.]])
    >>> ring.fill(torch.ones(1, 1, 3), [2])
    [tensor([[[432., 432., 432.]]])]
    """

    def __init__(self, cores: Cores, vectors: Vectors, mode: int) -> None:
        self._shapes = [core.shape for core in cores]
        self._slices = [core.transpose(0, 1).flatten(1) for core in cores]  # (d_j, R_j R_{j+1})
        self._mode = mode

        # The transposes of the matrices M_j, as views.
        transposed = {}
        for j, vector in enumerate(vectors):
            if vector is not None:
                left, _, right = self._shapes[j]
                transposed[j] = (vector @ self._slices[j]).view(-1, left, right).transpose(1, 2)

        # Their products on the way from the open mode to each other one, and from there on.
        around = [*range(mode + 1, len(cores)), *range(mode)]
        self._after: ByMode = {}
        for j, following in pairwise([*around, mode]):
            before = self._after.get(j)
            self._after[following] = transposed[j] if before is None else transposed[j].bmm(before)
        self._before: ByMode = {}
        for j, preceding in pairwise(reversed(around)):
            after = self._before.get(j)
            self._before[preceding] = transposed[j] if after is None else after.bmm(transposed[j])

    @property
    def environment(self) -> Tensor:
        """The environment of the open mode, ``(b, d_p)``."""
        return self._after[self._mode].flatten(1) @ self._slices[self._mode].t()

    def fill(self, vectors: Tensor, modes: Modes) -> Environments:
        """Return the environments of other modes, ``(b, k, d_j)`` each, for ``(b, k, d_p)``."""
        height = max(1, FILLED // max(vectors.shape[1], 1))
        starts = range(0, max(len(vectors), 1), height)
        parts = [self._fill(vectors, modes, slice(start, start + height)) for start in starts]
        return [torch.cat(environments) for environments in zip(*parts, strict=True)]

    def _fill(self, vectors: Tensor, modes: Modes, rows: slice) -> Environments:
        b, k, _ = vectors[rows].shape
        left, _, right = self._shapes[self._mode]
        matrices = vectors[rows].flatten(0, 1) @ self._slices[self._mode]
        matrices = matrices.view(b * k, left, right).transpose(1, 2)
        filled = matrices.reshape(b, k * right, left)

        environments = []
        for j in modes:
            left, _, right = self._shapes[j]
            around = filled.bmm(self._before[j][rows]) if j in self._before else filled
            around = around.view(b, k, -1, right)
            if j in self._after:
                around = self._after[j][rows].unsqueeze(1) @ around
            environments.append(around.reshape(b, k, left * right) @ self._slices[j].t())
        return environments
