"""The candidates of a search: the plain default for the data, and variations of it.

What the user gives stays as it is in all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from getd.errors import ConfigError
from getd.evaluation.protocol import Sample
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.registry import MODELS
from getd.runs.config import Config
from getd.training.defaults import Shape, default_model, fill_in

DEFAULT = "default"
GETD_STEPS = 15_000  # of the optimiser: GETD learns more slowly than the encoder
SEEDS = 3  # further seeds of the best candidate, tried when all others are

Values = Mapping[str, Any]  # settings by section and key, "training.epochs"


@dataclass(frozen=True)
class Variant:
    """A way to differ from the default."""

    name: str
    model: str
    values: Values


# In the order in which they are tried: a variant of another kind is worth most.
ENCODERS = (
    Variant("attention", "encoder", {"model.kind": "attention"}),
    Variant("ring", "encoder", {"model.ring_query_ranks": 32}),
    Variant("wide", "encoder", {"model.entity_dim": 256, "model.dropout": 0.3}),
    Variant("more-smoothing", "encoder", {"training.label_smoothing": 0.7}),
    Variant("less-smoothing", "encoder", {"training.label_smoothing": 0.1}),
    Variant("more-dropout", "encoder", {"model.dropout": 0.35}),
    Variant("less-dropout", "encoder", {"model.dropout": 0.1}),
    Variant(
        "wide-attention",
        "encoder",
        {"model.kind": "attention", "model.entity_dim": 256, "model.dropout": 0.3},
    ),
)
GETDS = (
    Variant("getd", "getd", {}),
    Variant("getd-50", "getd", {"model.entity_dim": 50}),
    Variant("getd-more-smoothing", "getd", {"training.label_smoothing": 0.3}),
    Variant("getd-less-dropout", "getd", {"model.entity_dropout": 0.1, "model.query_dropout": 0.2}),
)
COMPLEX = Variant(
    "complex",
    "complex",
    {
        "model.entity_dim": 100,
        "model.reciprocal": True,
        "training.regime": "sampled",
        "training.negatives": 1000,
        "training.batch_size": 500,
        "training.learning_rate": 0.003,
        "training.n3": 0.003,
        "training.epochs": 40,
    },
)


def candidates(config: Config, kb: KnowledgeBase) -> dict[str, Config]:
    """Derive the candidates for the data by name; the default is the first."""
    default = fill_in(config, kb)
    derived = {DEFAULT: default}
    for variant in _variants(config, default, kb):
        changed = _vary(config, kb, variant, default.training.validation_sample)
        if changed is not None and not any(_is_same(changed, other) for other in derived.values()):
            derived[variant.name] = changed
    return derived


def other_seeds(name: str, config: Config) -> dict[str, Config]:
    """Derive candidates that differ from another in their seed alone, unless a seed is given."""
    if "seed" in config.given.get("training", {}):
        return {}
    derived = {}
    for seed in range(1, SEEDS + 1):
        derived[f"{name}-seed-{seed}"] = config.with_values({"training.seed": seed})
    return derived


def differences(config: Config, default: Config) -> dict[str, Any]:
    """Return the settings that make a candidate differ from the default, by section and key."""
    defaults = default.tables()
    differing = {}
    for section in ("model", "training"):
        for key, value in config.given.get(section, {}).items():
            if defaults[section].get(key) != value:
                differing[f"{section}.{key}"] = value
    return differing


def _variants(config: Config, default: Config, kb: KnowledgeBase) -> list[Variant]:
    """List the variants to try: of all models, or of the one that the user chose."""
    if not config.given.get("model"):
        first, *others = ENCODERS
        return [first, GETDS[0], COMPLEX, *others, *GETDS[1:]]

    by_model = {"encoder": list(ENCODERS), "getd": list(GETDS)}
    name = default_model(config)
    return by_model.get(name) or _plain_variants(name, default)


def _plain_variants(name: str, default: Config) -> list[Variant]:
    """Vary a model about which nothing special is known."""
    training = default.training
    variants = [
        Variant("averaged", name, {"training.ema": 0.997}),
        Variant("smooth", name, {"training.label_smoothing": 0.1}),
        Variant("faster", name, {"training.learning_rate": training.learning_rate * 3}),
        Variant("slower", name, {"training.learning_rate": training.learning_rate / 3}),
    ]
    entity_dim = getattr(default.model, "entity_dim", None)
    if isinstance(entity_dim, int):
        variants.append(Variant("wide", name, {"model.entity_dim": 2 * entity_dim}))
    return variants


def _vary(
    config: Config, kb: KnowledgeBase, variant: Variant, validation_sample: Sample
) -> Config | None:
    """Apply a variant where the user left settings open; None: it does not go with the data."""
    if MODELS[variant.model].model.binary_only and set(kb.arities) != {2}:
        return None

    values = {"model.name": variant.model, **_left_open(config, variant.values)}
    if validation_sample:  # all are compared on as many facts, whatever their models begin with
        values["training.validation_sample"] = validation_sample
    try:
        varied = fill_in(config.with_values(values), kb)
        if variant not in GETDS:
            return varied
        schedule = _getd_schedule(varied.training.batch_size, kb)
        return varied.with_values(_left_open(config, schedule))
    except ConfigError:  # what the user gave does not go with this variant
        return None


def _left_open(config: Config, values: Values) -> dict[str, Any]:
    """Return the values of settings that the user did not give."""
    kept = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        if key not in config.given.get(section, {}):
            kept[name] = value
    return kept


def _getd_schedule(batch_size: int, kb: KnowledgeBase) -> Values:
    """Let GETD learn as long as it needs, with a learning rate that falls to the end."""
    epochs = min(max(GETD_STEPS * batch_size // Shape.of(kb).facts, 40), 200)
    return {
        "training.schedule": "linear",
        "training.epochs": epochs,
        "training.patience": max(10, epochs // 3),
    }


def _is_same(config: Config, other: Config) -> bool:
    return (config.model_name, config.model, config.training) == (
        other.model_name,
        other.model,
        other.training,
    )
