r"""m-TransH and RAE: entities, put on the plane of a relation and weighted by position, add up to minus the relation.

.. math::
    \phi(r, e_1, \dots, e_n) = -\Bigl\lVert r + \sum_j a_{rj} \bigl(e_j - (w_r \cdot e_j) w_r\bigr) \Bigr\rVert_p,
    \qquad \lVert w_r \rVert_2 = 1

RAE adds how likely a candidate :math:`c` and each given entity take part in one fact, whatever its relation:

.. math::
    \phi(c) + \frac{\lambda}{n - 1} \sum_{j \text{ given}} \log \sigma\bigl(g(e_j, c)\bigr), \qquad
    g(e, c) = v \cdot \operatorname{relu}(W_1 e + W_2 c + b) + b_0
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid, normalize, softplus

from getd.models.base import ModelSizes, ScoringModel, by_relation, check_arity
from getd.models.layers import embedding
from getd.models.settings import ModelSettings
from getd.models.transe import lengths

HELD = 2**22  # numbers held at a time, where questions have candidates of their own
CACHED = 2**18  # the same for the hidden layer of relatedness, which stays in the caches
SMALLEST = 1e-12  # a squared distance below this counts as this, and teaches nothing


class MTransHSettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "m-transh"``."""

    entity_dim: PositiveInt = 100
    p: Literal[1, 2] = 2  # of the norm
    squared: bool = False  # minus the squared norm


class RAESettings(MTransHSettings):
    """Settings of ``[model]`` with ``name = "rae"``."""

    hidden: PositiveInt = 100  # units of the network that tells relatedness
    relatedness: NonNegativeFloat = 1.0  # its weight in the score
    relatedness_loss: NonNegativeFloat = (
        0.001  # weight of the loss that teaches it who takes part in one fact
    )


class MTransH(ScoringModel):
    """Minus the length of what a relation and its entities, on the relation's plane, add up to."""

    parameters_formula = "|E|d + 2|R|d + n|R|"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: MTransHSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d, scale = settings.entity_dim, settings.initial_scale
        self.p, self.squared = settings.p, settings.squared
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, d, scale, generator)
        self.normal = embedding(
            sizes.n_relations, d, scale, generator
        )  # w, scaled to length 1 when it is looked up
        self.share = embedding(
            sizes.n_relations, max(self.arities), 1.0, generator
        )  # a, of each position

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        n = check_arity(self.arities, entities)
        given = [j for j in range(n) if j != position]
        shares, normal = (
            self.share(relation),
            normalize(self.normal(relation), dim=1),
        )  # (b, n), (b, d)
        total = torch.einsum("bj,bjd->bd", shares[:, given], self.entity(entities[:, given]))
        rest = _project(total, normal) + self.relation(
            relation
        )  # what the candidate should cancel, (b, d)
        share = shares[:, [position]]  # (b, 1)
        if candidates is not None and candidates.dim() == 2:
            parts = torch.split(candidates, max(1, HELD // rest.numel()), 1)
            return torch.cat([self._score_own(rest, share, normal, part) for part in parts], dim=1)
        vectors = self.entity.weight if candidates is None else self.entity(candidates)  # (m, d)
        if self.p == 2:
            squares = _squares(rest, share, normal, vectors)
            return -squares.clamp(min=0) if self.squared else -squares.clamp(min=SMALLEST).sqrt()

        def distances(
            rows: Tensor,
        ) -> Tensor:  # of questions with one relation, whose candidates are on one plane
            on_plane = share[rows[:1]] * _project(vectors, normal[rows[:1]])
            return torch.cdist(rest[rows], -on_plane, 1.0)

        return self._minus(by_relation(relation, distances))

    def score_relations(self, entities: Tensor) -> Tensor:
        n = check_arity(self.arities, entities)
        vectors, parts = self.entity(entities), []  # (b, n, d)
        everyone = torch.arange(self.n_relations, device=entities.device)
        for relation in torch.split(everyone, max(1, HELD // vectors[:, 0].numel())):
            total = torch.einsum("rj,bjd->brd", self.share(relation)[:, :n], vectors)
            sums = _project(total, normalize(self.normal(relation), dim=1)) + self.relation(
                relation
            )
            parts.append(self._score(sums))
        return torch.cat(parts, dim=1)

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        return [self.relation(relation), *self.entity(entities).unbind(1)]

    def relation_tables(self) -> dict[str, nn.Embedding]:
        return {"relation": self.relation, "normal": self.normal, "share": self.share}

    def _score_own(self, rest: Tensor, share: Tensor, normal: Tensor, candidates: Tensor) -> Tensor:
        """Scores ``(b, m)`` of candidates that are each question's own."""
        on_plane = _project(self.entity(candidates), normal.unsqueeze(1))  # (b, m, d)
        return self._score(share.unsqueeze(2) * on_plane + rest.unsqueeze(1))

    def _score(self, sums: Tensor) -> Tensor:
        return self._minus(lengths(sums, self.p))

    def _minus(self, lengths: Tensor) -> Tensor:
        return -(lengths**2) if self.squared else -lengths


class RAE(MTransH):
    """m-TransH, and how likely the entities of a fact stand together, told by a small network."""

    parameters_formula = "|E|d + 2|R|d + n|R| + 2dh + 2h + 1"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: RAESettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes, settings, generator)
        self.relatedness_weight, self.loss_weight = settings.relatedness, settings.relatedness_loss
        d, hidden = settings.entity_dim, settings.hidden
        scale = 1 / (
            settings.initial_scale * sqrt(d)
        )  # so that hidden numbers are of unit size at the start
        self.first = nn.Parameter(scale * torch.randn(hidden, d, generator=generator))
        self.second = nn.Parameter(scale * torch.randn(hidden, d, generator=generator))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))
        self.output = nn.Parameter(torch.randn(hidden, generator=generator) / sqrt(hidden))
        self.output_bias = nn.Parameter(torch.zeros(()))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        scores = super().score_candidates(relation, entities, position, candidates)
        given = [j for j in range(entities.shape[1]) if j != position]
        if not given or not self.relatedness_weight:
            return scores
        related = logsigmoid(self.relatedness(entities[:, given], candidates)).mean(dim=1)
        return scores + self.relatedness_weight * related

    def relatedness(self, given: Tensor, candidates: Tensor | None = None) -> Tensor:
        """How likely two entities take part in one fact, before the sigmoid.

        ``given`` are the ids ``(b, k)`` and ``candidates`` ``(m,)``, ``(b, m)`` or all; returns ``(b, k, m)``.
        """
        one = self.entity(given) @ self.first.T + self.hidden_bias  # (b, k, h)
        if candidates is None:
            tables = torch.split(self.entity.weight, max(1, CACHED // len(self.output)))
            parts = (self._logits(one, vectors) for vectors in tables)
        else:
            width = CACHED // len(self.output) if candidates.dim() == 1 else HELD // one.numel()
            parts = (
                self._logits(one, self.entity(ids))
                for ids in torch.split(candidates, max(1, width), -1)
            )
        return torch.cat(list(parts), dim=2) + self.output_bias

    def auxiliary_loss(
        self, relation: Tensor, entities: Tensor, negatives: Tensor
    ) -> Tensor | None:
        """Entities of one fact are related, those of a fact and ``negatives`` ``(b, k)`` are not."""
        n = entities.shape[1]
        if n < 2 or not self.loss_weight:
            return None
        logits = self.relatedness(
            entities, torch.cat([entities, negatives], dim=1)
        )  # (b, n, n + k)
        others = ~torch.eye(n, dtype=torch.bool, device=entities.device)
        together, apart = logits[:, :, :n][:, others], logits[:, :, n:]
        return self.loss_weight * (softplus(-together).mean() + softplus(apart).mean())

    def _logits(self, one: Tensor, vectors: Tensor) -> Tensor:
        """The hidden layer ``(b, k, h)`` of one side with vectors ``(m, d)`` or ``(b, m, d)`` of the other."""
        other = self.second @ vectors.mT  # (h, m) or (b, h, m)
        if other.dim() == 3:
            return self.output @ (one.unsqueeze(3) + other.unsqueeze(1)).relu_()
        logits: Tensor = _Hidden.apply(one.flatten(0, 1), other, self.output)  # type: ignore[no-untyped-call]
        return logits.view(*one.shape[:2], -1)


class _Hidden(torch.autograd.Function):
    r"""All :math:`v \cdot \operatorname{relu}(x + y)` of two sides, some rows at a time, in the caches.

    The hidden layer is made again for the gradient, not kept.
    """

    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, output: Tensor) -> Tensor:
        """``one`` ``(q, h)`` and ``other`` ``(h, m)``; returns ``(q, m)``."""
        ctx.save_for_backward(one, other, output)
        parts = torch.split(one.unsqueeze(2), max(1, CACHED // other.numel()))
        return torch.cat([output @ (part + other).relu_() for part in parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one, other, output = ctx.saved_tensors
        at_once = max(1, CACHED // other.numel())
        one_grads, other_grad, output_grad = [], torch.zeros_like(other), torch.zeros_like(output)
        for part, flow in zip(
            torch.split(one.unsqueeze(2), at_once), torch.split(grad, at_once), strict=True
        ):
            hidden = (part + other).relu_()  # (q, h, m)
            output_grad += (hidden @ flow.unsqueeze(2)).sum(dim=0).squeeze(1)
            back = torch.ops.aten.threshold_backward(
                output.unsqueeze(1) * flow.unsqueeze(1), hidden, 0.0
            )
            other_grad += back.sum(dim=0)
            one_grads.append(back.sum(dim=2))
        return torch.cat(one_grads), other_grad, output_grad


def _project(vectors: Tensor, normal: Tensor) -> Tensor:
    """Vectors on the plane of a normal of length 1, axis by axis: ``(…, d)``."""
    return vectors - (vectors * normal).sum(dim=-1, keepdim=True) * normal


def _squares(rest: Tensor, share: Tensor, normal: Tensor, vectors: Tensor) -> Tensor:
    r"""Squared lengths ``(b, m)`` of :math:`s + a (c - (w \cdot c) w)`, by two matrix products.

    .. math::
        \lVert s \rVert^2 + 2a \bigl(s - (w \cdot s) w\bigr) \cdot c + a^2 \bigl(c \cdot c - (w \cdot c)^2\bigr)
    """
    along = normal @ vectors.T  # w · c
    cross = _project(rest, normal) @ vectors.T
    lengths = (vectors**2).sum(dim=1) - along**2
    return (rest**2).sum(dim=1, keepdim=True) + 2 * share * cross + share**2 * lengths
