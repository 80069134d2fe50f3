"""Rings whose cores serve parts of several modes: networks planned once, contracted in pairs."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from operator import mul
from typing import NamedTuple

import opt_einsum  # type: ignore[import-untyped]
import torch
from torch import Tensor

from getd.algebra.aliases import ByMode, Cores, Sizes
from getd.errors import ShapeError

Indices = Sequence[int]  # of the network, by number: parts, then bonds, and the batch last
Groups = tuple[Sizes, ...]
Steps = tuple[tuple[Sizes, str], ...]

_BATCH = -1  # the index that runs over facts
_PLANNED_BATCH = 128  # facts; the path, and so a row's result, does not depend on the real batch


class Refinement(NamedTuple):
    """Modes and cores, split where either ends."""

    parts: Sizes  # the sizes of the parts, all above 1
    modes: Groups  # which parts make up each mode
    cores: Groups  # which parts make up each core


class Plan(NamedTuple):
    """How one environment of a refined ring is contracted."""

    vectors: tuple[tuple[int, Sizes], ...]  # the modes that are read, and the sizes of their parts
    cores: Groups  # each core's shape, split into parts
    steps: Steps  # which operands each step takes (vectors, then cores), and its einsum


@lru_cache(maxsize=256)
def refine(dims: Sizes, ring_shape: Sizes) -> Refinement | None:
    """Return the common refinement of modes and cores, None where there is none.

    There is one where the joint cumulative products are a chain of divisors.

    >>> refine((4, 4), (2, 4, 2))
    Refinement(parts=(2, 2, 2, 2), modes=((0, 1), (2, 3)), cores=((0,), (1, 2), (3,)))
    >>> refine((6, 6, 6), (4, 9, 6)) is None  # 4 does not divide 6
    True
    """
    mode_ends = (1, *accumulate(dims, mul))
    core_ends = (1, *accumulate(ring_shape, mul))
    cuts = sorted({*mode_ends, *core_ends})

    parts = []
    for earlier, later in pairwise(cuts):
        if later % earlier:
            return None
        parts.append(later // earlier)

    def members(ends: Sizes) -> Groups:
        numbers = [cuts.index(end) for end in ends]
        return tuple(tuple(range(start, stop)) for start, stop in pairwise(numbers))

    return Refinement(tuple(parts), members(mode_ends), members(core_ends))


@lru_cache(maxsize=1024)
def plan_environment(dims: Sizes, ring_shape: Sizes, ranks: Sizes, mode: int) -> Plan:
    """Plan the environment of ``mode``: pairwise contractions, found by dynamic programming.

    >>> plan = plan_environment((4, 4), (2, 4, 2), (3, 3, 3), 0)
    >>> plan.vectors, plan.cores
    (((1, (2, 2)),), ((3, 2, 3), (3, 2, 2, 3), (3, 2, 3)))
    """
    refinement = refine(dims, ring_shape)
    if refinement is None:
        raise ShapeError(f"ring_shape {ring_shape} does not split along the core {dims}")

    sizes = (*refinement.parts, *ranks, _PLANNED_BATCH)
    vectors = {j: [_BATCH, *members] for j, members in enumerate(refinement.modes)}
    output = vectors.pop(mode)

    cores = []
    first_bond = len(refinement.parts)
    for i, members in enumerate(refinement.cores):
        left = first_bond + i
        right = first_bond + (i + 1) % len(ranks)
        cores.append([left, *members, right])

    terms = [*vectors.values(), *cores]
    shapes = [tuple(sizes[index] for index in term) for term in terms]
    return Plan(
        vectors=tuple((j, shape[1:]) for j, shape in zip(vectors, shapes, strict=False)),
        cores=tuple(shapes[len(vectors) :]),
        steps=_steps(terms, shapes, output),
    )


def contract(plan: Plan, cores: Cores, vectors: ByMode) -> Tensor:
    """Return the environment that ``plan`` is for, ``(b, parts of its mode)``."""
    operands = []
    for mode, parts in plan.vectors:
        vector = vectors[mode]
        operands.append(vector.reshape(vector.shape[0], *parts))
    for core, shape in zip(cores, plan.cores, strict=True):
        operands.append(core.reshape(shape))

    for numbers, equation in plan.steps:
        taken = [operands.pop(number) for number in numbers]
        operands.append(torch.einsum(equation, *taken))
    return operands[0]


def _steps(terms: Sequence[Indices], shapes: Sequence[Sizes], output: Indices) -> Steps:
    """Return contractions along the best path: the operands to take out of the list, the einsum.

    The batch comes first in every result, so each step is a batched matrix product without copies.
    """
    equation = _equation(terms, output)
    path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="dp")

    rest = list(terms)
    steps = []
    for numbers in path:
        chosen = tuple(sorted(numbers, reverse=True))
        taken = [rest.pop(number) for number in chosen]

        # An index is kept while other terms, or the output, still have it.
        result = list(output)
        if rest:
            needed = {*output, *chain(*rest)}
            kept = dict.fromkeys(index for index in chain(*taken) if index in needed)
            result = sorted(kept, key=lambda index: index != _BATCH)
        steps.append((chosen, _equation(taken, result)))
        rest.append(result)
    return tuple(steps)


def _equation(terms: Sequence[Indices], output: Indices) -> str:
    """Spell an einsum in letters: ``[[7, 9], [9, 8]] -> [7, 8]`` is ``ab,bc->ac``."""
    indices = dict.fromkeys(chain(*terms))
    letters = {index: opt_einsum.get_symbol(number) for number, index in enumerate(indices)}

    def spell(term: Indices) -> str:
        return "".join(letters[index] for index in term)

    return ",".join(map(spell, terms)) + "->" + spell(output)
