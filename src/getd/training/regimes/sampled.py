"""All positions of each fact against a few candidates.

The cost of a step does not depend on the number of entities. Shapes: ``b`` facts of ``n`` entities,
``m`` negatives for each position, of which ``c`` hard ones are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.models.base import ScoringModel
from getd.training.losses import SAMPLED_LOSSES
from getd.training.losses.base import SampledScores
from getd.training.losses.fused_softmax import LossSum
from getd.training.losses.sampled import sampled_softmax
from getd.training.moving_average import Weights
from getd.training.regimes.base import Batch, Buffers
from getd.training.regimes.negatives import (
    Negatives,
    NegativeSampler,
    draw_hardest,
    own_left_out,
    shared_left_out,
)
from getd.training.regimes.one_vs_all import FactBatch, FactRegime


class Sampled(FactRegime):
    """All positions of each fact against negatives: n groups for n positions (eq. 8 of the paper).

    They are drawn for each fact, or once for the whole batch; none makes a training fact true.
    With at least as many as there are entities, each answer meets every entity once: the loss of
    ``1vsall``.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        settings = self.settings
        self._sampler = NegativeSampler(self.blocks, self.n_entities, settings.negative_power)
        self._caches: list[Tensor] = []  # hard negatives of each block
        if settings.hard_negatives:
            for facts in self.blocks:
                rng = np.random.default_rng((settings.seed, facts.arity))
                shape = (*facts.entities.shape, settings.hard_negatives)
                self._caches.append(self.tensor(self._sampler.draw(shape, rng)))

    def prepare(self, batch: Batch) -> SampledStep:
        facts = self.gather(batch)
        rng = np.random.default_rng((self.settings.seed, *batch.seed))
        negatives = self._draw(rng, *facts.entities.shape)
        find = shared_left_out if negatives.ids.dim() == 2 else own_left_out
        left_out = find(negatives.ids, facts.left_out, facts.entities, self.n_entities)

        hard = None
        if self._caches:
            rows = self.tensor(batch.rows)
            hard = HardNegatives(self._caches[batch.block], rows, self.n_entities)
        return SampledStep(facts, negatives, left_out, hard, self.buffers)

    def _draw(self, rng: np.random.Generator, b: int, n: int) -> Negatives:
        """Draw the negatives of a batch."""
        settings = self.settings
        m = settings.negatives
        if m >= self.n_entities:
            everything = torch.arange(self.n_entities, device=self.device)
            return Negatives(everything.expand(n, -1))

        shape = (n, m) if settings.shared_negatives else (b, n, m)
        ids = self._sampler.draw(shape, rng)
        log_weights = None
        is_softmax = SAMPLED_LOSSES[settings.sampled_loss] is sampled_softmax
        if is_softmax and settings.correction and not settings.hard_negatives:
            log_weights = self.tensor(self._sampler.log_weights(ids, m))
        return Negatives(self.tensor(ids), log_weights)

    def state(self) -> Weights:
        return {f"cache-{number}": cache for number, cache in enumerate(self._caches)}

    def load_state(self, state: Weights) -> None:
        for number, cache in enumerate(self._caches):
            cache.copy_(state[f"cache-{number}"])


@dataclass(frozen=True)
class HardNegatives:
    """The hard negatives kept for the facts of a batch."""

    cache: Tensor  # (facts of the block, n, c)
    rows: Tensor  # (b,), the batch in it
    n_entities: int

    def scores(self, facts: FactBatch, drawn: Tensor, model: ScoringModel) -> SampledScores:
        """Score answers and hard negatives; harder ones among those drawn replace them."""
        kept = self.cache[self.rows]  # (b, n, c)
        size = kept.shape[2]
        rivals = torch.cat([kept, drawn.expand(*facts.entities.shape, -1)], dim=2)
        own, scores = _scores_of_own(model, facts, rivals)

        known = (facts.left_out, facts.entities, self.n_entities)
        left_out = own_left_out(rivals, *known)
        self.cache[self.rows] = draw_hardest(rivals, scores.detach(), left_out, size)
        return SampledScores(own, scores[:, :, :size], own_left_out(kept, *known))


@dataclass(frozen=True)
class SampledStep:
    """Facts and what was drawn for them; the loss is the mean over facts and positions."""

    facts: FactBatch
    negatives: Negatives
    left_out: Tensor  # indices into the flat scores (b, n, m) of the negatives
    hard: HardNegatives | None
    buffers: Buffers

    def backward(self, model: ScoringModel) -> float:
        facts = self.facts
        settings = facts.settings
        total = LossSum(self.buffers, settings)
        with total.rounding(facts.entities.device):
            scores = self.scores(model)
        loss = SAMPLED_LOSSES[settings.sampled_loss]
        total.add(loss(scores, settings))

        facts.add_relation_loss(model, total)
        for other in facts.other_losses(model):
            total.add(other)
        return total.backward()

    def scores(self, model: ScoringModel) -> SampledScores:
        """Score the answers and their negatives."""
        facts = self.facts
        ids = self.negatives.ids
        if self.hard is not None:
            return self.hard.scores(facts, ids, model)

        if ids.dim() == 2:
            answer = facts.entities.unsqueeze(2)
            own, negative = model.score_positions(facts.relation, facts.entities, answer, ids)
            assert negative is not None
            negative = negative.to(own.dtype)
        else:
            own, negative = _scores_of_own(model, facts, ids)
        return SampledScores(own, negative, self.left_out, self.negatives.log_weights)


def _scores_of_own(model: ScoringModel, facts: FactBatch, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Score the answers, ``(b, n, 1)``, and candidates ``(b, n, m)`` that each fact has alone."""
    candidates = torch.cat([facts.entities.unsqueeze(2), ids], dim=2)
    scores, _ = model.score_positions(facts.relation, facts.entities, candidates)
    own, negative = torch.split(scores, [1, ids.shape[2]], dim=2)
    return own, negative
