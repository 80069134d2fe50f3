"""Settings of ``[training]`` and ``[memory]``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from getd.config import Settings


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
