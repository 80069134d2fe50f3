"""Filtered scores: every candidate of a question scored, with known answers left out.

Whatever needs whole rows of scores gets them from this module: calibration, the fit of a memory,
the loss on validation, predictions. Ranks are counted in a stream (:mod:`~getd.evaluation.ranks`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats
from getd.evaluation.normaliser import Cells, log2_sums
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

        for position in positions:
            with model.scoring():
                scores = model.score_candidates(relation, entities, position)
                scores = scores if temperature is None else scores / temperature
            leave_out_known(scores, batch, position, known)
            yield ScoredBatch(span, batch, position, scores, entities[:, position])


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
    positions: Sequence[int] | None = None,
) -> Floats:
    """Return the log-probabilities of the entities at positions, by default all: ``(n, p)``."""
    positions = range(facts.arity) if positions is None else positions
    log_probability = np.zeros((len(facts), len(positions)))
    bare = dot_product_of(model)
    if bare is None:
        for scored in filtered_scores(model, facts, positions, known, temperature=temperature):
            own = scored.scores.gather(1, scored.answers[:, None])[:, 0]
            column = (own - scored.scores.logsumexp(dim=1)).cpu()
            log_probability[scored.rows, positions.index(scored.position)] = column
        return log_probability

    for start in range(0, len(facts), BATCH_ROWS):
        rows = slice(start, start + BATCH_ROWS)
        batch = facts.take(rows)
        with model.scoring() as device:
            queries = bare.queries(*batch.to_tensors(device))[:, positions]
            log_probability[rows] = query_log_probabilities(
                model, batch, positions, queries, known, temperature
            )
    return log_probability


def dot_product_of(model: ScoringModel) -> DotProductModel | None:
    """Return the trained model if its scores are dot products, with or without a memory."""
    bare = model.bare
    return bare if isinstance(bare, DotProductModel) and bare.is_dot_product else None


def query_log_probabilities(
    model: ScoringModel,
    facts: Facts,
    positions: Sequence[int],
    queries: Tensor,
    known: KnownAnswers,
    temperature: float,
) -> Floats:
    """Return the log-probabilities of the entities at positions, ``(n, p)``, from their queries.

    ``queries`` ``(n, p, d)`` are those of :func:`dot_product_of` the model, which is scoring.
    """
    bare = dot_product_of(model)
    assert bare is not None
    tables = [bare.candidates(position) for position in positions]
    if any(table is not tables[0] for table in tables):
        parts = []
        for index, position in enumerate(positions):
            query = queries[:, index : index + 1]
            part = query_log_probabilities(model, facts, [position], query, known, temperature)
            parts.append(part)
        return np.concatenate(parts, axis=1)

    # One product for all positions. Powers of 2 need scores in units of their own.
    table = tables[0]
    unit = temperature * log(2)
    device = table.device
    left_out = known.others(facts, positions).take(slice(None))
    rows, others = (torch.from_numpy(ids).to(device) for ids in left_out)
    cells = [Cells(rows, others, queries.new_full(rows.shape, -torch.inf))]

    own = torch.from_numpy(facts.entities[:, positions].ravel()).to(device)
    terms = None if model is bare else model.memory_terms(*facts.to_tensors(device), positions)
    if terms is None:
        queries = queries.flatten(0, 1) / unit
        own_scores = (queries * table[own]).sum(dim=1)
    else:
        queries = (queries * (terms.scale[:, None] / unit).to(queries)).flatten(0, 1)
        own_scores = (queries * table[own]).sum(dim=1)
        added = Cells(terms.rows, terms.candidates, (terms.values / unit).to(queries))
        is_own = added.columns == own[added.rows]
        own_scores.index_add_(0, added.rows[is_own], added.values[is_own])
        cells.append(added)
    log_probability = (own_scores - log2_sums(queries, table, cells)) * log(2)
    return log_probability.view(len(facts), -1).cpu().numpy()


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
