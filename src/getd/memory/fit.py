r"""The weights of a memory, fitted on validation.

For each arity and position they maximise the likelihood of the answers among the candidates of their questions,

.. math:: \sum_q \log \operatorname{softmax}_c \bigl(T \phi(c) + \theta^\top x(c)\bigr)_{c_q} - \lambda |\theta|^2

with the memory's features :math:`x`, each divided by its deviation. It is concave in :math:`\theta`; :math:`T` is the
best of a few. What is likely need not rank well: from there :math:`\theta` may go on to where reciprocal ranks are
highest, with a sigmoid in place of "stands above". Of each question the candidates that the memory knows are kept,
of all others only the sum of their exponentials for each :math:`T`, and the highest of them to see ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import torch
from torch import Tensor

from getd.evaluation.protocol import known_for_choosing
from getd.facts.facts import Facts, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Memory, MemoryWeights, SourceWeights
from getd.models.base import ScoringModel

AT_ONCE = 256  # questions
SCALES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # T
PRIOR = 3.0  # λ
SOFTNESS = 0.5  # of the sigmoid
HIGHEST = 100  # candidates that the memory does not know, of which ranks are seen


@dataclass(frozen=True)
class _Questions:
    """Questions with one position open, and all that weights can change about them."""

    rows: Tensor  # (t,) the questions of the candidates that the memory knows, and of the answers
    scores: Tensor  # (t,) the model's
    features: Tensor  # (t, f)
    is_answer: Tensor  # (t,) bool
    rest: Tensor  # (b, s): log of the sum over all other candidates of exp(T score), for each T
    highest: Tensor  # (b, HIGHEST): the scores of the highest of them

    def some(self, chosen: Tensor) -> _Questions:
        """The questions of a mask."""
        kept, number = chosen[self.rows], chosen.cumsum(0) - 1
        return _Questions(
            number[self.rows[kept]],
            self.scores[kept],
            self.features[kept],
            self.is_answer[kept],
            self.rest[chosen],
            self.highest[chosen],
        )

    def loss(self, theta: Tensor, scale: int) -> Tensor:
        """The negative log-likelihood of the answers."""
        scores, rest = SCALES[scale] * self.scores + self.features @ theta, self.rest[:, scale]
        top = rest.scatter_reduce(0, self.rows, scores.detach(), "amax")
        total = torch.exp(rest - top).index_add(0, self.rows, torch.exp(scores - top[self.rows]))
        return (top + total.log()).sum() - scores[self.is_answer].sum()

    def reciprocal_ranks(self, theta: Tensor, scale: float) -> Tensor:
        """Those of the answers, ties shared; ranks beyond the highest are seen as if there were no more."""
        above, others = self._above_answers(theta, scale)
        return 1 / (1 + self._sum(_step(above), _step(others)))

    def soft_reciprocal_ranks(self, theta: Tensor, scale: float) -> Tensor:
        """The same with a sigmoid for the step."""
        above, others = self._above_answers(theta, scale)
        return 1 / (
            1 + self._sum(torch.sigmoid(above / SOFTNESS), torch.sigmoid(others / SOFTNESS))
        )

    def _above_answers(self, theta: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """How far candidates stand above the answer: those that the memory knows, and the highest of the others."""
        scores = scale * self.scores + self.features @ theta
        answer = torch.zeros_like(self.rest[:, 0]).index_put(
            (self.rows[self.is_answer],), scores[self.is_answer]
        )
        return scores - answer[self.rows], scale * self.highest - answer[:, None]

    def _sum(self, known: Tensor, others: Tensor) -> Tensor:
        """For each question, over its candidates but the answer."""
        return others.sum(dim=1).index_add(0, self.rows, known.masked_fill(self.is_answer, 0.0))


def _step(distance: Tensor) -> Tensor:
    return (distance > 0).double() + 0.5 * (distance == 0).double()


def fit_weights(
    model: ScoringModel, memory: Memory, kb: KnowledgeBase, sample: int | None = None, seed: int = 0
) -> dict[str, MemoryWeights]:
    """The weights for each arity and position, ``"4-0"``.

    How they are fitted, or that there are none, is what does best for facts that they were not fitted on: fitted on
    each half of the validation facts, and measured on the other. Test is not read.
    """
    found, known = {}, known_for_choosing(kb)
    with model.scoring():
        for arity, facts in sample_facts(kb.split("valid"), sample, seed).items():
            for position in range(arity):
                questions = _questions(model, memory, facts, position, known)
                found[f"{arity}-{position}"] = _weights(questions, memory.sources(arity, position))
    return found


def _weights(questions: _Questions, sources: Sequence[str]) -> MemoryWeights:
    deviation = questions.features.std(dim=0, correction=0)
    deviation = torch.where(deviation > 0, deviation, 1.0)
    questions = replace(questions, features=questions.features / deviation)
    first = torch.arange(len(questions.rest)) % 2 == 0
    halves = [(questions.some(half), questions.some(~half)) for half in (first, ~first)]
    held_out = [
        [float(other.reciprocal_ranks(*fit).sum()) for fit in _fits(half)] for half, other in halves
    ]
    totals = [sum(fit) for fit in zip(*held_out, strict=True)]
    best = totals.index(max(totals))
    if best == 0:
        return MemoryWeights()
    theta, scale = _fits(questions)[best]
    pairs = (theta / deviation).view(-1, 2).tolist()
    weights = {
        name: SourceWeights(share=w, log_share=v)
        for name, (w, v) in zip(sources, pairs, strict=True)
    }
    return MemoryWeights(scale=scale, sources=weights)


def _fits(questions: _Questions) -> list[tuple[Tensor, float]]:
    """Weights and the scale of the model's scores: of the model alone, the likeliest, those near by that rank best."""
    none = torch.zeros(questions.features.shape[1], dtype=torch.float64)
    likely, scale = _likely(questions, none)
    ranked, _ = _minimise(
        lambda theta: -questions.soft_reciprocal_ranks(theta, scale).sum(), likely, likely
    )
    return [(none, 1.0), (likely, scale), (ranked, scale)]


def _likely(questions: _Questions, start: Tensor) -> tuple[Tensor, float]:
    """Those with the highest likelihood."""
    theta, best, chosen = start, inf, (start, 1.0)
    for place, scale in enumerate(SCALES):
        theta, loss = _minimise(partial(questions.loss, scale=place), theta, start)
        if loss > best:  # it is convex in both: from here on it only gets worse
            break
        best, chosen = loss, (theta, scale)
    return chosen


def _minimise(
    loss: Callable[[Tensor], Tensor], start: Tensor, centre: Tensor
) -> tuple[Tensor, float]:
    """Where the loss and the distance from a centre are least together, and how much that is."""
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


def _questions(
    model: ScoringModel, memory: Memory, facts: Facts, position: int, known: KnownAnswers
) -> _Questions:
    parts = [facts.take(slice(start, start + AT_ONCE)) for start in range(0, len(facts), AT_ONCE)]
    made = [_prepare(model, memory, part, position, known) for part in parts]
    starts = range(0, len(facts), AT_ONCE)
    return _Questions(
        torch.cat([part.rows + start for part, start in zip(made, starts, strict=True)]),
        *(
            torch.cat([getattr(part, name) for part in made])
            for name in ("scores", "features", "is_answer", "rest", "highest")
        ),
    )


def _prepare(
    model: ScoringModel, memory: Memory, facts: Facts, position: int, known: KnownAnswers
) -> _Questions:
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    answer, every = entities[:, position], torch.arange(len(facts))
    scores = model.score_candidates(relation, entities, position).double()
    others = known.lookup(facts.relation, facts.entities, position).others(
        facts.entities[:, position]
    )
    scores[torch.tensor(others[0]), torch.tensor(others[1])] = -torch.inf
    rows, candidates, features = memory.features(relation, entities, position)
    unseen = torch.ones(len(facts), dtype=torch.bool)
    unseen[rows[candidates == answer[rows]]] = (
        False  # answers that the memory does not know join what it knows
    )
    rows, candidates = torch.cat([rows, every[unseen]]), torch.cat([candidates, answer[unseen]])
    features = torch.cat([features, features.new_zeros(int(unseen.sum()), features.shape[1])])
    counts = torch.isfinite(scores[rows, candidates])  # not left out
    rows, candidates, features = rows[counts], candidates[counts], features[counts]
    touched = scores[rows, candidates]
    scores[rows, candidates] = -torch.inf
    rest = torch.stack([torch.logsumexp(scale * scores, dim=1) for scale in SCALES], dim=1)
    highest = scores.topk(min(HIGHEST, scores.shape[1]), dim=1).values
    return _Questions(rows, touched, features, candidates == answer[rows], rest, highest)
