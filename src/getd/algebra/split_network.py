"""Rings whose cores serve parts of several modes: small networks, split, planned once and contracted pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from operator import mul
from typing import NamedTuple

import opt_einsum  # type: ignore[import-untyped]
import torch
from torch import Tensor

from getd.errors import ShapeError

_BATCH = 0  # the number of the index that runs over facts
_PLANNED_BATCH = 128  # the path does not depend on the real batch, so neither does a row's result


class Refinement(NamedTuple):
    """Modes and cores, split where either ends."""

    parts: tuple[int, ...]  # the sizes of the parts, all above 1
    modes: tuple[tuple[int, ...], ...]  # which parts make up each mode
    cores: tuple[tuple[int, ...], ...]  # which parts make up each core


class Plan(NamedTuple):
    """How one environment of a refined ring is contracted."""

    vectors: tuple[
        tuple[int, tuple[int, ...]], ...
    ]  # the modes that are read, and their parts' sizes
    cores: tuple[tuple[int, ...], ...]  # each core's shape, split into parts
    steps: tuple[
        tuple[tuple[int, ...], str], ...
    ]  # which operands each step takes (vectors, then cores), its einsum


@lru_cache(maxsize=256)
def refine(dims: tuple[int, ...], ring_shape: tuple[int, ...]) -> Refinement | None:
    """The common refinement of modes and cores; ``None`` where the joint cumulative products are no chain of divisors.

    >>> refine((4, 4), (2, 4, 2))
    Refinement(parts=(2, 2, 2, 2), modes=((0, 1), (2, 3)), cores=((0,), (1, 2), (3,)))
    >>> refine((6, 6, 6), (4, 9, 6)) is None       # 4 does not divide 6
    True
    """
    ends = [(1, *accumulate(sizes, mul)) for sizes in (dims, ring_shape)]
    cuts = sorted({*ends[0], *ends[1]})
    if any(later % earlier for earlier, later in pairwise(cuts)):
        return None
    modes, cores = (
        tuple(tuple(range(cuts.index(a), cuts.index(b))) for a, b in pairwise(side))
        for side in ends
    )
    return Refinement(tuple(later // earlier for earlier, later in pairwise(cuts)), modes, cores)


@lru_cache(maxsize=1024)
def plan_environment(
    dims: tuple[int, ...], ring_shape: tuple[int, ...], ranks: tuple[int, ...], place: int
) -> Plan:
    """How to contract the environment of ``place``: a path of pairwise contractions that dynamic programming finds.

    Raises
    ------
    ShapeError
        If modes and cores have no common refinement.

    >>> plan = plan_environment((4, 4), (2, 4, 2), (3, 3, 3), 0)
    >>> plan.vectors, plan.cores
    (((1, (2, 2)),), ((3, 2, 3), (3, 2, 2, 3), (3, 2, 3)))
    """
    refinement = refine(dims, ring_shape)
    if refinement is None:
        raise ShapeError(f"ring_shape {ring_shape} does not split along the core {dims}")
    parts, k = refinement.parts, len(ring_shape)
    first_part, first_bond = (
        1,
        1 + len(parts),
    )  # the indices of the network are numbered: batch, parts, bonds
    sizes = {
        _BATCH: _PLANNED_BATCH,
        **dict(enumerate(parts, first_part)),
        **dict(enumerate(ranks, first_bond)),
    }
    modes = {
        j: [_BATCH, *(first_part + part for part in members)]
        for j, members in enumerate(refinement.modes)
    }
    output = modes.pop(place)
    bonds = [(first_bond + i, first_bond + (i + 1) % k) for i in range(k)]
    cores = [
        [left, *(first_part + part for part in members), right]
        for (left, right), members in zip(bonds, refinement.cores, strict=True)
    ]
    return Plan(
        vectors=tuple(
            (j, tuple(sizes[index] for index in indices[1:])) for j, indices in modes.items()
        ),
        cores=tuple(tuple(sizes[index] for index in indices) for indices in cores),
        steps=_steps([*modes.values(), *cores], output, sizes),
    )


def contract(plan: Plan, cores: Sequence[Tensor], vectors: Mapping[int, Tensor]) -> Tensor:
    """The environment that ``plan`` is for, ``(b, parts of the place)``."""
    operands = [vectors[j].reshape(vectors[j].shape[0], *parts) for j, parts in plan.vectors]
    operands += [core.reshape(shape) for core, shape in zip(cores, plan.cores, strict=True)]
    for chosen, equation in plan.steps:
        operands.append(torch.einsum(equation, *[operands.pop(number) for number in chosen]))
    return operands[0]


def _steps(
    terms: Sequence[Sequence[int]], output: Sequence[int], sizes: dict[int, int]
) -> tuple[tuple[tuple[int, ...], str], ...]:
    """Pairwise contractions along the best path: which operands to take out of the list, and what to do with them.

    The batch comes first in every result, so that each step is a batched matrix product without copies.
    """
    shapes = [tuple(sizes[index] for index in term) for term in terms]
    path, _ = opt_einsum.contract_path(
        _equation(terms, output), *shapes, shapes=True, optimize="dp"
    )
    rest, steps = list(terms), []
    for numbers in path:
        chosen = tuple(sorted(numbers, reverse=True))
        taken = [rest.pop(number) for number in chosen]
        kept = {*output, *chain(*rest)}
        result = sorted(
            dict.fromkeys(index for index in chain(*taken) if index in kept),
            key=lambda i: i != _BATCH,
        )
        result = result if rest else list(output)
        steps.append((chosen, _equation(taken, result)))
        rest.append(result)
    return tuple(steps)


def _equation(terms: Sequence[Sequence[int]], output: Sequence[int]) -> str:
    """An einsum in letters, the first that are free: ``[[7, 9], [9, 8]] -> [7, 8]`` is ``ab,bc->ac``."""
    letters = {
        index: opt_einsum.get_symbol(n) for n, index in enumerate(dict.fromkeys(chain(*terms)))
    }
    spelt = ["".join(letters[index] for index in term) for term in [*terms, output]]
    return ",".join(spelt[:-1]) + "->" + spelt[-1]
