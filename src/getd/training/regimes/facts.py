"""What the regimes that learn from whole facts share."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from getd.facts.known_answers import OtherAnswers
from getd.models.base import ScoringModel
from getd.training.losses.softmax import softmax_loss
from getd.training.regimes.base import Batch, Pairs, Regime, cubes, to_device


class FactBatch(NamedTuple):
    """Facts and the candidates that are no negatives of theirs; a question is numbered ``fact * arity + position``."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    left_out: Pairs  # questions, ascending, and entities
    left_out_relations: Pairs | None  # facts, ascending, and relations; None: not asked for


class FactRegime(Regime):
    """Facts in blocks, and what else answers their questions."""

    def set_up(self) -> list[int]:
        known, blocks = self._known, self._blocks
        self._others = [known.others(facts, range(facts.arity)) for facts in blocks]
        self._other_relations = [
            known.others(facts, [None]) for facts in blocks if self._settings.relation_loss
        ]
        return [len(facts) for facts in blocks]

    def gather(self, batch: Batch) -> FactBatch:
        """The facts of a batch."""
        facts = self._blocks[batch.block].take(batch.rows)
        relation, entities = to_device((facts.relation, facts.entities), self._device)
        relations = (
            self._pairs(self._other_relations[batch.block], batch)
            if self._other_relations
            else None
        )
        return FactBatch(
            relation, entities, self._pairs(self._others[batch.block], batch), relations
        )

    def relation_loss(self, batch: FactBatch, model: ScoringModel) -> Tensor:
        """That of the open relation against all relations, from scores; weighted."""
        assert batch.left_out_relations is not None
        scores, settings = model.score_relations(batch.entities), self._settings
        loss = softmax_loss(
            scores, batch.relation, batch.left_out_relations, settings.label_smoothing
        )
        return settings.relation_loss * loss

    def other_losses(self, batch: FactBatch, model: ScoringModel) -> list[Tensor]:
        """N3 and what the model itself adds, weighted."""
        found = []
        if self._settings.n3:
            found.append(self._settings.n3 * cubes(model.factors(batch.relation, batch.entities)))
        auxiliary = model.auxiliary_loss(
            batch.relation, batch.entities, batch.entities.roll(1, dims=0)
        )
        return found if auxiliary is None else [*found, auxiliary]

    def _pairs(self, others: OtherAnswers, batch: Batch) -> Pairs:
        questions, values = to_device(others.take(batch.rows), self._device)
        return questions, values
