"""Settings that models share."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge, Lt
from pydantic import PositiveFloat, PositiveInt, model_validator

from getd.config import Settings
from getd.models.norms import NormKind

Dropout = Annotated[float, Ge(0), Lt(1)]


class ModelSettings(Settings):
    """Settings of ``[model]`` for every model that is learnt."""

    initial_scale: PositiveFloat = 0.1  # standard deviation of the embeddings at the start


class TensorModelSettings(ModelSettings):
    """Settings of ``[model]`` for models that multiply embeddings."""

    entity_dim: PositiveInt = 25
    norm: NormKind = (
        "batch"  # of relations, given entities and queries; none: the bare multilinear form
    )
    norms_by_position: bool | None = (
        None  # one for each; None: if batches open one position; not with reciprocal
    )
    entity_dropout: Dropout = 0.0  # on the given entities
    relation_dropout: Dropout = 0.0
    query_dropout: Dropout = 0.0
    reciprocal: bool = False  # relations of its own for each open position, which then stands first

    @model_validator(mode="before")
    @classmethod
    def _norm_of_older_configs(cls, values: Any) -> Any:
        """``batch_norm = true``, as configs and runs said before there were other norms; one for all positions."""
        if not isinstance(values, dict) or "batch_norm" not in values or "norm" in values:
            return values
        kept = {key: value for key, value in values.items() if key != "batch_norm"}
        if cls.model_fields["norms_by_position"].default is None:
            kept.setdefault("norms_by_position", False)
        return {
            **kept,
            "norm": {True: "batch", False: "none"}.get(values["batch_norm"], "batch_norm"),
        }
