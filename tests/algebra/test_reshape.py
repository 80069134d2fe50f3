"""Laws of reshaped rings: however sizes are cut, environments are those of the whole core."""

from __future__ import annotations

from math import prod

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.algebra.reshape import (
    check_reshape,
    cores_of_modes,
    reshaped_environments,
)
from getd.algebra.ring import ring_environments, ring_to_tensor
from getd.algebra.split_network import plan_environment, refine
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from tests.algebra.reference_algebra import (
    environment_by_loops,
    random_ring,
    random_vectors,
    ring_tensor_by_loops,
)

SAME = ((3, 2, 2), (3, 2, 2))
WHOLE_CORES = [  # every mode has cores of its own
    SAME,
    ((4, 6, 6), (2, 2, 3, 2, 6)),
    ((4, 4), (2, 2, 2, 2)),  # the paper's 8^8 and 4^12 for d = 64, scaled down
    ((1, 2, 2), (1, 2, 2)),
    ((2, 2), (1, 2, 1, 2, 1)),
]
SHARED_CORES = [  # a core serves two modes
    ((4, 4, 4), (2, 4, 4, 2)),  # the paper's 5·25·25·25·25·5 for d = 25, scaled down
    ((8, 8), (4, 4, 4)),  # its 16^6 for d = 64
    ((2, 3, 3), (6, 3)),  # fewer cores than modes
    ((2, 3, 2, 2), (6, 4)),
    ((4, 3), (2, 6)),
    ((3, 2, 2, 2), (3, 4, 2)),
    ((1, 4, 4), (2, 4, 2)),  # a mode of size 1
    ((4, 1, 4), (2, 8)),
    ((4, 4), (2, 1, 4, 2)),  # a core of size 1
]
NO_CHAIN = [((6, 6), (4, 9)), ((3, 2, 2), (2, 2, 3)), ((6, 2, 2), (4, 6))]
EVERY = WHOLE_CORES + SHARED_CORES + NO_CHAIN
RANKS = (2, 3, 1, 2, 2)


def test_the_cases_are_what_they_are_said_to_be() -> None:
    assert all(cores_of_modes(*case) for case in WHOLE_CORES)
    assert all(cores_of_modes(*case) is None and refine(*case) for case in SHARED_CORES)
    assert all(cores_of_modes(*case) is None and refine(*case) is None for case in NO_CHAIN)


@pytest.mark.parametrize(("dims", "ring_shape"), EVERY)
def test_an_environment_is_that_of_the_core_multiplied_out_and_reshaped(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores, vectors = random_ring(ring_shape, RANKS[: len(ring_shape)]), random_vectors(dims)
    core = ring_tensor_by_loops(cores).reshape(dims)
    for mode, environment in enumerate(reshaped_environments(cores, dims, vectors)):
        assert_close(environment, environment_by_loops(core, vectors, mode))


def test_cores_of_one_shape_are_multiplied_in_their_order() -> None:
    """Nothing but the order tells such cores apart."""
    dims, cores = (4, 4), random_ring((2, 2, 2, 2), (3, 3, 3, 3))
    vectors, core = random_vectors(dims), ring_tensor_by_loops(cores).reshape(dims)
    for mode, environment in enumerate(reshaped_environments(cores, dims, vectors)):
        assert_close(environment, environment_by_loops(core, vectors, mode))


@pytest.mark.parametrize(("dims", "ring_shape"), EVERY)
def test_one_mode_is_the_same_as_all_at_once_and_never_reads_its_own_vector(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores, vectors = random_ring(ring_shape, RANKS[: len(ring_shape)]), random_vectors(dims)
    for mode, environment in enumerate(reshaped_environments(cores, dims, vectors)):
        missing: list[Tensor | None] = [*vectors[:mode], None, *vectors[mode + 1 :]]
        assert_close(reshaped_environments(cores, dims, missing, [mode])[0], environment)
        blanked = [
            *vectors[:mode],
            torch.full_like(vectors[mode], torch.nan),
            *vectors[mode + 1 :],
        ]
        assert_close(reshaped_environments(cores, dims, blanked)[mode], environment)


@pytest.mark.parametrize(("dims", "ring_shape"), [WHOLE_CORES[1], SHARED_CORES[0], NO_CHAIN[1]])
def test_some_modes_are_those_of_all_modes(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores, vectors = (
        random_ring(ring_shape, RANKS[: len(ring_shape)]),
        random_vectors(dims, batch=3),
    )
    every = reshaped_environments(cores, dims, vectors)
    assert_close(reshaped_environments(cores, dims, vectors, [2, 0]), [every[2], every[0]])


def test_a_ring_with_one_core_per_mode_takes_the_fast_path() -> None:
    dims, ring_shape = SAME
    cores, vectors = random_ring(ring_shape, RANKS[:3]), random_vectors(dims)
    theirs = ring_environments(cores, vectors)
    assert_close(reshaped_environments(cores, dims, vectors), theirs, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("dims", "ring_shape"),
    [
        ((25,) * 5, (5, 25, 25, 25, 25, 5)),
        ((64,) * 4, (16,) * 6),
        ((64,) * 4, (8,) * 8),
        ((64,) * 4, (4,) * 12),
    ],
)
def test_the_score_of_the_papers_shapes_is_the_same_from_every_mode(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores = random_ring(ring_shape, [2, 3] * (len(ring_shape) // 2))
    vectors = random_vectors(dims, batch=3)
    environments = reshaped_environments(cores, dims, vectors)
    assert [q.shape for q in environments] == [(3, dim) for dim in dims]
    scores = [(q * v).sum(1) for q, v in zip(environments, vectors, strict=True)]
    assert_close(scores, [scores[0]] * len(scores))


def test_the_papers_sixth_order_ring_is_its_core_multiplied_out() -> None:
    dims, ring_shape = (25,) * 5, (5, 25, 25, 25, 25, 5)
    cores, vectors = random_ring(ring_shape, (2, 1, 2, 1, 2, 2)), random_vectors(dims, batch=1)
    dense = tucker_environments(ring_to_tensor(cores).reshape(dims), vectors)
    assert_close(reshaped_environments(cores, dims, vectors), dense)


@pytest.mark.parametrize("ring_shape", [(16,) * 6, (8,) * 8, (4,) * 12, (2,) * 24])
def test_a_plan_for_the_papers_shapes_never_builds_the_core(ring_shape: tuple[int, ...]) -> None:
    dims = (64,) * 4
    plan = plan_environment(dims, ring_shape, (20,) * len(ring_shape), 1)
    cores = [torch.empty(20, n, 20, device="meta") for n in ring_shape]
    operands = [torch.empty(128, *parts, device="meta") for _, parts in plan.vectors]
    operands += [core.reshape(shape) for core, shape in zip(cores, plan.cores, strict=True)]
    largest = 0
    for chosen, equation in plan.steps:
        operands.append(torch.einsum(equation, *[operands.pop(number) for number in chosen]))
        largest = max(largest, operands[-1].numel())
    assert operands[0].numel() == 128 * 64
    assert largest < prod(dims) / 50


def test_a_plan_is_made_once_for_a_shape_whatever_the_batch() -> None:
    dims, ring_shape = (4, 4, 4), (2, 4, 4, 2)
    cores = random_ring(ring_shape, (3, 2, 3, 2))
    plan_environment.cache_clear()
    for batch in (1, 2, 5):
        reshaped_environments(cores, dims, random_vectors(dims, batch=batch))
    assert plan_environment.cache_info().misses == len(dims)
    assert plan_environment.cache_info().hits == 2 * len(dims)


@pytest.mark.parametrize(("dims", "ring_shape"), [WHOLE_CORES[2], SHARED_CORES[0], NO_CHAIN[1]])
def test_rows_of_a_batch_do_not_disturb_each_other(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores, vectors = (
        random_ring(ring_shape, RANKS[: len(ring_shape)]),
        random_vectors(dims, batch=4),
    )
    alone = [
        reshaped_environments(cores, dims, [vector[i : i + 1] for vector in vectors])
        for i in range(4)
    ]
    together = [torch.cat(rows) for rows in zip(*alone, strict=True)]
    assert_close(reshaped_environments(cores, dims, vectors), together)
    empty = reshaped_environments(cores, dims, [vector[:0] for vector in vectors])
    assert [environment.shape for environment in empty] == [(0, dim) for dim in dims]


@pytest.mark.parametrize(
    ("dims", "ring_shape"), [WHOLE_CORES[2], SHARED_CORES[1], SHARED_CORES[2], NO_CHAIN[1]]
)
def test_gradients_of_environments_are_right(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    k = len(ring_shape)
    inputs = [*random_ring(ring_shape, RANKS[:k]), *random_vectors(dims)]

    def environments(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(reshaped_environments(tensors[:k], dims, tensors[k:]))

    assert torch.autograd.gradcheck(environments, [tensor.requires_grad_() for tensor in inputs])


def test_sizes_with_another_product_are_named() -> None:
    message = (
        r"^ring_shape \(5, 5\) holds 25 numbers but the core \(3, 2, 2, 2\) holds 24: "
        r"choose sizes with the same product$"
    )
    with pytest.raises(ShapeError, match=message):
        check_reshape((5, 5), (3, 2, 2, 2))
    with pytest.raises(ShapeError, match=message):
        reshaped_environments(
            random_ring((5, 5), (2, 2)), (3, 2, 2, 2), random_vectors((3, 2, 2, 2))
        )


def test_a_single_core_is_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"^a ring needs at least 2 cores, found 1: ring_shape \(24,\)$"
    ):
        check_reshape((24,), (3, 2, 2, 2))


def test_a_core_too_large_to_multiply_out_is_refused_before_any_work() -> None:
    dims, ring_shape = (600, 600, 600, 6), (400, 900, 600, 6)
    message = (
        r"^ring_shape \(400, 900, 600, 6\) does not split along the core \(600, 600, 600, 6\), "
        r"and its 1296000000 numbers are too many to multiply out \(at most 268435456\): "
        r"choose sizes whose cumulative products divide one another$"
    )
    with pytest.raises(ShapeError, match=message):
        check_reshape(ring_shape, dims)
    cores = [torch.zeros(1, size, 1) for size in ring_shape]
    with pytest.raises(ShapeError, match=message):
        reshaped_environments(cores, dims, [torch.zeros(1, dim) for dim in dims])


def test_a_plan_without_a_chain_of_divisors_is_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"^ring_shape \(4, 9\) does not split along the core \(6, 6\)$"
    ):
        plan_environment((6, 6), (4, 9), (2, 2), 0)


@pytest.mark.parametrize(("dims", "ring_shape"), [WHOLE_CORES[2], SHARED_CORES[4], NO_CHAIN[0]])
def test_vectors_that_do_not_fit_are_named(
    dims: tuple[int, ...], ring_shape: tuple[int, ...]
) -> None:
    cores = random_ring(ring_shape, RANKS[: len(ring_shape)])
    vectors = [torch.zeros(2, dims[0]), torch.zeros(2, 7)]
    with pytest.raises(
        ShapeError, match=rf"^vector 1 has shape \(2, 7\) but its mode has size {dims[1]}$"
    ):
        reshaped_environments(cores, dims, vectors)
    with pytest.raises(ShapeError, match=r"^mode 2 is not one of the modes 0 .. 1$"):
        reshaped_environments(cores, dims, vectors, [2])
