"""Losses of questions with all their answers are their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from getd.runs.config import TrainSettings
from getd.training.losses import KVSALL_LOSSES
from getd.training.losses.base import LabelledScores


def multi_answer_loss(scores: Tensor, labels: Tensor, kind: str, smoothing: float = 0.0) -> Tensor:
    settings = TrainSettings(regime="kvsall", kvsall_loss=kind, label_smoothing=smoothing)
    return KVSALL_LOSSES[kind](LabelledScores(scores, labels), settings)


def test_losses_of_many_answers_are_their_formulas() -> None:
    scores = torch.tensor([[1.0, 2.0, -1.0]])
    labels = torch.tensor([[1.0, 0.0, 1.0]])
    p = torch.softmax(scores, 1)[0].tolist()
    assert multi_answer_loss(scores, labels, "softmax").item() == pytest.approx(
        -(math.log(p[0]) + math.log(p[2])) / 2
    )
    over = -(math.log(p[0]) + math.log(1 - p[1]) + math.log(p[2])) / 3
    assert multi_answer_loss(scores, labels, "bce-over-softmax").item() == pytest.approx(
        over, rel=1e-5
    )
    s = [1 / (1 + math.exp(-x)) for x in (1.0, 2.0, -1.0)]
    plain = -(math.log(s[0]) + math.log(1 - s[1]) + math.log(s[2])) / 3
    assert multi_answer_loss(scores, labels, "bce").item() == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("kind", ["softmax", "bce", "bce-over-softmax"])
def test_smoothing_gives_every_candidate_its_share_of_the_weight(kind: str) -> None:
    raw, smoothing = [1.0, 2.0, -1.0], 0.3
    answers = [0.5, 0.0, 0.5] if kind == "softmax" else [1.0, 0.0, 1.0]
    labels = [(1 - smoothing) * answer + smoothing / 3 for answer in answers]
    likely = [math.exp(score) / sum(map(math.exp, raw)) for score in raw]
    if kind == "softmax":
        expected = -sum(w * math.log(p) for w, p in zip(labels, likely, strict=True))
    else:
        chances = [1 / (1 + math.exp(-score)) for score in raw] if kind == "bce" else likely
        expected = (
            -sum(
                w * math.log(p) + (1 - w) * math.log(1 - p)
                for w, p in zip(labels, chances, strict=True)
            )
            / 3
        )
    loss = multi_answer_loss(torch.tensor([raw]), torch.tensor([[1.0, 0.0, 1.0]]), kind, smoothing)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
