"""The training loop, to be read from top to bottom.

One step of the optimiser, in the regime ``1vsall`` with a dot-product model::

    Batch                   rows of facts of one arity                     regimes/base.py
      │ regime.prepare      in a thread, one batch ahead                   regimes/one_vs_all.py
      ▼
    TrainStep               relation (b,), entities (b, n), and left_out:
      │                     candidates that make other training facts true
      │ model.queries       norms, then the core contracted with all but   models/, algebra/
      ▼                     one vector: queries (b, n, d)
    LossSum                 queries · candidates, softmax, gradients,      losses/fused_softmax.py
      │ backward            tile by tile; autograd continues from the queries
      ▼
    loss, p.grad            Trainer.step: clip, optimiser, moving average  loop.py

An epoch is a step for each batch, then a validation, a record for the history, and a checkpoint.
What differs between regimes is one file each in ``regimes/``; losses are in ``losses/``.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

from getd.errors import NonFiniteScores, RunError
from getd.models.base import ScoringModel
from getd.runs.config import TrainSettings
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.checkpoint import (
    HINT,
    Parts,
    Progress,
    check_checkpoint,
    copy_weights,
    load_checkpoint,
    save_checkpoint,
)
from getd.training.moving_average import MovingAverage, Weights
from getd.training.norm_statistics import take_statistics
from getd.training.optimisers import Optimisers
from getd.training.regimes.base import Batch, Regime, TrainStep, one_ahead, shuffled_batches

Measure = Callable[[ScoringModel], float]


class Trainer:
    """A training: a model, what it learns from, and how far it is."""

    def __init__(
        self,
        model: ScoringModel,
        regime: Regime,
        validate: Measure | None,
        settings: TrainSettings,
        held_out_loss: Measure | None = None,
    ) -> None:
        self.model = model
        self.regime = regime
        self.settings = settings
        self.validate = validate
        self.held_out_loss = held_out_loss

        self.optimisers = Optimisers(model, settings)
        self.average: MovingAverage | None = None
        if settings.ema:
            self.average = MovingAverage(model, settings.ema, self.optimisers.tables)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.epoch_start = self.generator.get_state()  # before the epoch's batches are drawn
        self.progress = Progress.start()
        self.best: Weights = {}

    def train(self, checkpoint: Path | None = None, callbacks: Callbacks | None = None) -> None:
        """Train until the last epoch or until patience ends; leave the best weights in the model.

        If ``callbacks.should_stop`` returns true, that is an :class:`Interrupted`; the checkpoint
        is written before.
        """
        progress = self.progress
        settings = self.settings
        callbacks = callbacks or Callbacks()
        while progress.epoch <= settings.epochs and not progress.finished:
            learning_rate = settings.learning_rate * settings.decay ** (progress.epoch - 1)
            self.optimisers.set_learning_rate(learning_rate)
            self._train_epoch(checkpoint, callbacks)
            valid_mrr, valid_loss = self._validate()
            progress.finished = 0 < settings.patience <= progress.worse

            epoch = Epoch(
                epoch=progress.epoch,
                loss=progress.loss_sum / progress.n_facts,
                seconds=progress.seconds,
                facts=progress.n_facts,
                learning_rate=learning_rate,
                valid_mrr=valid_mrr,
                valid_loss=valid_loss,
            )
            progress.begin_next_epoch()
            self.epoch_start = self.generator.get_state()
            callbacks.on_epoch(epoch)

            is_last = progress.finished or epoch.epoch == settings.epochs
            if checkpoint and (is_last or epoch.epoch % settings.checkpoint_every == 0):
                self.save(checkpoint)

        # Without a validation, the last weights are the best.
        if self.best:
            self.model.load_state_dict(self.best)
        else:
            self._load_evaluated_weights()
        self.model.eval()

    def _train_epoch(self, checkpoint: Path | None, callbacks: Callbacks) -> None:
        """Take a step on each batch of the epoch that is not done yet."""
        progress = self.progress
        batches = self._batches()
        remaining = batches[progress.batches_done :]
        self.model.train()

        start = time.perf_counter()
        steps = one_ahead(self.regime.prepare, remaining)
        for batch, step in zip(remaining, steps, strict=True):
            loss = self.step(step)
            now = time.perf_counter()
            progress.seconds += now - start
            start = now
            progress.loss_sum += loss * len(batch.rows)
            progress.n_facts += len(batch.rows)
            progress.batches_done += 1
            progress.steps += 1

            callbacks.on_batch(progress.epoch, progress.batches_done, len(batches))
            if callbacks.should_stop():
                if checkpoint:
                    self.save(checkpoint)
                raise Interrupted

    def _batches(self) -> list[Batch]:
        """The batches of the epoch under way: the same ones when it is resumed."""
        self.generator.set_state(self.epoch_start)
        sizes = self.regime.sizes
        batch_size = self.settings.batch_size
        return shuffled_batches(sizes, batch_size, self.generator, self.progress.epoch)

    def step(self, step: TrainStep) -> float:
        """Take one optimiser step on a prepared batch and return the loss before it."""
        self.model.zero_grad()
        loss = step.backward(self.model)
        if not math.isfinite(loss):
            raise NonFiniteScores(f"the loss became {loss}; try a smaller learning_rate")
        self.gather_gradients(self.settings.clip)

        # The moving average brings the rows that change up to the present before they do.
        touched = []
        for table in self.optimisers.tables:
            if table.grad is not None:
                touched.append((table, table.grad._indices()[0]))
        if self.average:
            self.average.before_step(touched)
        for optimiser in self.optimisers.by_name.values():
            optimiser.step()
        if self.average:
            self.average.after_step(touched, self.progress.steps)
        return loss

    def gather_gradients(self, clip: float | None) -> None:
        """Bring gradients into the optimisers' form; clip their norm, all taken together."""
        for parameter in self.optimisers.whole:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()
        for table in self.optimisers.tables:
            if table.grad is not None:
                table.grad = table.grad.coalesce()

        if clip:
            parameters = [*self.optimisers.whole, *self.optimisers.tables]
            grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
            values = [grad._values() if grad.is_sparse else grad for grad in grads]
            norms = torch.stack([torch.linalg.vector_norm(value) for value in values])
            factor = (clip / (torch.linalg.vector_norm(norms) + 1e-6)).clamp_(max=1.0)
            for value in values:
                value.mul_(factor)

    def _validate(self) -> tuple[float | None, float | None]:
        """Measure the MRR and the loss on validation, where they are due; keep the best weights."""
        progress = self.progress
        settings = self.settings
        is_last = progress.epoch == settings.epochs
        is_due = is_last or progress.epoch % settings.validate_every == 0
        if self.validate is None or not is_due:
            return None, None

        current = copy_weights(self.model) if self.average else None
        self._load_evaluated_weights()
        mrr = self.validate(self.model)
        loss = self.held_out_loss(self.model) if self.held_out_loss else None
        if mrr > progress.best_mrr:
            progress.best_mrr = mrr
            progress.best_epoch = progress.epoch
            progress.worse = 0
            self.best = copy_weights(self.model)
        else:
            progress.worse += 1
        if current is not None:
            self.model.load_state_dict(current)
        return mrr, loss

    def _load_evaluated_weights(self) -> None:
        """Put the moving average, if there is one, into the model, with statistics for it."""
        if self.average:
            self.model.load_state_dict(self.average.weights())
        regime = self.regime
        take_statistics(self.model, regime.facts, self.settings.seed, regime.device)

    def save(self, path: Path) -> None:
        save_checkpoint(path, self.progress, self._parts(), self.settings)

    def _parts(self) -> Parts:
        """All tensors of a checkpoint."""
        return {
            "model": copy_weights(self.model),
            "best": self.best,
            "regime": self.regime.state(),
            "average": self.average.state() if self.average else {},
            "optimizer": self.optimisers.state(),
            "random": {"torch": torch.get_rng_state(), "batches": self.epoch_start},
        }

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint, if it is one of this training."""
        progress, parts = load_checkpoint(path)
        expected = self._parts()
        expected["best"] = expected["model"] if parts["best"] else {}
        expected["optimizer"] = self.optimisers.state_like(parts["optimizer"])
        check_checkpoint(path, parts, expected, self.model.n_entities)

        self.progress = progress
        self.epoch_start = parts["random"]["batches"]
        batches = self._batches()
        n_facts = sum(len(batch.rows) for batch in batches[: progress.batches_done])
        if progress.batches_done > len(batches) or progress.n_facts != n_facts:
            standing = f"{progress.n_facts} facts in {progress.batches_done} batches"
            raise RunError(
                f"{path}: expected a place in {len(batches)} batches, found {standing}{HINT}"
            )

        self.model.load_state_dict(parts["model"])
        if self.average:
            self.average.load_state(parts["average"])
        self.best = parts["best"]
        self.optimisers.load_state(parts["optimizer"])
        self.regime.load_state(parts["regime"])
        torch.set_rng_state(parts["random"]["torch"])
