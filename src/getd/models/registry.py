"""All models by name; ``docs/adding-a-model.md`` says how to add one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from getd.config import build
from getd.errors import ConfigError, nearest
from getd.models.base import ModelSizes, ScoringModel
from getd.models.complex import ComplEx, ComplExSettings
from getd.models.conve import ConvE, ConvESettings
from getd.models.distmult import DistMult, DistMultSettings
from getd.models.encoder import Encoder, EncoderSettings
from getd.models.ensemble import combine_members
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

# 1vsall would not be cheap for distances.
DISTANCES = {"regime": "sampled", "sampled_loss": "softmax", "negatives": 512}
# Products of small numbers are slow to leave the start.
PRODUCTS = {"learning_rate": 0.01}
# Each candidate passes through a network.
NETWORK = {"regime": "sampled", "negatives": 64, "validation_sample": 300}
# A network learns from distinct questions, in large batches.
ENCODER = {
    "regime": "kvsall",
    "question_weight": 1.0,
    "batch_size": 512,
    "learning_rate": 2e-3,
    "label_smoothing": 0.4,
    "ema": 0.995,
    "clip": 1.0,
    "schedule": "linear",
    "warmup": 100,
    "epochs": 40,
    "patience": 0,
}


@dataclass(frozen=True)
class ModelEntry:
    """All that is known about a model by its name."""

    model: type[ScoringModel]
    settings: type[ModelSettings]
    title: str  # as papers write it
    training_defaults: Mapping[str, Any] = field(default_factory=dict)  # of ``[training]``
    # Shown or refuted by tests, which docs/maths.md names; None: neither.
    fully_expressive: bool | None = None


MODELS: dict[str, ModelEntry] = {
    "getd": ModelEntry(GETD, GETDSettings, "GETD", fully_expressive=True),
    "n-cp": ModelEntry(NCP, NCPSettings, "n-CP", fully_expressive=True),
    "n-tucker": ModelEntry(NTuckER, NTuckERSettings, "n-TuckER", fully_expressive=True),
    "distmult": ModelEntry(DistMult, DistMultSettings, "DistMult", PRODUCTS, False),
    "simple": ModelEntry(SimplE, SimplESettings, "SimplE", PRODUCTS, True),
    "hype": ModelEntry(HypE, HypESettings, "HypE", PRODUCTS, True),
    "ram": ModelEntry(RAM, RAMSettings, "RAM"),
    "m-transh": ModelEntry(MTransH, MTransHSettings, "m-TransH", DISTANCES, False),
    "rae": ModelEntry(RAE, RAESettings, "RAE", DISTANCES, False),
    "nalp": ModelEntry(NaLP, NaLPSettings, "NaLP", NETWORK, True),
    "encoder": ModelEntry(Encoder, EncoderSettings, "Encoder", ENCODER),
    "tucker": ModelEntry(TuckER, TuckERSettings, "TuckER"),
    "complex": ModelEntry(ComplEx, ComplExSettings, "ComplEx", PRODUCTS),
    "conve": ModelEntry(ConvE, ConvESettings, "ConvE"),
    "transe": ModelEntry(TransE, TransESettings, "TransE", DISTANCES),
}
# Counted from facts, never trained.
BASELINES: dict[str, type[Frequency | Lookup]] = {"frequency": Frequency, "lookup": Lookup}
COMBINED = "combined"  # the model of a run that getd combine made of others


def model_settings(name: object, values: Mapping[str, Any]) -> ModelSettings:
    """Check the settings of a model."""
    if not isinstance(name, str):
        raise ConfigError(f"expected the name of a model, found {name!r}")
    if name == COMBINED:
        raise ConfigError("a combined model is not trained; getd combine makes it from runs")
    if name not in MODELS:
        raise ConfigError(
            f"no model {name!r}{nearest(name, list(MODELS))} (there are {', '.join(MODELS)})"
        )
    return build(MODELS[name].settings, values, "model")


def make_model(
    name: str, settings: ModelSettings, sizes: ModelSizes, generator: torch.Generator | None = None
) -> ScoringModel:
    """Make a new model with random weights."""
    arities = set(sizes.arities)
    if MODELS[name].model.binary_only and arities != {2}:
        wrong = ", ".join(map(str, sorted(arities - {2})))
        others = ", ".join(key for key, entry in MODELS.items() if not entry.model.binary_only)
        raise ConfigError(
            f"{name} is for facts of two entities, found arity {wrong}; for any arity: {others}"
        )

    make: Any = MODELS[name].model
    if not getattr(settings, "reciprocal", False):
        model: ScoringModel = make(sizes, settings, generator)
        return model
    inner_sizes = replace(sizes, n_relations=sizes.n_relations * max(sizes.arities))
    return Reciprocal(sizes, make(inner_sizes, settings, generator))


def build_model(name: str, values: Mapping[str, Any], sizes: ModelSizes) -> ScoringModel:
    """Build the model of a run, trained or combined, from settings that are not checked yet."""
    if name != COMBINED:
        return make_model(name, model_settings(name, values), sizes)

    members = values.get("members")
    if not (isinstance(members, list) and all(isinstance(each, Mapping) for each in members)):
        raise ConfigError("expected model.members to list the settings of models")
    if len(members) < 2:
        raise ConfigError(f"expected model.members to list two or more, found {len(members)}")
    models = []
    for member in members:
        settings = {key: value for key, value in member.items() if key != "name"}
        checked = model_settings(member.get("name"), settings)
        models.append(make_model(member["name"], checked, sizes))
    return combine_members(models)


def count_parameters(
    n_entities: int, n_relations: int, arities: Sequence[int]
) -> dict[str, int | None]:
    """Count the numbers each model learns by default; None: it does not serve these arities."""
    sizes = ModelSizes(n_entities, n_relations, arities)
    counts: dict[str, int | None] = {}
    for name, entry in MODELS.items():
        try:
            with torch.device("meta"):
                model = make_model(name, entry.settings(), sizes)
        except ConfigError:
            counts[name] = None
        else:
            counts[name] = sum(parameter.numel() for parameter in model.parameters())
    return counts


def describe_models() -> list[dict[str, Any]]:
    """Describe every model and baseline: name, arity, size, first sentence and settings."""
    records = []
    for name, entry in MODELS.items():
        records.append(_record(name, entry.model, entry.settings().model_dump(mode="json")))
    for name, model in BASELINES.items():
        records.append(_record(name, model, {}))
    return records


def _record(name: str, model: type[ScoringModel], settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "arity": "2" if model.binary_only else "any",
        "parameters": model.parameters_formula,
        "about": (model.__doc__ or "").strip().split("\n")[0].rstrip("."),
        "settings": settings,
    }
