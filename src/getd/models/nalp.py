r"""NaLP: a fact is as plausible as its least related pair of roles and entities.

Position :math:`j` of relation :math:`r` has a role :math:`\rho_{rj}`. With its entity it makes features
:math:`A_j`, any two of these make a vector of relatedness, and the smallest number of each unit counts:

.. math::
    A_j = \operatorname{relu}(F [\rho_{rj}; e_j] + f), \qquad
    \phi = w \cdot \min_{i, j} \operatorname{relu}(U A_i + V A_j + b) + w_0

relu never falls, and every pair of positions is there, so the minimum of all pairs is that of two sums apart:

.. math::
    \min_{i, j} \operatorname{relu}(U A_i + V A_j + b) = \operatorname{relu}(\min_i U A_i + \min_j V A_j + b)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from getd.models.base import ModelSizes, RoleTable, ScoringModel, by_relation, check_arity
from getd.models.layers import embedding
from getd.models.norms import BatchNorm
from getd.models.settings import ModelSettings

HELD = (
    2**22
)  # numbers held at a time, where each question or relation has feature vectors of its own
MOMENTUM = 0.1  # weight of a batch in the running mean and variance
CACHED = 2**18  # the same where one question meets candidates, which stays in the caches


Affine = tuple[Tensor | float, Tensor]


class NaLPSettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "nalp"``."""

    entity_dim: PositiveInt = 100
    filters: PositiveInt = 200  # features of a role with its entity
    units: PositiveInt = 400  # numbers that tell how related two of these are
    roles: Literal["data", "position"] = (
        "data"  # one for each name, where the data has names, or for each position
    )
    batch_norm: bool = False  # on the features of the given entities, before relu


class NaLP(ScoringModel):
    """A network that finds how related all entities are, each in its role, and takes the smallest."""

    role_numbers: Tensor
    parameters_formula = "|E|d + n|R|d + 2df + f + 2fu + 2u + 1"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: NaLPSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d, f, u, scale = (
            settings.entity_dim,
            settings.filters,
            settings.units,
            settings.initial_scale,
        )

        def normal(spread: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(spread * torch.randn(*shape, generator=generator))

        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        numbers = torch.arange(sizes.n_relations * max(self.arities), device="cpu").view(
            sizes.n_relations, -1
        )
        if sizes.roles is not None and settings.roles == "data":
            numbers = torch.zeros_like(numbers)
            for relation, found in enumerate(sizes.roles):
                numbers[relation, : len(found)] = torch.tensor(found, device="cpu")
        self.register_buffer("role_numbers", numbers, persistent=False)  # (|R|, n)
        self.role = embedding(int(numbers.max()) + 1, d, scale, generator)
        self.role_filters = normal(
            1 / (scale * sqrt(2 * d)), f, d
        )  # together F; features of unit variance
        self.entity_filters = normal(1 / (scale * sqrt(2 * d)), f, d)
        self.filter_bias = nn.Parameter(torch.zeros(f))
        self.pair = normal(1 / sqrt(f), 2 * u, f)  # U above V
        self.pair_bias = nn.Parameter(
            torch.ones(u)
        )  # minima are low: at 0 few units would be alive
        self.output = normal(1 / sqrt(u), u)
        self.output_bias = nn.Parameter(torch.zeros(()))
        norms = {
            str(n): BatchNorm(f, momentum=MOMENTUM, affine=False)
            for n in self.arities
            if settings.batch_norm
        }
        self.norms = nn.ModuleDict(norms)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        n = check_arity(self.arities, entities)
        given = [j for j in range(n) if j != position]
        found, affine = self._given(relation, entities, given)
        return self._score(relation, _least(found, range(len(given))), position, candidates, affine)

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        n = check_arity(self.arities, entities)
        found, affine = self._given(relation, entities, range(n))
        least = [_least(found, [j for j in range(n) if j != position]) for position in range(n)]
        scores = [self._score(relation, least[p], p, own[:, p], affine) for p in range(n)]
        if shared is None:
            return torch.stack(scores, dim=1), None
        alike = [self._score(relation, least[p], p, shared[p], affine) for p in range(n)]
        return torch.stack(scores, dim=1), torch.stack(alike, dim=1)

    def score_relations(self, entities: Tensor) -> Tensor:
        n = check_arity(self.arities, entities)
        vectors = self.entity(entities) @ self.entity_filters.T  # (b, n, f)
        scale, shift = self._affine(n, None)
        everyone = torch.arange(self.n_relations, device=entities.device)
        scores = []
        for relation in torch.split(everyone, max(1, HELD // (entities.numel() * len(self.pair)))):
            features = (
                (vectors.unsqueeze(1) + self._roles(relation, range(n))) * scale + shift
            ).relu_()
            scores.append(
                self._output(self._related(features).amin(dim=2))
            )  # (b, r, n, 2u) before the minimum
        return torch.cat(scores, dim=1)

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        n = entities.shape[1]
        roles = self.role(self._role_ids(relation, range(n)))
        return [roles.flatten(1), *self.entity(entities).unbind(1)]

    def role_tables(self) -> dict[str, RoleTable]:
        return {"role": RoleTable(self.role, self.role_numbers)}

    def _given(
        self, relation: Tensor, entities: Tensor, positions: Sequence[int]
    ) -> tuple[Tensor, Affine]:
        """What the entities at some positions are to others, ``(b, k, 2u)``, and how features are normalised."""
        mapped = (
            self._roles(relation, positions)
            + self.entity(entities[:, positions]) @ self.entity_filters.T
        )
        scale, shift = self._affine(entities.shape[1], mapped)
        return self._related((mapped * scale + shift).relu_()), (scale, shift)

    def _score(
        self,
        relation: Tensor,
        least: Tensor,
        position: int,
        candidates: Tensor | None,
        affine: Affine,
    ) -> Tensor:
        """Scores of candidates at a position, where the given entities have the minima ``least`` ``(b, 2u)``."""
        scale, shift = affine
        role = self._roles(relation, [position]) * scale + shift  # (b, 1, f)
        if candidates is not None and candidates.dim() == 2:
            parts = torch.split(candidates, max(1, HELD // least.numel()), 1)
            return torch.cat([self._score_own(role, least, part, scale) for part in parts], dim=1)
        vectors = self.entity.weight if candidates is None else self.entity(candidates)
        parts = torch.split(vectors, max(1, CACHED // len(self.pair)))
        scores = [
            self._score_shared(relation, role, least, part @ self.entity_filters.T * scale)
            for part in parts
        ]
        return torch.cat(scores, dim=1) + self.output_bias

    def _score_own(
        self, role: Tensor, least: Tensor, candidates: Tensor, scale: Tensor | float
    ) -> Tensor:
        features = (
            role + self.entity(candidates) @ self.entity_filters.T * scale
        ).relu_()  # (b, m, f)
        return self._output(torch.minimum(self._related(features), least.unsqueeze(1)))

    def _score_shared(
        self, relation: Tensor, role: Tensor, least: Tensor, mapped: Tensor
    ) -> Tensor:
        """Candidates, mapped to ``(m, f)``, for all questions alike: their features depend on the relation alone."""

        def score(rows: Tensor) -> Tensor:
            features = (mapped + role[rows[0]]).relu_()  # (m, f)
            related = torch.addmm(
                self._related_bias().unsqueeze(1), self.pair, features.T
            )  # (2u, m)
            found: Tensor = _Weakest.apply(related, least[rows], self.output)  # type: ignore[no-untyped-call]
            return found

        return by_relation(relation, score)

    def _role_ids(self, relation: Tensor, positions: Sequence[int]) -> Tensor:
        return self.role_numbers[relation][:, positions]

    def _roles(self, relation: Tensor, positions: Sequence[int]) -> Tensor:
        """The part of features that comes from the roles of some positions, ``(b, k, f)``."""
        found: Tensor = self.role(self._role_ids(relation, positions)) @ self.role_filters.T
        return found

    def _related(self, features: Tensor) -> Tensor:
        """``U A`` and ``V A + b``, side by side: ``(…, 2u)``."""
        return nn.functional.linear(features, self.pair, self._related_bias())

    def _related_bias(self) -> Tensor:
        return nn.functional.pad(self.pair_bias, (len(self.pair_bias), 0))

    def _output(self, least: Tensor) -> Tensor:
        """Minima ``(…, 2u)`` to scores."""
        one, other = least.chunk(2, dim=-1)
        return (one + other).relu_() @ self.output + self.output_bias

    def _affine(self, arity: int, mapped: Tensor | None) -> Affine:
        """What features are multiplied with, and what is added: batch norm and bias."""
        if not self.norms:
            return 1.0, self.filter_bias
        norm = self.norms[str(arity)]
        assert isinstance(norm, BatchNorm)
        mean, variance = norm.running_mean, norm.running_var
        assert mean is not None
        assert variance is not None
        if norm.training and mapped is not None and mapped[..., 0].numel() > 1:
            seen = variance, mean
            variance, mean = torch.var_mean(mapped, (0, 1))
            rate = norm.rate()
            for old, new in zip(seen, (variance, mean), strict=True):
                old.lerp_(new.detach(), rate)
        scale = (variance + norm.eps).rsqrt()
        return scale, self.filter_bias - mean * scale


def _least(found: Tensor, positions: Sequence[int]) -> Tensor:
    """The minima ``(b, 2u)`` over some positions; infinite over none."""
    if not positions:
        return found.new_full((found.shape[0], found.shape[2]), torch.inf)
    return found[:, positions].amin(dim=1)


class _Weakest(torch.autograd.Function):
    r"""Scores :math:`w \cdot \operatorname{relu}(\min(x, x') + \min(y, y'))` of all candidates for some questions.

    One question at a time, in the caches; its numbers are made again for the gradient, not kept.
    """

    @staticmethod
    def forward(ctx: Any, related: Tensor, least: Tensor, output: Tensor) -> Tensor:
        """``related`` ``(2u, m)`` are candidates, ``least`` ``(q, 2u)`` questions; returns ``(q, m)``."""
        ctx.save_for_backward(related, least, output)
        scores, buffer = related.new_empty(len(least), related.shape[1]), torch.empty_like(related)
        for row, into in zip(least.unsqueeze(2), scores, strict=True):
            torch.mv(_alive(related, row, buffer).T, output, out=into)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        related, least, output = ctx.saved_tensors
        halves = related.view(2, len(output), -1)  # (2, u, m)
        buffer, margin, flow = (
            torch.empty_like(related),
            torch.empty_like(halves),
            torch.empty_like(halves[0]),
        )
        grads = (
            torch.zeros_like(halves),
            least.new_empty(len(least), 2, len(output)),
            torch.zeros_like(output),
        )
        for row, row_grad, into in zip(least.unsqueeze(2), grad, grads[1], strict=True):
            alive = _alive(related, row, buffer)
            grads[2].addmv_(alive, row_grad)
            _where_positive(torch.outer(output, row_grad, out=flow), alive, flow)
            torch.sub(
                row.view(2, -1, 1), halves, out=margin
            )  # positive where the candidate is the smaller
            _where_positive(flow.expand_as(margin), margin, margin)
            grads[0].add_(margin)
            torch.sub(flow.sum(dim=1), margin.sum(dim=2), out=into)
        return grads[0].flatten(0, 1), grads[1].flatten(1), grads[2]


def _where_positive(values: Tensor, sign: Tensor, out: Tensor) -> Tensor:
    """``values`` where ``sign`` is positive, 0 elsewhere; faster than a mask."""
    found: Tensor = torch.ops.aten.threshold_backward.grad_input(values, sign, 0.0, grad_input=out)
    return found


def _alive(related: Tensor, row: Tensor, buffer: Tensor) -> Tensor:
    """The relatedness ``(u, m)`` of candidates to one question, in a buffer ``(2u, m)``."""
    torch.minimum(related, row, out=buffer)
    one, other = buffer.chunk(2)
    return one.add_(other).relu_()
