"""Laws of dense cores and of sums of products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from getd.algebra.cp import cp_environments
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from tests.algebra.reference_algebra import environment_by_loops, random_tensor, random_vectors

SIZES = [(4, 3), (2, 3, 4), (3, 2, 4, 2), (2, 3, 2, 4, 2), (2, 3, 2, 2, 3, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_an_environment_is_the_core_with_every_vector_but_one(sizes: tuple[int, ...]) -> None:
    core, vectors = random_tensor(*sizes), random_vectors(sizes)
    environments = tucker_environments(core, vectors)
    assert len(environments) == len(sizes)
    for mode, environment in enumerate(environments):
        assert_close(environment, environment_by_loops(core, vectors, mode))


@pytest.mark.parametrize("sizes", SIZES)
def test_one_mode_is_the_same_as_all_at_once_and_never_reads_its_own_vector(
    sizes: tuple[int, ...],
) -> None:
    core, vectors = random_tensor(*sizes), random_vectors(sizes)
    for mode, environment in enumerate(tucker_environments(core, vectors)):
        missing: list[Tensor | None] = [*vectors[:mode], None, *vectors[mode + 1 :]]
        assert_close(tucker_environments(core, missing, [mode])[0], environment)
        blanked = [
            *vectors[:mode],
            torch.full_like(vectors[mode], torch.nan),
            *vectors[mode + 1 :],
        ]
        assert_close(tucker_environments(core, blanked)[mode], environment)


@pytest.mark.parametrize("modes", [(), (0,), (3, 1), (2, 2), (1, 2, 3)])
def test_some_modes_are_those_of_all_modes(modes: tuple[int, ...]) -> None:
    core, vectors = random_tensor(3, 2, 4, 2), random_vectors((3, 2, 4, 2))
    every = tucker_environments(core, vectors)
    assert_close(tucker_environments(core, vectors, modes), [every[mode] for mode in modes])


@pytest.mark.parametrize("distinct", [1, 2, 3, 12])
@pytest.mark.parametrize("sizes", SIZES)
def test_distinct_rows_in_groups_are_the_same_as_rows_spread_out(
    sizes: tuple[int, ...], distinct: int
) -> None:
    core, (_, *others) = random_tensor(*sizes), random_vectors(sizes, batch=12)
    rows = random_tensor(distinct, sizes[0], seed=7)
    groups = torch.randint(distinct, (12,), generator=torch.Generator().manual_seed(distinct))
    every = tucker_environments(core, [rows[groups], *others])
    assert_close(tucker_environments(core, [rows, *others], groups=groups), every)
    entities = range(1, len(sizes))
    assert_close(tucker_environments(core, [rows, *others], entities, groups), every[1:])
    for mode in range(len(sizes)):
        vectors: list[Tensor | None] = [rows, *others]
        vectors[mode] = None
        assert_close(tucker_environments(core, vectors, [mode], groups)[0], every[mode])


def test_the_core_meets_few_distinct_rows_once_each() -> None:
    d, batch, distinct = 4, 16, 2
    core, (first, *others) = random_tensor(d, d, d, d), random_vectors((d,) * 4, batch=batch)
    with FlopCounterMode(display=False) as spread_out:
        tucker_environments(core, [first, *others], [1, 2, 3])
    with FlopCounterMode(display=False) as grouped:
        tucker_environments(
            core, [first[:distinct], *others], [1, 2, 3], torch.arange(batch) % distinct
        )
    assert spread_out.get_total_flops() >= 2 * 2 * batch * d**4
    assert grouped.get_total_flops() <= 2 * (distinct * d**4 + 3 * batch * d**3)


def test_a_group_without_facts_does_no_harm() -> None:
    core, (_, *others) = random_tensor(2, 3, 4), random_vectors((2, 3, 4), batch=12)
    rows, groups = random_tensor(3, 2, seed=7), torch.tensor([2, 0] * 6)
    every = tucker_environments(core, [rows[groups], *others])
    assert_close(tucker_environments(core, [rows, *others], groups=groups), every)


@pytest.mark.parametrize("groups", [None, torch.tensor([1, 0, 0, 1, 1, 1, 0, 1])])
def test_gradients_of_environments_are_right(groups: Tensor | None) -> None:
    sizes = (2, 3, 2, 2)
    first, *others = random_vectors(sizes, batch=8)
    inputs = [random_tensor(*sizes), first if groups is None else first[:2], *others]

    def environments(core: Tensor, *vectors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tucker_environments(core, vectors, groups=groups))

    assert torch.autograd.gradcheck(
        environments, [tensor.clone().requires_grad_() for tensor in inputs]
    )


def test_vectors_that_do_not_fit_a_core_are_named() -> None:
    core, vectors = torch.zeros(2, 3, 4), [torch.zeros(8, 2), torch.zeros(8, 3), torch.zeros(8, 5)]
    message = r"^vector 2 has shape \(8, 5\) but its mode has size 4$"
    with pytest.raises(ShapeError, match=message):
        tucker_environments(core, vectors)
    with pytest.raises(ShapeError, match=message):
        tucker_environments(
            core, [vectors[0][:1], *vectors[1:]], groups=torch.zeros(8, dtype=torch.int64)
        )
    with pytest.raises(ShapeError, match=r"^vector 1 has 8 rows but vector 0 has 9$"):
        tucker_environments(
            core, [vectors[0][:1], *vectors[1:]], groups=torch.zeros(9, dtype=torch.int64)
        )
    with pytest.raises(ShapeError, match=r"^an environment needs at least 2 modes, found 1$"):
        tucker_environments(torch.zeros(2), [torch.zeros(8, 2)])
    with pytest.raises(ShapeError, match=r"^mode 3 is not one of the modes 0 .. 2$"):
        tucker_environments(core, vectors, [3])


@pytest.mark.parametrize("modes", [2, 3, 4, 5, 6])
def test_cp_is_tucker_with_ones_on_the_diagonal_of_the_core(modes: int) -> None:
    vectors = random_vectors((3,) * modes)
    core = torch.zeros((3,) * modes, dtype=torch.float64)
    core[(torch.arange(3),) * modes] = 1
    for mode, environment in enumerate(cp_environments(vectors)):
        assert_close(environment, environment_by_loops(core, vectors, mode))


@pytest.mark.parametrize("modes", [2, 3, 5])
def test_a_cp_environment_never_reads_its_own_vector(modes: int) -> None:
    vectors = random_vectors((3,) * modes)
    for mode, environment in enumerate(cp_environments(vectors)):
        missing: list[Tensor | None] = [*vectors[:mode], None, *vectors[mode + 1 :]]
        assert_close(cp_environments(missing, [mode])[0], environment)
    assert_close(cp_environments(vectors, [1, 0]), cp_environments(vectors)[1::-1])


def test_zeros_do_no_harm_to_cp() -> None:
    vectors = [torch.tensor([[2.0]]), torch.tensor([[0.0]]), torch.tensor([[5.0]])]
    assert_close(torch.cat(cp_environments(vectors)), torch.tensor([[0.0], [10.0], [0.0]]))


def test_gradients_of_cp_environments_are_right() -> None:
    inputs = [vector.requires_grad_() for vector in random_vectors((3, 3, 3, 3))]
    assert torch.autograd.gradcheck(lambda *vectors: tuple(cp_environments(vectors)), inputs)


def test_vectors_that_do_not_fit_cp_are_named() -> None:
    with pytest.raises(ShapeError, match=r"^vector 1 has shape \(2, 4\) but its mode has size 3$"):
        cp_environments([torch.zeros(2, 3), torch.zeros(2, 4)])
    with pytest.raises(ShapeError, match=r"^an environment needs at least 2 modes, found 1$"):
        cp_environments([torch.zeros(2, 3)])
    with pytest.raises(ShapeError, match=r"^mode 2 is not one of the modes 0 .. 1$"):
        cp_environments([torch.zeros(2, 3), torch.zeros(2, 3)], [2])
