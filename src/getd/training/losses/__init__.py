"""The losses that settings choose by name: a loss is one function, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from getd.training.losses.base import LabelledScores, Loss, SampledScores
from getd.training.losses.multi_answer import answer_softmax, bce, bce_over_softmax
from getd.training.losses.sampled import logistic, margin, sampled_softmax

KVSALL_LOSSES: dict[str, Loss[LabelledScores]] = {
    "softmax": answer_softmax,
    "bce": bce,
    "bce-over-softmax": bce_over_softmax,
}
SAMPLED_LOSSES: dict[str, Loss[SampledScores]] = {
    "softmax": sampled_softmax,
    "margin": margin,
    "logistic": logistic,
}
LOSSES: dict[str, Mapping[str, Loss[Any]]] = {
    "kvsall_loss": KVSALL_LOSSES,
    "sampled_loss": SAMPLED_LOSSES,
}
