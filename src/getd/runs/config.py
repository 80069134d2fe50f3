"""Everything that decides a training: the sections of a config, parsed and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from getd.config import Settings, build, section_of, with_values
from getd.errors import ConfigError, nearest
from getd.models.registry import MODELS, model_settings
from getd.models.settings import ModelSettings, TensorModelSettings

SECTIONS = ("data", "model", "training", "memory", "published", "row")


class MemorySettings(Settings):
    """Settings of ``[memory]``."""

    use: bool = False  # whether the finished model gets a memory of the training facts, its weights fitted on valid


class TrainSettings(Settings):
    """One field, one meaning, one unit; what is not in the paper is off."""

    regime: Literal["1vsall", "kvsall", "sampled"] = (
        "1vsall"  # facts, questions with all their answers, facts
    )
    kvsall_loss: Literal["softmax", "bce", "bce-over-softmax"] = (
        "softmax"  # the last is that of the released code
    )
    negatives: PositiveInt = (
        256  # sampled: candidates drawn for each position; as many as entities or more: all
    )
    shared_negatives: bool = True  # sampled: drawn once for a batch; false: for each fact of it
    negative_power: NonNegativeFloat = (
        0.0  # sampled: drawn in proportion to frequency to this power; 0: uniformly
    )
    hard_negatives: NonNegativeInt = (
        0  # sampled: kept for each question, the drawn ones only to find harder; 0: none
    )
    sampled_loss: Literal["softmax", "margin", "logistic"] = "softmax"
    correction: bool = (
        True  # softmax over drawn negatives: weighed, so that they stand for all candidates
    )
    margin: PositiveFloat = 1.0  # of the margin loss
    score_shift: NonNegativeFloat = (
        0.0  # logistic loss: added to scores (those of distances are negative)
    )
    self_adversarial: NonNegativeFloat = (
        0.0  # margin, logistic: negatives weigh softmax(this x score); 0: alike
    )
    optimizer: Literal["adam", "adagrad"] = "adam"
    epochs: PositiveInt = 200
    batch_size: PositiveInt = 128  # facts (questions in kvsall)
    learning_rate: PositiveFloat = 1e-3
    decay: Annotated[float, Gt(0), Le(1)] = 0.995  # factor on the learning rate after each epoch
    label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0  # weight spread over all candidates
    relation_loss: NonNegativeFloat = 0.0  # weight of predicting the relation as well
    n3: NonNegativeFloat = 0.0  # weight of the mean cube of the embeddings
    ema: Annotated[float, Ge(0), Lt(1)] = (
        0.0  # decay of the moving average of the weights that is evaluated; 0: none
    )
    clip: PositiveFloat | None = None  # largest norm of the gradient; None: any
    patience: NonNegativeInt = 10  # validations without a better MRR before stopping; 0: never
    validate_every: PositiveInt = 1  # epochs
    validation_sample: PositiveInt | None = None  # facts drawn once from valid; None: all
    validation_loss: bool = False  # measured as well, for curves
    test_sample: PositiveInt | None = None  # facts of test drawn for the report; None: all
    checkpoint_every: PositiveInt = 1  # epochs
    seed: NonNegativeInt = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: PositiveInt | None = None  # of the CPU; None: as torch chooses

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.relation_loss and self.regime == "kvsall":
            raise ValueError("relation_loss goes with the regimes 1vsall and sampled")
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
    data: Any = None  # a name or a path, used where no other data is named
    published: Any = None  # metrics to show next to the result
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as the user wrote it

    @classmethod
    def parse(cls, tables: Mapping[str, Any], model: str | None = None, **training: Any) -> Config:
        """Check the tables of a config; ``model`` and settings of ``[training]`` take precedence."""
        for section in tables:
            if section not in SECTIONS:
                raise ConfigError(f"no section {section!r} in a config{nearest(section, SECTIONS)}")

        model_values = section_of(tables, "model")
        if model:
            model_values["name"] = model
        training_values = section_of(tables, "training") | training
        given = {**tables, "model": model_values, "training": training_values}

        name = model_values.get("name", "getd")
        settings = {key: value for key, value in model_values.items() if key != "name"}
        checked = model_settings(name, settings)
        defaults = MODELS[name].training_defaults
        chosen = build(TrainSettings, {**defaults, **training_values}, "training")

        # A kvsall batch opens one position, so batch statistics are those of one position.
        if isinstance(checked, TensorModelSettings) and checked.norms_by_position is None:
            by_position = chosen.regime == "kvsall" and checked.norm == "batch"
            checked = checked.model_copy(update={"norms_by_position": by_position})

        memory = build(MemorySettings, section_of(tables, "memory"), "memory")
        extra = {key: tables[key] for key in ("data", "published") if key in tables}
        return cls(name, checked, chosen, memory, given=given, **extra)

    def with_values(self, values: Mapping[str, Any]) -> Config:
        """Parse the config again with other values, named ``section.key``."""
        return Config.parse(with_values(self.given, values))

    def tables(self) -> dict[str, Any]:
        """Return every setting, ready to be written as TOML."""
        extra = {"data": self.data, "published": self.published}
        return {
            **{key: value for key, value in extra.items() if value is not None},
            "model": {"name": self.model_name, **self.model.model_dump()},
            "training": self.training.model_dump(),
            "memory": self.memory.model_dump(),
        }
