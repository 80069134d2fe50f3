"""Questions reduced to what the weights of a memory can change, and how well weights do on them.

Of each question, the candidates that the memory knows are kept. Of all others only the sum of their
exponentials for each scale of the model is kept, and the highest of them, which decide ranks.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from getd.algebra.convex import Bowl, log_sums
from getd.arrays import Ids
from getd.evaluation.scoring import ScoredBatch, even_budget, filtered_scores
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Features, Memory
from getd.models.base import ScoringModel

SCALES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # T, of the model
SOFTNESS = 0.5  # of the sigmoid
HIGHEST = 100  # candidates that the memory does not know, which are kept for ranks
Step = Callable[[Tensor], Tensor]  # the lead of a candidate to what it adds to the rank
Objective = Callable[[Tensor], Tensor]


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
        budget = even_budget(model.n_entities)
        parts = []
        for batch in filtered_scores(model, facts, [position], known, budget=budget):
            part = _reduce(batch, memory)
            parts.append(part._replace(rows=part.rows + batch.rows.start))
        return cls(*map(torch.cat, zip(*parts, strict=True)))

    @classmethod
    def leave_out(cls, memory: Memory, facts: Facts, position: int, known: KnownAnswers) -> Self:
        """Look up facts that the memory has counted as if it had not; no model scores them."""
        relation, entities = facts.to_tensors()
        features = memory.features(relation, entities, position, leave_out=True)
        others = known.lookup(facts.relation, facts.entities, position).others(
            facts.entities[:, position]
        )
        features = _without(features, others, memory.n_entities)
        features, is_answer = _with_answers(features, entities[:, position])

        # All other candidates score 0.
        n_left_out = torch.bincount(torch.tensor(others[0]), minlength=len(facts))
        n_kept = torch.bincount(features.rows, minlength=len(facts))
        n_rest = memory.n_entities - n_left_out - n_kept
        nothing = torch.zeros(len(facts), 0, dtype=torch.float64)
        return cls(
            rows=features.rows,
            scores=torch.zeros_like(features.values[:, 0]),
            features=features.values,
            is_answer=is_answer,
            rest=n_rest.double().log()[:, None].expand(-1, len(SCALES)),
            highest=nothing,
        )

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

    def blended(self, theta: Tensor) -> Self:
        """Return the questions with one feature, that of these weights."""
        return self._replace(features=(self.features @ theta)[:, None])

    def loss(self, theta: Tensor, scale: int) -> Bowl:
        """Return the negative log-likelihood of the answers; ``scale`` is an index of SCALES."""
        scores = SCALES[scale] * self.scores + self.features @ theta
        sums = log_sums(scores, self.features, self.rows, self.rest[:, scale])
        own = self.features[self.is_answer].sum(dim=0)
        value = sums.value - scores[self.is_answer].sum()
        return Bowl(value, sums.gradient - own, sums.hessian)

    def reciprocal_ranks(self, theta: Tensor, scale: float, step: Step = hard_step) -> Tensor:
        """Return the reciprocal ranks of the answers among the candidates that are kept."""
        scores = scale * self.scores + self.features @ theta
        answers = (self.rows[self.is_answer],)
        answer = torch.zeros_like(self.rest[:, 0]).index_put(answers, scores[self.is_answer])

        # Each candidate but the answer adds to the rank what the step makes of its lead.
        known = step(scores - answer[self.rows]).masked_fill(self.is_answer, 0.0)
        others = step(scaled(self.highest, scale) - answer[:, None])
        return 1 / (1 + others.sum(dim=1).index_add(0, self.rows, known))


def scaled(scores: Tensor, scale: float) -> Tensor:
    """Return the scores times a scale; what is left out stays so with a scale of 0."""
    return scale * scores if scale else torch.where(torch.isfinite(scores), 0.0, scores)


def maximise_smoothly(gain: Objective, start: Tensor, prior: float) -> Tensor:
    """Climb to a maximum near the start, by L-BFGS; the weighted squared distance is taken off."""
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [theta], max_iter=20, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = prior * (theta - start).square().sum() - gain(theta)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return theta.detach()


def _reduce(batch: ScoredBatch, memory: Memory) -> Questions:
    """Keep what weights can change; rows count from the start of the batch."""
    scores = batch.scores.double()
    relation, entities = batch.facts.to_tensors(scores.device)
    features = memory.features(relation, entities, batch.position)
    features, is_answer = _with_answers(features, batch.answers)

    # Known answers are left out.
    kept = torch.isfinite(scores[features.rows, features.candidates])
    rows, candidates, values = (part[kept] for part in features)

    own = scores[rows, candidates]
    scores[rows, candidates] = -torch.inf
    return Questions(
        rows=rows,
        scores=own,
        features=values,
        is_answer=is_answer[kept],
        rest=torch.stack([scaled(scores, scale).logsumexp(dim=1) for scale in SCALES], dim=1),
        highest=scores.topk(min(HIGHEST, scores.shape[1]), dim=1).values,
    )


def _with_answers(features: Features, answers: Tensor) -> tuple[Features, Tensor]:
    """Let answers that the memory does not know join the candidates that it knows."""
    rows, candidates, values = features
    is_unknown = torch.ones_like(answers, dtype=torch.bool)
    is_unknown[rows[candidates == answers[rows]]] = False
    unknown = is_unknown.nonzero()[:, 0]

    rows = torch.cat([rows, unknown])
    candidates = torch.cat([candidates, answers[unknown]])
    values = nn.functional.pad(values, (0, 0, 0, len(unknown)))
    return Features(rows, candidates, values), candidates == answers[rows]


def _without(features: Features, others: tuple[Ids, Ids], n_entities: int) -> Features:
    """Leave known answers out."""
    cells = torch.tensor(others[0] * n_entities + others[1])
    kept = ~torch.isin(features.rows * n_entities + features.candidates, cells)
    return Features(*(part[kept] for part in features))
