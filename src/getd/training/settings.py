"""Settings of ``[training]``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from getd.settings import Settings


class TrainSettings(Settings):
    """One field, one meaning, one unit; what is not in the paper is off."""

    regime: Literal["1vsall", "kvsall"] = "1vsall"  # all positions of facts, or questions with all their answers
    kvsall_loss: Literal["softmax", "bce", "bce-over-softmax"] = "softmax"  # the last is that of the released code
    epochs: PositiveInt = 200
    batch_size: PositiveInt = 128  # facts (questions in kvsall)
    learning_rate: PositiveFloat = 1e-3
    decay: Annotated[float, Gt(0), Le(1)] = 0.995  # factor on the learning rate after each epoch
    label_smoothing: Annotated[float, Ge(0), Lt(1)] = 0.0  # weight spread over all candidates
    relation_loss: NonNegativeFloat = 0.0  # weight of predicting the relation as well
    n3: NonNegativeFloat = 0.0  # weight of the mean cube of the embeddings
    ema: Annotated[float, Ge(0), Lt(1)] = 0.0  # decay of the moving average of the weights that is evaluated; 0: none
    clip: PositiveFloat | None = None  # largest norm of the gradient; None: any
    patience: PositiveInt | None = 10  # validations without a better MRR before stopping; None: never
    validate_every: PositiveInt = 1  # epochs
    validation_sample: PositiveInt | None = None  # facts drawn once from valid; None: all
    checkpoint_every: PositiveInt = 1  # epochs
    seed: NonNegativeInt = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: PositiveInt | None = None  # of the CPU; None: as torch chooses

    @model_validator(mode="after")
    def _relation_loss_needs_facts(self) -> Self:
        if self.relation_loss and self.regime != "1vsall":
            raise ValueError("relation_loss goes with the regime 1vsall")
        return self
