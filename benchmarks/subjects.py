"""What the benchmarks work on: random facts, a GETD with its trainer, the work of a step.

Shapes as in ``getd.algebra``: ``b`` facts of arity ``n``, ``m = n + 1`` modes, ranks ``R``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.algebra.leave_one_out import products_of_others
from getd.algebra.ring import ring_to_tensor
from getd.algebra.tucker import tucker_environments
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ModelSizes, ScoringModel
from getd.models.getd import GETD, GETDSettings
from getd.runs.config import TrainSettings
from getd.training.loop import Trainer
from getd.training.losses.fused_softmax import tile_shape
from getd.training.regimes import REGIMES
from getd.training.regimes.base import Batch

CPU = torch.device("cpu")
Product = tuple[Tensor, Tensor, Tensor]  # two factors and where their product goes


@dataclass(frozen=True)
class Shape:
    """The sizes of a GETD with one core per mode and one rank."""

    arity: int
    dim: int  # of entities and relations
    rank: int
    n_entities: int
    n_relations: int = 50


def random_facts(shape: Shape, n: int, seed: int = 0) -> Facts:
    """``n`` facts with every entity and relation alike likely."""
    rng = np.random.default_rng(seed)
    return Facts(
        rng.integers(0, shape.n_relations, n), rng.integers(0, shape.n_entities, (n, shape.arity))
    )


def make_model(
    shape: Shape, settings: Mapping[str, float] | None = None, cls: type[GETD] = GETD
) -> GETD:
    """A GETD with random weights, always the same."""
    chosen = GETDSettings.model_validate(
        {"entity_dim": shape.dim, "ring_ranks": shape.rank, **(settings or {})}
    )
    return cls(
        ModelSizes(shape.n_entities, shape.n_relations, [shape.arity]),
        chosen,
        torch.Generator().manual_seed(0),
    )


def make_trainer(model: ScoringModel, blocks: Mapping[int, Facts], **settings: object) -> Trainer:
    """A trainer, in the paper's regime where none is named, in training mode; no validation."""
    chosen = TrainSettings.model_validate({"device": "cpu", "patience": 0, **settings})
    known = KnownAnswers.build([blocks])
    model.train()
    return Trainer(
        model, REGIMES[chosen.regime](blocks, known, model.n_entities, chosen, CPU), None, chosen
    )


def whole_step(trainer: Trainer, batch: Batch) -> float:
    """Prepare a batch, then take a step with it; a real epoch prepares one ahead."""
    return trainer.step(trainer.regime.prepare(batch))


def ring_products(arity: int) -> int:
    """Count the products of ``R x R`` matrices for the environments of all entities of a fact."""
    n_products = 0

    def multiply(left: int, right: int) -> int:
        nonlocal n_products
        n_products += 1
        return left * right

    products_of_others(dict.fromkeys(range(arity + 1), 1), arity + 1, range(1, arity + 1), multiply)
    return n_products


def multiply_adds(
    arity: int, entity_dim: int, relation_dim: int, rank: int, n_entities: int
) -> int:
    """Count the multiply-adds of a step for one fact: a forward pass, and twice that for gradients.

    This is the work that is needed; scores that are made a second time to save memory are not
    counted.

    >>> multiply_adds(3, 1, 1, 1, 10) == 3 * (4 + 5 + 3 + 3 * 10)
    True
    """
    projections = (relation_dim + arity * entity_dim) * rank**2
    closings = arity * entity_dim * rank**2
    return 3 * (
        projections + ring_products(arity) * rank**3 + closings + arity * entity_dim * n_entities
    )


def bare_scoring(shape: Shape, batch: int) -> list[Product]:
    """Return the matrix products behind the queries of a batch and their gradients."""
    n, d, squared = shape.arity, shape.dim, shape.rank**2
    projections = [_with_gradients((batch, d), (d, squared)) for _ in range(n + 1)]
    matrices = (batch, shape.rank, shape.rank)
    around = [_with_gradients(matrices, matrices) for _ in range(ring_products(n))]
    closings = [_with_gradients((batch, squared), (squared, d)) for _ in range(n)]
    return [product for group in (*projections, *around, *closings) for product in group]


def bare_loss(questions: int, n_entities: int, dim: int) -> list[Product]:
    """Return the three products per tile of scores: scores, gradients of queries and of the table.

    All tiles share one buffer for their scores, as they do in the loss. A loss that scores a tile
    twice has only itself to blame: three products are what is needed.
    """
    height, width = tile_shape(questions, n_entities)
    query, table = torch.randn(questions, dim), torch.randn(n_entities, dim)
    query_grad, table_grad = torch.empty_like(query), torch.empty_like(table)
    buffer = torch.randn(height * width)
    products: list[Product] = []
    for start in range(0, questions, height):
        q, q_grad = query[start : start + height], query_grad[start : start + height]
        for first in range(0, n_entities, width):
            e, e_grad = table[first : first + width], table_grad[first : first + width]
            scores = buffer[: len(q) * len(e)].view(len(q), len(e))
            products += [(q, e.T, scores), (scores, e, q_grad), (scores.T, q, e_grad)]
    return products


def run_products(products: list[Product]) -> Callable[[], None]:
    """Work that does these products and nothing else."""
    calls = [
        (torch.bmm if left.dim() == 3 else torch.mm, left, right, out)
        for left, right, out in products
    ]

    def work() -> None:
        for multiply, left, right, out in calls:
            multiply(left, right, out=out)

    return work


def _with_gradients(left: tuple[int, ...], right: tuple[int, ...]) -> list[Product]:
    """A product and the two that give the gradients of its factors."""
    a, b = torch.randn(left), torch.randn(right)
    out, grad = torch.empty(*left[:-1], right[-1]), torch.randn(*left[:-1], right[-1])
    return [(a, b, out), (grad, b.mT, torch.empty(left)), (a.mT, grad, torch.empty(right))]


class MultipliedOut(GETD):
    """The same model with its ring multiplied out for each batch, in two halves that are joined."""

    def environments(  # type: ignore[override]
        self, relation: Tensor | None, vectors: list[Tensor | None], modes: list[int]
    ) -> list[Tensor]:
        core = ring_to_tensor(list(self.rings[str(len(vectors) - 1)]))  # type: ignore[call-overload]
        return tucker_environments(core, vectors, modes)


def multiplied_out_adds(arity: int, dim: int, rank: int, n_entities: int, batch: int) -> int:
    """Count the multiply-adds for one fact if each batch multiplies the core out, in two halves.

    Contracting the core with a batch takes two products of ``d^m`` each.
    """
    modes = arity + 1
    halves = sum(
        rank**3 * dim**i for half in (modes // 2, modes - modes // 2) for i in range(2, half + 1)
    )
    per_batch = halves + rank**2 * dim**modes
    return int(3 * (per_batch // batch + 2 * dim**modes + arity * dim * n_entities))
