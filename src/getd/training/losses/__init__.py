"""The losses that settings choose by name: a loss is one class, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from getd.training.losses.base import LabelledScores, Loss, SampledScores
from getd.training.losses.multi_answer import AnswerSoftmax, BinaryOverScores, BinaryOverSoftmax
from getd.training.losses.sampled import Logistic, Margin, SampledSoftmax

KVSALL_LOSSES: dict[str, Loss[LabelledScores]] = {
    "softmax": AnswerSoftmax(),
    "bce": BinaryOverScores(),
    "bce-over-softmax": BinaryOverSoftmax(),
}
SAMPLED_LOSSES: dict[str, Loss[SampledScores]] = {
    "softmax": SampledSoftmax(),
    "margin": Margin(),
    "logistic": Logistic(),
}
LOSSES: dict[str, Mapping[str, Loss[Any]]] = {
    "kvsall_loss": KVSALL_LOSSES,
    "sampled_loss": SAMPLED_LOSSES,
}
