"""The weights of a memory, chosen on validation.

The scores of the model are made once. Of each question only the candidates that the memory knows change with the
weights; the others are sorted, so that how many stand above the answer is one binary search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        weights = weights.double()
        answer = (self.answer + self.answer_features @ weights)[:, None]
        above = self.others.shape[1] - torch.searchsorted(self.others, answer, right=True)
        level = self.others.shape[1] - torch.searchsorted(self.others, answer) - above
        known, mine = self.scores + self.features @ weights, answer[self.rows, 0]
        higher = torch.zeros_like(answer[:, 0]).index_add_(0, self.rows, (known > mine).double())
        equal = torch.zeros_like(higher).index_add_(0, self.rows, (known == mine).double())
        return 1 / (1 + above[:, 0] + higher + (level[:, 0] + equal) / 2)


@dataclass(frozen=True)
class Chosen:
    """Weights, and what they come to on validation."""

    weights: dict[str, MemoryWeights]  # by arity and position, "4-0"
    by_position: bool  # whether positions have weights of their own
    mrr: float


def choose_weights(
    model: ScoringModel, memory: Memory, kb: KnowledgeBase, sample: int | None = None, seed: int = 0
) -> Chosen:
    """The weights with the highest validation MRR, one after the other until none helps.

    Positions have weights of their own where these do better on facts that they were not chosen on: chosen on each half
    of the validation facts, and measured on the other.
    """
    with scoring(model):
        known = kb.known()
        slots = {
            f"{arity}-{position}": _questions(model, memory, facts, position, known)
            for arity, facts in sample_facts(kb.split("valid"), sample, seed).items()
            for position in range(arity)
        }
    held_out = {own: sum(_gain(slots, own, half) for half in (0, 1)) for own in (False, True)}
    by_position = held_out[True] > held_out[False]
    chosen = _choose(slots, by_position)
    ranks = [part.reciprocal_ranks(torch.tensor(chosen[name])) for name, parts in slots.items() for part in parts]
    weights = {
        name: MemoryWeights(**dict(zip(MemoryWeights.model_fields, chosen[name], strict=True))) for name in slots
    }
    return Chosen(weights, by_position, float(torch.cat(ranks).mean()))


def _gain(slots: Mapping[str, Sequence[_Questions]], own: bool, half: int) -> float:
    """The sum of reciprocal ranks in one half of the parts, with weights chosen on the other."""
    chosen = _choose({name: parts[1 - half :: 2] for name, parts in slots.items()}, own)
    return sum(
        float(part.reciprocal_ranks(torch.tensor(chosen[name])).sum())
        for name, parts in slots.items()
        for part in parts[half::2]
    )


def _choose(slots: Mapping[str, Sequence[_Questions]], own: bool) -> dict[str, list[float]]:
    """Weights for all slots together, then, where they are to have their own, for each from there on."""
    everything = [part for parts in slots.values() for part in parts]
    together = _climb(everything, [0.0] * len(STEPS))
    return {name: _climb(parts, together) if own else together for name, parts in slots.items()}


def _climb(parts: Sequence[_Questions], start: Sequence[float]) -> list[float]:
    """Change one weight at a time as long as the MRR rises."""

    def total(weights: Sequence[float]) -> float:
        theta = torch.tensor(weights)
        return sum(float(part.reciprocal_ranks(theta).sum()) for part in parts)

    chosen, best, improved = list(start), total(start), True
    while improved:
        improved = False
        for place in (0, 2, 1, 3):
            tried = {value: total([*chosen[:place], value, *chosen[place + 1 :]]) for value in STEPS[place]}
            value = max(tried, key=lambda value: (tried[value], -value))
            if tried[value] > best:
                chosen[place], best, improved = value, tried[value], True
    return chosen


def _questions(
    model: ScoringModel, memory: Memory, facts: Facts, position: int, known: KnownAnswers
) -> list[_Questions]:
    """In parts, two at least where there are two facts."""
    size = max(1, min(AT_ONCE, -(-len(facts) // 2)))
    parts = [facts.take(slice(start, start + size)) for start in range(0, len(facts), size)]
    return [_prepare(model, memory, part, position, known) for part in parts]


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
