"""The training loop, to be read from top to bottom."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from getd.errors import NonFiniteScores, RunError
from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.checkpoint import (
    HINT,
    Progress,
    check_checkpoint,
    copy_weights,
    load_checkpoint,
    save_checkpoint,
)
from getd.training.moving_average import MovingAverage, Weights
from getd.training.optimisers import Optimizers
from getd.training.regimes.base import Regime, Work, one_ahead, shuffled_batches


class Trainer:
    """One training: a model, what it learns from, and where it stands."""

    def __init__(
        self,
        model: ScoringModel,
        regime: Regime,
        validate: Callable[[ScoringModel], float] | None,
        settings: TrainSettings,
        held_out_loss: Callable[[ScoringModel], float] | None = None,
    ) -> None:
        self.model, self.regime, self.settings = model, regime, settings
        self.validate, self.held_out_loss = validate, held_out_loss
        self.optimizer = Optimizers(model, settings)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.progress = Progress(generator=self.generator.get_state())
        self.average = (
            MovingAverage(model, settings.ema, self.optimizer.tables) if settings.ema else None
        )
        self.best: Weights = {}

    def train(self, checkpoint: Path | None = None, callbacks: Callbacks | None = None) -> None:
        """Train until the last epoch or until patience ends; the model is left holding its best weights.

        Raises
        ------
        Interrupted
            When ``callbacks.should_stop`` says so: the checkpoint is written, and training can go on from there.
        """
        progress, settings, callbacks = self.progress, self.settings, callbacks or Callbacks()
        while progress.epoch <= settings.epochs and not progress.finished:
            learning_rate = settings.learning_rate * settings.decay ** (progress.epoch - 1)
            self.optimizer.set_learning_rate(learning_rate)
            self._one_epoch(checkpoint, callbacks)
            mrr, held_out = self._validate()
            mean = progress.loss_sum / progress.n_facts
            epoch = Epoch(
                progress.epoch,
                mean,
                progress.seconds,
                progress.n_facts,
                learning_rate,
                mrr,
                held_out,
            )
            progress.finished = 0 < settings.patience <= progress.worse
            progress.epoch, progress.batches_done, progress.loss_sum = progress.epoch + 1, 0, 0.0
            progress.n_facts, progress.seconds, progress.generator = (
                0,
                0.0,
                self.generator.get_state(),
            )
            callbacks.on_epoch(epoch)
            if checkpoint and (
                epoch.epoch % settings.checkpoint_every == 0
                or progress.finished
                or epoch.epoch == settings.epochs
            ):
                self.save(checkpoint)
        self._keep_best()

    def _keep_best(self) -> None:
        """Leave the model with the weights that did best on validation; with the last where nothing was measured."""
        if self.best:
            self.model.load_state_dict(self.best)
        else:
            if self.average:
                self.model.load_state_dict(self.average.weights())
            self.regime.take_statistics(self.model)
        self.model.eval()

    def _one_epoch(self, checkpoint: Path | None, callbacks: Callbacks) -> None:
        progress = self.progress
        self.generator.set_state(
            progress.generator
        )  # in the middle of an epoch, the same batches are drawn again
        batches = shuffled_batches(
            self.regime.sizes, self.settings.batch_size, self.generator, progress.epoch
        )
        self.model.train()
        ahead = batches[progress.batches_done :]
        start = time.perf_counter()
        for batch, work in zip(ahead, one_ahead(self.regime.prepare, ahead), strict=True):
            loss, n_facts = self.step(work), len(batch.rows)
            progress.seconds, start = (
                progress.seconds + time.perf_counter() - start,
                time.perf_counter(),
            )
            progress.loss_sum, progress.n_facts = (
                progress.loss_sum + loss * n_facts,
                progress.n_facts + n_facts,
            )
            progress.batches_done, progress.steps = progress.batches_done + 1, progress.steps + 1
            callbacks.on_batch(progress.epoch, progress.batches_done, len(batches))
            if callbacks.should_stop():
                if checkpoint:
                    self.save(checkpoint)
                raise Interrupted

    def step(self, work: Work) -> float:
        """One step of the optimiser on a batch that is prepared; returns the loss before it."""
        self.optimizer.forget_gradients()
        value = work(self.model).item()
        if not math.isfinite(value):
            raise NonFiniteScores(f"the loss became {value}; try a smaller learning_rate")
        self.optimizer.gather_gradients(self.settings.clip)
        touched = self.optimizer.touched_rows()
        if self.average:
            self.average.before_step(touched)
        self.optimizer.step()
        if self.average:
            self.average.after_step(touched, self.progress.steps)
        return value

    def _validate(self) -> tuple[float | None, float | None]:
        """The MRR and the loss on validation, where they are due."""
        progress = self.progress
        is_due = (
            progress.epoch % self.settings.validate_every == 0
            or progress.epoch == self.settings.epochs
        )
        if self.validate is None or not is_due:
            return None, None
        with self._evaluated_weights():
            self.regime.take_statistics(self.model)
            mrr = self.validate(self.model)
            loss = self.held_out_loss(self.model) if self.held_out_loss else None
            if mrr > progress.best_mrr:
                progress.best_mrr, progress.best_epoch, progress.worse = mrr, progress.epoch, 0
                self.best = copy_weights(self.model)
            else:
                progress.worse += 1
        return mrr, loss

    @contextmanager
    def _evaluated_weights(self) -> Iterator[None]:
        """The model with the moving average in it, where there is one."""
        if self.average is None:
            yield
            return
        current = copy_weights(self.model)
        self.model.load_state_dict(self.average.weights())
        try:
            yield
        finally:
            self.model.load_state_dict(current)

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        save_checkpoint(
            path, self.progress, self._parts(), json.loads(self.settings.model_dump_json())
        )

    def _parts(self) -> dict[str, Weights]:
        """All tensors that a checkpoint keeps."""
        return {
            "model": copy_weights(self.model),
            "best": self.best,
            "regime": self.regime.state(),
            "average": self.average.state() if self.average else {},
            "optimizer": self.optimizer.state(),
        }

    def resume(self, path: Path) -> dict[str, Any]:
        """Go on from a checkpoint; returns the settings it was written with."""
        progress, parts, settings = load_checkpoint(path)
        optimizer = self.optimizer.state_like(parts["optimizer"])
        check_checkpoint(path, parts, self._parts(), optimizer, self.model.n_entities)
        self._check_progress(path, progress)

        self.progress = progress
        self.model.load_state_dict(parts["model"])
        if self.average:
            self.average.load_state(parts["average"])
        self.best = parts["best"]
        self.optimizer.load_state(parts["optimizer"])
        self.regime.load_state(parts["regime"])
        torch.set_rng_state(parts["random"]["torch"])
        return settings

    def _check_progress(self, path: Path, progress: Progress) -> None:
        """Refuse a checkpoint that stands where this training cannot."""
        self.generator.set_state(progress.generator)
        batches = shuffled_batches(
            self.regime.sizes, self.settings.batch_size, self.generator, progress.epoch
        )
        n_facts = sum(len(batch.rows) for batch in batches[: progress.batches_done])
        if progress.batches_done > len(batches) or progress.n_facts != n_facts:
            standing = f"{progress.n_facts} facts in {progress.batches_done} batches"
            raise RunError(
                f"{path}: expected a place in {len(batches)} batches, found {standing}{HINT}"
            )
