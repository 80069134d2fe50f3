"""Settings that models share."""

from typing import Annotated, Any

from annotated_types import Ge, Lt
from pydantic import PositiveFloat, PositiveInt, model_validator

from getd.choices import NormKind
from getd.config import Settings

Dropout = Annotated[float, Ge(0), Lt(1)]


class ModelSettings(Settings):
    """Settings of ``[model]`` for every model that is learnt."""

    initial_scale: PositiveFloat = 0.1  # standard deviation of the embeddings at the start


class TensorModelSettings(ModelSettings):
    """Settings of ``[model]`` for models that multiply embeddings."""

    entity_dim: PositiveInt = 25
    norm: NormKind = "batch"  # of relations, given entities, queries; none: bare multilinear
    # A norm for each position; None: if batches open one position. Not with reciprocal relations.
    norms_by_position: bool | None = None
    entity_dropout: Dropout = 0.0  # on the given entities
    relation_dropout: Dropout = 0.0
    query_dropout: Dropout = 0.0
    reciprocal: bool = False  # relations of its own for each open position, which comes first

    @model_validator(mode="before")
    @classmethod
    def _norm_of_older_configs(cls, values: Any) -> Any:
        """Read ``batch_norm = true``, as configs and runs said before there were other norms."""
        if not isinstance(values, dict) or "batch_norm" not in values or "norm" in values:
            return values
        settings = dict(values)
        batch_norm = settings.pop("batch_norm")
        settings["norm"] = {True: "batch", False: "none"}.get(batch_norm, "batch_norm")

        # All positions shared one norm then.
        if cls.model_fields["norms_by_position"].default is None:
            settings.setdefault("norms_by_position", False)
        return settings
