r"""m-TransH and RAE: entities on the plane of a relation add up, weighted, to minus the relation.

.. math::
    \phi(r, e_1, \dots, e_n) =
    -\Bigl\lVert r + \sum_j a_{rj} \bigl(e_j - (w_r \cdot e_j) w_r\bigr) \Bigr\rVert_p,
    \qquad \lVert w_r \rVert_2 = 1

RAE adds how likely a candidate :math:`c` and each given entity take part in one fact, whatever its
relation:

.. math::
    \phi(c) + \frac{\lambda}{n - 1} \sum_{j \text{ given}} \log \sigma\bigl(g(e_j, c)\bigr), \qquad
    g(e, c) = v \cdot \operatorname{relu}(W_1 e + W_2 c + b) + b_0
"""

from functools import partial
from math import sqrt
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import Parameter
from torch.nn.functional import logsigmoid, normalize, softplus

from getd.models.aliases import Candidates, ExtraLoss, RandomSource, Tables
from getd.models.base import ModelSizes, ScoringModel, other_positions
from getd.models.layers import embedding
from getd.models.parts import by_relation, score_in_parts
from getd.models.settings import ModelSettings
from getd.models.transe import lengths

BUDGET = 2**22  # numbers held at a time, where questions have candidates of their own
CACHE_BUDGET = 2**18  # the same for the hidden layer of relatedness, to stay in the caches
MIN_SQUARE = 1e-12  # a squared distance below this counts as this, and teaches nothing


class MTransHSettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "m-transh"``."""

    entity_dim: PositiveInt = 100
    p: Literal[1, 2] = 2  # of the norm
    squared: bool = False  # minus the squared norm


class RAESettings(MTransHSettings):
    """Settings of ``[model]`` with ``name = "rae"``."""

    hidden: PositiveInt = 100  # units of the relatedness network
    relatedness: NonNegativeFloat = 1.0  # its weight in the score
    relatedness_loss: NonNegativeFloat = 0.001  # weight of the loss of that network


class MTransH(ScoringModel):
    """Minus the length of the sum of a relation and its entities, projected onto its hyperplane."""

    parameters_formula = "|E|d + 2|R|d + n|R|"

    def __init__(
        self, sizes: ModelSizes, settings: MTransHSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        scale = settings.initial_scale
        self.p = settings.p
        self.squared = settings.squared
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, d, scale, generator)

        # w, scaled to length 1 when it is looked up, and a, of each position.
        self.normal = embedding(sizes.n_relations, d, scale, generator)
        self.share = embedding(sizes.n_relations, max(self.arities), 1.0, generator)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        self.check_arity(entities)
        given = other_positions(entities, position)
        shares = self.share(relation)  # (b, n)
        normal = normalize(self.normal(relation), dim=1)  # (b, d)
        total = torch.einsum("bj,bjd->bd", shares[:, given], self.entity(entities[:, given]))
        rest = _project(total, normal) + self.relation(relation)  # what a candidate should cancel
        share = shares[:, [position]]  # (b, 1)

        def score_own(part: Tensor) -> Tensor:
            on_plane = _project(self.entity(part), normal.unsqueeze(1))  # (b, m, d)
            return self._minus_length(share.unsqueeze(2) * on_plane + rest.unsqueeze(1))

        if candidates is not None and candidates.dim() == 2:
            return score_in_parts(score_own, candidates, BUDGET // rest.numel())
        vectors = self.entity_vectors(candidates)  # (m, d)
        if self.p == 2:
            squares = _squares(rest, share, normal, vectors)
            if self.squared:
                return -squares.clamp(min=0)
            return -squares.clamp(min=MIN_SQUARE).sqrt()

        # The candidates of questions with one relation are on one plane.
        def distances(rows: Tensor) -> Tensor:
            first = rows[:1]
            on_plane = share[first] * _project(vectors, normal[first])
            return torch.cdist(rest[rows], -on_plane, 1.0)

        return self._minus(by_relation(relation, distances))

    def score_relations(self, entities: Tensor) -> Tensor:
        n = self.check_arity(entities)
        vectors = self.entity(entities)  # (b, n, d)

        def score(part: Tensor) -> Tensor:
            total = torch.einsum("rj,bjd->brd", self.share(part)[:, :n], vectors)
            on_plane = _project(total, normalize(self.normal(part), dim=1))
            return self._minus_length(on_plane + self.relation(part))

        relations = torch.arange(self.n_relations, device=entities.device)
        return score_in_parts(score, relations, BUDGET // vectors[:, 0].numel())

    def relation_tables(self) -> Tables:
        return {"relation": self.relation, "normal": self.normal, "share": self.share}

    def _minus_length(self, vectors: Tensor) -> Tensor:
        return self._minus(lengths(vectors, self.p))

    def _minus(self, lengths: Tensor) -> Tensor:
        return -(lengths**2) if self.squared else -lengths


class RAE(MTransH):
    """m-TransH, plus a network that rates how likely the entities of a fact occur together."""

    parameters_formula = "|E|d + 2|R|d + n|R| + 2dh + 2h + 1"

    def __init__(
        self, sizes: ModelSizes, settings: RAESettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes, settings, generator)
        self.relatedness_weight = settings.relatedness
        self.loss_weight = settings.relatedness_loss

        d = settings.entity_dim
        hidden = settings.hidden
        scale = 1 / (settings.initial_scale * sqrt(d))  # hidden numbers begin with unit size
        self.first = Parameter(scale * torch.randn(hidden, d, generator=generator))
        self.second = Parameter(scale * torch.randn(hidden, d, generator=generator))
        self.hidden_bias = Parameter(torch.zeros(hidden))
        self.output = Parameter(torch.randn(hidden, generator=generator) / sqrt(hidden))
        self.output_bias = Parameter(torch.zeros(()))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        scores = super().score_candidates(relation, entities, position, candidates)
        given = other_positions(entities, position)
        if not given or not self.relatedness_weight:
            return scores
        related = logsigmoid(self.relatedness(entities[:, given], candidates)).mean(dim=1)
        return scores + self.relatedness_weight * related

    def relatedness(self, given: Tensor, candidates: Candidates = None) -> Tensor:
        """Return how likely two entities take part in one fact, before the sigmoid.

        ``given`` are ids ``(b, k)``, ``candidates`` ``(m,)``, ``(b, m)`` or all: ``(b, k, m)``.
        """
        one = self.entity(given) @ self.first.T + self.hidden_bias  # (b, k, h)
        size = CACHE_BUDGET // len(self.output)  # candidates that have a hidden layer at a time
        if candidates is None:
            score = partial(self._logits, one)
            logits = score_in_parts(score, self.entity.weight, size, dim=0)
        else:
            size = size if candidates.dim() == 1 else BUDGET // one.numel()
            logits = score_in_parts(
                lambda ids: self._logits(one, self.entity(ids)), candidates, size
            )
        return logits + self.output_bias

    def auxiliary_loss(self, relation: Tensor, entities: Tensor, negatives: Tensor) -> ExtraLoss:
        """Teach that entities of one fact are related, and not to ``negatives`` ``(b, k)``."""
        n = entities.shape[1]
        if n < 2 or not self.loss_weight:
            return None
        candidates = torch.cat([entities, negatives], dim=1)
        logits = self.relatedness(entities, candidates)  # (b, n, n + k)
        others = ~torch.eye(n, dtype=torch.bool, device=entities.device)
        together = logits[:, :, :n][:, others]
        apart = logits[:, :, n:]
        return self.loss_weight * (softplus(-together).mean() + softplus(apart).mean())

    def _logits(self, one: Tensor, vectors: Tensor) -> Tensor:
        """Join one side's ``(b, k, h)`` with vectors ``(m, d)`` or ``(b, m, d)`` of the other."""
        other = self.second @ vectors.mT  # (h, m) or (b, h, m)
        if other.dim() == 3:
            return self.output @ (one.unsqueeze(3) + other.unsqueeze(1)).relu_()
        logits: Tensor = _Hidden.apply(one.flatten(0, 1), other, self.output)  # type: ignore[no-untyped-call]
        return logits.view(*one.shape[:2], -1)


class _Hidden(Function):
    r"""All :math:`v \cdot \operatorname{relu}(x + y)` of two sides, a few rows at a time.

    The hidden layer stays in the caches, and is made again for the gradient.
    """

    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, output: Tensor) -> Tensor:
        """Join ``one (q, h)`` and ``other (h, m)`` to ``(q, m)``."""
        ctx.save_for_backward(one, other, output)
        ctx.rows = max(1, CACHE_BUDGET // other.numel())
        parts = torch.split(one.unsqueeze(2), ctx.rows)
        return torch.cat([output @ (part + other).relu_() for part in parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one, other, output = ctx.saved_tensors
        one_grads = []
        other_grad = torch.zeros_like(other)
        output_grad = torch.zeros_like(output)

        parts = torch.split(one.unsqueeze(2), ctx.rows)
        for part, flow in zip(parts, torch.split(grad, ctx.rows), strict=True):
            hidden = (part + other).relu_()  # (q, h, m)
            output_grad += (hidden @ flow.unsqueeze(2)).sum(dim=0).squeeze(1)
            flow = output.unsqueeze(1) * flow.unsqueeze(1)
            flow = torch.ops.aten.threshold_backward(flow, hidden, 0.0)
            other_grad += flow.sum(dim=0)
            one_grads.append(flow.sum(dim=2))
        return torch.cat(one_grads), other_grad, output_grad


def _project(vectors: Tensor, normal: Tensor) -> Tensor:
    """Put vectors ``(…, d)`` on the plane of a normal of length 1."""
    return vectors - (vectors * normal).sum(dim=-1, keepdim=True) * normal


def _squares(rest: Tensor, share: Tensor, normal: Tensor, vectors: Tensor) -> Tensor:
    r"""Return the squared lengths ``(b, m)`` of :math:`s + a (c - (w \cdot c) w)`.

    .. math::
        \lVert s \rVert^2 + 2a \bigl(s - (w \cdot s) w\bigr) \cdot c
        + a^2 \bigl(c \cdot c - (w \cdot c)^2\bigr)
    """
    along = normal @ vectors.T  # w · c
    cross = _project(rest, normal) @ vectors.T
    on_plane = (vectors**2).sum(dim=1) - along**2
    return (rest**2).sum(dim=1, keepdim=True) + 2 * share * cross + share**2 * on_plane
