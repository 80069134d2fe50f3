r"""The weights of a memory, fitted on validation.

For each arity and position they maximise the likelihood of the answers among the candidates,

.. math::
    \sum_q \log \operatorname{softmax}_c \bigl(T \phi(c) + \theta^\top x(c)\bigr)_{c_q}
    - \lambda |\theta|^2

with the features :math:`x` of the memory, each divided by its deviation. This is concave in
:math:`\theta`; :math:`T` is the best of a few scales. The likeliest weights need not rank best:
from there :math:`\theta` may move to where reciprocal ranks are highest, with a sigmoid in place of
"is above". Of each question, the candidates that the memory knows are kept. Of all others only the
sum of their exponentials for each :math:`T` is kept, and the highest of them, which decide ranks.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from getd.evaluation.protocol import Sample, known_for_choosing
from getd.evaluation.scoring import BATCH_ROWS, ScoredBatch, filtered_scores
from getd.facts.facts import Facts, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.models.base import ScoringModel

SCALES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # T
PRIOR = 3.0  # λ
SOFTNESS = 0.5  # of the sigmoid
HIGHEST = 100  # candidates that the memory does not know, which are kept for ranks
Step = Callable[[Tensor], Tensor]  # the lead of a candidate to what it adds to the rank


class Fit(NamedTuple):
    theta: Tensor
    scale: float  # T


def hard_step(lead: Tensor) -> Tensor:
    """Return 1 above the answer, and one half level with it."""
    return torch.heaviside(lead, lead.new_tensor(0.5))


def soft_step(lead: Tensor) -> Tensor:
    """Return the same with a slope, for gradients."""
    return torch.sigmoid(lead / SOFTNESS)


class Questions(NamedTuple):
    """Questions with one open position, reduced to what weights can change."""

    rows: Tensor  # (t,): the questions of the candidates that the memory knows, and of the answers
    scores: Tensor  # (t,): of the model
    features: Tensor  # (t, f)
    is_answer: Tensor  # (t,): bool
    rest: Tensor  # (b, s): log of the sum over all other candidates of exp(T score), for each T
    highest: Tensor  # (b, HIGHEST): the scores of the highest of them

    @classmethod
    def score(
        cls, model: ScoringModel, memory: Memory, facts: Facts, position: int, known: KnownAnswers
    ) -> Self:
        """Score the questions that facts ask at a position."""
        budget = BATCH_ROWS * model.n_entities
        parts = []
        for batch in filtered_scores(model, facts, [position], known, budget=budget):
            part = _reduce(batch, memory)
            parts.append(part._replace(rows=part.rows + batch.rows.start))
        return cls(*map(torch.cat, zip(*parts, strict=True)))

    def take(self, mask: Tensor) -> Self:
        kept = mask[self.rows]
        number = mask.cumsum(0) - 1

        return self._replace(
            rows=number[self.rows[kept]],
            scores=self.scores[kept],
            features=self.features[kept],
            is_answer=self.is_answer[kept],
            rest=self.rest[mask],
            highest=self.highest[mask],
        )

    def loss(self, theta: Tensor, scale: int) -> Tensor:
        """Return the negative log-likelihood of the answers; ``scale`` is an index of SCALES."""
        scores = SCALES[scale] * self.scores + self.features @ theta
        rest = self.rest[:, scale]
        top = rest.scatter_reduce(0, self.rows, scores.detach(), "amax")
        total = torch.exp(rest - top).index_add(0, self.rows, torch.exp(scores - top[self.rows]))
        return (top + total.log()).sum() - scores[self.is_answer].sum()

    def reciprocal_ranks(self, theta: Tensor, scale: float, step: Step = hard_step) -> Tensor:
        """Return the reciprocal ranks of the answers among the candidates that are kept."""
        scores = scale * self.scores + self.features @ theta
        answers = (self.rows[self.is_answer],)
        answer = torch.zeros_like(self.rest[:, 0]).index_put(answers, scores[self.is_answer])

        # Each candidate but the answer adds to the rank what the step makes of its lead.
        known = step(scores - answer[self.rows]).masked_fill(self.is_answer, 0.0)
        others = step(scale * self.highest - answer[:, None])
        return 1 / (1 + others.sum(dim=1).index_add(0, self.rows, known))


def _reduce(batch: ScoredBatch, memory: Memory) -> Questions:
    """Keep what weights can change; rows count from the start of the batch."""
    scores = batch.scores.double()
    relation, entities = batch.facts.to_tensors(scores.device)
    rows, candidates, features = memory.features(relation, entities, batch.position)

    # Answers that the memory does not know join the candidates that it knows.
    answers = batch.answers
    is_unknown = torch.ones_like(answers, dtype=torch.bool)
    is_unknown[rows[candidates == answers[rows]]] = False
    unknown = is_unknown.nonzero()[:, 0]
    rows = torch.cat([rows, unknown])
    candidates = torch.cat([candidates, answers[unknown]])
    features = nn.functional.pad(features, (0, 0, 0, len(unknown)))

    # Known answers are left out.
    kept = torch.isfinite(scores[rows, candidates])
    rows = rows[kept]
    candidates = candidates[kept]

    own = scores[rows, candidates]
    scores[rows, candidates] = -torch.inf
    return Questions(
        rows=rows,
        scores=own,
        features=features[kept],
        is_answer=candidates == answers[rows],
        rest=torch.stack([torch.logsumexp(scale * scores, dim=1) for scale in SCALES], dim=1),
        highest=scores.topk(min(HIGHEST, scores.shape[1]), dim=1).values,
    )


def fit_weights(
    model: ScoringModel, memory: Memory, kb: KnowledgeBase, sample: Sample = None
) -> dict[str, MemoryWeights]:
    """Fit the weights for each arity and position, ``"4-0"``; test is not read.

    Of several fits, and none at all, the one is taken that does best on facts it was not fitted on:
    each is fitted on one half of the validation facts and measured on the other.
    """
    weights = {}
    known = known_for_choosing(kb)
    for arity, facts in sample_facts(kb.split("valid"), sample).items():
        for position in range(arity):
            questions = Questions.score(model, memory, facts, position, known)
            weights[f"{arity}-{position}"] = _fit(questions, memory.sources(arity, position))
    return weights


def _fit(questions: Questions, sources: Sequence[str]) -> MemoryWeights:
    deviation = questions.features.std(dim=0, correction=0)
    deviation[deviation == 0] = 1.0
    questions = questions._replace(features=questions.features / deviation)

    # The sum of reciprocal ranks that each fit has on the half it was not fitted on.
    first = torch.arange(len(questions.rest)) % 2 == 0
    totals = [0.0, 0.0, 0.0]
    for mask in (first, ~first):
        half = questions.take(mask)
        other = questions.take(~mask)
        for number, fit in enumerate(fits(half)):
            totals[number] += float(other.reciprocal_ranks(*fit).sum())

    best = totals.index(max(totals))
    if best == 0:
        return MemoryWeights()
    theta, scale = fits(questions)[best]
    weights = {}
    pairs = (theta / deviation).view(-1, 2).tolist()
    for name, (share, log_share) in zip(sources, pairs, strict=True):
        weights[name] = SourceWeights(share=share, log_share=log_share)
    return MemoryWeights(scale=scale, sources=weights)


def fits(questions: Questions) -> list[Fit]:
    """Fit in three ways: the model alone, the likeliest weights, those near them that rank best."""
    nothing = torch.zeros(questions.features.shape[1], dtype=torch.float64)
    likely, scale = _likeliest(questions, nothing)

    def loss(theta: Tensor) -> Tensor:
        return -questions.reciprocal_ranks(theta, scale, soft_step).sum()

    ranked, _ = _minimise(loss, likely, likely)
    return [Fit(nothing, 1.0), Fit(likely, scale), Fit(ranked, scale)]


def _likeliest(questions: Questions, start: Tensor) -> Fit:
    theta = start
    best = Fit(start, 1.0)
    least = inf

    # The loss is convex in theta and scale: once it rises, larger scales are only worse.
    for number, scale in enumerate(SCALES):
        theta, loss = _minimise(partial(questions.loss, scale=number), theta, start)
        if loss > least:
            break
        least = loss
        best = Fit(theta, scale)
    return best


def _minimise(
    loss: Callable[[Tensor], Tensor], start: Tensor, centre: Tensor
) -> tuple[Tensor, float]:
    """Minimise a loss plus the squared distance from a centre; return the point and the minimum."""
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [theta], max_iter=50, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def penalised() -> Tensor:
        optimizer.zero_grad()
        value = loss(theta) + PRIOR * (theta - centre).square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(penalised)  # type: ignore[no-untyped-call]
        return theta.detach(), float(penalised().detach())
