"""The training loop step by step: validation, best weights, decay, patience, seeds, data."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.runs.config import Config
from getd.training.callbacks import Callbacks, Epoch
from getd.training.checkpoint import copy_weights
from getd.training.loop import Trainer
from getd.training.regimes.base import shuffled_batches
from getd.training.start import interrupts, trainer_of

Weights = dict[str, torch.Tensor]
TRAIN = [("r", f"e{i}", f"e{(i + 1) % 9}", f"e{(i * i) % 9}") for i in range(9)]
TRAIN += [("s", f"e{i}", f"e{(2 * i) % 9}") for i in range(9)]
KB = KnowledgeBase.from_facts({"train": TRAIN})


def tables(**training: object) -> Config:
    small = {"batch_size": 4, "epochs": 2, "threads": 1, "learning_rate": 0.05}
    model = {"name": "n-cp", "entity_dim": 4, "batch_norm": False}
    return Config.parse({"model": model, "training": {**small, **training}})


def run(
    kb: KnowledgeBase = KB,
    validate: Callable[[ScoringModel], float] | None = None,
    **training: object,
) -> tuple[Trainer, list[Weights], list[Epoch]]:
    """Train with another validation: the trainer, the weights after each step, the epochs."""
    steps: list[Weights] = []
    epochs: list[Epoch] = []
    with trainer_of(kb, tables(**training)) as trainer:
        trainer.validate = validate
        note = lambda epoch, done, total: steps.append(copy_weights(trainer.model))  # noqa: E731
        trainer.train(callbacks=Callbacks(on_batch=note, on_epoch=epochs.append))
    return trainer, steps, epochs


def scripted(*mrrs: float) -> Callable[[ScoringModel], float]:
    """A validation that gives these figures, one after the other."""
    coming: Iterator[float] = iter(mrrs)
    return lambda model: next(coming)


def assert_same(first: Weights, second: Weights, tolerance: float = 0.0) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.allclose(tensor.double(), second[name].double(), rtol=0, atol=tolerance), name


def test_what_is_validated_and_kept_is_the_moving_average_of_the_weights() -> None:
    validated: list[Weights] = []
    decay = 0.8

    def validate(model: ScoringModel) -> float:
        validated.append(copy_weights(model))
        return len(validated) / 10  # each better than the one before

    with trainer_of(KB, tables()) as untrained:
        average = {name: tensor.double() for name, tensor in copy_weights(untrained.model).items()}
    trainer, steps, _ = run(validate=validate, ema=decay)

    expected = []
    for number, weights in enumerate(steps):
        now = min(decay, (1 + number) / (10 + number))
        for name, tensor in weights.items():
            is_number = tensor.is_floating_point()
            average[name] = (
                now * average[name] + (1 - now) * tensor.double() if is_number else tensor.double()
            )
        expected.append(dict(average))
    half = len(steps) // 2
    for weights, average_then in zip(validated, (expected[half - 1], expected[-1]), strict=True):
        assert_same(weights, average_then, 1e-5)
    assert_same(trainer.model.state_dict(), validated[-1])


@pytest.mark.parametrize("regime", ["1vsall", "kvsall", "sampled"])
def test_a_validation_changes_nothing_of_the_training(regime: str) -> None:
    _, watched, _ = run(validate=scripted(0.1, 0.2, 0.3), ema=0.8, epochs=3, regime=regime)
    _, alone, _ = run(ema=0.8, epochs=3, regime=regime)
    assert len(watched) == len(alone)
    for first, second in zip(watched, alone, strict=True):
        assert_same(first, second)


def test_the_last_average_is_kept_where_nothing_is_validated() -> None:
    trainer, steps, _ = run(ema=0.8)
    assert trainer.average is not None
    assert_same(trainer.model.state_dict(), trainer.average.weights())
    assert not torch.equal(
        trainer.model.state_dict()["relation.weight"], steps[-1]["relation.weight"]
    )


def test_the_learning_rate_decays_after_each_epoch() -> None:
    _, _, epochs = run(epochs=4, decay=0.5, learning_rate=0.08)
    assert [epoch.learning_rate for epoch in epochs] == pytest.approx([0.08, 0.04, 0.02, 0.01])
    _, steps, _ = run(epochs=2, decay=1e-12)
    half = len(steps) // 2
    moved = [
        (steps[i]["relation.weight"] - steps[j]["relation.weight"]).abs().max()
        for i, j in ((0, -1), (-1, half))
    ]
    assert moved[0] > 1e-3
    assert moved[1] < 1e-9


def test_patience_counts_validations_in_a_row_without_a_better_one() -> None:
    mrrs = (0.1, 0.3, 0.2, 0.25, 0.4, 0.1, 0.4, 0.1)
    trainer, steps, epochs = run(validate=scripted(*mrrs), epochs=50, patience=3)
    assert [epoch.valid_mrr for epoch in epochs] == list(mrrs)
    assert (trainer.progress.best_epoch, trainer.progress.best_mrr) == (5, 0.4)
    assert_same(trainer.model.state_dict(), steps[5 * len(steps) // 8 - 1])


def test_a_validation_that_is_not_due_is_not_made() -> None:
    _, _, epochs = run(validate=scripted(0.2, 0.1, 0.3), epochs=5, validate_every=2, patience=2)
    assert [epoch.valid_mrr for epoch in epochs] == [None, 0.2, None, 0.1, 0.3]


def test_the_seed_decides_the_first_weights_the_batches_and_the_dropout() -> None:
    def drawn(seed: int) -> tuple[Weights, list[list[int]], list[float]]:
        with trainer_of(KB, tables(seed=seed)) as trainer:
            batches = shuffled_batches([50], 10, trainer.generator)
            return (
                copy_weights(trainer.model),
                [batch.rows.tolist() for batch in batches],
                torch.rand(3).tolist(),
            )

    outside = torch.get_rng_state()
    first, again, other = (drawn(seed) for seed in (1, 1, 2))
    assert_same(first[0], again[0])
    assert first[1:] == again[1:]
    assert not torch.equal(first[0]["relation.weight"], other[0]["relation.weight"])
    assert first[1] != other[1]
    assert first[2] != other[2]
    assert torch.equal(torch.get_rng_state(), outside)


@pytest.mark.parametrize("regime", ["1vsall", "kvsall", "sampled"])
def test_no_fact_of_valid_or_test_plays_a_part_in_a_step(regime: str) -> None:
    """Poison: other answers of the training questions, no negatives if they were read."""
    poison = [
        (relation, *entities[:-1], f"e{(int(entities[-1][1]) + 4) % 9}")
        for relation, *entities in TRAIN
    ]
    poisoned = KnowledgeBase.from_facts(
        {"train": TRAIN, "valid": poison[::2], "test": poison[1::2]}
    )
    _, clean_steps, _ = run(regime=regime, relation_loss=0.5)
    _, steps, _ = run(poisoned, regime=regime, relation_loss=0.5)
    assert len(steps) == len(clean_steps)
    for first, second in zip(clean_steps, steps, strict=True):
        assert_same(first, second)


@pytest.mark.parametrize("regime", ["1vsall", "sampled"])
def test_gradients_are_no_longer_than_clip_all_together(regime: str) -> None:
    with trainer_of(KB, tables(regime=regime)) as trainer:
        batch = shuffled_batches(trainer.regime.sizes, 4, trainer.generator)[0]
        trainer.regime.prepare(batch).backward(trainer.model)
    trainer.gather_gradients(None)
    before = gradients(trainer)
    length = float(np.linalg.norm(before))
    assert length > 0
    trainer.gather_gradients(2 * length)
    assert np.array_equal(gradients(trainer), before)
    trainer.gather_gradients(length / 3)
    assert gradients(trainer) == pytest.approx(before / 3, rel=1e-3)


def gradients(trainer: Trainer) -> np.ndarray:
    grads = [p.grad for p in trainer.model.parameters() if p.grad is not None]
    return np.concatenate([grad.to_dense().flatten().numpy() for grad in grads]).astype(np.float64)


def test_the_seconds_of_epochs_are_those_that_went_by() -> None:
    start = time.perf_counter()
    _, _, epochs = run(epochs=40)
    assert 0 < sum(epoch.seconds for epoch in epochs) <= time.perf_counter() - start
    assert [epoch.facts for epoch in epochs] == [len(TRAIN)] * 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_training_after_the_batch_under_way_and_a_second_one_at_once(
    number: signal.Signals,
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with interrupts() as interrupted:
        assert not interrupted.is_set()
        os.kill(os.getpid(), number)
        assert interrupted.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
