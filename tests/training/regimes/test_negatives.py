"""Negatives are drawn as often as they should be, and known answers are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.training.regimes.negatives import (
    NegativeSampler,
    draw_hardest,
    own_left_out,
    shared_left_out,
)


@pytest.mark.parametrize("arity", [1, 2, 4])
def test_what_is_left_out_is_what_nested_loops_leave_out(arity: int) -> None:
    rng = np.random.default_rng(2)
    target = torch.tensor(rng.integers(0, 9, (5, arity)))
    pairs = sorted(
        {
            (q, e)
            for q, e in rng.integers(0, [5 * arity, 9], (40, 2)).tolist()
            if target.view(-1)[q] != e
        }
    )
    left_out = torch.tensor([q for q, _ in pairs]), torch.tensor([e for _, e in pairs])
    shared, own = (
        torch.tensor(rng.integers(0, 9, (arity, 7))),
        torch.tensor(rng.integers(0, 9, (5, arity, 7))),
    )

    def expected(ids: Tensor) -> set[int]:
        indices = set()
        for i in range(5):
            for p in range(arity):
                for k in range(7):
                    entity = int(ids[i, p, k])
                    if entity == target[i, p] or (i * arity + p, entity) in pairs:
                        indices.add((i * arity + p) * 7 + k)
        return indices

    assert set(shared_left_out(shared, left_out, target, 9).tolist()) == expected(
        shared.expand(5, -1, -1)
    )
    assert set(own_left_out(own, left_out, target, 9).tolist()) == expected(own)
    nothing = (torch.zeros(0, dtype=torch.long),) * 2
    assert set(own_left_out(target.unsqueeze(2), nothing, target, 9).tolist()) == set(
        range(5 * arity)
    )


def test_frequent_entities_are_drawn_more_often() -> None:
    blocks = [
        Facts(np.zeros(4, dtype=np.int64), np.array([[0, 1], [0, 1], [0, 2], [0, 0]]))
    ]  # 5, 2, 1, 0 times
    drawn = NegativeSampler(blocks, 4, 0.5).draw((200_000,), np.random.default_rng(0))
    shares = np.array([5, 2, 1, 1]) ** 0.5
    assert np.bincount(drawn) / len(drawn) == pytest.approx(shares / shares.sum(), abs=0.005)
    weights = NegativeSampler(blocks, 4, 0.5).log_weights(np.arange(4), 10)
    assert np.exp(-weights.astype(float)) == pytest.approx(10 * shares / shares.sum(), rel=1e-5)


def test_hard_negatives_are_the_high_scores_each_once() -> None:
    ids = torch.tensor([[[4, 7, 4, 1, 2]]])
    scores = torch.tensor([[[60.0, 40.0, 60.0, 90.0, 0.0]]])
    assert set(draw_hardest(ids, scores, torch.tensor([3]), 2).flatten().tolist()) == {4, 7}
    torch.manual_seed(0)
    equal = torch.cat(
        [
            draw_hardest(
                ids[:, :, 1:4], torch.zeros(1, 1, 3), torch.tensor([], dtype=torch.long), 1
            )
            for _ in range(3000)
        ]
    )
    shares = torch.bincount(equal.flatten()) / len(equal)
    assert shares[[1, 4, 7]].tolist() == pytest.approx(
        [1 / 3] * 3, abs=0.04
    )  # a draw, not a choice
