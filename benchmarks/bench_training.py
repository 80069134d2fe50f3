"""Training GETD on WikiPeople-3 (3-ary): d = R = 50, batches of 128 facts, the plain loss.

Torch uses its own number of threads.

How the figures are defined:

- *Step*: a batch is prepared and learnt from, one after the other; an epoch, timed as a whole,
  prepares one ahead.
- *Step in bf16*: the same step with ``precision = "bf16"``, over the same bare products in fp32; on
  a processor that computes bf16 natively, and only there.
- *Bare*: the matrix products of a step and nothing else, at the same shapes, forward and for both
  gradients, into buffers that are there already, taking turns with the step itself. The count of
  batched products is that of ``products_of_others``; the loss counts three products for each tile
  of scores (``tile_shape``). The best runs are compared.
- *Loss*: ours takes turns with its bare products; ``cross_entropy`` over all scores is timed apart.
- *Parts of a step*: queries forward and backward, the loss with its gradients (nothing filtered),
  the optimiser, each alone at the shapes of a step; the rest is what is left of the whole step.
- *Fraction of the large-matrix rate*: counted multiply-adds of a step in its time, over those of a
  2048 x 2048 x 2048 product in its time.
- *Multiplied out*: the same model, loss and optimiser with the ring multiplied out to the whole
  core for each batch (two halves, one matrix product between them); a few batches, scaled to an
  epoch.
- *Python and data preparation*: ``torch.profiler`` records some steps. What counts is the time of a
  step in which its thread runs neither an ``aten`` operation nor a node of autograd's engine (which
  is C++), or prepares data (``regime.prepare``, operations and all); the quickest of the recorded
  steps is taken, as everywhere. The profiler's own work falls into that time, so the share is
  rather too large. *No operation runs* is the same with the engine's own time in it. Neither sees
  what an operation does before its arithmetic, hence another figure: the step with next to no
  arithmetic in it (d = R = 2, entities folded onto 64, as many facts), operations and Python and
  all, over the real step. It is no bound: its caches stay warm, and few entities make fewer tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.harness import Figure, Plot, Result, Series, Skipped, bars, best, summary, timings
from benchmarks.profiled import profiled_steps
from benchmarks.subjects import (
    CPU,
    MultipliedOut,
    Shape,
    bare_loss,
    bare_scoring,
    make_model,
    make_trainer,
    multiply_adds,
    random_facts,
    run_products,
    whole_step,
)
from getd.datasets.load import load
from getd.errors import GetdError
from getd.evaluation.precision import has_bf16
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Blocks, Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.getd import GETD
from getd.training.callbacks import Callbacks, Epoch
from getd.training.loop import Trainer
from getd.training.losses.fused_softmax import Gradients, softmax_gradients
from getd.training.regimes.base import Batch, shuffled_batches

DATA = "WikiPeople-3"
DROPOUT = {"entity_dropout": 0.374, "query_dropout": 0.451}
QUESTIONS = (96, 384, 1536, 6144)
NOTHING = (torch.zeros(0, dtype=torch.int64),) * 2


def measure(quick: bool = False) -> Result:
    """All figures of training; with ``quick`` on a small random knowledge base."""
    shape, blocks, test = _random_data() if quick else _real_data()
    batch, repeats = (16, 2) if quick else (128, 40)
    model = make_model(shape, DROPOUT)
    trainer = make_trainer(model, blocks, batch_size=batch)
    figures, details = _step(trainer, _rounded(shape, blocks, batch), shape, batch, repeats)
    step = details["step"]["best"]
    parts = _parts(trainer, shape, batch, step, repeats)
    work = batch * multiply_adds(shape.arity, shape.dim, shape.dim, shape.rank, shape.n_entities)
    rates = _rates(
        {"step": step, "bare products": details["bare"]["best"]}, work, 64 if quick else 2048
    )
    figures.append(
        Figure(
            "step: fraction of the large-matrix rate",
            rates["step"] / rates["large matrices"],
            "of 1",
        )
    )
    loss_figures, loss_plot, losses = _loss(
        shape, (8, 24) if quick else QUESTIONS, repeats=2 if quick else 15
    )
    epoch, epoch_figures = _epoch(trainer, blocks, test, batch, passes=1 if quick else 2)
    python_figures, python = _python(trainer, blocks, step, batch, repeats)
    details |= {
        "parts": parts,
        "GFLOP/s": rates,
        "loss": losses,
        "epoch": epoch,
        "python": python,
        "threads": torch.get_num_threads(),
    }
    details |= {
        "shape": vars(shape),
        "batch": batch,
        "facts": {n: len(facts) for n, facts in blocks.items()},
    }
    return Result(
        name="training",
        figures=[*figures, *loss_figures, *epoch_figures, *python_figures],
        plots=[
            bars(
                "parts of a training step",
                "ms",
                {part: 1000 * seconds for part, seconds in parts.items()},
            ),
            bars("rate", "GFLOP/s", rates),
            loss_plot,
            bars(
                "an epoch, and ranking",
                "seconds",
                {key: epoch[key] for key in epoch if key != "batches"},
            ),
        ],
        details=details,
        packages=("getd", "numpy", "torch"),
    )


def _real_data() -> tuple[Shape, Blocks, Facts]:
    try:
        kb = load(DATA)
    except GetdError as error:
        raise Skipped(f"it needs {DATA}: {error}") from None
    return Shape(3, 50, 50, kb.n_entities, kb.n_relations), kb.split("train"), kb.split("test")[3]


def _random_data() -> tuple[Shape, Blocks, Facts]:
    shape = Shape(3, 6, 5, 40, 3)
    facts = random_facts(shape, 80)
    return shape, {3: facts.take(slice(0, 64))}, facts.take(slice(64, 80))


def _batches(trainer: Trainer, size: int) -> list[Batch]:
    return shuffled_batches(trainer.regime.sizes, size, torch.Generator().manual_seed(0))


def _full_batches(trainer: Trainer, size: int) -> Iterator[Batch]:
    """Batches of exactly this size, again and again."""
    return cycle([batch for batch in _batches(trainer, size) if len(batch.rows) == size])


def _rounded(shape: Shape, blocks: Blocks, batch: int) -> Trainer | None:
    """A trainer in bf16; None: the processor does not compute it natively."""
    if not has_bf16(CPU):
        return None
    model = make_model(shape, DROPOUT)
    return make_trainer(model, blocks, batch_size=batch, precision="bf16")


def _step(
    trainer: Trainer, rounded: Trainer | None, shape: Shape, batch: int, repeats: int
) -> tuple[list[Figure], dict[str, Any]]:
    """A whole step and its bare products, taking turns; the loss must fall."""
    batches = _full_batches(trainer, batch)
    losses: list[float] = []
    bare = run_products(
        bare_scoring(shape, batch) + bare_loss(batch * shape.arity, shape.n_entities, shape.dim)
    )
    works = [lambda: losses.append(whole_step(trainer, next(batches))), bare]
    if rounded is not None:
        works.append(lambda: whole_step(rounded, next(batches)))
    timings(*works, repeats=min(repeats, 5))  # to warm up
    step, bare_times, *rounded_times = timings(*works, repeats=repeats)
    assert np.isfinite(losses).all()
    assert repeats < 10 or np.mean(losses[-10:]) < np.mean(losses[:10])

    figures = [
        Figure(
            "training step over its bare matrix products", min(step) / min(bare_times), "x", 1.5
        ),
        Figure("training step", 1000 * min(step), "ms"),
        Figure("facts learnt from", batch / median(step), "facts/s"),
    ]
    details = {"step": summary(step), "bare": summary(bare_times)}
    for times in rounded_times:
        ratio = min(times) / min(bare_times)
        figures.append(
            Figure("training step in bf16 over the bare products in fp32", ratio, "x", 0.85)
        )
        details["step in bf16"] = summary(times)
    return figures, details


def _parts(
    trainer: Trainer, shape: Shape, batch: int, step: float, repeats: int
) -> dict[str, float]:
    """Seconds of the parts of a step, each alone."""
    model, facts = trainer.model, random_facts(shape, batch)
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    gradient = torch.randn(batch, shape.arity, shape.dim)
    loss = _fused(batch * shape.arity, model.candidates(0).detach(), entities.flatten())

    def scoring() -> None:
        model.zero_grad()
        torch.autograd.backward([model.queries(relation, entities)], [gradient])

    scoring_time, loss_time = best(scoring, loss, repeats=repeats)
    whole_step(trainer, next(_full_batches(trainer, batch)))  # all gradients are there
    parts = {
        "scoring": scoring_time,
        "loss": loss_time,
        "optimiser": best(trainer.optimisers.by_name["whole"].step, repeats=repeats)[0],
    }
    return parts | {"rest": max(step - sum(parts.values()), 0.0)}


def _rates(seconds: dict[str, float], work: int, size: int) -> dict[str, float]:
    """GFLOP/s of the counted work in these times, next to that of a product of large matrices."""
    left, right, out = (torch.randn(size, size) for _ in range(3))
    large = best(lambda: torch.mm(left, right, out=out), repeats=9)[0]
    return {name: 2e-9 * work / time for name, time in seconds.items()} | {
        "large matrices": 2e-9 * size**3 / large
    }


def _loss(
    shape: Shape, numbers: tuple[int, ...], repeats: int
) -> tuple[list[Figure], Plot, dict[str, Any]]:
    """Time the fused loss with gradients, its bare products, and ``cross_entropy``."""
    figures, details = [], {}
    table = torch.randn(shape.n_entities, shape.dim) / shape.dim**0.5
    for questions in numbers:
        target = torch.randint(shape.n_entities, (questions,))
        fused, plain = _fused(questions, table, target), _plain(questions, table, target)
        for mine, other in zip(fused(), plain(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))
        bare = run_products(bare_loss(questions, shape.n_entities, shape.dim))
        fused_time, bare_time = best(fused, bare, repeats=max(repeats, repeats * 1536 // questions))
        plain_time = best(plain, repeats=repeats)[
            0
        ]  # apart: it would leave the caches full of its scores
        figures.append(
            Figure(
                f"loss of {questions:,} questions over its products",
                fused_time / bare_time,
                "x",
                1.3,
            )
        )
        details[str(questions)] = {
            "fused": fused_time,
            "bare products": bare_time,
            "cross_entropy": plain_time,
        }
    x = [float(questions) for questions in numbers]
    series = [
        Series(kind, x, [1000 * details[str(q)][kind] for q in numbers])
        for kind in details[str(numbers[0])]
    ]
    return (
        figures,
        Plot(f"loss, {shape.n_entities:,} candidates", "questions", "ms", series),
        details,
    )


def _fused(questions: int, table: Tensor, target: Tensor) -> Callable[[], list[Tensor]]:
    """Our loss of random queries, always the same, and both gradients."""
    query = _queries(questions, table)
    into = Gradients(torch.empty_like(query), torch.empty_like(table))

    def work() -> list[Tensor]:
        with torch.no_grad():
            return [
                softmax_gradients(query, table, target, NOTHING, 0.0, 1.0, into),
                into.query,
                into.table,
            ]

    return work


def _plain(questions: int, table: Tensor, target: Tensor) -> Callable[[], list[Tensor]]:
    """The same from ``cross_entropy`` over all scores."""
    query, table = _queries(questions, table).requires_grad_(), table.clone().requires_grad_()

    def work() -> list[Tensor]:
        value = cross_entropy(query @ table.T, target, reduction="sum")
        return [value.detach(), *torch.autograd.grad(value, [query, table])]

    return work


def _queries(questions: int, table: Tensor) -> Tensor:
    return torch.randn(questions, table.shape[1], generator=torch.Generator().manual_seed(0))


def _epoch(
    trainer: Trainer, blocks: Blocks, test: Facts, batch: int, passes: int
) -> tuple[dict[str, float], list[Figure]]:
    """An epoch, the same with the core multiplied out, and ranking the test facts."""
    model, epochs = trainer.model, list[Epoch]()
    assert isinstance(model, GETD)
    whole = make_trainer(model, blocks, batch_size=batch, epochs=passes)
    whole.train(callbacks=Callbacks(on_epoch=epochs.append))
    epoch = min(done.seconds for done in epochs)

    apart = make_trainer(_multiplied_out(model), blocks, batch_size=batch)
    _check_queries(model, apart.model, blocks)
    batches = _full_batches(apart, batch)
    whole_step(apart, next(batches))
    n_batches = len(_batches(apart, batch))
    multiplied = best(lambda: whole_step(apart, next(batches)), repeats=3)[0] * n_batches

    known = KnownAnswers.build([blocks, {test.arity: test}])
    model.eval()
    ranks = rank_facts(model, test, known).rank
    _check_ranks(model, test, known, ranks)
    ranking = best(lambda: rank_facts(model, test, known), repeats=passes)[0]
    model.train()
    return {
        "ring": epoch,
        "multiplied out": multiplied,
        "ranking the test set": ranking,
        "batches": n_batches,
    }, [
        Figure("epoch", epoch, "s"),
        Figure(
            "epoch with the core multiplied out, over the ring",
            multiplied / epoch,
            "x",
            15,
            at_least=True,
        ),
        Figure("ranking the test facts over an epoch", ranking / epoch, "x", 1 / 3),
    ]


def _multiplied_out(model: GETD) -> GETD:
    """A model with the same weights."""
    ring = model.rings[str(model.arities[0])]
    dims = model.dims[model.arities[0]]
    shape = Shape(model.arities[0], dims[0], ring[0].shape[0], model.n_entities, model.n_relations)  # type: ignore[index]
    other = make_model(shape, DROPOUT, MultipliedOut)
    other.load_state_dict(model.state_dict())
    return other


@torch.no_grad()
def _check_queries(model: Any, other: Any, blocks: Blocks) -> None:
    """Without dropout, both give the same queries."""
    facts = next(iter(blocks.values())).take(slice(0, 16))
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    queries = [m.eval().queries(relation, entities) for m in (model, other)]
    torch.testing.assert_close(*queries, rtol=1e-3, atol=1e-3 * float(queries[0].abs().max()))
    model.train()
    other.train()


@torch.no_grad()
def _check_ranks(model: GETD, facts: Facts, known: KnownAnswers, ranks: np.ndarray) -> None:
    """Some ranks, by hand; scores that differ by rounding may lie on either side of the answer."""
    relation, entities = torch.tensor(facts.relation[:5]), torch.tensor(facts.entities[:5])
    for position in range(facts.arity):
        scores = model.score_candidates(relation, entities, position).double().numpy()
        for row in range(len(scores)):
            answer, row_scores = facts.entities[row, position], scores[row]
            rivals = np.ones(len(row_scores), dtype=bool)
            rivals[
                known.lookup(
                    facts.relation[row : row + 1], facts.entities[row : row + 1], position
                ).values
            ] = False
            near = 1e-4 * np.abs(row_scores).max()
            first, last = (
                (row_scores[rivals] > row_scores[answer] + shift).sum() + 1
                for shift in (near, -near)
            )
            assert first <= ranks[row, position] <= last


def _python(
    trainer: Trainer, blocks: Blocks, step: float, batch: int, repeats: int
) -> tuple[list[Figure], dict[str, Any]]:
    """The share of a step that is no work on tensors."""
    batches = _full_batches(trainer, batch)
    profiled = profiled_steps(trainer, [next(batches) for _ in range(min(repeats, 20))])
    quickest = min(profiled, key=lambda step: step.seconds)
    prepare = best(lambda: trainer.regime.prepare(next(batches)), repeats=repeats)[0]
    folded = {n: Facts(facts.relation, facts.entities % 64) for n, facts in blocks.items()}
    arity, n_relations = next(iter(blocks)), trainer.model.n_relations
    tiny = make_trainer(
        make_model(Shape(arity, 2, 2, 64, n_relations), DROPOUT), folded, batch_size=batch
    )
    tiny_batches = _full_batches(tiny, batch)
    whole_step(tiny, next(tiny_batches))
    empty = best(lambda: whole_step(tiny, next(tiny_batches)), repeats=repeats)[0]
    return [
        Figure("Python and data preparation in a step (profiler)", 100 * quickest.python, "%", 10),
        Figure("no operation runs in a step (profiler)", 100 * quickest.no_operation, "%"),
        Figure("data preparation alone, over a step", 100 * prepare / step, "%"),
        Figure("a step with next to no arithmetic, over a step", 100 * empty / step, "%"),
    ], {
        "profiled steps": [vars(step) for step in profiled],
        "prepare": prepare,
        "step of d = R = 2": empty,
    }
