"""A million entities, 4-ary, d = 25: resident memory of training and of evaluation.

Each runs in a process of its own. *Peak* is that of the whole process, imports and all; training
has Adam's moments and the moving average of the weights. *From a table to answers* is all that a
user does: a table of facts is encoded, a model is trained for two epochs with validation,
checkpoints, moving average and the test with its baselines, and it is asked. *Beyond the table* is
what ranking takes over the state just before it (model, facts and known answers are there): it must
not grow with the number of entities. Training must bring the loss down; some ranks are checked
against a direct count in double precision, where scores that differ by rounding may lie on either
side of the answer.
"""

from __future__ import annotations

from benchmarks.harness import GIB, MIB, Figure, Memory, Plot, Result, Series, memory

_SETUP = """
import sys
import numpy as np
import torch
from benchmarks.subjects import Shape, make_model, make_trainer, random_facts, whole_step
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.training.regimes.base import Batch
n_entities, n_facts, batch = map(int, sys.argv[1:])
shape = Shape(4, 25, 25, n_entities)
facts = random_facts(shape, n_facts)
"""

TRAINING = (
    _SETUP
    + """
def work():
    settings = {"batch_size": batch, "learning_rate": 0.01, "ema": 0.99}
    trainer = make_trainer(make_model(shape), {4: facts}, **settings)
    return [whole_step(trainer, Batch(0, np.arange(batch))) for _ in range(5)]

def check(losses):
    assert np.isfinite(losses).all(), losses
    assert losses[-1] < losses[0], losses
"""
)

WHOLE = """
import sys, tempfile
from dataclasses import replace
import numpy as np
import polars as pl
import getd
from getd.facts.knowledge_base import KnowledgeBase
n_entities, n_facts, batch = map(int, sys.argv[1:])

def work():
    names = np.char.add("e", np.arange(n_entities).astype(str)).reshape(-1, 4)
    relation = np.char.add("r", (np.arange(len(names)) % 20).astype(str))
    columns = {f"x{i}": names[:, i] for i in range(4)}
    kb = KnowledgeBase.from_dataframe(pl.DataFrame({"relation": relation, **columns}))
    facts, n = kb.split("train")[4], len(names) // 20
    held = min(n, 64)
    cuts = {"train": (0, min(n_facts, 10 * n)), "valid": (-2 * held, -held), "test": (-held, None)}
    kb = replace(kb, splits={split: {4: facts.take(slice(*cut))} for split, cut in cuts.items()})
    config = {"model": {"entity_dim": 25, "ring_ranks": 25}}
    with tempfile.TemporaryDirectory() as folder:
        training = {"epochs": 2, "batch_size": batch, "ema": 0.99}
        run = getd.train(kb, "getd", f"{folder}/run", config=config, **training)
        run.predict("r3", ["e12", "?", "e14", "e15"])
        assert run.evaluate("test").metrics.questions == 4 * min(n, 64)
        return [line.loss for line in run.folder.read_history()]

def check(losses):
    assert losses[-1] < losses[0], losses
"""

EVALUATION = (
    _SETUP
    + """
relation, entities = facts.relation.copy(), facts.entities.copy()
# pairs that answer one question
relation[1::2] = relation[::2]
entities[1::2, :3] = entities[::2, :3]
facts = Facts(relation, entities)
known = KnownAnswers.build([{4: facts}])
asked = facts.take(slice(0, batch))
model = make_model(shape).eval()

def work():
    return rank_facts(model, asked, known).rank

@torch.no_grad()
def check(ranks):
    rows = facts.rows()
    table = model.entity.weight.double()
    for row in range(2):
        for position in range(4):
            fact = rows[row]
            relation, entities = torch.tensor(fact[:1]), torch.tensor(fact[None, 1:])
            query = model.query(relation, entities, position).double()
            scores = (query @ table.T)[0].numpy()
            others = [j for j in range(5) if j != position + 1]
            answers = rows[(rows[:, others] == fact[others]).all(axis=1), position + 1]
            rivals = np.delete(scores, np.unique(answers))
            answer, near = scores[fact[position + 1]], 1e-5 * np.abs(scores).max()
            first, last = 1 + (rivals > answer + near).sum(), 1 + (rivals > answer - near).sum()
            assert first <= ranks[row, position] <= last, (first, ranks[row, position], last)
"""
)


def measure(quick: bool = False) -> Result:
    """Train once, evaluate with fewer and with all entities."""
    n, fewer, n_facts, batch = (200, 100, 40, 8) if quick else (1_000_000, 100_000, 4_000, 128)
    training = memory(TRAINING, str(n), str(n_facts), str(batch))
    large = memory(EVALUATION, str(n), str(n_facts), str(batch))
    small = (
        large if quick else memory(EVALUATION, str(fewer), str(n_facts), str(batch))
    )  # it starts slowly
    whole = memory(WHOLE, str(n), str(batch if quick else 10 * batch), str(batch))
    runs = {
        "training": training,
        "from table to answers": whole,
        f"evaluation, {n:,}": large,
        f"evaluation, {fewer:,}": small,
    }
    more = abs(large.growth - small.growth) / MIB
    return Result(
        name="memory",
        figures=[
            Figure(f"training, {n:,} entities: peak", training.peak / GIB, "GiB", 3),
            Figure(f"from a table to answers, {n:,} entities: peak", whole.peak / GIB, "GiB", 3),
            Figure(f"evaluation, {n:,} entities: peak", large.peak / GIB, "GiB", 3),
            Figure(
                f"evaluation beyond the table: {n:,} against {fewer:,} entities", more, "MiB", 64
            ),
            Figure(f"evaluation beyond the table, {n:,} entities", large.growth / MIB, "MiB"),
        ],
        plots=[_bars(runs)],
        details={
            name: {"peak": run.peak, "growth": run.growth, "kept": run.kept}
            for name, run in runs.items()
        }
        | {
            "entities": n,
            "facts": n_facts,
            "batch": batch,
            "table": n * 25 * 4,
            "losses": training.value,
        },
        packages=("getd", "numpy", "torch"),
    )


def _bars(runs: dict[str, Memory]) -> Plot:
    x = [float(i) for i in range(len(runs))]
    series = [
        Series("peak of the process", x, [run.peak / MIB for run in runs.values()]),
        Series("growth of the work", x, [run.growth / MIB for run in runs.values()]),
    ]
    return Plot("resident memory", "", "MiB", series, log=False, x_ticks=list(runs))
