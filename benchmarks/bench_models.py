"""Every model on WikiPeople-3 and WN18, and five of them beside PyKEEN.

*Every model*, with its default settings, in a process of its own: facts learnt from a second,
questions ranked a second, parameters, and peak memory (imports, data and all). The loss must fall.

*Beside PyKEEN*: 200 training steps on WN18, ours and theirs taking turns, five times; the median.
Both hold the same weights, and before anything is timed both give the same scores, and the same
loss for the same batch (ConvE with its dropout off). TuckER, ComplEx, DistMult and ConvE learn from
questions with all their answers against every entity, with reciprocal relations, by the softmax
cross entropy; TransE from facts and 64 negatives each, half for each position, by the margin loss.
Dimensions, batch and optimiser (Adam) are the same. A step of ours is all of it: facts gathered,
answers looked up, negatives drawn and filtered. A step of theirs begins with its batch ready; what
their data loader takes is not counted.
"""

from __future__ import annotations

import time
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch

from benchmarks.beside_pykeen import Size, beside_pykeen
from benchmarks.harness import (
    GIB,
    Figure,
    Plot,
    Result,
    Series,
    Skipped,
    Tables,
    bars,
    best,
    memory,
)
from benchmarks.subjects import Shape, random_facts
from getd.datasets.load import load
from getd.errors import GetdError
from getd.evaluation.evaluate import validation_mrr
from getd.facts.facts import sample_facts
from getd.models.base import ModelSizes
from getd.models.registry import MODELS, make_model
from getd.runs.config import Config
from getd.training.loop import Trainer
from getd.training.regimes import REGIMES
from getd.training.regimes.base import shuffled_batches

CHILD = """
import sys
from benchmarks.bench_models import one_model

def work():
    return one_model(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


def measure(quick: bool = False) -> Result:
    """Every model alone, then five in turns with PyKEEN's."""
    alone = (
        every_model(["demo"], list(MODELS)[:1], 20, 5)
        if quick
        else every_model(["WikiPeople-3", "WN18"])
    )
    if quick:
        facts = random_facts(Shape(2, 1, 1, n_entities=30, n_relations=3), 60)
        paired = beside_pykeen(
            facts, 30, 3, Size(dim=20, batch=8, facts=8, negatives=4, steps=2, rounds=2)
        )
    else:
        kb = load("WN18")
        paired = beside_pykeen(kb.split("train")[2], kb.n_entities, kb.n_relations, Size())
    ratios = {
        name: times["theirs"]["median"] / times["ours"]["median"] for name, times in paired.items()
    }
    return Result(
        name="models",
        figures=[
            Figure(f"{name}: PyKEEN's step in ours", value, "x", 0.95, at_least=True)
            for name, value in ratios.items()
        ],
        plots=[
            bars("PyKEEN's time for a step, in ours", "x", ratios),
            *(_rates(*item) for item in alone.items()),
        ],
        details={"beside PyKEEN": paired, "threads": torch.get_num_threads()},
        packages=("getd", "pykeen", "numpy", "torch"),
        tables=alone,
    )


def every_model(
    sets: list[str], models: list[str] | None = None, steps: int = 30, sample: int = 100
) -> Tables:
    """Run :func:`one_model`, with the peak of memory, for each data set and model that fits."""
    tables: Tables = {}
    for data in sets:
        try:
            kb = load(data)
        except GetdError as error:
            raise Skipped(f"{error}; name the folder of the data sets in GETD_DATA") from None
        tables[data] = {}
        for model in models or list(MODELS):
            if tuple(kb.arities) == (2,) or not MODELS[model].model.binary_only:
                child = memory(CHILD, data, model, str(steps), str(sample))
                tables[data][model] = child.value | {"peak memory, GiB": round(child.peak / GIB, 2)}
    return tables


def one_model(data: str, name: str, steps: int, sample: int) -> dict[str, float]:
    """How fast one model learns and ranks, and how many numbers it learns."""
    kb = load(data)
    config = Config.parse({}, name)
    settings = config.training
    model = make_model(
        name,
        config.model,
        ModelSizes(kb.n_entities, kb.n_relations, kb.arities),
        torch.Generator().manual_seed(0),
    )
    regime = REGIMES[settings.regime](
        kb.split("train"), kb.known("train"), kb.n_entities, settings, torch.device("cpu")
    )
    trainer = Trainer(model.train(), regime, None, settings)
    batches = cycle(
        shuffled_batches(regime.sizes, settings.batch_size, torch.Generator().manual_seed(0))
    )
    losses: list[float] = []
    rates = []
    for _ in range(3):
        start, learnt = time.perf_counter(), 0
        for batch in islice(batches, steps):
            losses.append(trainer.step(regime.prepare(batch)))
            learnt += len(batch.rows)
        rates.append(learnt / (time.perf_counter() - start))
    assert np.mean(losses[-steps:]) < np.mean(losses[:steps]), (name, losses)
    model.eval()
    known = kb.known()
    facts = sample_facts(kb.split("valid"), sample)
    (seconds,) = best(lambda: validation_mrr(model, facts, known), repeats=3)
    questions = sum(arity * len(block) for arity, block in facts.items())
    return {
        "facts a second": round(max(rates), 1),
        "questions a second": round(questions / seconds, 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _rates(data: str, models: dict[str, dict[str, Any]]) -> Plot:
    positions = [float(i) for i in range(len(models))]
    series = [
        Series(what, positions, [rates[what] for rates in models.values()])
        for what in ("facts a second", "questions a second")
    ]
    return Plot(
        f"{data}: learning and ranking", "", "a second", series, log=False, x_ticks=list(models)
    )
