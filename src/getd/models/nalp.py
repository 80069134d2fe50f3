r"""NaLP: a fact is as plausible as its least related pair of roles and entities.

Position :math:`j` of relation :math:`r` has a role :math:`\rho_{rj}`. With its entity it makes
features :math:`A_j`, any two of these make a vector of relatedness, and the smallest number of each
unit counts:

.. math::
    A_j = \operatorname{relu}(F [\rho_{rj}; e_j] + f), \qquad
    \phi = w \cdot \min_{i, j} \operatorname{relu}(U A_i + V A_j + b) + w_0

relu never falls and every pair of positions counts, so the minimum of all pairs splits in two:

.. math::
    \min_{i, j} \operatorname{relu}(U A_i + V A_j + b)
    = \operatorname{relu}(\min_i U A_i + \min_j V A_j + b)
"""

from math import inf, sqrt
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import ModuleDict, Parameter
from torch.nn.functional import linear, pad

from getd.models.aliases import Candidates, Factors, OwnAndShared, Positions, RandomSource, Shared
from getd.models.base import ModelSizes, RoleTable, ScoringModel, other_positions
from getd.models.layers import embedding
from getd.models.norms import BatchNorm
from getd.models.parts import by_relation, score_each_position, score_in_parts
from getd.models.roles import number_positions
from getd.models.settings import ModelSettings

BUDGET = 2**22  # numbers held at a time, where each question or relation has its own features
CACHE_BUDGET = 2**18  # the same where one question meets candidates, to stay in the caches

Affine = tuple[Tensor | float, Tensor]  # what features are multiplied with, and what is added


class NaLPSettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "nalp"``."""

    entity_dim: PositiveInt = 100
    filters: PositiveInt = 200  # features of a role with its entity
    units: PositiveInt = 400  # numbers that say how related a pair is
    # One role for each name, where the data has names, or one for each position of each relation.
    roles: Literal["data", "position"] = "data"
    batch_norm: bool = False  # on the features of the given entities, before relu


class NaLP(ScoringModel):
    """A network that rates how related each two entities in their roles are; the minimum counts."""

    role_numbers: Tensor  # (|R|, n): the row of the role of each position
    parameters_formula = "|E|d + n|R|d + 2df + f + 2fu + 2u + 1"

    def __init__(
        self, sizes: ModelSizes, settings: NaLPSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        f = settings.filters
        u = settings.units
        scale = settings.initial_scale
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)

        numbers = number_positions(sizes, by_name=settings.roles == "data")
        self.register_buffer("role_numbers", numbers, persistent=False)
        self.role = embedding(int(numbers.max()) + 1, d, scale, generator)

        def normal(spread: float, *shape: int) -> Parameter:
            return Parameter(spread * torch.randn(*shape, generator=generator))

        spread = 1 / (scale * sqrt(2 * d))  # features begin with unit variance
        self.role_filters = normal(spread, f, d)  # next to those of entities: F
        self.entity_filters = normal(spread, f, d)
        self.filter_bias = Parameter(torch.zeros(f))
        self.pair = normal(1 / sqrt(f), 2 * u, f)  # U above V
        self.pair_bias = Parameter(torch.ones(u))  # minima are low: at 0 few units would live
        self.output = normal(1 / sqrt(u), u)
        self.output_bias = Parameter(torch.zeros(()))

        self.norms = ModuleDict()
        for n in self.arities if settings.batch_norm else ():
            self.norms[str(n)] = BatchNorm(f, affine=False)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        self.check_arity(entities)
        given = other_positions(entities, position)
        related, affine = self._given(relation, entities, given)
        least = _minima(related, range(len(given)))
        return self._score(relation, least, position, candidates, affine)

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Shared = None
    ) -> OwnAndShared:
        n = self.check_arity(entities)
        related, affine = self._given(relation, entities, range(n))
        least = [_minima(related, other_positions(entities, p)) for p in range(n)]

        def score(position: int, candidates: Tensor) -> Tensor:
            return self._score(relation, least[position], position, candidates, affine)

        return score_each_position(score, own, shared)

    def score_relations(self, entities: Tensor) -> Tensor:
        n = self.check_arity(entities)
        vectors = self.entity(entities) @ self.entity_filters.T  # (b, n, f)
        scale, shift = self._affine(n, None)

        def score(part: Tensor) -> Tensor:
            mapped = vectors.unsqueeze(1) + self._roles(part, range(n))  # (b, r, n, f)
            related = self._related(mapped * scale + shift)  # (b, r, n, 2u)
            return self._output(related.amin(dim=2))

        relations = torch.arange(self.n_relations, device=entities.device)
        return score_in_parts(score, relations, BUDGET // (entities.numel() * len(self.pair)))

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        roles = self.role(self._role_ids(relation, range(entities.shape[1])))
        return [roles.flatten(1), *self.entity(entities).unbind(1)]

    def role_tables(self) -> dict[str, RoleTable]:
        return {"role": RoleTable(self.role, self.role_numbers)}

    def _given(
        self, relation: Tensor, entities: Tensor, positions: Positions
    ) -> tuple[Tensor, Affine]:
        """Return what the entities at positions are to others, ``(b, k, 2u)``, and their norm."""
        roles = self._roles(relation, positions)
        mapped = roles + self.entity(entities[:, positions]) @ self.entity_filters.T
        scale, shift = self._affine(entities.shape[1], mapped)
        return self._related(mapped * scale + shift), (scale, shift)

    def _score(
        self, relation: Tensor, least: Tensor, position: int, candidates: Candidates, affine: Affine
    ) -> Tensor:
        """Score candidates at a position; the given entities have the minima ``least (b, 2u)``."""
        scale, shift = affine
        role = self._roles(relation, [position]) * scale + shift  # (b, 1, f)

        def score_own(part: Tensor) -> Tensor:
            mapped = self.entity(part) @ self.entity_filters.T  # (b, m, f)
            related = self._related(role + mapped * scale)
            return self._output(related.minimum(least.unsqueeze(1)))

        if candidates is not None and candidates.dim() == 2:
            return score_in_parts(score_own, candidates, BUDGET // least.numel())

        def score_shared(part: Tensor) -> Tensor:
            mapped = part @ self.entity_filters.T * scale
            return self._score_shared(relation, role, least, mapped)

        vectors = self.entity_vectors(candidates)
        size = CACHE_BUDGET // len(self.pair)
        return score_in_parts(score_shared, vectors, size, dim=0) + self.output_bias

    def _score_shared(
        self, relation: Tensor, role: Tensor, least: Tensor, mapped: Tensor
    ) -> Tensor:
        """Score candidates of all questions, mapped to ``(m, f)``, without the output's bias.

        Their features depend on the relation alone.
        """

        def score(rows: Tensor) -> Tensor:
            features = (mapped + role[rows[0]]).relu_()  # (m, f)
            bias = self._related_bias().unsqueeze(1)
            related = torch.addmm(bias, self.pair, features.T)  # (2u, m)
            scores: Tensor = _Weakest.apply(related, least[rows], self.output)  # type: ignore[no-untyped-call]
            return scores

        return by_relation(relation, score)

    def _role_ids(self, relation: Tensor, positions: Positions) -> Tensor:
        return self.role_numbers[relation][:, positions]

    def _roles(self, relation: Tensor, positions: Positions) -> Tensor:
        """Return the part of features that comes from the roles of positions, ``(b, k, f)``."""
        roles: Tensor = self.role(self._role_ids(relation, positions)) @ self.role_filters.T
        return roles

    def _related(self, mapped: Tensor) -> Tensor:
        """Return ``U A`` and ``V A + b``, side by side: ``(…, 2u)``; features are made in place."""
        return linear(mapped.relu_(), self.pair, self._related_bias())

    def _related_bias(self) -> Tensor:
        return pad(self.pair_bias, (len(self.pair_bias), 0))

    def _output(self, least: Tensor) -> Tensor:
        """Turn minima ``(…, 2u)`` into scores."""
        one, other = least.chunk(2, dim=-1)
        return (one + other).relu_() @ self.output + self.output_bias

    def _affine(self, arity: int, mapped: Tensor | None) -> Affine:
        """Return batch norm and bias as one map; ``mapped`` are the features it learns from."""
        if not self.norms:
            return 1.0, self.filter_bias
        norm = self.norms[str(arity)]
        assert isinstance(norm, BatchNorm)
        mean = norm.running_mean
        variance = norm.running_var
        if norm.training and mapped is not None and mapped[..., 0].numel() > 1:
            variance, mean = torch.var_mean(mapped, (0, 1))
            norm.keep(mean, variance)

        scale = (variance + norm.eps).rsqrt()
        return scale, self.filter_bias - mean * scale


def _minima(related: Tensor, positions: Positions) -> Tensor:
    """Return the minima ``(b, 2u)`` over positions; infinite over none."""
    if not positions:
        return related.new_full((related.shape[0], related.shape[2]), inf)
    return related[:, positions].amin(dim=1)


class _Weakest(Function):
    r"""Scores :math:`w \cdot \operatorname{relu}(\min(x, x') + \min(y, y'))` of all candidates.

    One question at a time, in the caches; its numbers are made again for the gradient, not kept.
    """

    @staticmethod
    def forward(ctx: Any, related: Tensor, least: Tensor, output: Tensor) -> Tensor:
        """Score candidates ``related (2u, m)`` for questions ``least (q, 2u)``: ``(q, m)``."""
        ctx.save_for_backward(related, least, output)
        scores = related.new_empty(len(least), related.shape[1])
        buffer = torch.empty_like(related)
        for row, row_scores in zip(least.unsqueeze(2), scores, strict=True):
            torch.mv(_alive(related, row, buffer).T, output, out=row_scores)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        related, least, output = ctx.saved_tensors
        halves = related.view(2, len(output), -1)  # (2, u, m)
        related_grad = torch.zeros_like(halves)
        least_grad = least.new_empty(len(least), 2, len(output))
        output_grad = torch.zeros_like(output)

        buffer = torch.empty_like(related)
        margin = torch.empty_like(halves)
        flow = torch.empty_like(halves[0])
        for row, scores_grad, row_grad in zip(least.unsqueeze(2), grad, least_grad, strict=True):
            alive = _alive(related, row, buffer)
            output_grad.addmv_(alive, scores_grad)
            torch.outer(output, scores_grad, out=flow)
            _where_positive(flow, alive, flow)

            # The gradient flows to the smaller of two: to the candidate where margin is positive.
            torch.sub(row.view(2, -1, 1), halves, out=margin)
            _where_positive(flow.expand_as(margin), margin, margin)
            related_grad.add_(margin)
            torch.sub(flow.sum(dim=1), margin.sum(dim=2), out=row_grad)
        return related_grad.flatten(0, 1), least_grad.flatten(1), output_grad


def _where_positive(values: Tensor, sign: Tensor, out: Tensor) -> None:
    """Write ``values`` where ``sign`` is positive, 0 elsewhere; faster than a mask."""
    torch.ops.aten.threshold_backward.grad_input(values, sign, 0.0, grad_input=out)


def _alive(related: Tensor, row: Tensor, buffer: Tensor) -> Tensor:
    """Return the relatedness ``(u, m)`` of candidates to one question, in a buffer ``(2u, m)``."""
    torch.minimum(related, row, out=buffer)
    one, other = buffer.chunk(2)
    return one.add_(other).relu_()
