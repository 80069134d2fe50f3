r"""The weights of the members of an ensemble, fitted on validation.

For each arity and position they maximise the likelihood of the answers among the candidates,

.. math::
    \sum_q \log \operatorname{softmax}_c \Bigl(\sum_i w_i \phi_i(c)\Bigr)_{c_q}
    - \lambda \frac{|w - w^0|^2}{|w^0|^2}, \qquad w \ge 0

with the scores of each member divided by their size. This is concave. The weights :math:`w^0`, to
which a slot of few questions keeps, are those of all slots together, which keep to equal weights in
turn. Of each question, the highest candidates of each member are kept, and others drawn at random,
which stand for the rest.
"""

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import NamedTuple, Self

import torch
from torch import Tensor

from getd.algebra.convex import Bowl, log_sums, minimise
from getd.calibration.calibrate import calibration_facts
from getd.evaluation.protocol import Sample, known_for_choosing
from getd.evaluation.rank_scores import check_finite
from getd.evaluation.scoring import ScoredBatch, filtered_scores
from getd.facts.facts import Blocks, Facts, count, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.ensemble import RELATION, combine_members, slot_names

MAX_FACTS = 1000  # of each arity to fit on
HIGHEST = 50  # candidates of each member that are kept
DRAWN = 256  # candidates that are drawn of the rest; of so many entities all are kept
PRIOR = 5.0  # λ
SMALLEST_SQUARE = 0.01  # of the centre

Slot = tuple[int, int]  # arity and position
Progress = Callable[[], None]  # called when a slot is scored


class Questions(NamedTuple):
    """Questions with one open position: by how much candidates are above the answers."""

    rows: Tensor  # (t,): the question of each candidate
    leads: Tensor  # (t, m): its score minus that of the answer, by each member
    log_counts: Tensor  # (t,): the logarithm of the number of candidates that it stands for
    number: int

    @classmethod
    def score(
        cls,
        members: Sequence[ScoringModel],
        facts: Facts,
        position: int,
        known: KnownAnswers,
        drawn: Tensor,
    ) -> Self:
        """Score the questions that facts ask at a position; ``drawn`` are ids of entities."""
        streams = [filtered_scores(member, facts, [position], known) for member in members]
        rows = []
        leads = []
        log_counts = []
        for batches in zip(*streams, strict=True):
            part = _reduce(batches, drawn)
            rows.append(part.rows + batches[0].rows.start)
            leads.append(part.leads)
            log_counts.append(part.log_counts)
        return cls(torch.cat(rows), torch.cat(leads), torch.cat(log_counts), len(facts))

    def loss(self, weights: Tensor) -> Bowl:
        """Return the negative log-likelihood of the answers."""
        leads = self.leads.double()
        scores = leads @ weights + self.log_counts
        answers = scores.new_zeros(self.number)
        return log_sums(scores, leads, self.rows, answers)


def _reduce(batches: Sequence[ScoredBatch], drawn: Tensor) -> Questions:
    """Keep some candidates of a batch that all members scored; rows count from its start."""
    scores = torch.stack([batch.scores for batch in batches], dim=2)  # (b, n_entities, m)
    answers = batches[0].answers[:, None]
    is_rival = (scores > -torch.inf).all(dim=2).scatter_(1, answers, False)
    is_high = torch.zeros_like(is_rival)
    for batch in batches:
        highest = batch.scores.topk(min(HIGHEST, batch.scores.shape[1])).indices
        is_high.scatter_(1, highest, True)
    is_high &= is_rival

    # Each of those that are drawn stands for as many of the rest.
    is_rest = is_rival & ~is_high
    is_drawn = torch.zeros_like(is_rest)
    is_drawn[:, drawn] = is_rest[:, drawn]
    counts = is_rest.sum(dim=1) / is_drawn.sum(dim=1).clamp(min=1)

    rows, candidates = (is_high | is_drawn).nonzero(as_tuple=True)
    leads = scores[rows, candidates] - scores[rows, answers[rows, 0]]
    check_finite(leads)
    log_counts = torch.where(is_high[rows, candidates], 0.0, counts[rows].double().log())
    return Questions(rows, leads, log_counts, len(scores))


class FittedWeights(NamedTuple):
    """The weights of the members by slot, and the number of facts that they were fitted on."""

    weights: dict[str, list[float]]
    sample: Sample  # None: all of validation


def fit_members(
    members: Sequence[ScoringModel],
    kb: KnowledgeBase,
    learn_relations: Sequence[bool],
    sample: Sample = None,
    progress: Progress = lambda: None,
) -> FittedWeights:
    """Fit the weights of members for each arity and position; test is not read.

    ``sample`` is the number of validation facts of each arity to fit on, at most. The members may
    know arities that these facts lack: their slots have the weights of all slots together. So does
    an open relation, but only of members that learnt to predict relations.
    """
    known = known_for_choosing(kb)
    blocks = fitting_facts(members, kb, sample)
    generator = torch.Generator().manual_seed(0)
    questions: dict[str, Questions] = {}
    for arity, facts in blocks.items():
        for position in range(arity):
            drawn = torch.randperm(kb.n_entities, generator=generator)[:DRAWN]
            scored = Questions.score(members, facts, position, known, drawn)
            questions[f"{arity}-{position}"] = scored
            progress()

    weights = fit_slots(questions, slot_names(members[0].arities))
    if any(learn_relations):
        weights[RELATION] = _of_learners(weights[RELATION], learn_relations)
    n_facts = count(blocks)
    return FittedWeights(weights, n_facts if n_facts < count(kb.split("valid")) else None)


def _of_learners(weights: Sequence[float], learn_relations: Sequence[bool]) -> list[float]:
    """Keep the weights of members that learnt to predict relations; equal ones if all are 0."""
    pairs = zip(weights, learn_relations, strict=True)
    kept = [weight if learns else 0.0 for weight, learns in pairs]
    if any(kept):
        return kept

    equal = 1 / sum(learn_relations)
    return [equal if learns else 0.0 for learns in learn_relations]


def fitting_facts(members: Sequence[ScoringModel], kb: KnowledgeBase, sample: Sample) -> Blocks:
    """Return the facts of validation to fit on: fewer than for a calibration, if it has many."""
    blocks: dict[int, Facts] = {}
    for arity, facts in calibration_facts(combine_members(members), kb, sample).items():
        blocks |= sample_facts({arity: facts}, MAX_FACTS)
    return blocks


def fit_slots(questions: dict[str, Questions], slots: Iterable[str]) -> dict[str, list[float]]:
    """Fit the weights of slots; one without questions has those of all questions together."""
    every = list(questions.values())
    size = _size(every)
    scaled = {name: part._replace(leads=part.leads / size) for name, part in questions.items()}

    equal = size / len(size)
    shared = likeliest(list(scaled.values()), equal)
    weights = {}
    for name in slots:
        own = likeliest([scaled[name]], shared) if name in scaled else shared
        weights[name] = (own / size).tolist()
    return weights


def _size(questions: Sequence[Questions]) -> Tensor:
    """Return the root of the mean square of each member's leads, 1 if all are 0."""
    squares = torch.stack([part.leads.double().square().sum(dim=0) for part in questions])
    number = sum(len(part.leads) for part in questions)
    size = squares.sum(dim=0).sqrt() / sqrt(max(number, 1))
    return torch.where(size > 0, size, 1.0)


def likeliest(questions: Sequence[Questions], centre: Tensor) -> Tensor:
    """Return the likeliest weights near a centre; they are never less likely than the centre."""

    def loss(weights: Tensor) -> Bowl:
        first, *others = questions
        total = first.loss(weights)
        for part in others:
            total = total.plus(part.loss(weights))
        return total

    weights, _ = minimise(loss, centre, centre, prior_of(centre), non_negative=True)
    return weights


def prior_of(centre: Tensor) -> float:
    """Return what the squared distance from a centre is multiplied with."""
    return PRIOR / max(float(centre.square().sum()), SMALLEST_SQUARE)
