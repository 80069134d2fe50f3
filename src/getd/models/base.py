r"""What a model is: it gives every candidate of a question a raw score, higher is more plausible.

Shapes: ``b`` questions, ``n`` entities in a fact (its arity), ``d`` dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ScoringModel(nn.Module):
    """Scores the candidates of questions; scores are raw, before any softmax.

    Batch norm acts on given entities and queries, not on candidates, so a score depends on which position is open:
    there is no score of a whole fact here.
    """

    n_entities: int
    n_relations: int
    arities: tuple[int, ...]

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        """Score entities in the place ``position``.

        ``relation`` is ``(b,)`` and ``entities`` ``(b, n)``; the column ``position`` is never read. ``candidates`` are
        the ids to score, all entities where it is not given. Returns ``(b, n_candidates)``.
        """
        raise NotImplementedError

    def score_relations(self, entities: Tensor) -> Tensor:
        """Score every relation for entities ``(b, n)`` whose relation is open. Returns ``(b, n_relations)``."""
        raise NotImplementedError


class DotProductModel(ScoringModel):
    r"""Models whose score is a dot product, :math:`f = \langle q(r, e_\text{others}), e_\text{position} \rangle`.

    A new one needs only :meth:`query` (or :meth:`queries`), and :meth:`candidates` if entities are stored per position.
    """

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        """The vector ``(b, d)`` that the missing entity should resemble; column ``position`` is never read."""
        return self.queries(relation, entities)[:, position]

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        """The queries of all positions, ``(b, n, d)``; override where positions share work."""
        return torch.stack([self.query(relation, entities, p) for p in range(entities.shape[1])], dim=1)

    def all_queries(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`queries` and :meth:`relation_query`; override where they share work."""
        return self.queries(relation, entities), self.relation_query(entities)

    def candidates(self, position: int) -> Tensor:
        """The vectors ``(n_entities, d)`` that may fill ``position``."""
        raise NotImplementedError

    def relation_query(self, entities: Tensor) -> Tensor:
        """The vector ``(b, d_r)`` that the missing relation should resemble."""
        raise NotImplementedError

    def relation_candidates(self) -> Tensor:
        """The vectors ``(n_relations, d_r)`` of all relations."""
        raise NotImplementedError

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        """The embeddings of the relation and of each entity, ``(b, d)``, for a regulariser."""
        raise NotImplementedError

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        table = self.candidates(position)
        return self.query(relation, entities, position) @ (table if candidates is None else table[candidates]).T

    def score_relations(self, entities: Tensor) -> Tensor:
        return self.relation_query(entities) @ self.relation_candidates().T


def check_arity(arities: Sequence[int], entities: Tensor) -> int:
    """The arity of a batch, if the model was made for it."""
    arity = entities.shape[1]
    if arity not in arities:
        raise ValueError(f"the model was made for facts of arity {', '.join(map(str, arities))}, found {arity}")
    return arity
