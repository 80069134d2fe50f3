"""Counts of values by key, as CSR arrays: what both baselines and the memory are made of."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, ModuleDict

from getd.arrays import Ids
from getd.models.aliases import Candidates


class Counts(Module):
    """How often each value occurs with each key: CSR arrays over the distinct keys, ascending.

    With ``share`` the weight of a value is not its count but its share in the count of the key.
    Values with a share of less than ``least`` are left out, and all but the ``most`` frequent ones
    of a key.
    """

    keys: Tensor  # (k,)
    offsets: Tensor  # (k + 1,): the values of key i are values[offsets[i]:offsets[i + 1]]
    values: Tensor
    weights: Tensor  # float64
    totals: Tensor  # (k,): how many values each key has, those that are left out included

    def __init__(
        self,
        keys: Ids,
        values: Ids,
        n_values: int,
        *,
        share: bool = False,
        least: float = 0.0,
        most: int | None = None,
    ) -> None:
        super().__init__()
        distinct, numbers, totals = np.unique(keys, return_inverse=True, return_counts=True)
        pairs = numbers.reshape(-1) * n_values + values
        distinct_pairs, counts = np.unique(pairs, return_counts=True)
        owners, values = np.divmod(distinct_pairs, n_values)
        shares = counts / totals[owners]
        weights = shares if share else counts

        kept = shares >= least
        if most is not None:
            kept &= _rank_in_group(owners, counts) < most
        offsets = owners[kept].searchsorted(np.arange(len(distinct) + 1))
        self.register_buffer("keys", torch.tensor(distinct))
        self.register_buffer("offsets", torch.tensor(offsets))
        self.register_buffer("values", torch.tensor(values[kept]))
        self.register_buffer("weights", torch.tensor(weights[kept], dtype=torch.float64))
        self.register_buffer("totals", torch.tensor(totals))

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what occurs with these keys: rows of ``keys``, ascending, values and weights."""
        _, starts, sizes = self._spans(keys)
        picks, rows = expand_spans(starts, sizes)
        return rows, self.values[picks], self.weights[picks]

    def total(self, keys: Tensor) -> Tensor:
        """Return how many values each key has."""
        index, _, _ = self._spans(keys)
        return torch.where(self.keys[index] == keys, self.totals[index], 0)

    def _spans(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return where each key is, where its values start, and their number."""
        index = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        starts = self.offsets[index]
        sizes = torch.where(self.keys[index] == keys, self.offsets[index + 1] - starts, 0)
        return index, starts, sizes


def _rank_in_group(owners: Ids, counts: Ids) -> Ids:
    """Rank pairs among those of their owner, the highest count first; owners ascend.

    >>> _rank_in_group(np.array([0, 0, 0, 1]), np.array([1, 5, 1, 2])).tolist()
    [1, 0, 2, 0]
    """
    order = np.lexsort((-counts, owners))  # stable: equal counts keep their order
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(owners)) - np.searchsorted(owners, owners[order])
    return ranks


class CountsByName(ModuleDict):
    """Several :class:`Counts` by name; one that is missing counted nothing."""

    def add_to(self, scores: Tensor, name: str, keys: Tensor, candidates: Candidates) -> None:
        """Add to each row of ``scores`` ``(b, m)`` the weights of its key; none of an unknown key.

        Column ``j`` stands for value ``j``, or for ``candidates[j]``: distinct and ascending.
        """
        if name not in self:
            return
        counts = self[name]
        assert isinstance(counts, Counts)
        rows, columns, weights = counts.find(keys)
        if candidates is not None:
            kept = torch.isin(columns, candidates)
            rows = rows[kept]
            weights = weights[kept]
            columns = torch.searchsorted(candidates, columns[kept])
        scores.view(-1).index_add_(0, rows * scores.shape[1] + columns, weights)


def expand_spans(starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return all numbers of spans, one span after the other, and the span that each belongs to.

    >>> expand_spans(torch.tensor([5, 0, 2]), torch.tensor([2, 0, 1]))
    (tensor([5, 6, 2]), tensor([0, 0, 2]))
    """
    owner = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    first = starts - sizes.cumsum(0) + sizes
    return torch.arange(len(owner), device=sizes.device) + first[owner], owner


def score_distinct(score: Callable[[Candidates], Tensor], candidates: Candidates) -> Tensor:
    """Score candidates: ``score`` gets each of them once, ascending, or None for all."""
    if candidates is None:
        return score(None)
    distinct, order = candidates.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return score(distinct)[:, order]
