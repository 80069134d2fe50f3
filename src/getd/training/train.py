"""The training loop, to be read from top to bottom."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from getd.errors import NonFiniteScores
from getd.models.base import ScoringModel
from getd.prediction.run import fill
from getd.training.batches import Regime, Work, one_ahead, shuffled_batches
from getd.training.checkpoint import (
    Progress,
    Weights,
    copy_weights,
    load_checkpoint,
    restore_optimizer,
    save_checkpoint,
)
from getd.training.settings import TrainSettings


@dataclass(frozen=True)
class Epoch:
    """A line of the history."""

    epoch: int
    loss: float  # mean over facts
    seconds: float  # training alone
    facts: int  # that were learnt from (questions in kvsall)
    learning_rate: float
    valid_mrr: float | None  # where it was measured


@dataclass(frozen=True)
class Watch:
    """How the loop talks to the outside."""

    on_batch: Callable[[int, int, int], None] = lambda epoch, done, total: None  # batches of the epoch
    on_epoch: Callable[[Epoch], None] = lambda epoch: None
    should_stop: Callable[[], bool] = lambda: False  # asked after every batch: an interrupt


class Interrupted(KeyboardInterrupt):
    """The training was asked to stop; its checkpoint is written."""


class Trainer:
    """One training: a model, what it learns from, and where it stands."""

    def __init__(
        self,
        model: ScoringModel,
        regime: Regime,
        validate: Callable[[ScoringModel], float] | None,
        settings: TrainSettings,
    ) -> None:
        self.model, self.regime, self.validate, self.settings = model, regime, validate, settings
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.progress = Progress(generator=self.generator.get_state())
        self.average: Weights = copy_weights(model) if settings.ema else {}
        self.best: Weights = {}
        self._followed: list[tuple[Tensor, Tensor]] = []  # parts of the average and what they follow

    def train(self, checkpoint: Path | None = None, watch: Watch | None = None) -> None:
        """Train until the last epoch or until patience ends; the model is left holding its best weights.

        Raises
        ------
        Interrupted
            When ``watch.should_stop`` says so: the checkpoint is written, and training can go on from there.
        """
        progress, settings, watch = self.progress, self.settings, watch or Watch()
        while progress.epoch <= settings.epochs and not progress.finished:
            learning_rate = settings.learning_rate * settings.decay ** (progress.epoch - 1)
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self._one_epoch(checkpoint, watch)
            mrr = self._validate()
            mean = progress.loss_sum / progress.n_facts
            epoch = Epoch(progress.epoch, mean, progress.seconds, progress.n_facts, learning_rate, mrr)
            progress.finished = settings.patience is not None and progress.worse >= settings.patience
            progress.epoch, progress.batches_done, progress.loss_sum = progress.epoch + 1, 0, 0.0
            progress.n_facts, progress.seconds, progress.generator = 0, 0.0, self.generator.get_state()
            watch.on_epoch(epoch)
            if checkpoint and (
                epoch.epoch % settings.checkpoint_every == 0 or progress.finished or epoch.epoch == settings.epochs
            ):
                self.save(checkpoint)
        self.model.load_state_dict(self.best or self.average or copy_weights(self.model))
        self.model.eval()

    def _one_epoch(self, checkpoint: Path | None, watch: Watch) -> None:
        progress = self.progress
        self.generator.set_state(progress.generator)  # in the middle of an epoch, the same batches are drawn again
        batches = shuffled_batches(self.regime.sizes, self.settings.batch_size, self.generator)
        self.model.train()
        ahead = batches[progress.batches_done :]
        start = time.perf_counter()
        for batch, work in zip(ahead, one_ahead(self.regime.prepare, ahead), strict=True):
            loss, n_facts = self.step(work), len(batch.rows)
            progress.seconds, start = progress.seconds + time.perf_counter() - start, time.perf_counter()
            progress.loss_sum, progress.n_facts = progress.loss_sum + loss * n_facts, progress.n_facts + n_facts
            progress.batches_done, progress.steps = progress.batches_done + 1, progress.steps + 1
            watch.on_batch(progress.epoch, progress.batches_done, len(batches))
            if watch.should_stop():
                if checkpoint:
                    self.save(checkpoint)
                raise Interrupted

    def step(self, work: Work) -> float:
        """One step of the optimiser on a batch that is prepared; returns the loss before it."""
        parameters = self.optimizer.param_groups[0]["params"]
        for parameter in parameters:
            parameter.grad = None
        value = work(self.model).item()
        if not math.isfinite(value):
            raise NonFiniteScores(f"the loss became {value}; try a smaller learning_rate")
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()
        if self.settings.clip:
            torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip)
        self.optimizer.step()
        if self.settings.ema:
            self._follow()
        return value

    @torch.no_grad()
    def _follow(self) -> None:
        """The moving average takes a step; a short one at first, so that the first weights do not linger."""
        decay = min(self.settings.ema, (1 + self.progress.steps) / (10 + self.progress.steps))
        if not self._followed:
            self._followed = [(self.average[name], tensor) for name, tensor in self.model.state_dict().items()]
        for average, tensor in self._followed:
            if tensor.is_floating_point():
                average.lerp_(tensor, 1 - decay)
            else:
                average.copy_(tensor)

    def _validate(self) -> float | None:
        progress = self.progress
        is_due = progress.epoch % self.settings.validate_every == 0 or progress.epoch == self.settings.epochs
        if self.validate is None or not is_due:
            return None
        with self._evaluated_weights():
            mrr = self.validate(self.model)
            if mrr > progress.best_mrr:
                progress.best_mrr, progress.best_epoch, progress.worse = mrr, progress.epoch, 0
                self.best = copy_weights(self.model)
            else:
                progress.worse += 1
        return mrr

    @contextmanager
    def _evaluated_weights(self) -> Iterator[None]:
        """The model with the moving average in it, where there is one."""
        if not self.settings.ema:
            yield
            return
        current = copy_weights(self.model)
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(current)

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        parts = {"model": copy_weights(self.model), "average": self.average, "best": self.best}
        save_checkpoint(path, self.progress, parts, self.optimizer, json.loads(self.settings.model_dump_json()))

    def resume(self, path: Path) -> dict[str, Any]:
        """Go on from a checkpoint; returns the settings it was written with."""
        self.progress, parts, settings = load_checkpoint(path)
        fill(self.model, parts["model"], path)
        self.average, self.best, self._followed = parts.get("average", {}), parts.get("best", {}), []
        restore_optimizer(self.optimizer, parts.get("optimizer", {}))
        torch.set_rng_state(parts["random"]["torch"])
        return settings
