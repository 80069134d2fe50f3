"""Scoring functions: one file per model, one screen each; sizes in, never a data set."""

from getd.models.base import DotProductModel, ModelSizes, ScoringModel, other_positions
from getd.models.layers import NormsByArity, embedding
from getd.models.registry import MODELS, ModelEntry
from getd.models.settings import ModelSettings, TensorModelSettings

__all__ = [
    "MODELS",
    "DotProductModel",
    "ModelEntry",
    "ModelSettings",
    "ModelSizes",
    "NormsByArity",
    "ScoringModel",
    "TensorModelSettings",
    "embedding",
    "other_positions",
]
