"""Filtered scores: every candidate of a question scored, with known answers left out.

Whatever needs whole rows of scores gets them from this module: calibration, the fit of a memory,
the loss on validation, predictions. Ranks are counted in a stream (:mod:`~getd.evaluation.ranks`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats
from getd.evaluation.protocol import Sample
from getd.facts.facts import Blocks, Facts, sample_facts
from getd.facts.known_answers import KnownAnswers
from getd.io.deadline import check_deadline
from getd.models.base import DotProductModel, ScoringModel

SCORE_BUDGET = 2**22  # scores held at a time: 16 MB in float32
BATCH_ROWS = 256  # facts in a batch, however few entities there are


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """The scores of all candidates at one position of a batch of facts."""

    rows: slice  # which facts these are
    facts: Facts  # b of them
    position: int
    scores: Tensor  # (b, n_entities), the caller's own; known answers are at minus infinity
    answers: Tensor  # (b,): the facts' own entities, which are never left out


def filtered_scores(
    model: ScoringModel,
    facts: Facts,
    positions: Sequence[int],
    known: KnownAnswers,
    *,
    temperature: float | None = None,
    budget: int = SCORE_BUDGET,
) -> Iterator[ScoredBatch]:
    """Score all candidates at positions of facts, batch by batch and position by position.

    The model scores in evaluation mode and without gradients. The deadline is checked before each
    batch, which has at most ``budget`` scores for a position. With a ``temperature``, scores are
    divided by it, and a dot product model makes the queries of all positions at once.
    """
    rows = max(1, min(BATCH_ROWS, budget // model.n_entities))
    for start in range(0, len(facts), rows):
        check_deadline()
        span = slice(start, start + rows)
        batch = facts.take(span)
        with model.scoring() as device:
            relation, entities = batch.to_tensors(device)
            score = _scorer(model, relation, entities, temperature)

        for position in positions:
            with model.scoring():
                scores = score(position)
            leave_out_known(scores, batch, position, known)
            yield ScoredBatch(span, batch, position, scores, entities[:, position])


def _scorer(
    model: ScoringModel, relation: Tensor, entities: Tensor, temperature: float | None
) -> Callable[[int], Tensor]:
    """Return what scores all candidates at a position of a batch."""
    if temperature is None:
        return lambda position: model.score_candidates(relation, entities, position)
    if not (isinstance(model, DotProductModel) and model.is_dot_product):
        return lambda position: model.score_candidates(relation, entities, position) / temperature

    # Positions share work, and a few queries are divided in place of many scores.
    queries = model.queries(relation, entities) / temperature
    return lambda position: queries[:, position] @ model.candidates(position).T


def leave_out_known(scores: Tensor, facts: Facts, position: int, known: KnownAnswers) -> None:
    """Set the scores of known answers to minus infinity, but not those of the facts' own."""
    answers = known.lookup(facts.relation, facts.entities, position)
    rows, others = answers.others(facts.entities[:, position])
    device = scores.device
    scores[torch.tensor(rows, device=device), torch.tensor(others, device=device)] = -torch.inf


def log_probabilities(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    temperature: float,
    but: int | None = None,
) -> Floats:
    """Return the log-probability of each entity at its position, ``(n, arity)``; 0 at ``but``."""
    log_probability = np.zeros(facts.entities.shape)
    positions = [position for position in range(facts.arity) if position != but]
    for batch in filtered_scores(model, facts, positions, known, temperature=temperature):
        own = batch.scores.gather(1, batch.answers[:, None])
        highest = batch.scores.amax(dim=1, keepdim=True)

        # In place: torch.logsumexp would make a second table of this size.
        exponentials = batch.scores.sub_(highest).exp_()
        log_total = exponentials.sum(dim=1, keepdim=True).log_()
        log_probability[batch.rows, batch.position] = (own - highest - log_total)[:, 0].cpu()
    return log_probability


def held_out_loss(
    model: ScoringModel, blocks: Blocks, known: KnownAnswers, sample: Sample = None, seed: int = 0
) -> float:
    """Return the mean of minus the log-probability of each entity at its position.

    There is no dropout, smoothing and regulariser in it, unlike in the loss that training shows.
    """
    total = 0.0
    questions = 0

    # Batches are of one size, however many entities there are: the rounding of sums depends on it.
    budget = BATCH_ROWS * model.n_entities
    for facts in sample_facts(blocks, sample, seed).values():
        for batch in filtered_scores(model, facts, range(facts.arity), known, budget=budget):
            scores = batch.scores.double()
            own = scores.gather(1, batch.answers[:, None])[:, 0]
            total += float((scores.logsumexp(dim=1) - own).sum())
        questions += facts.entities.size
    return total / questions
