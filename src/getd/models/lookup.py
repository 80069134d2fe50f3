r"""The second baseline: answers by co-occurrence with the given entities.

.. math::
    f(c) = \sum_{j \ne p} \frac{\#(r,\; e_j \text{ at } j,\; c \text{ at } p)}
    {\#(r,\; e_j \text{ at } j)}

over the given facts, a term whose denominator is 0 being 0; where two sums are equal, the more
frequent filler of position ``p`` of relation ``r`` goes first.
"""

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor

from getd.facts.facts import Blocks
from getd.models.aliases import Candidates
from getd.models.base import ScoringModel, other_positions
from getd.models.counts import Counts, CountsByName, score_distinct
from getd.models.frequency import Frequency

GRID = 2.0**-26


class Lookup(ScoringModel):
    """Scores a candidate by the share of facts with a given entity that have it too, summed.

    Sums are rounded to multiples of ``GRID`` (1.5e-8), so that sums which are equal as fractions
    are equal as numbers whatever the order of their terms. The frequency divided by 1 + the number
    of facts, below 1, is added in units of ``GRID``, so it breaks ties and never turns two other
    sums around. In float64 every difference in frequency counts as long as an arity has fewer than
    ten million facts. Nothing is learnt. Made by :meth:`from_facts`.
    """

    def __init__(self, frequency: Frequency, n_facts: Mapping[int, int]) -> None:
        super().__init__(frequency.sizes)
        self.n_facts = dict(n_facts)  # of each arity
        self.frequency = frequency
        self.counts = CountsByName()  # "arity-position-given": (relation, entity) -> entities

    @classmethod
    def from_facts(cls, blocks: Blocks, n_relations: int, n_entities: int) -> Self:
        """Count the pairs of the facts.

        >>> import numpy as np
        >>> from getd.facts.facts import Facts
        >>> facts = Facts(np.array([0, 0, 0]), np.array([[1, 2], [1, 3], [0, 3]]))
        >>> model = Lookup.from_facts({2: facts}, n_relations=1, n_entities=4)
        >>> scores = model.score_candidates(torch.tensor([0]), torch.tensor([[1, 0]]), position=1)
        >>> scores.round(decimals=6).tolist()
        [[0.0, 0.0, 0.5, 0.5]]
        """
        frequency = Frequency.from_facts(blocks, n_relations, n_entities)
        model = cls(frequency, {arity: len(facts) for arity, facts in blocks.items()})
        for arity, facts in blocks.items():
            for given in range(arity if len(facts) else 0):
                keys = facts.relation * n_entities + facts.entities[:, given]
                for position in set(range(arity)) - {given}:
                    counts = Counts(keys, facts.entities[:, position], n_entities, share=True)
                    model.counts[f"{arity}-{position}-{given}"] = counts
        return model

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        arity = entities.shape[1]

        def score(columns: Candidates) -> Tensor:
            frequency = self.frequency.score_candidates(relation, entities, position, columns)
            sums = torch.zeros_like(frequency)
            for given in other_positions(entities, position):
                keys = relation * self.n_entities + entities[:, given]
                self.counts.add_to(sums, f"{arity}-{position}-{given}", keys, columns)
            parts = frequency / (1 + self.n_facts.get(arity, 0))
            return sums.div_(GRID).round_().add_(parts).mul_(GRID)

        return score_distinct(score, candidates)
