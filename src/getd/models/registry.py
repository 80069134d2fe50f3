"""All models by name; ``docs/adding-a-model.md`` says how to add one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from getd.errors import ConfigError, nearest
from getd.models.base import DotProductModel
from getd.models.frequency import Frequency
from getd.models.getd import GETD, GETDSettings
from getd.models.lookup import Lookup
from getd.models.n_cp import NCP, NCPSettings
from getd.models.n_tucker import NTuckER, NTuckERSettings
from getd.models.settings import TensorModelSettings
from getd.settings import build

MODELS: dict[str, tuple[type[DotProductModel], type[TensorModelSettings]]] = {
    "getd": (GETD, GETDSettings),
    "n-cp": (NCP, NCPSettings),
    "n-tucker": (NTuckER, NTuckERSettings),
}
FLOORS: dict[str, type] = {"frequency": Frequency, "lookup": Lookup}  # made from facts by counting, never trained


def model_settings(name: str, values: Mapping[str, Any]) -> TensorModelSettings:
    """The checked settings of a model."""
    if name not in MODELS:
        raise ConfigError(f"no model {name!r}{nearest(name, list(MODELS))} (there are {', '.join(MODELS)})")
    return build(MODELS[name][1], values, "model")


def make_model(
    name: str,
    settings: TensorModelSettings,
    n_entities: int,
    n_relations: int,
    arities: Sequence[int],
    generator: torch.Generator | None = None,
) -> DotProductModel:
    """A new model with random weights."""
    make: Any = MODELS[name][0]
    model: DotProductModel = make(n_entities, n_relations, arities, settings, generator)
    return model


def describe_models() -> list[dict[str, Any]]:
    """Name, first sentence and settings of every model, the floors among them."""
    learnt = [
        {"name": name, "about": _first_line(model), "settings": settings().model_dump(mode="json")}
        for name, (model, settings) in MODELS.items()
    ]
    floors = [
        {"name": name, "about": f"{_first_line(model)} (a floor)", "settings": {}} for name, model in FLOORS.items()
    ]
    return learnt + floors


def _first_line(model: type) -> str:
    return (model.__doc__ or "").strip().split("\n")[0].rstrip(".")
