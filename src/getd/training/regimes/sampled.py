"""All positions of each fact against a few candidates: the cost of a step does not depend on the number of entities."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.models.base import ScoringModel
from getd.training.losses.sampled import sampled_loss
from getd.training.regimes.base import Batch, Work, to_device
from getd.training.regimes.facts import FactBatch, FactRegime
from getd.training.regimes.negatives import Drawing, Negatives, own_left_out, shared_left_out


class SampledBatch(NamedTuple):
    """Facts and what was drawn for them."""

    facts: FactBatch
    rows: tuple[int, Tensor]  # the block and its rows, for the cache
    negatives: Negatives
    left_out: Tensor  # places among the negatives' scores (b, n, m), flattened


class Sampled(FactRegime):
    """All positions of each fact against negatives: n groups for n positions, as in eq. 8 of the paper.

    They are drawn for each fact, or once for the whole batch, and none makes a training fact true. With as many as
    there are entities (or more), all of them stand against each answer, once: the loss of ``1vsall``.
    """

    def set_up(self) -> list[int]:
        self._drawing = Drawing(self._blocks, self._n_entities, self._settings.negative_power)
        self._cache = (
            [self._first_cache(facts) for facts in self._blocks]
            if self._settings.hard_negatives
            else []
        )
        return super().set_up()

    def prepare(self, batch: Batch) -> Work:
        facts, (rows,) = self.gather(batch), to_device([batch.rows], self._device)
        b, n = facts.entities.shape
        negatives = self._draw(b, n, np.random.default_rng((self._settings.seed, *batch.place)))
        find = shared_left_out if negatives.ids.dim() == 2 else own_left_out
        left_out = find(negatives.ids, facts.left_out, facts.entities, self._n_entities)
        return partial(
            self._backward, SampledBatch(facts, (batch.block, rows), negatives, left_out)
        )

    def _draw(self, b: int, n: int, rng: np.random.Generator) -> Negatives:
        settings, m = self._settings, self._settings.negatives
        if m >= self._n_entities:
            everything = torch.arange(self._n_entities, device=self._device)
            return Negatives(everything.expand(n, -1), None)
        ids = self._drawing.draw((n, m) if settings.shared_negatives else (b, n, m), rng)
        if settings.sampled_loss != "softmax" or not settings.correction or settings.hard_negatives:
            return Negatives(to_device([ids], self._device)[0], None)
        drawn, log_weights = to_device([ids, self._drawing.log_weights(ids, m)], self._device)
        return Negatives(drawn, log_weights)

    def _backward(self, batch: SampledBatch, model: ScoringModel) -> Tensor:
        """The mean loss of a batch over facts and positions; its gradients are added to those of the parameters."""
        answer, negative, left_out = self._scores(batch, model)
        losses = [
            sampled_loss(answer, negative, left_out, batch.negatives.log_weights, self._settings)
        ]
        if batch.facts.left_out_relations is not None:
            losses.append(self.relation_loss(batch.facts, model))
        loss = torch.stack([*losses, *self.other_losses(batch.facts, model)]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _scores(self, batch: SampledBatch, model: ScoringModel) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of the answers ``(b, n, 1)`` and their negatives ``(b, n, m)``, and which of the latter are none."""
        ids, answer = batch.negatives.ids, batch.facts.entities.unsqueeze(2)
        if self._cache:
            return self._hard_scores(batch, model)
        if ids.dim() == 2:
            scores, negative = model.score_positions(
                batch.facts.relation, batch.facts.entities, answer, ids
            )
            assert negative is not None
            return scores, negative, batch.left_out
        scores, _ = model.score_positions(
            batch.facts.relation, batch.facts.entities, torch.cat([answer, ids], dim=2)
        )
        own, negative = torch.split(scores, [1, ids.shape[2]], dim=2)
        return own, negative, batch.left_out

    def _hard_scores(
        self, batch: SampledBatch, model: ScoringModel
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same for the negatives that are kept for these facts; harder ones among those drawn take their place."""
        block, rows = batch.rows
        kept = self._cache[block][rows]  # (b, n, c)
        size, facts, answer = kept.shape[2], batch.facts, batch.facts.entities.unsqueeze(2)
        own = torch.cat([answer, kept, batch.negatives.ids.expand(*answer.shape[:2], -1)], dim=2)
        scores, _ = model.score_positions(facts.relation, facts.entities, own)
        left_out = own_left_out(own[:, :, 1:], facts.left_out, facts.entities, self._n_entities)
        self._cache[block][rows] = hardest(own[:, :, 1:], scores[:, :, 1:].detach(), left_out, size)
        left_out = own_left_out(kept, facts.left_out, facts.entities, self._n_entities)
        return scores[:, :, :1], scores[:, :, 1 : 1 + size], left_out

    def state(self) -> dict[str, Tensor]:
        return {f"cache-{number}": cache for number, cache in enumerate(self._cache)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._cache = [
            state[f"cache-{number}"].to(self._device) for number in range(len(self._cache))
        ]

    def _first_cache(self, facts: Facts) -> Tensor:
        rng, size = (
            np.random.default_rng((self._settings.seed, facts.arity)),
            self._settings.hard_negatives,
        )
        return to_device([self._drawing.draw((len(facts), facts.arity, size), rng)], self._device)[
            0
        ]


def hardest(ids: Tensor, scores: Tensor, left_out: Tensor, size: int) -> Tensor:
    """Draw so many of candidates ``(b, n, m)``, each once, in proportion to the exponentials of their scores.

    Those at the places ``left_out``, and the second of two equal ones, only where there are not enough others.
    """
    noise = (
        -torch.empty_like(scores).exponential_().log_()
    )  # Gumbel: the largest sums are such a draw
    noisy = (scores + noise).flatten().index_fill_(0, left_out, -torch.inf).view_as(scores)
    ordered, order = torch.sort(ids, dim=2, stable=True)
    again = torch.zeros_like(ids, dtype=torch.bool)
    again.scatter_(2, order[:, :, 1:], ordered[:, :, 1:] == ordered[:, :, :-1])
    return ids.gather(2, noisy.masked_fill_(again, -torch.inf).topk(size, dim=2).indices)
