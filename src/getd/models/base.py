r"""What a model is: it gives every candidate of a question a raw score, higher is more plausible.

Shapes: ``b`` questions, ``n`` entities in a fact (its arity), ``d`` dimensions, ``m`` candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import Embedding, Module
from torch.nn.functional import embedding

from getd.models.aliases import Candidates, ExtraLoss, Factors, OwnAndShared, Shared, Tables
from getd.models.parts import score_each_position, score_in_parts

RELATION_BATCH = 4096  # questions scored at once where each relation is tried in an open slot
NO_RELATION_QUERY = (
    "{} has no query for an open relation: "
    "its score is no dot product with one vector of the relation"
)


@dataclass(frozen=True)
class ModelSizes:
    """What a model knows of a knowledge base: how many of what."""

    n_entities: int
    n_relations: int
    arities: Sequence[int]
    # A number for the role at each position of each relation, where the data names roles.
    roles: Sequence[Sequence[int]] | None = None
    # A number for the name of each relation, where some have the same name and other roles.
    names: Sequence[int] | None = None


class RoleTable(NamedTuple):
    """A table with a row for each role."""

    embedding: Embedding
    rows: Tensor  # (n_relations, n): the row of each position of a relation


class Cells(NamedTuple):
    """Some scores of a table, and what is added to them: ``(t,)`` each."""

    rows: Tensor  # ascending
    columns: Tensor
    values: Tensor


class OpenQuestions(NamedTuple):
    """Questions with one open position, and the facts that ``k`` candidates make of each."""

    query: Tensor  # (b, d)
    fill: Callable[[Tensor], Tensor]  # candidates (b, k) to queries (b k, n - 1, d) of the others


class ScoringModel(Module):
    """Scores the candidates of questions; scores are raw, before any softmax.

    Batch norm acts on given entities and queries, not on candidates, so a score depends on which
    position is open: a model has no score of a whole fact.
    """

    binary_only: ClassVar[bool] = False  # whether it serves facts of two entities alone
    parameters_formula: ClassVar[str] = ""  # how many numbers it learns, batch norm aside
    reads_answers: bool = False  # whether it needs the open entity, to leave its fact out
    # The vectors of entities and relations, of a model that learns them.
    entity: Embedding
    relation: Embedding

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.n_entities = sizes.n_entities
        self.n_relations = sizes.n_relations
        self.arities = tuple(sizes.arities)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        """Score the entities that may fill ``position``.

        ``relation`` is ``(b,)`` and ``entities`` ``(b, n)``; the column ``position`` is never read,
        unless :attr:`reads_answers`. ``candidates`` are the ids to score: ``(m,)`` shared by all
        questions, ``(b, m)`` for each question its own; by default all entities. Returns
        ``(b, m)``.
        """
        raise NotImplementedError

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Shared = None
    ) -> OwnAndShared:
        """Score candidates at every position of facts: override where positions share work.

        ``own`` ``(b, n, k)`` are the candidates of each fact and position, ``shared`` ``(n, m)``
        those that all facts have at a position. Returns the scores of both, ``(b, n, k)`` and
        ``(b, n, m)``.
        """
        score = partial(self.score_candidates, relation, entities)
        return score_each_position(score, own, shared)

    def score_relations(self, entities: Tensor) -> Tensor:
        """Score every relation for entities ``(b, n)``. Returns ``(b, n_relations)``."""
        raise NotImplementedError

    def pass_through(self, relation: Tensor, entities: Tensor) -> None:
        """Ask for the entity at every position of facts, so that norms see what training shows."""
        self.score_positions(relation, entities, entities.unsqueeze(2))

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        """Return the embeddings ``(b, d)`` of relation and entities, for a regulariser."""
        return [self.relation(relation), *self.entity(entities).unbind(1)]

    def given_factors(self, relation: Tensor, entities: Tensor, position: int) -> Factors:
        """Return the :meth:`factors` of all that a question gives."""
        factors = self.factors(relation, entities)
        del factors[position + 1]
        return factors

    def auxiliary_loss(self, relation: Tensor, entities: Tensor, negatives: Tensor) -> ExtraLoss:
        """Return a further loss, weighted, or None; ``negatives`` are other entities ``(b, k)``."""
        return None

    def entity_vectors(self, ids: Candidates) -> Tensor:
        """Return the vectors of entities, or of all."""
        vectors: Tensor = self.entity.weight if ids is None else self.entity(ids)
        return vectors

    def entity_tables(self) -> Tables:
        """Return the tables with a row for each entity."""
        return self._embeddings("entity")

    def relation_tables(self) -> Tables:
        """Return the tables with a row for each relation."""
        return self._embeddings("relation")

    def role_tables(self) -> dict[str, RoleTable]:
        """Return the tables with a row for each role, by module name: none by default."""
        return {}

    def _embeddings(self, attribute: str) -> Tables:
        tables = {}
        for name, part in self.named_modules():
            if isinstance(part, Embedding) and attribute in name.split("."):
                tables[name] = part
        return tables

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

    def memory_cells(
        self, relation: Tensor, entities: Tensor, position: int
    ) -> tuple[float, Cells] | None:
        """Return what scores are multiplied with, and what a memory adds; None without one."""
        return None

    @contextmanager
    def scoring(self) -> Iterator[torch.device]:
        """Evaluate without gradients, and yield the device."""
        with evaluation_mode(self):
            tensor = next(chain(self.parameters(), self.buffers()), None)
            yield torch.device("cpu") if tensor is None else tensor.device

    def check_arity(self, entities: Tensor) -> int:
        """Return the arity of a batch, if the model was made for it."""
        arity = entities.shape[1]
        if arity not in self.arities:
            expected = ", ".join(map(str, self.arities))
            raise ValueError(f"the model was made for facts of arity {expected}, found {arity}")
        return arity


class DotProductModel(ScoringModel):
    r"""Models whose score is a dot product of a query and a candidate.

    .. math:: f = \langle q(r, e_\text{others}), e_\text{position} \rangle

    A new one needs only :meth:`query` (or :meth:`queries`), and :meth:`candidates` where they are
    not the vectors of entities.
    """

    # False: there is no relation query, and an open relation is tried one by one.
    relation_is_dot_product: bool = True

    @property
    def is_dot_product(self) -> bool:
        """False where a subclass scores candidates in its own way."""
        return type(self).score_candidates is DotProductModel.score_candidates

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        """Return the vector ``(b, d)`` that the missing entity should resemble.

        The column ``position`` of ``entities`` is never read.
        """
        return self.queries(relation, entities)[:, position]

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        """Return the queries of all positions, ``(b, n, d)``; override where they share work."""
        positions = range(entities.shape[1])
        return torch.stack([self.query(relation, entities, p) for p in positions], dim=1)

    def all_queries(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`queries` and :meth:`relation_query`; override where they share work."""
        return self.queries(relation, entities), self.relation_query(entities)

    def open_questions(self, relation: Tensor, entities: Tensor, position: int) -> OpenQuestions:
        """Return questions with one open position; override where all that fills it shares work."""

        def fill(candidates: Tensor) -> Tensor:
            k = candidates.shape[1]
            filled = entities.repeat_interleave(k, dim=0)
            filled[:, position] = candidates.flatten()
            queries = self.queries(relation.repeat_interleave(k), filled)
            return queries[:, other_positions(entities, position)]

        return OpenQuestions(self.query(relation, entities, position), fill)

    def pass_through(self, relation: Tensor, entities: Tensor) -> None:
        self.queries(relation, entities)

    def candidates(self, position: int) -> Tensor:
        """Return the vectors ``(n_entities, d)`` that may fill ``position``."""
        return self.entity.weight

    def relation_query(self, entities: Tensor) -> Tensor:
        """Return the vector ``(b, d_r)`` that the missing relation should resemble."""
        raise NotImplementedError(NO_RELATION_QUERY.format(type(self).__name__))

    def relation_candidates(self) -> Tensor:
        """Return the vectors ``(n_relations, d_r)`` of all relations."""
        raise NotImplementedError(NO_RELATION_QUERY.format(type(self).__name__))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        query = self.query(relation, entities, position)
        vectors = self.candidates(position)
        if candidates is not None:
            vectors = rows_of(vectors, candidates)
        if vectors.dim() == 2:
            return query @ vectors.T
        return torch.einsum("bd,bmd->bm", query, vectors)

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Shared = None
    ) -> OwnAndShared:
        queries = self.queries(relation, entities)  # (b, n, d)
        own_vectors, shared_vectors = self._candidate_vectors(own, shared)

        # Those of each fact, among them its answer, are never rounded.
        with torch.autocast(queries.device.type, enabled=False):
            columns = queries.to(own_vectors.dtype).unsqueeze(3)
            own_scores = (own_vectors @ columns).squeeze(3)  # (b, n, k)
        if shared_vectors is None:
            return own_scores, None
        shared_scores = queries.transpose(0, 1).bmm(shared_vectors.mT)
        return own_scores, shared_scores.transpose(0, 1)  # (b, n, m)

    def _candidate_vectors(self, own: Tensor, shared: Shared) -> OwnAndShared:
        """Return the vectors ``(b, n, k, d)`` and ``(n, m, d)`` of candidates."""
        tables = [self.candidates(position) for position in range(own.shape[1])]
        first = tables[0]
        if any(table is not first for table in tables):
            own_vectors = torch.stack(list(map(rows_of, tables, own.unbind(1))), dim=1)
            if shared is None:
                return own_vectors, None
            return own_vectors, torch.stack(list(map(rows_of, tables, shared)))

        # One table is read once, so it gets one gradient.
        if shared is None:
            return rows_of(first, own), None
        vectors = rows_of(first, torch.cat([own.flatten(), shared.flatten()]))
        own_vectors, shared_vectors = torch.split(vectors, [own.numel(), shared.numel()])
        return own_vectors.view(*own.shape, -1), shared_vectors.view(*shared.shape, -1)

    def score_relations(self, entities: Tensor) -> Tensor:
        if self.relation_is_dot_product:
            return self.relation_query(entities) @ self.relation_candidates().T

        # Score facts with each relation, their first position open.
        b = len(entities)

        def score(part: Tensor) -> Tensor:
            r = len(part)
            given = entities.repeat_interleave(r, dim=0)
            queries = self.query(part.repeat(b), given, 0).view(b, r, -1)
            first = rows_of(self.candidates(0), entities[:, 0])  # (b, d)
            return (queries @ first.unsqueeze(2)).squeeze(2)

        relations = torch.arange(self.n_relations, device=entities.device)
        return score_in_parts(score, relations, RELATION_BATCH // max(1, b))


def rows_of(table: Tensor, ids: Tensor) -> Tensor:
    """Look rows up; a learnt table gets a sparse gradient, so a step need not touch all of it."""
    return embedding(ids, table, sparse=table.is_leaf)


@contextmanager
def evaluation_mode(model: Module) -> Iterator[None]:
    """Evaluate a model without gradients; each of its parts gets its own mode back."""
    modes = [(part, part.training) for part in model.modules()]
    if any(mode for _, mode in modes):  # most models that answer questions learn no more
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes:
            if part.training != mode:
                part.training = mode


def other_positions(entities: Tensor, position: int) -> list[int]:
    """Return the positions of facts but one."""
    return [other for other in range(entities.shape[1]) if other != position]
