"""How the cost of training GETD grows: with entities, facts, arity and rank.

How the figures are defined:

- *Slope*: the exponent of growth, from a line through the best times on two logarithmic axes.
- *Counted*: the multiply-adds of ``subjects.multiply_adds``, three times those of the forward pass;
  in the plots as the time they would take at the rate of the largest size. *Multiplied out,
  counted* is the same step with the core built for each batch, at that rate too: beyond arity 3 it
  fits no memory (``bench_ring`` times it at small sizes).
- *Time per multiply-add by arity*: the longest over the shortest of the times of a step divided by
  its counted multiply-adds, at sizes where arithmetic dominates (d = R = 50, 12,000 entities,
  batches of 128).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.harness import Figure, Plot, Result, Series, best, slope
from benchmarks.subjects import (
    Shape,
    make_model,
    make_trainer,
    multiplied_out_adds,
    multiply_adds,
    random_facts,
    whole_step,
)
from getd.training.callbacks import Callbacks, Epoch
from getd.training.regimes.base import Batch


@dataclass(frozen=True)
class Sizes:
    """What is varied, and what stays."""

    entities: tuple[int, ...] = (1_000, 10_000, 100_000, 300_000, 1_000_000)
    large: int = 100_000  # entities from which on the slope is taken
    facts: tuple[int, ...] = (4_000, 8_000, 16_000, 32_000, 64_000)
    arities: tuple[int, ...] = (2, 3, 4, 5, 6)
    ranks: tuple[int, ...] = (10, 20, 40, 80)
    narrow: int = 25  # d = R of the curves by entities and facts
    wide: int = 50  # d, and R where it stays, of the curves by arity and rank
    some_entities: tuple[int, int] = (2_000, 12_000)  # where they stay: by facts; by arity and rank
    batch: int = 128
    repeats: int = 15


QUICK = Sizes((50, 100), 50, (64, 128), (2, 3), (2, 4), 4, 5, (50, 60), 8, 2)


@dataclass(frozen=True)
class Step:
    """A size, the best time of a training step, and its counted multiply-adds."""

    size: int
    seconds: float
    work: int


def measure(quick: bool = False) -> Result:
    """All curves; with ``quick`` two small sizes of each."""
    sizes = QUICK if quick else Sizes()
    batch, repeats = sizes.batch, sizes.repeats
    narrow = Shape(4, sizes.narrow, sizes.narrow, 0)
    wide = Shape(3, sizes.wide, sizes.wide, sizes.some_entities[1])
    by_entities = [
        _step(
            n,
            replace(narrow, n_entities=n),
            batch // 2,
            min(repeats, 6) if n >= sizes.large else repeats,
        )
        for n in sizes.entities
    ]
    by_facts = [
        _epoch(replace(narrow, arity=3, n_entities=sizes.some_entities[0]), n, batch)
        for n in sizes.facts
    ]
    by_arity = [_step(arity, replace(wide, arity=arity), batch, repeats) for arity in sizes.arities]
    by_rank = [_step(rank, replace(wide, rank=rank), batch, repeats) for rank in sizes.ranks]
    costs = [step.seconds / step.work for step in by_arity]
    built = [
        batch * multiplied_out_adds(n, wide.dim, wide.rank, wide.n_entities, batch)
        for n in sizes.arities
    ]
    facts = [float(n) for n in sizes.facts]
    curves = {"entities": by_entities, "arity": by_arity, "rank": by_rank}
    return Result(
        name="scaling",
        figures=[
            Figure(
                "step by entities, from 100,000 on", _slope(by_entities, sizes.large), "slope", 1.1
            ),
            Figure("epoch by facts", slope(facts, by_facts), "slope", 1.1),
            Figure(
                "step by arity: time per multiply-add, longest over shortest",
                max(costs) / min(costs),
                "x",
                1.25,
            ),
            Figure("step by rank", _slope(by_rank), "slope"),
            Figure(
                "step by rank, counted",
                slope(sizes.ranks, [step.work for step in by_rank]),
                "slope",
            ),
        ],
        plots=[
            _plot(f"step by entities (4-ary, d = R = {sizes.narrow})", "entities", by_entities),
            Plot(
                f"epoch by facts (3-ary, d = R = {sizes.narrow})",
                "facts",
                "seconds",
                [Series("epoch", facts, by_facts)],
            ),
            _plot(f"step by arity (d = R = {sizes.wide})", "arity", by_arity, built),
            _plot(f"step by rank (3-ary, d = {sizes.wide})", "rank", by_rank),
        ],
        details={
            **{f"step by {name}": [vars(step) for step in steps] for name, steps in curves.items()},
            "epoch by facts": dict(zip(map(str, sizes.facts), by_facts, strict=True)),
            "batch": {"step by entities": batch // 2, "others": batch},
            "threads": torch.get_num_threads(),
        },
        packages=("getd", "numpy", "torch"),
    )


def _step(size: int, shape: Shape, batch: int, repeats: int) -> Step:
    """A training step, timed; the loss of a batch that is seen again and again must fall."""
    blocks = {shape.arity: random_facts(shape, batch)}
    trainer = make_trainer(make_model(shape), blocks, batch_size=batch, learning_rate=0.01)
    whole = Batch(0, np.arange(batch))
    losses: list[float] = []
    seconds = best(lambda: losses.append(whole_step(trainer, whole)), repeats=repeats + 2)[0]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]
    work = batch * multiply_adds(shape.arity, shape.dim, shape.dim, shape.rank, shape.n_entities)
    return Step(size, seconds, work)


def _epoch(shape: Shape, n_facts: int, batch: int) -> float:
    """Seconds of an epoch through ``Trainer.train``, training alone, the best of three."""
    epochs: list[Epoch] = []
    for _ in range(3):
        blocks = {shape.arity: random_facts(shape, n_facts)}
        trainer = make_trainer(make_model(shape), blocks, epochs=1, batch_size=batch)
        trainer.train(callbacks=Callbacks(on_epoch=epochs.append))
    assert all(epoch.facts == n_facts and np.isfinite(epoch.loss) for epoch in epochs)
    return min(epoch.seconds for epoch in epochs)


def _slope(steps: Sequence[Step], least: int = 0) -> float:
    large = [step for step in steps if step.size >= least]
    return slope([step.size for step in large], [step.seconds for step in large])


def _plot(
    title: str, label: str, steps: Sequence[Step], built: Sequence[int] | None = None
) -> Plot:
    """Times beside the counted multiply-adds at the rate of the largest size."""
    x = [float(step.size) for step in steps]
    rate = steps[-1].seconds / steps[-1].work
    series = [Series("step", x, [step.seconds for step in steps])]
    series.append(Series("counted", x, [step.work * rate for step in steps]))
    if built is not None:
        series.append(Series("multiplied out, counted", x, [work * rate for work in built]))
    return Plot(title, label, "seconds", series)
