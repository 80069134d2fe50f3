"""Evaluation as nested loops over plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.models.base import ModelSizes, ScoringModel

Fact = tuple[int, ...]  # relation, then the entities


def rank(
    scores: Sequence[float],
    answer: int,
    fact: Fact,
    slot: int,
    everything: Sequence[Fact],
    ties: str,
) -> tuple[float, int]:
    """The rank of an answer, and the number of candidates that do not make another known fact."""
    above = level = candidates = 0
    for candidate, score in enumerate(scores):
        changed = fact[:slot] + (candidate,) + fact[slot + 1 :]
        if candidate != answer and changed in everything:
            continue
        candidates += 1
        if candidate != answer and score > scores[answer]:
            above += 1
        if candidate != answer and score == scores[answer]:
            level += 1
    return 1 + above + {"realistic": level / 2, "optimistic": 0, "pessimistic": level}[
        ties
    ], candidates


def frequency(facts: Sequence[Fact], question: Fact, slot: int, candidate: int) -> int:
    """How often a candidate fills a slot of the question's relation; of any, if it is open."""
    number = 0
    for fact in facts:
        if (
            len(fact) == len(question)
            and fact[slot] == candidate
            and (slot == 0 or fact[0] == question[0])
        ):
            number += 1
    return number


def lookup(facts: Sequence[Fact], question: Fact, slot: int, candidate: int) -> Fraction:
    """The sum over the given entities of the share of their facts that have the candidate too."""
    total = Fraction(0)
    for given in range(1, len(question)):
        if given == slot:
            continue
        both = alone = 0
        for fact in facts:
            if (
                len(fact) == len(question)
                and fact[given] == question[given]
                and (slot == 0 or fact[0] == question[0])
            ):
                alone += 1
                both += fact[slot] == candidate
        total += Fraction(both, alone) if alone else 0
    return total


def interval(
    reciprocals: Sequence[Sequence[float]], seed: int, resamples: int
) -> tuple[float, float]:
    """The percentiles of the MRR of resampled facts; a fact is a list of reciprocal ranks."""
    generator = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        drawn = [
            value
            for fact in generator.integers(0, len(reciprocals), len(reciprocals))
            for value in reciprocals[fact]
        ]
        means.append(sum(drawn) / len(drawn))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


class Table(ScoringModel):
    """Scores of few distinct values, so that many are level."""

    def __init__(self, n_relations: int, n_entities: int, values: int = 4, seed: int = 0) -> None:
        super().__init__(ModelSizes(n_entities, n_relations, (1, 2, 3, 4, 5)))
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer(
            "table", torch.randint(values, (11, n_entities), generator=generator).float()
        )
        self.change: Callable[[Tensor], Tensor] = lambda scores: scores
        self.shapes_asked: list[tuple[int, ...]] = []  # the shape of every answer given

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        row = relation + 2 * position
        for given in range(entities.shape[1]):
            row = row + (0 if given == position else entities[:, given] * (given + 1))
        table = self.get_buffer("table")
        scores = self.change((table if candidates is None else table[:, candidates])[row % 11])
        self.shapes_asked.append(tuple(scores.shape))
        return scores


def blocks(facts: Sequence[Fact]) -> dict[int, Facts]:
    """Plain facts as blocks."""
    tables = {
        arity: np.array([f for f in facts if len(f) == arity + 1])
        for arity in {len(f) - 1 for f in facts}
    }
    return {arity: Facts(table[:, 0], table[:, 1:]) for arity, table in tables.items()}


def plain(facts: Facts) -> list[Fact]:
    """A block as plain facts."""
    return [tuple(row) for row in facts.rows().tolist()]
