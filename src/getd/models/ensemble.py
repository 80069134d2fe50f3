r"""Several trained models as one: a weighted sum of their scores.

.. math:: \phi(c) = \sum_i w_i \phi_i(c)

with weights :math:`w_i` of each arity and open position. A softmax removes what all candidates of a
question share, so this is the weighted sum of the members' log-probabilities as well. Equal weights
give the geometric mean of the probabilities, made to sum to 1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from getd.models.aliases import Candidates, Tables
from getd.models.base import (
    DotProductModel,
    OpenQuestions,
    RoleTable,
    ScoringModel,
    other_positions,
)

T = TypeVar("T")
RELATION = "relation"  # names the weights of an open relation
Weights = Mapping[str, Sequence[float]]  # a weight of each member, by slot: "4-0", and RELATION
State = list[tuple[int, torch.dtype, int]]  # changes when the numbers of tables do


class Ensemble(ScoringModel):
    """The weighted sum of the scores of models of the same entities and relations."""

    weights: Tensor  # (slots, m): those of :meth:`slot_names`

    def __init__(self, members: Sequence[ScoringModel], weights: Weights | None = None) -> None:
        super().__init__(members[0].sizes)
        self.members = nn.ModuleList(members)
        names = slot_names(self.arities)
        self._rows = {name: row for row, name in enumerate(names)}

        equal = [1 / len(members)] * len(members)
        rows = [equal if weights is None else weights[name] for name in names]
        self.register_buffer("weights", torch.tensor(rows, dtype=torch.float32))

    def __iter__(self) -> Iterator[ScoringModel]:
        for member in self.members:
            assert isinstance(member, ScoringModel)
            yield member

    def weights_of(self, arity: int, position: int) -> Tensor:
        """Return the weights of the members, ``(m,)``, where a position is open."""
        return self.weights[self._rows[f"{arity}-{position}"]]

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        weights = self.weights_of(self.check_arity(entities), position)
        return self._sum(
            weights,
            lambda member: member.score_candidates(relation, entities, position, candidates),
        )

    def score_relations(self, entities: Tensor) -> Tensor:
        weights = self.weights[self._rows[RELATION]]
        return self._sum(weights, lambda member: member.score_relations(entities))

    def _sum(self, weights: Tensor, score: Callable[[ScoringModel], Tensor]) -> Tensor:
        first, *others = self
        total = weights[0] * score(first)
        for weight, member in zip(weights[1:], others, strict=True):
            total = total + weight * score(member)
        return total

    def entity_tables(self) -> Tables:
        return _by_member(member.entity_tables() for member in self)

    def relation_tables(self) -> Tables:
        return _by_member(member.relation_tables() for member in self)

    def role_tables(self) -> dict[str, RoleTable]:
        return _by_member(member.role_tables() for member in self)


class DotProductEnsemble(Ensemble, DotProductModel):
    r"""An ensemble of dot products: the dot product of their joined queries and candidates.

    .. math:: \sum_i w_i \langle q_i, e_i \rangle = \langle [w_1 q_1, w_2 q_2, \dots],
        [e_1, e_2, \dots] \rangle

    The joined candidates are kept, since a question needs all of them.
    """

    def __init__(self, members: Sequence[DotProductModel], weights: Weights | None = None) -> None:
        super().__init__(members, weights)
        self._joined: dict[tuple[int, ...], tuple[State, Tensor]] = {}  # by the tables' ids

    @property
    def is_dot_product(self) -> bool:
        return True

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        weights = self.weights_of(self.check_arity(entities), position)
        queries = [member.query(relation, entities, position) for member in self._dot_products()]
        return _join(queries, weights)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        queries = [member.queries(relation, entities) for member in self._dot_products()]
        return _join(queries, self._rows_of(entities, range(entities.shape[1])))

    def open_questions(self, relation: Tensor, entities: Tensor, position: int) -> OpenQuestions:
        opened = []
        for member in self._dot_products():
            opened.append(member.open_questions(relation, entities, position))
        weights = self.weights_of(self.check_arity(entities), position)
        of_others = self._rows_of(entities, other_positions(entities, position))

        def fill(candidates: Tensor) -> Tensor:
            return _join([each.fill(candidates) for each in opened], of_others)

        return OpenQuestions(_join([each.query for each in opened], weights), fill)

    def candidates(self, position: int) -> Tensor:
        tables = [member.candidates(position) for member in self._dot_products()]
        if torch.is_grad_enabled() or not all(isinstance(table, Parameter) for table in tables):
            return torch.cat(tables, dim=1)

        # Positions with the same tables share what is kept, until the weights move or change.
        key = tuple(map(id, tables))
        state = [(table.data_ptr(), table.dtype, table._version) for table in tables]
        kept_state, joined = self._joined.get(key, ([], tables[0]))
        if kept_state != state:
            with torch.inference_mode(False):  # it may be used outside
                joined = torch.cat([table.detach() for table in tables], dim=1)
            self._joined[key] = state, joined
        return joined

    def _dot_products(self) -> Iterator[DotProductModel]:
        for member in self:
            assert isinstance(member, DotProductModel)
            yield member

    def _rows_of(self, entities: Tensor, positions: Sequence[int]) -> Tensor:
        """Return the weights at positions, ``(p, m)``."""
        arity = self.check_arity(entities)
        return self.weights[[self._rows[f"{arity}-{position}"] for position in positions]]


def slot_names(arities: Sequence[int]) -> list[str]:
    """Name the slots that have weights of their own.

    >>> slot_names([2, 3])
    ['2-0', '2-1', '3-0', '3-1', '3-2', 'relation']
    """
    names = [f"{arity}-{position}" for arity in arities for position in range(arity)]
    return [*names, RELATION]


def combine_members(members: Sequence[ScoringModel], weights: Weights | None = None) -> Ensemble:
    """Make one model of several; without weights they count the same."""
    products = [member for member in members if isinstance(member, DotProductModel)]
    if all(member.is_dot_product for member in members):
        return DotProductEnsemble(products, weights)
    return Ensemble(members, weights)


def _by_member(tables: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Name the tables of all members as the parts of the ensemble are named."""
    named = {}
    for number, of_member in enumerate(tables):
        for name, table in of_member.items():
            named[f"members.{number}.{name}"] = table
    return named


def _join(vectors: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Join vectors ``(…, d_i)``, each times its weight, ``(…, m)``."""
    weighted = [each * weights[..., i, None] for i, each in enumerate(vectors)]
    return torch.cat(weighted, dim=-1)
