r"""The first baseline: answers by how often they fill the open position.

.. math:: f(c) = \#\{\text{facts of relation } r \text{ with } c \text{ at the open position}\}
"""

from typing import Self

import torch
from torch import Tensor

from getd.facts.facts import Blocks
from getd.models.aliases import Candidates
from getd.models.base import ModelSizes, ScoringModel
from getd.models.counts import Counts, CountsByName, score_distinct


class Frequency(ScoringModel):
    """Scores a candidate by how often it fills that position of that relation; nothing is learnt.

    A relation, arity or position that the facts do not have scores 0 for all. Made by
    :meth:`from_facts`.
    """

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__(sizes)
        self.counts = CountsByName()  # "arity-position": relation -> entities

    @classmethod
    def from_facts(cls, blocks: Blocks, n_relations: int, n_entities: int) -> Self:
        """Count the facts.

        >>> import numpy as np
        >>> from getd.facts.facts import Facts
        >>> facts = Facts(np.array([0, 0, 0]), np.array([[1, 2], [1, 3], [0, 3]]))
        >>> model = Frequency.from_facts({2: facts}, n_relations=1, n_entities=4)
        >>> model.score_candidates(torch.tensor([0]), torch.tensor([[2, 0]]), position=1).tolist()
        [[0.0, 0.0, 1.0, 2.0]]
        """
        model = cls(ModelSizes(n_entities, n_relations, sorted(blocks)))
        for arity, facts in blocks.items():
            for position in range(arity if len(facts) else 0):
                counts = Counts(facts.relation, facts.entities[:, position], n_entities)
                model.counts[f"{arity}-{position}"] = counts
        return model

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        distinct, row = relation.unique(return_inverse=True)  # type: ignore[no-untyped-call]

        def score(columns: Candidates) -> Tensor:
            width = self.n_entities if columns is None else len(columns)
            scores = relation.new_zeros(len(distinct), width, dtype=torch.float64)
            self.counts.add_to(scores, f"{entities.shape[1]}-{position}", distinct, columns)
            return scores

        return score_distinct(score, candidates)[row]
