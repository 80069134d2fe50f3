"""Losses by name: a loss is one function in a file here, and one line in ``getd.choices``."""

from getd import choices
from getd.training.losses.base import LabelledScores, Loss, SampledScores

KVSALL_LOSSES: dict[str, Loss[LabelledScores]] = choices.load(choices.KVSALL_LOSSES)
SAMPLED_LOSSES: dict[str, Loss[SampledScores]] = choices.load(choices.SAMPLED_LOSSES)
