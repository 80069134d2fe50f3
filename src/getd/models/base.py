r"""What a model is: it gives every candidate of a question a raw score, higher is more plausible.

Shapes: ``b`` questions, ``n`` entities in a fact (its arity), ``d`` dimensions, ``m`` candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

TRIED_AT_ONCE = 4096  # questions, where an open relation is answered by trying each
NO_RELATION_QUERY = "{} has no query for an open relation: its score is no dot product with one vector of the relation"


@dataclass(frozen=True)
class ModelSizes:
    """What a model must know of a knowledge base: how many of what."""

    n_entities: int
    n_relations: int
    arities: Sequence[int]
    # A number for the role at each position of each relation, where the data names roles.
    roles: Sequence[Sequence[int]] | None = None


class RoleTable(NamedTuple):
    """A table with a row for each role."""

    embedding: nn.Embedding
    rows: Tensor  # (n_relations, n): the row of each position of a relation


class ScoringModel(nn.Module):
    """Scores the candidates of questions; scores are raw, before any softmax.

    Batch norm acts on given entities and queries, not on candidates, so a score depends on which position is open:
    there is no score of a whole fact here.
    """

    binary_only: ClassVar[bool] = False  # whether it serves facts of two entities alone
    parameters_formula: ClassVar[str] = ""  # how many numbers it learns, batch norm aside

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.n_entities = sizes.n_entities
        self.n_relations = sizes.n_relations
        self.arities = tuple(sizes.arities)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        """Score entities in the place ``position``.

        ``relation`` is ``(b,)`` and ``entities`` ``(b, n)``; the column ``position`` is never read. ``candidates`` are
        the ids to score: ``(m,)`` for all questions alike, ``(b, m)`` for each its own, all entities where it is not
        given. Returns ``(b, m)``.
        """
        raise NotImplementedError

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Score some candidates at every position of facts: override where positions share work.

        ``own`` ``(b, n, k)`` are the candidates of each fact and position, ``shared`` ``(n, m)`` those that all facts
        have at a position. Returns the scores of both, ``(b, n, k)`` and ``(b, n, m)``.
        """
        positions = range(entities.shape[1])
        scores = [
            self.score_candidates(relation, entities, position, own[:, position])
            for position in positions
        ]
        if shared is None:
            return torch.stack(scores, dim=1), None
        alike = [
            self.score_candidates(relation, entities, position, shared[position])
            for position in positions
        ]
        return torch.stack(scores, dim=1), torch.stack(alike, dim=1)

    def score_relations(self, entities: Tensor) -> Tensor:
        """Score every relation for entities ``(b, n)`` whose relation is open. Returns ``(b, n_relations)``."""
        raise NotImplementedError

    def pass_through(self, relation: Tensor, entities: Tensor) -> None:
        """Ask for the entity at every position of facts, so that norms see what they see in training."""
        self.score_positions(relation, entities, entities.unsqueeze(2))

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        """The embeddings of the relation and of each entity, ``(b, d)``, for a regulariser."""
        raise NotImplementedError

    def auxiliary_loss(
        self, relation: Tensor, entities: Tensor, negatives: Tensor
    ) -> Tensor | None:
        """What facts teach a model beside its scores, weighted already; ``negatives`` are other entities ``(b, k)``."""
        return None

    def given_factors(self, relation: Tensor, entities: Tensor, position: int) -> list[Tensor]:
        """:meth:`factors` of all that a question gives."""
        found = self.factors(relation, entities)
        del found[position + 1]
        return found

    def entity_tables(self) -> dict[str, nn.Embedding]:
        """The tables with a row for each entity, by module name; by default those of ``self.entity``."""
        return self._embeddings("entity")

    def relation_tables(self) -> dict[str, nn.Embedding]:
        """The tables with a row for each relation, by module name; by default those of ``self.relation``."""
        return self._embeddings("relation")

    def role_tables(self) -> dict[str, RoleTable]:
        """The tables with a row for each role, by module name; by default there are none."""
        return {}

    def _embeddings(self, attribute: str) -> dict[str, nn.Embedding]:
        return {
            name: part
            for name, part in self.named_modules()
            if isinstance(part, nn.Embedding) and name.split(".")[0] == attribute
        }

    @property
    def is_dot_product(self) -> bool:
        """Whether scores are dot products of queries and candidates (:class:`DotProductModel`)."""
        return False

    @property
    def bare(self) -> ScoringModel:
        """The trained model, without a memory around it."""
        return self

    @property
    def memory_weights(self) -> int | None:
        """How many weights of a memory around the model were fitted; None without a memory."""
        return None

    @contextmanager
    def scoring(self) -> Iterator[torch.device]:
        """Evaluate without gradients; yield the device. Each part gets its own mode back."""
        modes = [(part, part.training) for part in self.modules()]
        self.eval()
        try:
            with torch.no_grad():
                tensor = next(chain(self.parameters(), self.buffers()), None)
                yield torch.device("cpu") if tensor is None else tensor.device
        finally:
            for part, mode in modes:
                part.training = mode


class DotProductModel(ScoringModel):
    r"""Models whose score is a dot product, :math:`f = \langle q(r, e_\text{others}), e_\text{position} \rangle`.

    A new one needs only :meth:`query` (or :meth:`queries`), and :meth:`candidates` if entities are stored per position.
    """

    relation_is_dot_product: ClassVar[bool] = (
        True  # False: no relation query; an open relation is tried one by one
    )

    @property
    def is_dot_product(self) -> bool:
        """False where a subclass scores candidates in its own way."""
        return type(self).score_candidates is DotProductModel.score_candidates

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        """The vector ``(b, d)`` that the missing entity should resemble; column ``position`` is never read."""
        return self.queries(relation, entities)[:, position]

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        """The queries of all positions, ``(b, n, d)``; override where positions share work."""
        return torch.stack(
            [self.query(relation, entities, p) for p in range(entities.shape[1])], dim=1
        )

    def all_queries(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`queries` and :meth:`relation_query`; override where they share work."""
        return self.queries(relation, entities), self.relation_query(entities)

    def pass_through(self, relation: Tensor, entities: Tensor) -> None:
        self.queries(relation, entities)

    def candidates(self, position: int) -> Tensor:
        """The vectors ``(n_entities, d)`` that may fill ``position``."""
        raise NotImplementedError

    def relation_query(self, entities: Tensor) -> Tensor:
        """The vector ``(b, d_r)`` that the missing relation should resemble."""
        raise NotImplementedError(NO_RELATION_QUERY.format(type(self).__name__))

    def relation_candidates(self) -> Tensor:
        """The vectors ``(n_relations, d_r)`` of all relations."""
        raise NotImplementedError(NO_RELATION_QUERY.format(type(self).__name__))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        query, table = self.query(relation, entities, position), self.candidates(position)
        if candidates is None or candidates.dim() == 1:
            return query @ (table if candidates is None else _rows(table, candidates)).T
        return torch.einsum("bd,bmd->bm", query, _rows(table, candidates))

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        queries = self.queries(relation, entities)  # (b, n, d)
        vectors, alike = self._candidate_vectors(own, shared)  # (b, n, k, d), (n, m, d)
        scores = (vectors @ queries.unsqueeze(3)).squeeze(3)  # (b, n, k)
        if alike is None:
            return scores, None
        return scores, torch.bmm(queries.transpose(0, 1), alike.transpose(1, 2)).transpose(
            0, 1
        )  # (b, n, m)

    def score_relations(self, entities: Tensor) -> Tensor:
        if self.relation_is_dot_product:
            return self.relation_query(entities) @ self.relation_candidates().T
        at_once = max(1, TRIED_AT_ONCE // max(1, len(entities)))
        everyone = torch.arange(self.n_relations, device=entities.device)
        parts = [everyone[start : start + at_once] for start in range(0, self.n_relations, at_once)]
        return torch.cat([self._try_relations(entities, relations) for relations in parts], dim=1)

    def _try_relations(self, entities: Tensor, relations: Tensor) -> Tensor:
        """The scores ``(b, m)`` of facts with these relations, each asked with its first position open."""
        b, m = len(entities), len(relations)
        query = self.query(relations.repeat(b), entities.repeat_interleave(m, dim=0), 0).view(
            b, m, -1
        )
        return (query @ _rows(self.candidates(0), entities[:, 0]).unsqueeze(2)).squeeze(2)

    def _candidate_vectors(
        self, own: Tensor, shared: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The vectors of candidates ``(b, n, k)`` and ``(n, m)``; from one table at once, so it gets one gradient."""
        tables = [self.candidates(position) for position in range(own.shape[1])]
        if any(table is not tables[0] for table in tables):
            vectors = [_rows(table, ids) for table, ids in zip(tables, own.unbind(1), strict=True)]
            if shared is None:
                return torch.stack(vectors, dim=1), None
            alike = [_rows(table, ids) for table, ids in zip(tables, shared, strict=True)]
            return torch.stack(vectors, dim=1), torch.stack(alike)
        if shared is None:
            return _rows(tables[0], own), None
        looked_up = _rows(tables[0], torch.cat([own.flatten(), shared.flatten()]))
        first, second = torch.split(looked_up, [own.numel(), shared.numel()])
        return first.view(*own.shape, -1), second.view(*shared.shape, -1)


def _rows(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table; a learnt one gets a sparse gradient, so that a step need not touch all of it."""
    return nn.functional.embedding(ids, table, sparse=table.is_leaf)


def by_relation(relation: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    """Scores ``(b, m)`` of questions, where those with one relation share work: ``score`` gets their rows."""
    _, group, counts = torch.unique(relation, return_inverse=True, return_counts=True)
    order = group.argsort()
    scores = torch.cat([score(rows) for rows in torch.split(order, counts.tolist())])
    return scores[order.argsort()]


def check_arity(arities: Sequence[int], entities: Tensor) -> int:
    """The arity of a batch, if the model was made for it."""
    arity = entities.shape[1]
    if arity not in arities:
        raise ValueError(
            f"the model was made for facts of arity {', '.join(map(str, arities))}, found {arity}"
        )
    return arity
