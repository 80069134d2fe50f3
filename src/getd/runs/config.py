"""Everything that decides a training: the sections of a config, parsed and checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from getd.choices import (
    PRESETS,
    DeviceName,
    KvsAllLoss,
    OptimizerName,
    Precision,
    Preset,
    RegimeName,
    SampledLoss,
    Schedule,
)
from getd.config import Settings, build, section_of, with_values
from getd.errors import ConfigError, nearest
from getd.models.registry import MODELS, model_settings
from getd.models.settings import ModelSettings, TensorModelSettings

SECTIONS = ("data", "preset", "model", "training", "memory", "published", "row")


WEIGHTED_LOSSES = ("softmax", "each-answer")  # of kvsall, in which questions may have weights


class MemorySettings(Settings):
    """Settings of ``[memory]``."""

    # Give the finished model a memory of the training facts, with weights fitted on validation.
    use: bool = False


class TrainSettings(Settings):
    """Settings of ``[training]``; by default, everything that the paper does not have is off."""

    regime: RegimeName = "1vsall"  # which candidates a step scores

    # Only with the regime ``kvsall``
    kvsall_loss: KvsAllLoss = "softmax"  # bce-over-softmax: as in the released code
    question_weight: NonNegativeFloat = 0.0  # a question weighs its number of answers to this power
    drawn_candidates: PositiveInt | None = (
        None  # random, next to the answers of a batch; None: all entities
    )

    # Only with the regime ``sampled``
    negatives: PositiveInt = 256  # drawn for each position; at most all entities
    shared_negatives: bool = True  # one sample for a batch; false: one for each fact
    negative_power: NonNegativeFloat = 0.0  # draw by frequency to this power; 0: uniformly
    hard_negatives: NonNegativeInt = 0  # the hardest, kept for each question; 0: none
    sampled_loss: SampledLoss = "softmax"
    correction: bool = True  # softmax: weight negatives so that they stand for all
    margin: PositiveFloat = 1.0  # of the margin loss
    score_shift: NonNegativeFloat = 0.0  # logistic loss: added to scores, for distances
    self_adversarial: NonNegativeFloat = 0.0  # weights: softmax(this * score); 0: equal

    optimizer: OptimizerName = "adam"
    epochs: PositiveInt = 200
    batch_size: PositiveInt = 128  # facts (questions in kvsall)
    learning_rate: PositiveFloat = 1e-3
    schedule: Schedule = "exponential"  # of the learning rate; linear: falls evenly to 0.02 of it
    decay: Annotated[float, Gt(0), Le(1)] = 0.995  # exponential: factor for each epoch
    warmup: NonNegativeInt = 0  # steps in which the learning rate rises to its start
    label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0  # weight spread over all candidates
    relation_loss: NonNegativeFloat = 0.0  # weight of predicting the relation as well
    n3: NonNegativeFloat = 0.0  # weight of the mean cube of the embeddings
    ema: Annotated[float, Ge(0), Lt(1)] = 0.0  # decay of the moving average of weights; 0: none
    clip: PositiveFloat | None = None  # largest norm of the gradient; None: any

    patience: NonNegativeInt = 10  # stop after so many validations without a gain; 0: never
    validate_every: PositiveInt = 1  # epochs
    validation_sample: PositiveInt | None = None  # facts drawn once from valid; None: all
    validation_loss: bool = False  # also measure the loss on validation, for the curves
    test_sample: PositiveInt | None = None  # facts of test drawn for the report; None: all
    checkpoint_every: PositiveInt = 1  # epochs

    seed: NonNegativeInt = 0
    device: DeviceName = "auto"
    precision: Precision = "auto"  # of matrix products; auto: bf16 if the CPU is faster
    threads: PositiveInt | None = None  # of the CPU; None: as torch chooses

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.question_weight and self.kvsall_loss not in WEIGHTED_LOSSES:
            raise ValueError("question_weight goes with the kvsall_loss softmax or each-answer")
        if self.self_adversarial and self.sampled_loss == "softmax":
            raise ValueError("self_adversarial goes with the sampled_loss margin or logistic")
        if self.hard_negatives and self.shared_negatives:
            raise ValueError("hard_negatives goes with shared_negatives = false")
        return self


@dataclass(frozen=True)
class Config:
    """A model, how it is trained, and what else a config file says."""

    model_name: str
    model: ModelSettings
    training: TrainSettings
    memory: MemorySettings
    data: Any = None  # a name or a path, used if no other data is given
    published: Any = None  # metrics to show next to the result
    preset: Preset = "auto"  # auto: rules choose what is not given; paper: plain defaults
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as the user wrote it

    @classmethod
    def parse(cls, tables: Mapping[str, Any], model: str | None = None, **training: Any) -> Self:
        """Check the tables of a config; ``model`` and ``training`` take precedence over them."""
        for section in tables:
            if section not in SECTIONS:
                raise ConfigError(f"no section {section!r} in a config{nearest(section, SECTIONS)}")
        if isinstance(tables.get("data"), Path):
            tables = {**tables, "data": str(tables["data"])}

        model_values = section_of(tables, "model")
        if model:
            model_values["name"] = model
        training_values = section_of(tables, "training") | training
        given = {**tables, "model": model_values, "training": training_values}

        name = model_values.get("name", "getd")
        settings = {key: value for key, value in model_values.items() if key != "name"}
        if "name" not in model_values:
            _check_getd_has(settings)
        checked = model_settings(name, settings)
        defaults = dict(MODELS[name].training_defaults)
        if training_values.get("kvsall_loss", "softmax") not in WEIGHTED_LOSSES:
            defaults.pop("question_weight", None)
        chosen = build(TrainSettings, {**defaults, **training_values}, "training")

        # A kvsall batch opens one position, so batch statistics are those of one position.
        if isinstance(checked, TensorModelSettings) and checked.norms_by_position is None:
            by_position = chosen.regime == "kvsall" and checked.norm == "batch"
            checked = checked.model_copy(update={"norms_by_position": by_position})

        memory = build(MemorySettings, section_of(tables, "memory"), "memory")
        preset = tables.get("preset", "auto")
        if preset not in PRESETS:
            expected = " or ".join(PRESETS)
            hint = nearest(preset, PRESETS) if isinstance(preset, str) else ""
            raise ConfigError(f"preset is {expected}, found {preset!r}{hint}")
        extra = {key: tables[key] for key in ("data", "published") if key in tables}
        return cls(name, checked, chosen, memory, given=given, preset=preset, **extra)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Parse the config again with other values, named ``section.key``."""
        return self.parse(with_values(self.given, values))

    def tables(self) -> dict[str, Any]:
        """Return every setting, ready to be written as TOML."""
        extra = {"data": self.data, "published": self.published}
        return {
            **{key: value for key, value in extra.items() if value is not None},
            "model": {"name": self.model_name, **self.model.model_dump()},
            "training": self.training.model_dump(),
            "memory": self.memory.model_dump(),
        }


def _check_getd_has(settings: Mapping[str, Any]) -> None:
    """Refuse a setting of another model: without the name of a model, settings are those of GETD.

    What no model has is left to the settings, which name the nearest one.
    """
    for key in settings:
        having = [name for name in MODELS if key in MODELS[name].settings.model_fields]
        if having and "getd" not in having:
            model = "encoder" if "encoder" in having else having[0]
            problem = f"getd has no setting model.{key}, and is the model where none is named"
            raise ConfigError(f"{problem}; {model} has it: add --model {model}")
