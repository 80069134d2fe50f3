"""Filtered scores: every candidate of a question scored, with known answers left out.

Whatever needs whole rows of scores gets them from this module: calibration, the fit of a memory,
the loss on validation, predictions. Ranks are counted in a stream (:mod:`~getd.evaluation.ranks`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats
from getd.evaluation.normaliser import log2_sums
from getd.evaluation.precision import Settled, dot_product_of, rounded
from getd.evaluation.protocol import Sample
from getd.facts.facts import Blocks, Facts, sample_facts
from getd.facts.known_answers import KnownAnswers
from getd.io.deadline import check_deadline
from getd.models.base import Cells, ScoringModel

PRODUCT_ROWS = 1024  # facts in a batch of dot products, whose scores are made tile by tile
SCORE_BUDGET = 2**22  # scores held at a time: 16 MB in float32
BATCH_ROWS = 256  # facts in a batch, however few entities there are
MOST_SCORES = 2**25  # in a batch of that many facts; with more entities it has fewer facts


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
    divided by it.
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


def even_budget(n_entities: int) -> int:
    """Return a budget of scores with which all batches have equally many facts, as far as it goes.

    The rounding of sums depends on the size of a batch.
    """
    return max(SCORE_BUDGET, min(BATCH_ROWS * n_entities, MOST_SCORES))


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
    queries: Tensor | None = None,
    precision: Settled = "fp32",
) -> Floats:
    """Return the log-probabilities of the entities at positions, by default all: ``(n, p)``.

    ``queries`` ``(n, p, d)`` are those of a dot product, where they are at hand. In ``bf16``, all
    scores of a dot product are rounded but those of the facts' own entities.
    """
    positions = range(facts.arity) if positions is None else positions
    log_probability = np.zeros((len(facts), len(positions)))
    bare = dot_product_of(model)
    if bare is None:
        for scored in filtered_scores(model, facts, positions, known, temperature=temperature):
            own = scored.scores.gather(1, scored.answers[:, None])[:, 0]
            column = own - scored.scores.logsumexp(dim=1)
            log_probability[scored.rows, positions.index(scored.position)] = column.cpu()
        return log_probability

    with model.scoring() as device:
        tables = [bare.candidates(position) for position in positions]
        for start in range(0, len(facts), PRODUCT_ROWS):
            rows = slice(start, start + PRODUCT_ROWS)
            batch = facts.take(rows)
            if queries is None:
                part = bare.queries(*batch.to_tensors(device))[:, positions]
            else:
                part = queries[rows]

            # Positions with one table make one product.
            for _, group in groupby(range(len(tables)), key=lambda index: id(tables[index])):
                columns = list(group)
                table = tables[columns[0]]
                by_position = {positions[column]: part[:, column] for column in columns}
                log_probability[rows, columns] = _log_softmax(
                    model, batch, by_position, table, known, temperature, precision
                )
    return log_probability


def _log_softmax(
    model: ScoringModel,
    facts: Facts,
    queries: Mapping[int, Tensor],
    table: Tensor,
    known: KnownAnswers,
    temperature: float,
    precision: Settled,
) -> Tensor:
    """Return the log-probabilities ``(n, p)`` of entities, from the queries of their positions."""
    n = len(facts)
    unit = temperature * log(2)  # of scores, for sums of powers of 2
    flat = torch.cat(list(queries.values())) / unit
    cells = [_left_out(facts, list(queries), known, flat)]

    relation, entities = facts.to_tensors(table.device)
    added = []
    for index, position in enumerate(queries):
        memory = model.memory_cells(relation, entities, position)
        if memory is not None:
            scale, (rows, columns, values) = memory
            flat[index * n : (index + 1) * n] *= scale
            added.append(Cells(rows + index * n, columns, (values / unit).to(flat)))

    own = entities[:, list(queries)].T.flatten()
    own_scores = (flat * table[own]).sum(dim=1)
    if added:
        rows, columns, values = map(torch.cat, zip(*added, strict=True))
        cells.append(Cells(rows, columns, values))
        is_own = columns == own[rows]
        own_scores.index_add_(0, rows[is_own], values[is_own])

    log_sums = log2_sums(flat, rounded(table, precision), cells)
    log_probability = (own_scores - log_sums) * log(2)
    return log_probability.view(-1, n).T.cpu()


def _left_out(facts: Facts, positions: Sequence[int], known: KnownAnswers, scores: Tensor) -> Cells:
    """Return what leaves out the known answers of facts but their own, position by position."""
    rows = []
    candidates = []
    for index, position in enumerate(positions):
        answers = known.lookup(facts.relation, facts.entities, position)
        facts_rows, others = answers.others(facts.entities[:, position])
        rows.append(facts_rows + index * len(facts))
        candidates.append(others)

    pairs = np.stack([np.concatenate(rows), np.concatenate(candidates)])
    row, candidate = torch.from_numpy(pairs).to(scores.device)
    return Cells(row, candidate, scores.new_full(row.shape, -torch.inf))


def held_out_loss(
    model: ScoringModel, blocks: Blocks, known: KnownAnswers, sample: Sample = None, seed: int = 0
) -> float:
    """Return the mean of minus the log-probability of each entity at its position.

    There is no dropout, smoothing and regulariser in it, unlike in the loss that training shows.
    """
    total = 0.0
    questions = 0

    budget = even_budget(model.n_entities)
    for facts in sample_facts(blocks, sample, seed).values():
        for batch in filtered_scores(model, facts, range(facts.arity), known, budget=budget):
            scores = batch.scores.double()
            own = scores.gather(1, batch.answers[:, None])[:, 0]
            total += float((scores.logsumexp(dim=1) - own).sum())
        questions += facts.entities.size
    return total / questions
