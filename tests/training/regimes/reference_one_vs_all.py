"""The loss of 1vsall, question by question, for autograd."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ScoringModel
from getd.runs.config import TrainSettings


def all_scores(model: ScoringModel, relation: Tensor, entities: Tensor) -> list[Tensor]:
    """The scores of all candidates at each position, batch norm over all positions together."""
    positions = range(entities.shape[1])
    if isinstance(model, DotProductModel):
        queries = model.queries(relation, entities)
        return [queries[:, position] @ model.candidates(position).T for position in positions]
    return [model.score_candidates(relation, entities, position) for position in positions]


def plain_loss(
    model: ScoringModel, facts: Facts, known: KnownAnswers, settings: TrainSettings
) -> Tensor:
    """The formula, question by question, for autograd."""
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)

    def one(scores: Tensor, own: int, answers: np.ndarray) -> Tensor:
        part = [c for c in range(len(scores)) if c == own or c not in answers]
        log_p = torch.log_softmax(scores[part], dim=0)
        return (
            -(1 - settings.label_smoothing) * log_p[part.index(own)]
            - settings.label_smoothing * log_p.mean()
        )

    losses, weight = [], 1 / (len(facts) * facts.arity)
    everything = all_scores(model, relation, entities)
    for i in range(len(facts)):
        question = facts.relation[i : i + 1], facts.entities[i : i + 1]
        for position in range(facts.arity):
            scores = everything[position][i]
            own = int(facts.entities[i, position])
            losses.append(weight * one(scores, own, known.lookup(*question, position).values))
    if settings.relation_loss:
        scores = model.score_relations(entities)
        for i in range(len(facts)):
            question = facts.relation[i : i + 1], facts.entities[i : i + 1]
            loss = one(scores[i], int(facts.relation[i]), known.lookup(*question, None).values)
            losses.append(settings.relation_loss / len(facts) * loss)
    factors = model.factors(relation, entities)
    cubed = [(factor.abs() ** 3).sum() for factor in factors]
    losses.append(settings.n3 / len(factors[0]) * torch.stack(cubed).sum())
    auxiliary = model.auxiliary_loss(relation, entities, entities.roll(1, dims=0))
    return torch.stack([*losses, *([] if auxiliary is None else [auxiliary])]).sum()
