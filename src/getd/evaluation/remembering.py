"""The weights of a memory, chosen on validation.

The scores of the model are made once. Of each question only the candidates that the memory knows change with the
weights; the others are sorted, so that how many stand above the answer is one binary search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from getd.evaluation.ranks import scoring
from getd.evaluation.report import sample_facts
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.memory import Memory, MemoryWeights

AT_ONCE = 256  # questions
STEPS: Sequence[Sequence[float]] = (  # what is tried for each weight, in the order of MemoryWeights
    (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0),
    (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8),
    (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0),
    (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8),
)


@dataclass(frozen=True)
class _Questions:
    """Questions with one position open, and all that weights can change about their ranks."""

    answer: Tensor  # (b,) the model's score
    answer_features: Tensor  # (b, 4)
    others: Tensor  # (b, |E|): scores of candidates that the memory does not know, ascending; -inf is none
    rows: Tensor  # (t,) questions of the candidates that it knows
    scores: Tensor  # (t,)
    features: Tensor  # (t, 4)

    def reciprocal_ranks(self, weights: Tensor) -> Tensor:
        """Those of the answers, ties shared."""
        answer = (self.answer + self.answer_features @ weights)[:, None]
        above = self.others.shape[1] - torch.searchsorted(self.others, answer, right=True)
        level = self.others.shape[1] - torch.searchsorted(self.others, answer) - above
        known, mine = self.scores + self.features @ weights, answer[self.rows, 0]
        higher = torch.zeros_like(answer[:, 0]).index_add_(0, self.rows, (known > mine).double())
        equal = torch.zeros_like(higher).index_add_(0, self.rows, (known == mine).double())
        return 1 / (1 + above[:, 0] + higher + (level[:, 0] + equal) / 2)


def choose_weights(
    model: ScoringModel, memory: Memory, kb: KnowledgeBase, sample: int | None = None, seed: int = 0
) -> tuple[MemoryWeights, float]:
    """The weights with the highest validation MRR, one after the other until none helps; and that MRR."""
    with scoring(model):
        blocks = sample_facts(kb.split("valid"), sample, seed)
        known = kb.known()
        questions = [part for facts in blocks.values() for part in _questions(model, memory, facts, known)]

        def mrr(weights: Sequence[float]) -> float:
            theta = torch.tensor(weights, dtype=torch.float64)
            return float(torch.cat([part.reciprocal_ranks(theta) for part in questions]).mean())

        chosen, best = [0.0] * 4, mrr([0.0] * 4)
        improved = True
        while improved:
            improved = False
            for place in (0, 2, 1, 3):
                tried = {value: mrr([*chosen[:place], value, *chosen[place + 1 :]]) for value in STEPS[place]}
                value = max(tried, key=lambda value: (tried[value], -value))
                if tried[value] > best:
                    chosen[place], best, improved = value, tried[value], True
    return MemoryWeights(**dict(zip(MemoryWeights.model_fields, chosen, strict=True))), best


def _questions(model: ScoringModel, memory: Memory, facts: Facts, known: KnownAnswers) -> Iterator[_Questions]:
    for position in range(facts.arity):
        for start in range(0, len(facts), AT_ONCE):
            part = facts.take(slice(start, start + AT_ONCE))
            yield _prepare(model, memory, part, position, known)


def _prepare(model: ScoringModel, memory: Memory, facts: Facts, position: int, known: KnownAnswers) -> _Questions:
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    answer, every = entities[:, position], torch.arange(len(facts))
    scores = model.score_candidates(relation, entities, position).double()
    own = scores[every, answer]
    others = known.lookup(facts.relation, facts.entities, position).others(facts.entities[:, position])
    scores[torch.tensor(others[0]), torch.tensor(others[1])] = -torch.inf
    scores[every, answer] = -torch.inf
    rows, candidates, features = memory.features(relation, entities, position)
    is_answer = candidates == answer[rows]
    of_answers = torch.zeros(len(facts), features.shape[1], dtype=torch.float64)
    of_answers[rows[is_answer]] = features[is_answer]
    counts = torch.isfinite(scores[rows, candidates])  # neither the answer nor left out
    rows, candidates, features = rows[counts], candidates[counts], features[counts]
    touched = scores[rows, candidates]
    scores[rows, candidates] = -torch.inf
    return _Questions(own, of_answers, scores.sort(dim=1).values, rows, touched, features)
