r"""Answers by how often they fill the open place: the first baseline, and the counting that both baselines stand on.

.. math:: f(c) = \#\{\text{facts of relation } r \text{ with } c \text{ at the open position}\}
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from getd.arrays import Ids
from getd.facts.facts import Facts
from getd.models.base import ModelSizes, ScoringModel


class Counts(nn.Module):
    """How often each value stands beside each key: CSR arrays over the distinct keys, ascending, made by sorting.

    With ``share`` the weight of a value is not its count but its share in the count of the key; values with less than
    ``least`` are left out.
    """

    keys: Tensor  # (k,)
    offsets: Tensor  # (k + 1,): the values of key i are values[offsets[i]:offsets[i + 1]]
    values: Tensor
    weights: Tensor  # float64

    def __init__(
        self, keys: Ids, values: Ids, n_values: int, *, share: bool = False, least: float = 0.0
    ) -> None:
        super().__init__()
        distinct, numbers, totals = np.unique(keys, return_inverse=True, return_counts=True)
        pairs, counts = np.unique(numbers.reshape(-1) * n_values + values, return_counts=True)
        owners, found = np.divmod(pairs, n_values)
        weights = counts / totals[owners] if share else counts
        kept = weights >= least
        owners, found, weights = owners[kept], found[kept], weights[kept]
        self.register_buffer("keys", torch.tensor(distinct))
        self.register_buffer(
            "offsets", torch.tensor(np.searchsorted(owners, np.arange(len(distinct) + 1)))
        )
        self.register_buffer("values", torch.tensor(found))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float64))

    def add_to(self, scores: Tensor, asked: Tensor, candidates: Tensor | None = None) -> None:
        """Add to each row of ``scores`` ``(b, m)`` the weights of its key; a key never counted adds nothing.

        Column ``j`` stands for value ``j``, or for ``candidates[j]`` where distinct ascending candidates are given.
        """
        rows, columns, weights = self.find(asked)
        if candidates is not None:
            wanted = torch.isin(columns, candidates)
            rows, weights = rows[wanted], weights[wanted]
            columns = torch.searchsorted(candidates, columns[wanted])
        scores.view(-1).index_add_(0, rows * scores.shape[1] + columns, weights)

    def find(self, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What stands beside each of these keys: rows of ``asked``, ascending, values and weights."""
        places = torch.searchsorted(self.keys, asked).clamp(max=len(self.keys) - 1)
        starts = self.offsets[places]
        sizes = torch.where(self.keys[places] == asked, self.offsets[places + 1] - starts, 0)
        picks, rows = spread(starts, sizes)
        return rows, self.values[picks], self.weights[picks]


class Frequency(ScoringModel):
    """Scores a candidate by how often it fills that position of that relation in the given facts; nothing is learnt.

    A relation, arity or position that the facts do not have scores 0 for all. Made by :meth:`from_facts`.
    """

    def __init__(self, sizes: ModelSizes) -> None:
        super().__init__(sizes)
        self.counts = (
            nn.ModuleDict()
        )  # "arity-position": relation -> entities; "arity": 0 -> relations

    @classmethod
    def from_facts(
        cls, blocks: Mapping[int, Facts], n_relations: int, n_entities: int
    ) -> Frequency:
        """Count the facts.

        >>> facts = Facts(np.array([0, 0, 0]), np.array([[1, 2], [1, 3], [0, 3]]))
        >>> model = Frequency.from_facts({2: facts}, n_relations=1, n_entities=4)
        >>> model.score_candidates(torch.tensor([0]), torch.tensor([[2, 0]]), position=1).tolist()
        [[0.0, 0.0, 1.0, 2.0]]
        """
        model = cls(ModelSizes(n_entities, n_relations, sorted(blocks)))
        for arity, facts in blocks.items():
            if len(facts):
                model.counts[f"{arity}"] = Counts(
                    np.zeros_like(facts.relation), facts.relation, n_relations
                )
                for position in range(arity):
                    column = Counts(facts.relation, facts.entities[:, position], n_entities)
                    model.counts[f"{arity}-{position}"] = column
        return model

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        distinct, row = relation.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        columns, order = distinct_candidates(candidates)
        scores = zeros(
            len(distinct), self.n_entities if columns is None else len(columns), relation
        )
        add_counts(self.counts, f"{entities.shape[1]}-{position}", scores, distinct, columns)
        return scores[row] if order is None else scores[:, order][row]

    def score_relations(self, entities: Tensor) -> Tensor:
        scores = zeros(1, self.n_relations, entities)
        add_counts(self.counts, f"{entities.shape[1]}", scores, entities.new_zeros(1))
        return scores.expand(len(entities), -1)


def spread(starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """All numbers of some spans, one span after the other, and which span each is of.

    >>> spread(torch.tensor([5, 0, 2]), torch.tensor([2, 0, 1]))
    (tensor([5, 6, 2]), tensor([0, 0, 2]))
    """
    owner = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    return torch.arange(len(owner), device=sizes.device) + (starts - sizes.cumsum(0) + sizes)[
        owner
    ], owner


def add_counts(
    counts: nn.ModuleDict,
    name: str,
    scores: Tensor,
    asked: Tensor,
    candidates: Tensor | None = None,
) -> None:
    """Add the weights of the counts of that name, if there are any, to ``scores``."""
    if name in counts:
        found = counts[name]
        assert isinstance(found, Counts)
        found.add_to(scores, asked, candidates)


def distinct_candidates(candidates: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Candidates once each and ascending, and where each one given has gone; nothing where none are given."""
    if candidates is None:
        return None, None
    distinct, order = candidates.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return distinct, order


def zeros(rows: int, columns: int, like: Tensor) -> Tensor:
    """Scores to add to: float64, where ``like`` is."""
    return torch.zeros(rows, columns, dtype=torch.float64, device=like.device)
