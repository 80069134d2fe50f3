"""Theorem 1 as a test: any ground truth is some model's scores, number for number."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from getd.algebra.expressiveness import cp_to_ring, exact_cp, exact_getd, exact_tucker
from getd.algebra.reshape import reshaped_environments
from getd.algebra.ring import ring_to_tensor
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from tests.algebra.reference_algebra import random_tensor, ring_tensor_by_loops


@st.composite
def ground_truths(draw: st.DrawFn) -> Tensor:
    """Random facts: arity 2 to 4, few relations and entities, any number of facts down to none."""
    arity = draw(st.integers(2, 4))
    shape = (draw(st.integers(1, 3)), *[draw(st.integers(1, 4 - arity // 3))] * arity)
    count = prod(shape)
    return torch.tensor(draw(st.lists(st.booleans(), min_size=count, max_size=count))).reshape(
        shape
    )


def every_fact(shape: torch.Size) -> Tensor:
    return torch.tensor(list(product(*map(range, shape))))


def getd_scores(
    relations: Tensor, entities: Tensor, cores: list[Tensor], shape: torch.Size, mode: int
) -> Tensor:
    """The score of every fact, from the query of one mode; all positions share one entity table."""
    facts = every_fact(shape)
    vectors = [relations[facts[:, 0]], *[entities[facts[:, j]] for j in range(1, len(shape))]]
    dims = [vector.shape[1] for vector in vectors]
    (environment,) = reshaped_environments(cores, dims, vectors, [mode])
    return (environment * vectors[mode]).sum(1).reshape(shape)


@given(ground_truths())
def test_a_tucker_model_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    core, factors = exact_tucker(truth)
    facts = every_fact(truth.shape)
    vectors = [factor[facts[:, j]] for j, factor in enumerate(factors)]
    (environment,) = tucker_environments(core, vectors, [0])
    scores = (environment * vectors[0]).sum(1).reshape(truth.shape)
    assert torch.equal(scores, truth.float())
    assert all(torch.equal(factor, factors[1]) for factor in factors[1:])


@given(ground_truths())
def test_a_sum_of_one_term_per_fact_is_any_ground_truth(truth: Tensor) -> None:
    factors = exact_cp(truth)
    assert [factor.shape for factor in factors] == [
        (size, max(int(truth.sum()), 1)) for size in truth.shape
    ]
    rows = [
        factor[index]
        for factor, index in zip(factors, every_fact(truth.shape).unbind(1), strict=True)
    ]
    assert torch.equal(torch.stack(rows).prod(0).sum(1).reshape(truth.shape), truth.float())


@given(ground_truths(), st.data())
def test_a_getd_model_scores_any_ground_truth_exactly(truth: Tensor, data: st.DataObject) -> None:
    mode = data.draw(st.integers(0, truth.dim() - 1))
    assert torch.equal(getd_scores(*exact_getd(truth), truth.shape, mode), truth.float())


@pytest.mark.parametrize(
    ("shape", "ring_shape"),
    [
        ((2, 4, 4), (2, 2, 2, 2, 2)),
        ((4, 4, 4), (2, 4, 4, 2)),
        ((2, 4, 4), (4, 4, 2)),
        ((2, 2, 2, 2), (4, 2, 2)),
        ((1, 4, 4, 4), (2,) * 6),
        ((2, 3, 3), (3, 2, 3)),  # no chain of divisors
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_getd_model_with_a_reshaped_ring_scores_any_ground_truth_exactly(
    shape: tuple[int, ...], ring_shape: tuple[int, ...], seed: int
) -> None:
    truth = random_tensor(*shape, seed=seed) > 0.5
    relations, entities, cores = exact_getd(truth, ring_shape)
    assert tuple(core.shape[1] for core in cores) == ring_shape
    for mode in range(len(shape)):
        assert torch.equal(
            getd_scores(relations, entities, cores, truth.shape, mode), truth.float()
        )


def test_a_knowledge_base_without_facts_is_all_zero() -> None:
    truth = torch.zeros(2, 3, 3, dtype=torch.bool)
    relations, entities, cores = exact_getd(truth)
    assert [core.shape for core in cores] == [(1, 2, 1), (1, 3, 1), (1, 3, 1)]
    assert torch.equal(getd_scores(relations, entities, cores, truth.shape, 1), truth.float())


def test_values_other_than_zero_and_one_are_kept_exactly() -> None:
    truth = random_tensor(2, 3, 3)
    assert torch.equal(getd_scores(*exact_getd(truth, (6, 3)), truth.shape, 2), truth)


def test_a_cp_decomposition_is_a_ring_of_diagonal_slices() -> None:
    factors = [random_tensor(size, 3, seed=size) for size in (2, 3, 4)]
    cores = cp_to_ring(factors)
    assert [core.shape for core in cores] == [(3, 2, 3), (3, 3, 3), (3, 4, 3)]
    expected = torch.einsum("ar,br,cr->abc", *factors)
    torch.testing.assert_close(ring_tensor_by_loops(cores), expected)
    torch.testing.assert_close(ring_to_tensor(cores), expected)


def test_what_is_no_ground_truth_is_named() -> None:
    with pytest.raises(
        ShapeError, match=r"^a ground truth has shape \(n_r, n_e, \.\.\., n_e\), found \(2, 3, 4\)$"
    ):
        exact_getd(torch.zeros(2, 3, 4))
    with pytest.raises(
        ShapeError, match=r"^a ground truth has shape \(n_r, n_e, \.\.\., n_e\), found \(2,\)$"
    ):
        exact_getd(torch.zeros(2))
    message = (
        r"^ring_shape \(5, 5\) holds 25 numbers but the core \(2, 3, 3\) holds 18: "
        r"choose sizes with the same product$"
    )
    with pytest.raises(ShapeError, match=message):
        exact_getd(torch.zeros(2, 3, 3), (5, 5))
    with pytest.raises(
        ShapeError, match=r"^the factors of a sum need one number of terms, found \[3, 4\]$"
    ):
        cp_to_ring([torch.zeros(2, 3), torch.zeros(2, 4)])
