"""All models by name; ``docs/adding-a-model.md`` says how to add one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from getd.config import build
from getd.errors import ConfigError, nearest
from getd.models.base import ScoringModel
from getd.models.complex import ComplEx, ComplExSettings
from getd.models.conve import ConvE, ConvESettings
from getd.models.distmult import DistMult, DistMultSettings
from getd.models.frequency import Frequency
from getd.models.getd import GETD, GETDSettings
from getd.models.hype import HypE, HypESettings
from getd.models.lookup import Lookup
from getd.models.n_cp import NCP, NCPSettings
from getd.models.n_tucker import NTuckER, NTuckERSettings
from getd.models.nalp import NaLP, NaLPSettings
from getd.models.rae import RAE, MTransH, MTransHSettings, RAESettings
from getd.models.ram import RAM, RAMSettings
from getd.models.reciprocal import Reciprocal
from getd.models.settings import ModelSettings
from getd.models.simple import SimplE, SimplESettings
from getd.models.transe import TransE, TransESettings
from getd.models.tucker import TuckER, TuckERSettings

MODELS: dict[str, tuple[type[ScoringModel], type[ModelSettings]]] = {
    "getd": (GETD, GETDSettings),
    "n-cp": (NCP, NCPSettings),
    "n-tucker": (NTuckER, NTuckERSettings),
    "distmult": (DistMult, DistMultSettings),
    "simple": (SimplE, SimplESettings),
    "hype": (HypE, HypESettings),
    "ram": (RAM, RAMSettings),
    "m-transh": (MTransH, MTransHSettings),
    "rae": (RAE, RAESettings),
    "nalp": (NaLP, NaLPSettings),
    "tucker": (TuckER, TuckERSettings),
    "complex": (ComplEx, ComplExSettings),
    "conve": (ConvE, ConvESettings),
    "transe": (TransE, TransESettings),
}
BASELINES: dict[str, type[ScoringModel]] = {
    "frequency": Frequency,
    "lookup": Lookup,
}  # counted from facts, never trained


def model_settings(name: str, values: Mapping[str, Any]) -> ModelSettings:
    """The checked settings of a model."""
    if not isinstance(name, str):
        raise ConfigError(f"expected the name of a model, found {name!r}")
    if name not in MODELS:
        raise ConfigError(
            f"no model {name!r}{nearest(name, list(MODELS))} (there are {', '.join(MODELS)})"
        )
    return build(MODELS[name][1], values, "model")


def make_model(
    name: str,
    settings: ModelSettings,
    n_entities: int,
    n_relations: int,
    arities: Sequence[int],
    generator: torch.Generator | None = None,
    roles: Sequence[Sequence[int]] | None = None,
) -> ScoringModel:
    """A new model with random weights.

    ``roles`` are the numbers of the roles of each relation's positions, where the data names roles.
    """
    make: Any = MODELS[name][0]
    if roles is not None and make.knows_roles:
        make = partial(make, roles=roles)
    if MODELS[name][0].binary_only and set(arities) != {2}:
        found = ", ".join(map(str, sorted(set(arities) - {2})))
        others = ", ".join(other for other, (model, _) in MODELS.items() if not model.binary_only)
        raise ConfigError(
            f"{name} is for facts of two entities, found arity {found}; for any arity: {others}"
        )
    if not getattr(settings, "reciprocal", False):
        model: ScoringModel = make(n_entities, n_relations, arities, settings, generator)
        return model
    return Reciprocal(
        make(n_entities, n_relations * max(arities), arities, settings, generator), n_relations
    )


def count_parameters(
    n_entities: int, n_relations: int, arities: Sequence[int]
) -> dict[str, int | None]:
    """How many numbers each model learns with its default settings; ``None``: it does not serve these arities."""
    counts: dict[str, int | None] = {}
    for name in MODELS:
        try:
            with torch.device("meta"):
                model = make_model(name, model_settings(name, {}), n_entities, n_relations, arities)
        except ConfigError:
            counts[name] = None
        else:
            counts[name] = sum(parameter.numel() for parameter in model.parameters())
    return counts


def describe_models() -> list[dict[str, Any]]:
    """Name, arity, size, first sentence and settings of every model, the baselines among them."""
    learnt = [
        _describe(name, model) | {"settings": settings().model_dump(mode="json")}
        for name, (model, settings) in MODELS.items()
    ]
    return learnt + [_describe(name, model) | {"settings": {}} for name, model in BASELINES.items()]


def _describe(name: str, model: type[ScoringModel]) -> dict[str, Any]:
    about = (model.__doc__ or "").strip().split("\n")[0].rstrip(".")
    arity = "2" if model.binary_only else "any"
    return {"name": name, "arity": arity, "parameters": model.parameters_formula, "about": about}
