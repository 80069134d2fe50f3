"""All positions of each fact against all candidates: the paper's loss.

Question ``fact * arity + position`` asks for the entity at a position of a fact. Shapes: ``b``
facts of ``n`` entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.arrays import expand_spans
from getd.facts.known_answers import OtherAnswers
from getd.models.base import DotProductModel, ScoringModel
from getd.runs.config import TrainSettings
from getd.training.losses.base import Pairs
from getd.training.losses.fused_softmax import LossSum
from getd.training.losses.regularisers import n3
from getd.training.losses.softmax import softmax_loss
from getd.training.regimes.base import Batch, Buffers, Regime


@dataclass(frozen=True)
class FactBatch:
    """Facts, and the candidates of their questions that make other training facts true."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    left_out: Pairs  # questions, ascending, and entities
    left_out_relations: Pairs | None  # facts, ascending, and relations; None: no relation loss
    settings: TrainSettings

    def add_relation_loss(
        self, model: ScoringModel, total: LossSum, query: Tensor | None = None
    ) -> None:
        """Add the weighted loss of the open relation; ``query`` is its query, if it is at hand."""
        if self.left_out_relations is None:
            return

        weight = self.settings.relation_loss
        if isinstance(model, DotProductModel) and model.relation_is_dot_product:
            if query is None:
                with total.rounding(self.entities.device):
                    query = model.relation_query(self.entities)
            table = model.relation_candidates()
            weight /= len(self.relation)
            total.add_softmax(query, table, self.relation, self.left_out_relations, weight)
        else:
            scores = model.score_relations(self.entities)
            smoothing = self.settings.label_smoothing
            loss = softmax_loss(scores, self.relation, self.left_out_relations, smoothing)
            total.add(weight * loss)

    def other_losses(self, model: ScoringModel) -> list[Tensor]:
        """N3 and what the model itself adds, weighted."""
        losses = []
        weight = self.settings.n3
        if weight:
            losses.append(weight * n3(model.factors(self.relation, self.entities)))
        negatives = self.entities.roll(1, dims=0)
        auxiliary = model.auxiliary_loss(self.relation, self.entities, negatives)
        if auxiliary is not None:
            losses.append(auxiliary)
        return losses


class FactRegime(Regime):
    """A regime whose batches are whole facts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.known
        self._others = [known.others(facts, range(facts.arity)) for facts in self.blocks]
        self._other_relations: list[OtherAnswers] = []
        if self.settings.relation_loss:
            self._other_relations = [known.others(facts, [None]) for facts in self.blocks]

    def gather(self, batch: Batch) -> FactBatch:
        """The facts of a batch."""
        facts = self.blocks[batch.block]
        relation = self.tensor(facts.relation[batch.rows])
        entities = self.tensor(facts.entities[batch.rows])
        left_out = self._left_out(self._others[batch.block], batch)
        relations = None
        if self._other_relations:
            relations = self._left_out(self._other_relations[batch.block], batch)
        return FactBatch(relation, entities, left_out, relations, self.settings)

    def _left_out(self, others: OtherAnswers, batch: Batch) -> Pairs:
        """The questions of a batch, and all their known answers but the facts' own."""
        rows = batch.rows
        counts = others.counts[rows].ravel()
        answers = others.answers[expand_spans(others.starts[rows].ravel(), counts)]
        questions = np.repeat(np.arange(len(counts)), counts)
        is_other = answers != others.own[rows].ravel()[questions]
        return self.tensor(questions[is_other]), self.tensor(answers[is_other])

    def tensor(self, array: np.ndarray) -> Tensor:
        """Copy an array to the device."""
        return torch.tensor(array, device=self.device)


class OneVsAll(FactRegime):
    """All positions of each fact against all candidates."""

    def prepare(self, batch: Batch) -> OneVsAllStep:
        return OneVsAllStep(self.gather(batch), self.buffers)


@dataclass(frozen=True)
class OneVsAllStep:
    """A batch of facts against all candidates; the loss is the mean over facts and positions."""

    facts: FactBatch
    buffers: Buffers

    def backward(self, model: ScoringModel) -> float:
        total = LossSum(self.buffers, self.facts.settings)
        if isinstance(model, DotProductModel):
            self._add_queries(model, total)
        else:
            self._add_scores(model, total)
        for loss in self.facts.other_losses(model):
            total.add(loss)
        return total.backward()

    def _add_queries(self, model: DotProductModel, total: LossSum) -> None:
        """Add the losses of queries against tables, whose scores are never kept."""
        facts = self.facts
        b, n = facts.entities.shape

        # Queries for all positions, and for the relation where the model shares their work.
        relation_query = None
        with total.rounding(facts.entities.device):
            if facts.left_out_relations is None or not model.relation_is_dot_product:
                queries = model.queries(facts.relation, facts.entities)
            else:
                queries, relation_query = model.all_queries(facts.relation, facts.entities)

        # Positions that share a table share a product.
        positions_of: dict[Tensor, list[int]] = {}
        for position in range(n):
            positions_of.setdefault(model.candidates(position), []).append(position)
        for table, positions in positions_of.items():
            chosen = slice(None) if len(positions) == n else positions
            query = queries[:, chosen].reshape(len(positions) * b, -1)
            target = facts.entities[:, chosen].reshape(-1)
            left_out = _at_positions(facts.left_out, positions, n)
            total.add_softmax(query, table, target, left_out, 1 / (b * n))

        facts.add_relation_loss(model, total, relation_query)

    def _add_scores(self, model: ScoringModel, total: LossSum) -> None:
        """Add the losses of any model's scores, one position after the other."""
        facts = self.facts
        n = facts.entities.shape[1]
        smoothing = facts.settings.label_smoothing
        for position in range(n):
            scores = model.score_candidates(facts.relation, facts.entities, position)
            target = facts.entities[:, position]
            left_out = _at_positions(facts.left_out, [position], n)
            total.add(softmax_loss(scores, target, left_out, smoothing) / n)
        facts.add_relation_loss(model, total)


def _at_positions(pairs: Pairs, positions: Sequence[int], arity: int) -> Pairs:
    """The pairs of the questions at these positions; questions are numbered among them."""
    if len(positions) == arity:
        return pairs
    questions, values = pairs
    chosen = torch.tensor(positions, device=questions.device)
    kept, index = torch.nonzero(questions[:, None] % arity == chosen, as_tuple=True)
    return (questions[kept] // arity) * len(positions) + index, values[kept]
