"""Ranks of given scores equal a nested loop, whatever their form in memory."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from getd.errors import ConfigError, NonFiniteScores, ShapeError
from getd.evaluation import rank_scores as counting
from getd.evaluation.rank_scores import Ranks, Ties, rank_scores
from getd.facts.known_answers import Answers
from tests.evaluation import reference_evaluation as reference

TIES: tuple[Ties, ...] = ("realistic", "optimistic", "pessimistic")
SEVERAL = Answers(np.array([0, 2, 2, 5]), np.array([1, 4, 0, 1, 4]))


def table(b: int = 3, m: int = 5, values: int = 3) -> Tensor:
    return torch.randint(values, (b, m), generator=torch.Generator().manual_seed(0)).float()


def same(first: Ranks, second: Ranks) -> bool:
    return np.array_equal(first.rank, second.rank) and np.array_equal(
        first.candidates, second.candidates
    )


@given(data=st.data(), ties=st.sampled_from(TIES), tile=st.sampled_from([1, 3, 8, 2**17]))
def test_ranks_equal_a_nested_loop_whatever_the_tile(
    data: st.DataObject, ties: Ties, tile: int
) -> None:
    b, m = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 7))
    ids = st.integers(0, m - 1)
    scores = data.draw(
        st.lists(st.lists(st.integers(-1, 1), min_size=m, max_size=m), min_size=b, max_size=b)
    )
    answers = data.draw(st.lists(ids, min_size=b, max_size=b))
    known = data.draw(st.lists(st.lists(ids, unique=True).map(sorted), min_size=b, max_size=b))
    offsets = np.cumsum([0, *map(len, known)])
    with patch.object(counting, "TILE", tile):
        ranks = rank_scores(
            torch.tensor(scores, dtype=torch.float32).view(b, m),
            np.array(answers, dtype=np.int64),
            Answers(
                offsets, np.array([value for values in known for value in values], dtype=np.int64)
            ),
            ties=ties,
        )
    expected = [
        reference.rank(
            scores[i], answers[i], (i, answers[i]), 1, [(i, value) for value in known[i]], ties
        )
        for i in range(b)
    ]
    assert list(zip(ranks.rank.tolist(), ranks.candidates.tolist(), strict=True)) == expected


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(
    "form",
    [
        Tensor.double,
        Tensor.half,
        Tensor.bfloat16,
        Tensor.long,
        lambda scores: scores.T.contiguous().T,
        lambda scores: torch.cat([scores, scores], dim=1)[:, :5],
        lambda scores: scores.clone().requires_grad_(),
    ],
    ids=["double", "half", "bfloat16", "long", "by columns", "a part of a table", "with gradients"],
)
def test_ranks_do_not_depend_on_how_scores_are_held(
    form: Callable[[Tensor], Tensor], ties: Ties
) -> None:
    answers = np.array([4, 0, 2])
    expected = rank_scores(table(), answers, SEVERAL, ties=ties)
    held = form(table())
    assert same(rank_scores(held, answers, SEVERAL, ties=ties), expected)
    assert torch.equal(held.float(), table())


def test_answers_may_be_a_tensor_and_known_answers_left_out() -> None:
    nothing = Answers(np.zeros(4, dtype=np.int64), np.zeros(0, dtype=np.int64))
    answers = np.array([4, 0, 2])
    ranks = rank_scores(table(), torch.tensor(answers))
    assert same(ranks, rank_scores(table(), answers, nothing))
    assert ranks.candidates.tolist() == [5, 5, 5]


def test_counts_are_exact_where_halves_could_not_hold_them() -> None:
    scores = torch.zeros(2, 5000, dtype=torch.half)
    scores[:, :3001] = 1
    assert rank_scores(scores, np.array([4000, 0])).rank.tolist() == [
        1 + 3001 + 1998 / 2,
        1 + 3000 / 2,
    ]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.half])
def test_large_scores_are_finite_though_their_sum_is_not(kind: torch.dtype) -> None:
    scores = torch.full((2, 5), torch.finfo(kind).max, dtype=kind)
    scores[:, 2] *= -1
    assert rank_scores(scores, np.array([2, 0])).rank.tolist() == [5, 2.5]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("cell", [(0, 3), (1, 0), (2, 4)], ids=["rival", "answer", "left out"])
@pytest.mark.parametrize("tile", [2, 2**17])
def test_a_score_that_is_not_finite_is_refused(
    value: float, cell: tuple[int, int], tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "TILE", tile)
    scores = table()
    scores[cell] = value
    with pytest.raises(NonFiniteScores, match=r"^1 of 15 scores are NaN or infinite$"):
        rank_scores(scores, np.array([4, 0, 2]), SEVERAL)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"^expected 3 answers, one for each row of scores, found 2$"
    ):
        rank_scores(table(), np.array([0, 1]))
    with pytest.raises(
        ShapeError, match=r"^expected 4 rows of known answers, one for each row of scores, found 3$"
    ):
        rank_scores(table(4), np.array([0, 1, 2, 3]), SEVERAL)


def test_an_unknown_tie_rule_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^ties: expected one of realistic, optimistic, pessimistic, found 'first'",
    ):
        rank_scores(table(), np.array([0, 1, 2]), ties="first")  # type: ignore[arg-type]
