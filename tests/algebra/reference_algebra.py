"""The algebra as nested loops over plain numbers: slow, obvious, float64."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import torch
from torch import Tensor


def random_tensor(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def random_ring(sizes: Sequence[int], ranks: Sequence[int], seed: int = 0) -> list[Tensor]:
    bonds = zip(ranks, sizes, [*ranks[1:], ranks[0]], strict=True)
    return [random_tensor(a, n, b, seed=100 * seed + i) for i, (a, n, b) in enumerate(bonds)]


def random_vectors(sizes: Sequence[int], batch: int = 2, seed: int = 0) -> list[Tensor]:
    return [random_tensor(batch, size, seed=1000 + 100 * seed + j) for j, size in enumerate(sizes)]


def ring_tensor_by_loops(cores: Sequence[Tensor]) -> Tensor:
    """Every entry as the sum over all bonds of products of numbers."""
    numbers = [core.tolist() for core in cores]
    sizes = [core.shape[1] for core in cores]
    ranks = [core.shape[0] for core in cores]
    tensor = torch.zeros(*sizes, dtype=torch.float64)
    for index in product(*map(range, sizes)):
        for bond in product(*map(range, ranks)):
            steps = zip(numbers, bond, index, (*bond[1:], bond[0]), strict=True)
            tensor[index] += prod(core[left][i][right] for core, left, i, right in steps)
    return tensor


def environment_by_loops(tensor: Tensor, vectors: Sequence[Tensor], mode: int) -> Tensor:
    """``q[row][i]``: the sum over all entries with ``i`` in ``mode``, times all other vectors."""
    rows = len(vectors[0])
    others = [j for j in range(tensor.dim()) if j != mode]
    environment = torch.zeros(rows, tensor.shape[mode], dtype=torch.float64)
    for row in range(rows):
        numbers = [vector[row].tolist() for vector in vectors]
        for index in product(*map(range, tensor.shape)):
            environment[row, index[mode]] += float(tensor[index]) * prod(
                numbers[j][index[j]] for j in others
            )
    return environment
