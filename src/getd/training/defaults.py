"""Defaults that follow the shape of the data: what a config leaves open, chosen by a few rules.

The rules were fitted on the validation facts of the fitting kinds of ``experiments/collection``;
the other half of its kinds was held out. They apply to the models in ``RULES``. Other models, and
the preset ``paper``, keep the defaults of their settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any, Self

from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.training.callbacks import Callbacks

DEFAULT_MODEL = "encoder"  # if neither a model nor any of its settings is given
STEPS = 5000  # of the optimiser, which the number of epochs aims at
MOST_STEPS = 60_000  # that very large sets take
LEAST_EPOCHS = 3
PATIENCE = 15  # epochs
MAX_VALIDATION = 5000  # facts that an epoch is validated on
MANY_QUESTIONS = 100_000  # from which on the network is wider, and everything is smoother
MANY_ENTITIES = 16_384  # from which on some are drawn as candidates
DRAWN = 8192


@dataclass(frozen=True)
class Shape:
    """What rules look at."""

    facts: int
    questions: int  # one for each position of each fact
    entities: int
    arities: tuple[int, ...]
    validation_facts: int

    @classmethod
    def of(cls, kb: KnowledgeBase) -> Self:
        train = kb.split("train")
        return cls(
            facts=count(train),
            questions=sum(len(facts) * facts.arity for facts in train.values()),
            entities=kb.n_entities,
            arities=tuple(kb.arities),
            validation_facts=count(kb.splits.get("valid", {})),
        )


Rule = Callable[[Shape], dict[str, Any]]  # to settings by section and key, "training.epochs"


def encoder_rule(shape: Shape) -> dict[str, Any]:
    """Some five thousand steps; small sets in small batches, large ones with a wider network."""
    batch_size = _power_of_two(shape.questions / 60, 64, 512)
    steps_per_epoch = max(1, round(shape.questions / batch_size))
    is_large = shape.questions >= MANY_QUESTIONS
    epochs = min(max(round(STEPS / steps_per_epoch), 30 if is_large else 20), 150)
    epochs = min(epochs, max(MOST_STEPS // steps_per_epoch, LEAST_EPOCHS))

    values: dict[str, Any] = {
        "training.batch_size": batch_size,
        "training.epochs": epochs,
        "training.patience": PATIENCE,
        "training.drawn_candidates": DRAWN if shape.entities > MANY_ENTITIES else None,
    }
    if is_large:
        values |= {
            "model.entity_dim": 256,
            "model.dropout": 0.3,
            "training.label_smoothing": 0.6,
        }
    return values


def getd_rule(shape: Shape) -> dict[str, Any]:
    """Much dropout, and averaged weights; one ring for all arities."""
    return {
        "model.entity_dropout": 0.2,
        "model.query_dropout": 0.4,
        "model.shared_ring": len(shape.arities) > 1,
        "training.learning_rate": 0.004,
        "training.label_smoothing": 0.1,
        "training.ema": 0.997,
        "training.batch_size": _power_of_two(shape.facts / 40, 16, 128),
    }


RULES: Mapping[str, Rule] = {"encoder": encoder_rule, "getd": getd_rule}


def default_model(config: Config) -> str:
    """Return the model that a config asks for; settings without a name are those of GETD."""
    is_open = config.preset == "auto" and not config.given.get("model")
    return DEFAULT_MODEL if is_open else config.model_name


def fill_in(config: Config, kb: KnowledgeBase) -> Config:
    """Choose what a config leaves open; what it says stays as it is."""
    name = default_model(config)
    if config.preset != "auto" or name not in RULES:
        return config

    shape = Shape.of(kb)
    chosen = {"model.name": name, **RULES[name](shape)}
    if _is_given(config, "training.epochs"):
        chosen.pop("training.patience", None)  # all of them are wanted
    if shape.validation_facts:
        chosen["memory.use"] = True
    if shape.validation_facts > MAX_VALIDATION:
        chosen["training.validation_sample"] = MAX_VALIDATION
    return config.with_values({key: chosen[key] for key in chosen if not _is_given(config, key)})


def fill_in_aloud(config: Config, kb: KnowledgeBase, callbacks: Callbacks | None) -> Config:
    """Choose what a config leaves open, and say so; without train facts it stays as it is."""
    if not kb.splits.get("train"):
        return config
    chosen = fill_in(config, kb)
    sentence = describe_choice(config, chosen, kb)
    if callbacks and sentence:
        callbacks.on_choice(sentence)
    return chosen


def describe_choice(before: Config, after: Config, kb: KnowledgeBase) -> str | None:
    """Say in one line what :func:`fill_in` chose; None if there was nothing to choose."""
    chosen = []
    for section in ("model", "training"):
        for key, value in after.given.get(section, {}).items():
            if not _is_given(before, f"{section}.{key}") and value not in (None, False):
                word = "model" if key == "name" else key
                chosen.append(word if value is True else f"{word} {value}")
    if after.memory.use and not before.memory.use:
        chosen.append("memory")
    if not chosen:
        return None

    shape = Shape.of(kb)
    arities = ", ".join(map(str, shape.arities))
    facts = "1 fact" if shape.facts == 1 else f"{shape.facts:,} facts"
    data = f"{facts} of arity {arities}, {shape.entities:,} entities"
    return f"chosen for {data}: {', '.join(chosen)}"


def _is_given(config: Config, name: str) -> bool:
    section, _, key = name.partition(".")
    return key in config.given.get(section, {})


def _power_of_two(number: float, least: int, most: int) -> int:
    """Round to a power of two between two others.

    >>> [_power_of_two(number, 64, 512) for number in (10, 100, 200, 9000)]
    [64, 128, 256, 512]
    """
    return int(min(max(2 ** round(log2(max(number, 1))), least), most))
