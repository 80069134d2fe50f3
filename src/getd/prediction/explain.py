r"""Explanation an answer: the training facts that pull its score up the most.

Learning a fact :math:`f` moves the weights along the gradient of its log-probability, and moves that of an answer
:math:`a` with them: to first order by

.. math:: \operatorname{pull}(f, a) = \langle \nabla_\theta \ell(f), \nabla_\theta \ell(a) \rangle

with :math:`\ell(f)` summed over the positions of the fact. It is measured for all facts that share an entity with the
question or the answer at once: by how much :math:`\ell` rises when the weights go a little along
:math:`\nabla \ell(a)`. A fact that shares an entity of few facts says more than one that shares an entity of many:
pulls are weighed by :math:`\sum_e 1 / \deg(e)` over the shared entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.deadline import check_deadline
from getd.models.base import DotProductModel, ScoringModel

MOST_FACTS = 2000  # of one arity, that are weighed: those that share most
ROOM = 2**23  # scores held at a time
STEP = 1e-4  # length of the step along the gradient


@dataclass(frozen=True)
class Reason:
    """A training fact that supports an answer."""

    fact: tuple[str, ...]  # relation label, then entities
    pull: float  # a share of the pull of all facts that pull up


@dataclass(frozen=True)
class Explanation:
    """What supports an answer."""

    facts: tuple[Reason, ...]  # the strongest first
    similar: tuple[str, ...]  # the entities that the model holds most alike to the answer


class Explainer:
    """Finds the reasons of answers; made once for a run, as it keeps a copy of the model in double precision."""

    def __init__(self, model: ScoringModel, kb: KnowledgeBase) -> None:
        self._model, self._kb = deepcopy(model).double().eval(), kb
        self._train = kb.split("train")
        self._degree = np.zeros(kb.n_entities, dtype=np.int64)
        for facts in self._train.values():
            np.add.at(self._degree, facts.entities.reshape(-1), 1)

    def explain(self, fact: Facts, position: int, top: int = 3) -> Explanation:
        """The reasons for the entity at a position of one fact."""
        gradient = self._gradient(fact, position)
        found: list[tuple[float, int, int]] = []
        total = 0.0
        for arity, facts in self._train.items():
            rows, weight = self._sharing(facts, fact)
            if len(rows):
                pulls = weight * self._pulls(facts.take(rows), gradient)
                total += float(pulls.clip(min=0).sum())
                best = np.argsort(-pulls, kind="stable")[:top]
                found += [
                    (float(pulls[place]), arity, int(rows[place]))
                    for place in best
                    if pulls[place] > 0
                ]
        strongest = sorted(found, key=lambda item: -item[0])[:top]
        reasons = [
            Reason(self._kb.decode(self._train[arity].take(slice(row, row + 1)))[0], pull / total)
            for pull, arity, row in strongest
        ]
        return Explanation(tuple(reasons), self._similar(int(fact.entities[0, position]), position))

    def _gradient(self, fact: Facts, position: int) -> dict[str, Tensor]:
        """That of the score of an answer, by parameter, of length 1."""
        with torch.enable_grad():
            relation, entities = torch.tensor(fact.relation), torch.tensor(fact.entities)
            score = self._log_probability(relation, entities, position)
            names, parameters = zip(*self._model.named_parameters(), strict=True)
            found = torch.autograd.grad(score.sum(), parameters, allow_unused=True)
        dense = {
            name: grad.to_dense() if grad.is_sparse else grad
            for name, grad in zip(names, found, strict=True)
            if grad is not None
        }
        length = (
            torch.stack([grad.square().sum() for grad in dense.values()])
            .sum()
            .sqrt()
            .clamp_min(1e-30)
        )
        return {name: grad / length for name, grad in dense.items()}

    def _sharing(self, facts: Facts, fact: Facts) -> tuple[Ids, Floats]:
        """The training facts that share entities with a fact, which itself is none of them, and how much they share."""
        shared = np.isin(facts.entities, np.unique(fact.entities))
        weight = np.where(shared, 1 / self._degree.clip(min=1)[facts.entities], 0.0).sum(axis=1)
        if facts.arity == fact.arity:
            same = (facts.relation == fact.relation[0]) & (facts.entities == fact.entities[0]).all(
                axis=1
            )
            weight[same] = 0.0
        rows = np.flatnonzero(weight)
        if len(rows) > MOST_FACTS:
            rows = np.sort(rows[np.argsort(-weight[rows], kind="stable")[:MOST_FACTS]])
        return rows, weight[rows]

    def _pulls(self, facts: Facts, gradient: dict[str, Tensor]) -> Floats:
        relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
        with torch.no_grad():
            with self._moved(gradient, STEP):
                after = self._scores(relation, entities)
            with self._moved(gradient, -STEP):
                before = self._scores(relation, entities)
        found: Floats = ((after - before) / (2 * STEP)).numpy()
        return found

    def _scores(self, relation: Tensor, entities: Tensor) -> Tensor:
        """The log-probabilities of facts, all positions together."""
        at_once, found = max(1, ROOM // self._kb.n_entities), []
        for some in zip(
            torch.split(relation, at_once), torch.split(entities, at_once), strict=True
        ):
            check_deadline()
            parts = [
                self._log_probability(*some, position) for position in range(entities.shape[1])
            ]
            found.append(torch.stack(parts).sum(dim=0))
        return torch.cat(found)

    def _log_probability(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        scores = self._model.score_candidates(relation, entities, position)
        return scores.gather(1, entities[:, position, None])[:, 0] - scores.logsumexp(dim=1)

    @contextmanager
    def _moved(self, gradient: dict[str, Tensor], step: float) -> Iterator[None]:
        """The weights a step along a direction."""
        parameters = dict(self._model.named_parameters())
        for name, direction in gradient.items():
            parameters[name].data.add_(direction, alpha=step)
        try:
            yield
        finally:
            for name, direction in gradient.items():
                parameters[name].data.sub_(direction, alpha=step)

    def _similar(self, entity: int, position: int, top: int = 3) -> tuple[str, ...]:
        """The entities whose vectors point where its vector points; none for models without such vectors."""
        if not isinstance(self._model, DotProductModel):
            return ()
        with torch.no_grad():
            table = self._model.candidates(position)
            alike = torch.nn.functional.cosine_similarity(table, table[entity : entity + 1])
            alike[entity] = -torch.inf
            return tuple(
                self._kb.entities.decode(alike.topk(min(top, len(alike) - 1)).indices.numpy())
            )
