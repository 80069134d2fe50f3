"""Batches of one arity each, drawn in proportion, and what the losses need beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known import KnownAnswers
from getd.models.base import DotProductModel
from getd.training.loss import Gradients, multi_answer_loss, softmax_gradients
from getd.training.settings import TrainSettings

Pairs = tuple[Tensor, Tensor]
Work = Callable[[DotProductModel], Tensor]  # on a batch: leaves gradients, returns the mean loss
Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Batch:
    """Facts of one arity, or questions with one position open; rows of a block of the regime."""

    block: int
    rows: np.ndarray


def shuffled_batches(sizes: Sequence[int], batch_size: int, generator: torch.Generator) -> list[Batch]:
    """Every row of every block once, in a random order, a last batch of one row joined to the one before."""
    batches = []
    for block, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator).numpy()
        starts = list(range(0, size, batch_size))
        if len(starts) > 1 and size - starts[-1] == 1:
            starts.pop()
        batches += [Batch(block, order[a:b]) for a, b in zip(starts, [*starts[1:], size], strict=True)]
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def one_ahead(work: Callable[[Item], Done], items: Sequence[Item]) -> Iterator[Done]:
    """``map``, with the next result made in a thread while this one is used.

    >>> list(one_ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(1) as thread:
        coming = [thread.submit(work, item) for item in items[:1]]
        for item in items[1:]:
            done = coming.pop().result()
            coming.append(thread.submit(work, item))
            yield done
        yield from (last.result() for last in coming)


class FactBatch(NamedTuple):
    """Facts and the candidates that are no negatives of theirs; a question is numbered ``fact * arity + position``."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    left_out: Pairs  # questions, ascending, and entities
    left_out_relations: Pairs | None  # facts, ascending, and relations; None: not asked for


class OneVsAll:
    """All positions of each fact against all candidates: the paper's loss."""

    def __init__(
        self, blocks: Mapping[int, Facts], known: KnownAnswers, settings: TrainSettings, device: torch.device
    ) -> None:
        self._blocks, self._settings, self._device = list(blocks.values()), settings, device
        self._others = [known.others(facts, range(facts.arity)) for facts in self._blocks]
        self._other_relations = [known.others(facts, [None]) for facts in self._blocks if settings.relation_loss]
        self._buffers: dict[Tensor, Tensor] = {}
        self.sizes = [len(facts) for facts in self._blocks]

    def prepare(self, batch: Batch) -> Work:
        """Gather what a step must know of its facts."""
        facts, relations = self._blocks[batch.block].take(batch.rows), None
        if self._other_relations:
            relations = self._pairs(self._other_relations[batch.block].take(batch.rows))
        prepared = FactBatch(
            torch.tensor(facts.relation, device=self._device),
            torch.tensor(facts.entities, device=self._device),
            self._pairs(self._others[batch.block].take(batch.rows)),
            relations,
        )
        return partial(self._backward, prepared)

    def _backward(self, batch: FactBatch, model: DotProductModel) -> Tensor:
        """The mean loss of a batch over facts and positions; the parameters, which have no gradients, get them."""
        settings, (b, n) = self._settings, batch.entities.shape
        if batch.left_out_relations is None:
            queries, relation_query = model.queries(batch.relation, batch.entities), None
        else:
            queries, relation_query = model.all_queries(batch.relation, batch.entities)
        graph = _Graph(self._buffers, settings.label_smoothing)
        for table, positions in _tables(model, n):
            query, target = queries, batch.entities
            if len(positions) < n:
                query, target = queries[:, positions], batch.entities[:, positions]
            left_out = _at_positions(batch.left_out, positions, n)
            graph.softmax(query.reshape(len(positions) * b, -1), table, target.reshape(-1), left_out, 1 / (b * n))
        if relation_query is not None and batch.left_out_relations is not None:
            table, weight = model.relation_candidates(), settings.relation_loss / b
            graph.softmax(relation_query, table, batch.relation, batch.left_out_relations, weight)
        if settings.n3:
            graph.add(settings.n3 * cubes(model.factors(batch.relation, batch.entities)))
        return graph.backward()

    def _pairs(self, pairs: tuple[np.ndarray, np.ndarray]) -> Pairs:
        return torch.tensor(pairs[0], device=self._device), torch.tensor(pairs[1], device=self._device)


class _Graph:
    """A sum of losses whose last step has its gradients already; gradients of tables stand in buffers that stay."""

    def __init__(self, buffers: dict[Tensor, Tensor], smoothing: float) -> None:
        self._buffers, self._smoothing = buffers, smoothing
        self._outputs: list[Tensor] = []
        self._grads: list[Tensor | None] = []
        self._values: list[Tensor] = []

    def softmax(self, query: Tensor, table: Tensor, target: Tensor, left_out: Pairs, weight: float) -> None:
        into = Gradients(torch.empty_like(query), self._table_grad(table))
        with torch.no_grad():
            value = softmax_gradients(query, table, target, left_out, self._smoothing, weight, into)
        self._values.append(value)
        self._outputs.append(query)
        self._grads.append(into.query)

    def add(self, loss: Tensor) -> None:
        self._values.append(loss.detach())
        self._outputs.append(loss)
        self._grads.append(None)

    def backward(self) -> Tensor:
        torch.autograd.backward(self._outputs, self._grads)
        return torch.stack(self._values).sum()

    def _table_grad(self, table: Tensor) -> Tensor:
        """Where the gradient of a table is to be written; each table is asked for once."""
        if not table.is_leaf:
            self._outputs.append(table)
            self._grads.append(grad := torch.empty_like(table))
            return grad
        if table not in self._buffers:
            self._buffers[table] = torch.empty_like(table)
        assert table.grad is None
        table.grad = self._buffers[table]
        return table.grad


def _tables(model: DotProductModel, arity: int) -> list[tuple[Tensor, list[int]]]:
    """The tables of an arity's positions, and the positions that share each."""
    tables = [model.candidates(position) for position in range(arity)]
    first = [next(i for i, other in enumerate(tables) if other is table) for table in tables]
    return [(tables[i], [p for p in range(arity) if first[p] == i]) for i in dict.fromkeys(first)]


def _at_positions(pairs: Pairs, positions: Sequence[int], arity: int) -> Pairs:
    """The pairs of questions at these positions, which are numbered anew."""
    if len(positions) == arity:
        return pairs
    questions, values = pairs
    number = torch.full((arity,), -1, device=questions.device)
    number[list(positions)] = torch.arange(len(positions), device=questions.device)
    place = number[questions % arity]
    here = place >= 0
    return (questions[here] // arity) * len(positions) + place[here], values[here]


class QuestionBatch(NamedTuple):
    """Questions with one position open, and all their answers."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    position: int
    answers: Pairs  # rows, ascending, and entities


class KvsAll:
    """Each question once, with all its answers."""

    def __init__(
        self, blocks: Mapping[int, Facts], known: KnownAnswers, settings: TrainSettings, device: torch.device
    ) -> None:
        self._known, self._settings, self._device = known, settings, device
        self._questions = [
            (_distinct_questions(facts, position), position)
            for facts in blocks.values()
            for position in range(facts.arity)
        ]
        self.sizes = [len(facts) for facts, _ in self._questions]

    def prepare(self, batch: Batch) -> Work:
        """Gather what a step must know of its questions."""
        facts, position = self._questions[batch.block]
        facts = facts.take(batch.rows)
        answers = self._known.lookup(facts.relation, facts.entities, position)
        arrays = (facts.relation, facts.entities, answers.rows, answers.values)
        relation, entities, rows, values = (torch.tensor(array, device=self._device) for array in arrays)
        return partial(self._backward, QuestionBatch(relation, entities, position, (rows, values)))

    def _backward(self, batch: QuestionBatch, model: DotProductModel) -> Tensor:
        """The mean loss of a batch of questions; its gradients are added to those of the parameters."""
        settings = self._settings
        scores = model.score_candidates(batch.relation, batch.entities, batch.position)
        labels = torch.zeros_like(scores)
        labels[batch.answers] = 1
        loss = multi_answer_loss(scores, labels, settings.kvsall_loss, settings.label_smoothing)
        if settings.n3:
            factors = model.factors(batch.relation, batch.entities)
            del factors[batch.position + 1]  # what is open takes no part
            loss = loss + settings.n3 * cubes(factors)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


Regime = OneVsAll | KvsAll
REGIMES: dict[str, type[OneVsAll] | type[KvsAll]] = {"1vsall": OneVsAll, "kvsall": KvsAll}


def cubes(factors: Sequence[Tensor]) -> Tensor:
    """N3: the cubes of embeddings ``(b, d)``, summed over dimensions and factors, averaged over facts."""
    return torch.stack([(factor.abs() ** 3).sum() for factor in factors]).sum() / len(factors[0])


def _distinct_questions(facts: Facts, position: int) -> Facts:
    """One fact for each question."""
    others = [0, *(j + 1 for j in range(facts.arity) if j != position)]
    _, first = np.unique(facts.rows()[:, others], axis=0, return_index=True)
    return facts.take(first)
