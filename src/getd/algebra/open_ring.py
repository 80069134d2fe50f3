r"""A ring with one open mode ``p``: all vectors that may fill it share the work of a question.

.. math:: A_j = (M_{j+1} \cdots M_{p-1}) \; M_p \; (M_{p+1} \cdots M_{j-1})

Only :math:`M_p` is that of the vector (:mod:`~getd.algebra.ring` has the other letters).
"""

from itertools import pairwise

import torch
from torch import Tensor

from getd.algebra.aliases import ByMode, Cores, Environments, Modes, Vectors

FILLED = 128  # vectors whose matrices are held at a time: they stay in the caches


class OpenRing:
    """A ring contracted with the vectors ``(b, d_j)`` of all modes but one, which is None.

    >>> ring = OpenRing([torch.ones(2, 3, 2)] * 4, [None, *[torch.ones(1, 3)] * 3], 0)
    >>> ring.environment  # 3^3 entries of R^4
    tensor([[432., 432., 432.]])
    >>> ring.fill(torch.ones(1, 1, 3), [2])
    [tensor([[[432., 432., 432.]]])]
    """

    def __init__(self, cores: Cores, vectors: Vectors, mode: int) -> None:
        self._mode = mode
        self._shapes = [core.shape for core in cores]
        self._slices = [core.transpose(0, 1).flatten(1) for core in cores]  # (d_j, R_j R_{j+1})

        # The transposes of the matrices M_j, as views.
        around = [*range(mode + 1, len(cores)), *range(mode)]
        transposed = {}
        for j in around:
            vector = vectors[j]
            assert vector is not None
            transposed[j] = self._matrices(vector, j).transpose(1, 2)

        # Their products on the way from p to each mode, and from there on to p.
        self._after: ByMode = {}
        for j, following in pairwise([*around, mode]):
            product = transposed[j]
            if j in self._after:
                product = product.bmm(self._after[j])
            self._after[following] = product
        self._before: ByMode = {}
        for j, preceding in pairwise(reversed(around)):
            product = transposed[j]
            if j in self._before:
                product = self._before[j].bmm(product)
            self._before[preceding] = product

    @property
    def environment(self) -> Tensor:
        """The environment of the open mode, ``(b, d_p)``."""
        matrices = self._after[self._mode]
        return matrices.flatten(1) @ self._slices[self._mode].t()

    def fill(self, vectors: Tensor, modes: Modes) -> Environments:
        """Return the environments of other modes, ``(b, k, d_j)`` each, for ``(b, k, d_p)``."""
        k = vectors.shape[1]
        height = max(1, FILLED // k)
        parts = []
        for start in range(0, len(vectors), height):
            rows = slice(start, start + height)
            parts.append(self._fill(vectors[rows], modes, rows))
        return [torch.cat(environments) for environments in zip(*parts, strict=True)]

    def _fill(self, vectors: Tensor, modes: Modes, rows: slice) -> Environments:
        """Return the environments of some rows."""
        b, k, _ = vectors.shape
        matrices = self._matrices(vectors.flatten(0, 1), self._mode)
        transposed = matrices.transpose(1, 2)
        filled = transposed.reshape(b, -1, transposed.shape[2])

        environments = []
        for j in modes:
            product = filled
            if j in self._before:
                product = product.bmm(self._before[j][rows])
            product = product.view(b, k, -1, product.shape[2])
            if j in self._after:
                product = self._after[j][rows].unsqueeze(1) @ product
            environments.append(product.flatten(2) @ self._slices[j].t())
        return environments

    def _matrices(self, vectors: Tensor, mode: int) -> Tensor:
        left, _, right = self._shapes[mode]
        matrices = vectors @ self._slices[mode]
        return matrices.view(-1, left, right)
