"""Losses against drawn negatives are their formulas."""

from __future__ import annotations

import math

import pytest
import torch

from getd.runs.config import TrainSettings
from getd.training.losses import SAMPLED_LOSSES
from getd.training.losses.base import SampledScores


@pytest.mark.parametrize("adversarial", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["margin", "logistic"])
def test_margin_and_logistic_losses_are_their_formulas(kind: str, adversarial: float) -> None:
    settings = TrainSettings(
        regime="sampled",
        sampled_loss=kind,
        margin=0.8,
        score_shift=0.3,
        self_adversarial=adversarial,
    )
    scores = torch.randn(3, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    left_out = [0, 5, 8, 9, 10, 11]  # of the third question all
    total = 0.0
    for question, row in enumerate(scores.view(6, 5).tolist()):
        answer, negative = (
            row[0],
            [s for k, s in enumerate(row[1:]) if question * 4 + k not in left_out],
        )
        raw = [math.exp(adversarial * s) for s in negative]
        weights = [r / sum(raw) for r in raw]
        if kind == "margin":
            total += sum(
                w * max(0.0, 0.8 - answer + s) for w, s in zip(weights, negative, strict=True)
            )
        else:
            wrong = sum(
                w * math.log1p(math.exp(s + 0.3)) for w, s in zip(weights, negative, strict=True)
            )
            total += math.log1p(math.exp(-answer - 0.3)) + wrong
    scored = SampledScores(scores[:, :, :1], scores[:, :, 1:], torch.tensor(left_out))
    assert SAMPLED_LOSSES[kind](scored, settings).item() == pytest.approx(total / 6)
