"""All positions of each fact against all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from getd.models.base import DotProductModel, ScoringModel
from getd.training.losses.accumulate import LossSum
from getd.training.losses.softmax import softmax_loss
from getd.training.regimes.base import Batch, Pairs, Work
from getd.training.regimes.facts import FactBatch, FactRegime


class OneVsAll(FactRegime):
    """All positions of each fact against all candidates: the paper's loss."""

    def set_up(self) -> list[int]:
        self._buffers: dict[Tensor, Tensor] = {}
        return super().set_up()

    def prepare(self, batch: Batch) -> Work:
        return partial(self._backward, self.gather(batch))

    def _backward(self, batch: FactBatch, model: ScoringModel) -> Tensor:
        """The mean loss of a batch over facts and positions; the parameters, which have no gradients, get them."""
        graph = LossSum(self._buffers, self._settings.label_smoothing)
        if isinstance(model, DotProductModel):
            self._add_queries(batch, model, graph)
        else:
            self._add_scores(batch, model, graph)
        for loss in self.other_losses(batch, model):
            graph.add(loss)
        return graph.backward()

    def _add_queries(self, batch: FactBatch, model: DotProductModel, graph: LossSum) -> None:
        """The losses of queries against tables, whose scores are never kept."""
        (b, n), relation_query = batch.entities.shape, None
        if batch.left_out_relations is None or not model.relation_is_dot_product:
            queries = model.queries(batch.relation, batch.entities)
        else:
            queries, relation_query = model.all_queries(batch.relation, batch.entities)
        for table, positions in _tables(model, n):
            query, target = queries, batch.entities
            if len(positions) < n:
                query, target = queries[:, positions], batch.entities[:, positions]
            left_out = _at_positions(batch.left_out, positions, n)
            graph.softmax(
                query.reshape(len(positions) * b, -1),
                table,
                target.reshape(-1),
                left_out,
                1 / (b * n),
            )
        if relation_query is not None and batch.left_out_relations is not None:
            table, weight = model.relation_candidates(), self._settings.relation_loss / b
            graph.softmax(relation_query, table, batch.relation, batch.left_out_relations, weight)
        elif batch.left_out_relations is not None:
            graph.add(self.relation_loss(batch, model))

    def _add_scores(self, batch: FactBatch, model: ScoringModel, graph: LossSum) -> None:
        """The losses of any model's scores, all of a position at a time."""
        n, smoothing = batch.entities.shape[1], self._settings.label_smoothing
        for position in range(n):
            scores = model.score_candidates(batch.relation, batch.entities, position)
            left_out, target = (
                _at_positions(batch.left_out, [position], n),
                batch.entities[:, position],
            )
            graph.add(softmax_loss(scores, target, left_out, smoothing) / n)
        if batch.left_out_relations is not None:
            graph.add(self.relation_loss(batch, model))


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
