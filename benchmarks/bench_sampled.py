"""A step of the sampled regime with ten thousand and with a million entities: it must not matter.

4-ary GETD, d = 25, 512 negatives for each position, shared by a batch of 512 facts. A step is all
of it: facts are gathered, negatives drawn and filtered, and rows learn by Adam, with moving average
and N3. Ten steps on new batches are timed together, the sizes taking turns. Memory is that of a
process of its own, imports and all. A step must change the rows that it looks up and no others, and
the loss must fall.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import torch

from benchmarks.harness import GIB, Figure, Plot, Result, Series, memory, summary, timings
from benchmarks.subjects import Shape, make_model, make_trainer, random_facts, whole_step
from getd.training.loop import Trainer
from getd.training.regimes.base import shuffled_batches

STEPS_PER_RUN = 10  # steps
SETTINGS = {"regime": "sampled", "learning_rate": 0.01, "ema": 0.99, "n3": 1e-4}

CHILD = """
import sys
import numpy as np
from benchmarks.bench_sampled import losses, trainer_of
n_entities, n_facts, batch, negatives = map(int, sys.argv[1:])

def work():
    return losses(trainer_of(n_entities, n_facts, batch, negatives), 30)

def check(values):
    assert np.mean(values[-5:]) < np.mean(values[:5]), values
"""


def measure(quick: bool = False) -> Result:
    """Time the steps in turns, then weigh the larger one."""
    sizes = (100, 1_000) if quick else (10_000, 100_000, 1_000_000)
    n_facts, batch, negatives, repeats = (60, 16, 8, 2) if quick else (200_000, 512, 512, 12)
    trainers = {n: trainer_of(n, n_facts, batch, negatives) for n in sizes}
    for trainer in trainers.values():
        losses(trainer, 3)
        check_rows(trainer)
    times = dict(zip(sizes, timings(*map(steps, trainers.values()), repeats=repeats), strict=True))
    shortest = {n: min(seconds) / STEPS_PER_RUN for n, seconds in times.items()}
    child = memory(CHILD, *map(str, (sizes[-1], n_facts, batch, negatives)))
    most = max(sizes)
    return Result(
        name="sampled",
        figures=[
            Figure(
                f"step, {most:,} entities against {sizes[0]:,}",
                shortest[most] / shortest[sizes[0]],
                "x",
                1.3,
            ),
            Figure(f"training, {most:,} entities: peak", child.peak / GIB, "GiB", 2),
            Figure(f"step, {most:,} entities", 1000 * shortest[most], "ms"),
            Figure(f"facts a second, {most:,} entities", batch / shortest[most], "facts/s"),
        ],
        plots=[
            Plot(
                "a step of the sampled regime",
                "entities",
                "ms",
                [
                    Series(
                        "shortest mean of ten",
                        [float(n) for n in sizes],
                        [1000 * shortest[n] for n in sizes],
                    )
                ],
            )
        ],
        details={f"{n:,} entities": summary(seconds) for n, seconds in times.items()}
        | {
            "facts": n_facts,
            "batch": batch,
            "negatives": negatives,
            "threads": torch.get_num_threads(),
        },
        packages=("getd", "numpy", "torch"),
    )


def trainer_of(n_entities: int, n_facts: int, batch: int, negatives: int) -> Trainer:
    """GETD with a trainer of random facts."""
    shape = Shape(4, 25, 25, n_entities)
    facts = {4: random_facts(shape, n_facts)}
    return make_trainer(make_model(shape), facts, batch_size=batch, negatives=negatives, **SETTINGS)


def losses(trainer: Trainer, number: int) -> list[float]:
    """Of so many steps, each on the first batch."""
    batch = shuffled_batches(
        trainer.regime.sizes, trainer.settings.batch_size, torch.Generator().manual_seed(0)
    )[0]
    return [whole_step(trainer, batch) for _ in range(number)]


def check_rows(trainer: Trainer) -> None:
    """A step changes the rows that it looks up, and no others."""
    table = trainer.model.get_parameter("entity.weight")
    batch = shuffled_batches(
        trainer.regime.sizes, trainer.settings.batch_size, torch.Generator().manual_seed(1)
    )[0]
    before = table.detach().clone()
    trainer.step(trainer.regime.prepare(batch))
    changed = torch.nonzero((table.detach() != before).any(dim=1)).squeeze(1)
    assert table.grad is not None
    assert torch.equal(changed, table.grad.coalesce().indices()[0])
    assert len(changed) <= 2 * batch.rows.size * 4 + 4 * trainer.settings.negatives


def steps(trainer: Trainer) -> Callable[[], list[float]]:
    """Work that takes the next ten steps of an endless epoch."""
    generator = torch.Generator().manual_seed(2)
    batches = cycle(shuffled_batches(trainer.regime.sizes, trainer.settings.batch_size, generator))
    return lambda: [whole_step(trainer, next(batches)) for _ in range(STEPS_PER_RUN)]
