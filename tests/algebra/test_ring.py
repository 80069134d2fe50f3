"""Laws of tensor rings."""

from __future__ import annotations

from functools import reduce
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from getd.algebra.ring import (
    chain_to_tensor,
    check_ring,
    expand_ranks,
    ring_environments,
    ring_parameters,
    ring_to_tensor,
)
from getd.errors import ShapeError
from tests.algebra.reference_algebra import (
    environment_by_loops,
    random_ring,
    random_tensor,
    random_vectors,
    ring_tensor_by_loops,
)

RINGS = [  # sizes, ranks: a relation and 1 to 5 entities
    ((4, 3), (2, 3)),
    ((2, 3, 4), (2, 3, 2)),
    ((2, 3, 3), (1, 1, 1)),
    ((3, 2, 4, 2), (1, 3, 2, 2)),
    ((2, 3, 2, 4, 2), (2, 1, 3, 2, 2)),
    ((2, 3, 2, 2, 3, 2), (2, 3, 1, 2, 2, 3)),
]


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_each_entry_is_the_trace_of_the_product_of_its_slices(
    sizes: tuple[int, ...], ranks: tuple[int, ...]
) -> None:
    cores = random_ring(sizes, ranks)
    tensor = ring_to_tensor(cores)
    assert tensor.shape == sizes
    assert_close(tensor, ring_tensor_by_loops(cores))
    for index in product(*map(range, sizes)):
        slices = [core[:, i, :] for core, i in zip(cores, index, strict=True)]
        assert_close(tensor[index], torch.trace(reduce(torch.matmul, slices)))


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_turning_the_ring_turns_the_modes(sizes: tuple[int, ...], ranks: tuple[int, ...]) -> None:
    cores = random_ring(sizes, ranks)
    assert_close(ring_to_tensor(cores[1:] + cores[:1]), ring_to_tensor(cores).movedim(0, -1))


def test_a_change_of_basis_on_a_bond_changes_nothing() -> None:
    first, second, *rest = random_ring((2, 3, 4), (2, 3, 2))
    basis = random_tensor(3, 3, seed=1)
    turned = [first @ basis, torch.einsum("ab,bic->aic", basis.inverse(), second), *rest]
    assert_close(ring_to_tensor(turned), ring_to_tensor([first, second, *rest]))
    vectors = random_vectors((2, 3, 4))
    assert_close(
        ring_environments(turned, vectors), ring_environments([first, second, *rest], vectors)
    )


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_the_ring_agrees_with_tensorly(sizes: tuple[int, ...], ranks: tuple[int, ...]) -> None:
    tr_tensor = pytest.importorskip("tensorly.tr_tensor")
    cores = random_ring(sizes, ranks)
    theirs = tr_tensor.tr_to_tensor([core.numpy() for core in cores])
    assert_close(ring_to_tensor(cores), torch.from_numpy(theirs))


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_an_environment_is_the_tensor_with_every_vector_but_one(
    sizes: tuple[int, ...], ranks: tuple[int, ...]
) -> None:
    cores, vectors = random_ring(sizes, ranks), random_vectors(sizes)
    tensor = ring_tensor_by_loops(cores)
    environments = ring_environments(cores, vectors)
    assert len(environments) == len(sizes)
    for mode, environment in enumerate(environments):
        assert_close(environment, environment_by_loops(tensor, vectors, mode))


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_one_mode_is_the_same_as_all_at_once_and_never_reads_its_own_vector(
    sizes: tuple[int, ...], ranks: tuple[int, ...]
) -> None:
    cores, vectors = random_ring(sizes, ranks), random_vectors(sizes)
    for mode, environment in enumerate(ring_environments(cores, vectors)):
        missing: list[Tensor | None] = [*vectors[:mode], None, *vectors[mode + 1 :]]
        assert_close(ring_environments(cores, missing, [mode])[0], environment)
        blanked = [
            *vectors[:mode],
            torch.full_like(vectors[mode], torch.nan),
            *vectors[mode + 1 :],
        ]
        assert_close(ring_environments(cores, blanked)[mode], environment)


@pytest.mark.parametrize("modes", [(), (0,), (3, 1), (2, 2), (0, 3), (1, 2, 3)])
def test_some_modes_are_those_of_all_modes(modes: tuple[int, ...]) -> None:
    sizes, ranks = RINGS[3]
    cores, vectors = random_ring(sizes, ranks), random_vectors(sizes)
    every = ring_environments(cores, vectors)
    assert_close(ring_environments(cores, vectors, modes), [every[mode] for mode in modes])


@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_the_score_is_the_same_from_every_mode(
    sizes: tuple[int, ...], ranks: tuple[int, ...]
) -> None:
    vectors = random_vectors(sizes)
    environments = ring_environments(random_ring(sizes, ranks), vectors)
    scores = [(q * v).sum(1) for q, v in zip(environments, vectors, strict=True)]
    assert_close(scores, [scores[0]] * len(scores))


def test_rows_of_a_batch_do_not_disturb_each_other() -> None:
    sizes, ranks = RINGS[4]
    cores, vectors = random_ring(sizes, ranks), random_vectors(sizes, batch=4)
    alone = [ring_environments(cores, [vector[i : i + 1] for vector in vectors]) for i in range(4)]
    together = [torch.cat(rows) for rows in zip(*alone, strict=True)]
    assert_close(ring_environments(cores, vectors), together)


def test_an_empty_batch_has_empty_environments() -> None:
    environments = ring_environments(
        random_ring((2, 3, 4), (2, 3, 2)), random_vectors((2, 3, 4), batch=0)
    )
    assert [environment.shape for environment in environments] == [(0, 2), (0, 3), (0, 4)]


def test_a_ring_of_rank_one_is_a_product_of_linear_forms() -> None:
    sizes = (2, 3, 4, 2)
    cores, vectors = random_ring(sizes, (1, 1, 1, 1)), random_vectors(sizes)
    forms = [vector @ core[0, :, 0] for core, vector in zip(cores, vectors, strict=True)]  # (b,)
    for mode, environment in enumerate(ring_environments(cores, vectors)):
        others = torch.stack(forms[:mode] + forms[mode + 1 :]).prod(0)
        assert_close(environment, others[:, None] * cores[mode][0, :, 0])


def test_cores_may_be_laid_out_in_memory_in_any_way() -> None:
    cores, vectors = random_ring((2, 3, 4), (2, 3, 2)), random_vectors((2, 3, 4))
    stored = [core.transpose(0, 1).contiguous().transpose(0, 1) for core in cores]
    assert_close(ring_environments(stored, vectors), ring_environments(cores, vectors))


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_the_cost_of_all_positions_is_counted_in_design(n: int) -> None:
    b, d, rank = 5, 4, 3
    cores, vectors = (
        random_ring((d,) * (n + 1), (rank,) * (n + 1)),
        random_vectors((d,) * (n + 1), batch=b),
    )
    with FlopCounterMode(display=False) as counter:
        ring_environments(cores, vectors, range(1, n + 1))
    multiply_adds = (n + 1) * d * rank**2 + (3 * n - 4) * rank**3 + n * d * rank**2  # per fact
    assert counter.get_total_flops() == 2 * b * multiply_adds
    with FlopCounterMode(display=False) as counter:
        ring_environments(cores, vectors, [n // 2])
    assert counter.get_total_flops() == 2 * b * ((n + 1) * d * rank**2 + (n - 1) * rank**3)


def test_gradients_of_environments_are_right() -> None:
    sizes = (2, 3, 2, 2)
    inputs = [*random_ring(sizes, (2, 1, 3, 2)), *random_vectors(sizes)]

    def environments(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(ring_environments(tensors[:4], tensors[4:], [1, 2, 3]))

    assert torch.autograd.gradcheck(environments, [tensor.requires_grad_() for tensor in inputs])


def test_parameters_are_the_numbers_in_all_cores() -> None:
    for sizes, ranks in RINGS:
        assert ring_parameters(sizes, ranks) == sum(
            core.numel() for core in random_ring(sizes, ranks)
        )
    assert ring_parameters((2, 3), 4) == ring_parameters((2, 3), (4, 4))


def test_an_open_chain_is_the_product_of_its_cores() -> None:
    first, second, _ = random_ring((2, 3, 4), (2, 3, 2))
    assert_close(chain_to_tensor([first, second]), torch.einsum("aib,bjc->aijc", first, second))


BAD_RINGS = [
    ([], r"^a ring needs at least 2 cores, found 0$"),
    ([(2, 3, 2)], r"^a ring needs at least 2 cores, found 1$"),
    ([(2, 4, 3), (3, 4)], r"^ring core 1 needs 3 axes \(rank, size, rank\), found shape \(3, 4\)$"),
    ([(2, 4, 3), (3, 4, 5)], r"^ring core 1 ends with rank 5 but core 0 begins with rank 2$"),
    ([(2, 4, 3), (4, 4, 2)], r"^ring core 0 ends with rank 3 but core 1 begins with rank 4$"),
]


@pytest.mark.parametrize(("shapes", "message"), BAD_RINGS)
def test_cores_that_are_no_ring_are_named(shapes: list[tuple[int, ...]], message: str) -> None:
    cores = [torch.zeros(shape) for shape in shapes]
    for function in (check_ring, ring_to_tensor, lambda cores: ring_environments(cores, [])):
        with pytest.raises(ShapeError, match=message):
            function(cores)


BAD_VECTORS = [
    ([(2, 2), (2, 3)], None, r"^expected 3 vectors, one for each mode, found 2$"),
    ([(2, 2), (2, 3), (2, 5)], None, r"^vector 2 has shape \(2, 5\) but its mode has size 4$"),
    ([(2,), (2, 3), (2, 4)], None, r"^vector 0 has shape \(2,\) but its mode has size 2$"),
    ([(2, 2), (5, 3), (2, 4)], None, r"^vector 1 has 5 rows but vector 0 has 2$"),
    ([None, (2, 3), (3, 4)], [0], r"^vector 2 has 3 rows but vector 1 has 2$"),
    ([(2, 2), None, (2, 4)], None, r"^vector 1 is missing, but other modes than 1 are chosen$"),
    ([(2, 2), None, (2, 4)], [0], r"^vector 1 is missing, but other modes than 1 are chosen$"),
    ([(2, 2), (2, 3), (2, 4)], [3], r"^mode 3 is not one of the modes 0 .. 2$"),
    ([(2, 2), (2, 3), (2, 4)], [-1], r"^mode -1 is not one of the modes 0 .. 2$"),
]


@pytest.mark.parametrize(("shapes", "modes", "message"), BAD_VECTORS)
def test_vectors_that_do_not_fit_are_named(
    shapes: list[tuple[int, ...] | None], modes: list[int] | None, message: str
) -> None:
    vectors = [
        None if shape is None else torch.zeros(shape, dtype=torch.float64) for shape in shapes
    ]
    with pytest.raises(ShapeError, match=message):
        ring_environments(random_ring((2, 3, 4), (2, 3, 2)), vectors, modes)


def test_one_rank_stands_for_all_bonds() -> None:
    assert expand_ranks(3, 4) == (3, 3, 3, 3)
    assert expand_ranks([1, 2, 3], 3) == (1, 2, 3)


def test_ranks_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        ShapeError, match=r"^a ring of 3 cores needs 1 rank or 3, found 2: \(4, 5\)$"
    ):
        expand_ranks([4, 5], 3)
    with pytest.raises(ShapeError, match=r"^ranks are at least 1, found 0$"):
        expand_ranks([4, 0], 2)
    with pytest.raises(ShapeError, match=r"^ranks are at least 1, found -2$"):
        ring_parameters((3, 3), -2)
