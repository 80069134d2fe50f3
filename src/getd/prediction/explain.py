r"""Explain an answer: the training facts that pull its score up the most.

Learning a fact :math:`f` moves the weights along the gradient of its log-probability, and moves
that of an answer :math:`a` with them: to first order by

.. math:: \operatorname{pull}(f, a) = \langle \nabla_\theta \ell(f), \nabla_\theta \ell(a) \rangle

with :math:`\ell(f)` summed over the positions of the fact. It is measured at once for all facts
that share an entity with the question or the answer: by how much :math:`\ell` rises when the
weights move a little along :math:`\nabla \ell(a)`. A fact that shares an entity of few facts says
more than one that shares an entity of many: pulls are weighed by :math:`\sum_e 1 / \deg(e)` over
the shared entities.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.autograd import grad
from torch.nn.functional import cosine_similarity

from getd.arrays import Floats
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.deadline import check_deadline
from getd.models.base import DotProductModel, ScoringModel
from getd.prediction.answer import SCORE_BUDGET
from getd.prediction.question import Labels

MAX_FACTS = 2000  # of one arity that are weighed: those that share most
STEP = 1e-4  # length of the step along the gradient
MAX_SIMILAR = 3  # entities that are similar to an answer

Direction = list[tuple[Tensor, Tensor]]  # parameters, and how each changes


@dataclass(frozen=True)
class Reason:
    """A training fact that supports an answer."""

    fact: Labels  # relation label, then entities
    pull: float  # a share of the pull of all facts that pull up


@dataclass(frozen=True)
class Explanation:
    """What supports an answer."""

    facts: tuple[Reason, ...]  # the strongest first
    similar: Labels  # the entities that the model considers most similar to the answer


class Explainer:
    """Explains answers; it keeps a copy of the model in double precision, so make it once."""

    def __init__(self, model: ScoringModel, kb: KnowledgeBase) -> None:
        self._model = deepcopy(model).double().eval()
        self._kb = kb
        self._train = kb.split("train")
        self._degree = np.zeros(kb.n_entities, dtype=np.int64)
        for facts in self._train.values():
            np.add.at(self._degree, facts.entities.reshape(-1), 1)

    def explain(self, fact: Facts, position: int, top: int) -> Explanation:
        gradient = self._gradient(fact, position)
        strongest: list[Reason] = []
        total = 0.0
        for facts in self._train.values():
            sharing, weight = self._sharing(facts, fact)
            if not len(sharing):
                continue
            pulls = weight * self._pulls(sharing, gradient)
            total += float(pulls.clip(min=0).sum())
            order = (-pulls).argsort(kind="stable")[:top]
            decoded = self._kb.decode(sharing.take(order))
            strongest += map(Reason, decoded, pulls[order].tolist())

        positive = [reason for reason in strongest if reason.pull > 0]
        positive.sort(key=lambda reason: -reason.pull)
        reasons = tuple(Reason(reason.fact, reason.pull / total) for reason in positive[:top])
        return Explanation(reasons, self._similar(int(fact.entities[0, position]), position))

    def _gradient(self, fact: Facts, position: int) -> Direction:
        """Return the gradient of the log-probability of an answer, of length 1."""
        parameters = list(self._model.parameters())
        with torch.enable_grad():
            score = self._log_probability(*fact.to_tensors(), position).sum()
            gradients = grad(score, parameters, allow_unused=True)

        dense = []
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                dense.append((parameter, gradient.to_dense()))
        squares = torch.stack([gradient.square().sum() for _, gradient in dense])
        length = squares.sum().sqrt().clamp_min(1e-30)
        return [(parameter, gradient / length) for parameter, gradient in dense]

    def _sharing(self, facts: Facts, fact: Facts) -> tuple[Facts, Floats]:
        """Find the facts that share entities with another fact, and how much they share."""
        shared = np.isin(facts.entities, fact.entities)
        weight = (shared / self._degree.clip(min=1)[facts.entities]).sum(axis=1)
        if facts.arity == fact.arity:
            same = (facts.rows() == fact.rows()).all(axis=1)
            weight[same] = 0.0

        rows = np.flatnonzero(weight)
        if len(rows) > MAX_FACTS:
            rows = np.sort(rows[(-weight[rows]).argsort(kind="stable")[:MAX_FACTS]])
        return facts.take(rows), weight[rows]

    def _pulls(self, facts: Facts, gradient: Direction) -> Floats:
        """Return how fast the log-probabilities of facts rise along a gradient."""
        with torch.no_grad():
            with _moved(gradient, STEP):
                after = self._fact_log_probabilities(facts)
            with _moved(gradient, -STEP):
                before = self._fact_log_probabilities(facts)
        pulls: Floats = ((after - before) / (2 * STEP)).numpy()
        return pulls

    def _fact_log_probabilities(self, facts: Facts) -> Tensor:
        """Return the log-probability of each fact, summed over its positions."""
        batch_rows = max(1, SCORE_BUDGET // self._kb.n_entities)
        parts = []
        for start in range(0, len(facts), batch_rows):
            check_deadline()
            relation, entities = facts.take(slice(start, start + batch_rows)).to_tensors()
            by_position = []
            for position in range(facts.arity):
                by_position.append(self._log_probability(relation, entities, position))
            parts.append(torch.stack(by_position).sum(dim=0))
        return torch.cat(parts)

    def _log_probability(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        scores = self._model.score_candidates(relation, entities, position)
        return scores.gather(1, entities[:, position, None])[:, 0] - scores.logsumexp(dim=1)

    def _similar(self, entity: int, position: int) -> Labels:
        """Return the entities with the most similar vectors; none if the model has no vectors."""
        if not isinstance(self._model, DotProductModel):
            return ()
        with torch.no_grad():
            table = self._model.candidates(position)
            own = table[entity : entity + 1]
            similarity = cosine_similarity(table, own)
            similarity[entity] = -torch.inf
            nearest = similarity.topk(min(MAX_SIMILAR, len(similarity) - 1)).indices
            return tuple(self._kb.entities.decode(nearest.numpy()))


@contextmanager
def _moved(direction: Direction, step: float) -> Iterator[None]:
    """Move the weights a step along a direction, for the duration of a block."""
    for parameter, change in direction:
        parameter.data.add_(change, alpha=step)
    try:
        yield
    finally:
        for parameter, change in direction:
            parameter.data.sub_(change, alpha=step)
