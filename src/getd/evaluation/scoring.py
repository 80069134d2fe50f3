"""Questions of facts with the scores of all their candidates, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.io.deadline import check_deadline
from getd.models.base import DotProductModel, ScoringModel

ROOM = 2**22  # scores held at a time
MOST_ROWS = 256


def filtered_scores(
    model: ScoringModel, facts: Facts, position: int, known: KnownAnswers
) -> Iterator[tuple[slice, Tensor]]:
    """The rows of some facts, and the scores ``(b, n_entities)`` of all that may stand at a position of theirs.

    Known answers are at minus infinity, but for a fact's own entity.
    """
    for here in _rows(len(facts), model.n_entities):
        part = facts.take(here)
        scores = model.score_candidates(
            torch.tensor(part.relation), torch.tensor(part.entities), position
        )
        yield here, _filter(scores, part, position, known)


def filtered_scores_of_positions(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    positions: Sequence[int],
    temperature: float = 1.0,
) -> Iterator[tuple[slice, int, Tensor]]:
    """The same for some positions in turn, which share work where the model's score is a dot product.

    Scores are over a temperature, and the caller's own, to be written over.
    """
    for here in _rows(len(facts), model.n_entities):
        part = facts.take(here)
        relation, entities = torch.tensor(part.relation), torch.tensor(part.entities)
        queries = None
        if isinstance(model, DotProductModel) and model.is_dot_product:
            queries = model.queries(relation, entities) / temperature
        for position in positions:
            if queries is not None and isinstance(model, DotProductModel):
                scores = queries[:, position] @ model.candidates(position).T
            else:
                scores = model.score_candidates(relation, entities, position) / temperature
            yield here, position, _filter(scores, part, position, known)


def _rows(n_facts: int, n_entities: int) -> Iterator[slice]:
    rows = max(1, min(MOST_ROWS, ROOM // n_entities))
    for start in range(0, n_facts, rows):
        check_deadline()
        yield slice(start, start + rows)


def _filter(scores: Tensor, facts: Facts, position: int, known: KnownAnswers) -> Tensor:
    row, value = known.lookup(facts.relation, facts.entities, position).others(
        facts.entities[:, position]
    )
    scores[torch.tensor(row), torch.tensor(value)] = -torch.inf
    return scores
