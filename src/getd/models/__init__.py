"""Scoring functions: one file per model, one screen each; sizes in, never a data set."""

from getd.models.base import DotProductModel, ModelSizes, ScoringModel, check_arity
from getd.models.layers import embedding, norms_by_arity
from getd.models.registry import MODELS, ModelEntry
from getd.models.settings import ModelSettings, TensorModelSettings

__all__ = [
    "MODELS",
    "DotProductModel",
    "ModelEntry",
    "ModelSettings",
    "ModelSizes",
    "ScoringModel",
    "TensorModelSettings",
    "check_arity",
    "embedding",
    "norms_by_arity",
]
