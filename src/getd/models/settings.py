"""Settings that models share."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Lt
from pydantic import PositiveFloat, PositiveInt

from getd.settings import Settings

Dropout = Annotated[float, Ge(0), Lt(1)]


class ModelSettings(Settings):
    """Settings of ``[model]`` for every model that is learnt."""

    initial_scale: PositiveFloat = 0.1  # standard deviation of the embeddings at the start


class TensorModelSettings(ModelSettings):
    """Settings of ``[model]`` for models that multiply embeddings."""

    entity_dim: PositiveInt = 25
    batch_norm: bool = True  # on relations, given entities and queries; off: the bare multilinear form
    norms_by_position: bool = False  # batch norm of its own for each; not with reciprocal
    entity_dropout: Dropout = 0.0  # on the given entities
    relation_dropout: Dropout = 0.0
    query_dropout: Dropout = 0.0
    reciprocal: bool = False  # relations of its own for each open position, which then stands first
