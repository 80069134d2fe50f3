r"""What stood beside the given entities in the training facts, added to the scores of a model that is trained.

.. math::
    f(c) = \phi(c) + \sum_i g_1\bigl(P(c \mid r, e_i)\bigr) + \sum_{i<k} g_2\bigl(P(c \mid r, e_i, e_k)\bigr),
    \qquad g(P) = w P + v \log\frac{P + \varepsilon}{\varepsilon}

:math:`P(c \mid r, e_i)` is the share of ``c`` at the open position among the facts of relation ``r`` that have
:math:`e_i` where the question has it; the second sum is over two given entities at once. A candidate that was never
seen beside any of them gets nothing, so the sums are sparse. The weights are chosen on validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import torch
from torch import Tensor, nn

from getd.facts.facts import Facts
from getd.models.base import ScoringModel
from getd.models.frequency import Counts, spread
from getd.settings import Settings

FLOOR = 1e-3  # ε


class MemoryWeights(Settings):
    """How much the memory counts at a position."""

    share: float = 0.0  # of what stood beside one given entity
    log_share: float = 0.0
    pair_share: float = 0.0  # of what stood beside two
    pair_log_share: float = 0.0

    def as_tensor(self) -> Tensor:
        """In the order of :meth:`Memory.features`."""
        return torch.tensor([self.share, self.log_share, self.pair_share, self.pair_log_share], dtype=torch.float64)


class Memory(nn.Module):
    """How often candidates stood beside one or two given entities; made by :meth:`from_facts`."""

    def __init__(self, n_entities: int) -> None:
        super().__init__()
        self.n_entities = n_entities
        self.counts = nn.ModuleDict()  # "arity-position-given", "arity-position-given-given"

    @classmethod
    def from_facts(cls, blocks: Mapping[int, Facts], n_entities: int) -> Memory:
        """Count the facts."""
        memory = cls(n_entities)
        for arity, facts in blocks.items():
            for position in range(arity if len(facts) else 0):
                relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
                for given in _given(arity, position):
                    keys = memory._keys(relation, entities, given).numpy()
                    counted = Counts(keys, facts.entities[:, position], n_entities, share=True)
                    memory.counts[_name(arity, position, given)] = counted
        return memory

    def features(self, relation: Tensor, entities: Tensor, position: int) -> tuple[Tensor, Tensor, Tensor]:
        """What is remembered of the candidates of questions: rows, candidates, and four numbers for each, ``(t, 4)``.

        They are the sums over single given entities of P and of its logarithm, and the same over pairs; a candidate
        that has none of them is left out. Rows ascend, and so do the candidates of each.
        """
        arity = entities.shape[1]
        places, values = [torch.zeros(0, dtype=torch.long, device=relation.device)], [relation.new_zeros(0, 4).double()]
        for given in _given(arity, position):
            name = _name(arity, position, given)
            if name in self.counts:
                counted = self.counts[name]
                assert isinstance(counted, Counts)
                rows, candidates, share = counted.find(self._keys(relation, entities, given))
                places.append(rows * self.n_entities + candidates)
                values.append(_columns(share, pairs=len(given) == 2))
        distinct, number = torch.unique(torch.cat(places), return_inverse=True)
        sums = torch.zeros(len(distinct), 4, dtype=torch.float64, device=relation.device)
        sums.index_add_(0, number, torch.cat(values))
        return distinct // self.n_entities, distinct % self.n_entities, sums

    def _keys(self, relation: Tensor, entities: Tensor, given: tuple[int, ...]) -> Tensor:
        keys = relation
        for column in given:
            keys = keys * self.n_entities + entities[:, column]
        return keys


class Remembering(ScoringModel):
    """A trained model with a memory beside it; weights are by arity and position, ``"4-0"``."""

    def __init__(self, model: ScoringModel, memory: Memory, weights: Mapping[str, MemoryWeights]) -> None:
        super().__init__()
        self.n_entities, self.n_relations, self.arities = model.n_entities, model.n_relations, model.arities
        self.model, self.memory, self.weights = model, memory, dict(weights)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        scores = self.model.score_candidates(relation, entities, position, candidates)
        weights = self.weights.get(f"{entities.shape[1]}-{position}")
        if weights is None:
            return scores
        rows, found, features = self.memory.features(relation, entities, position)
        added = (features @ weights.as_tensor().to(features)).to(scores)
        if candidates is None:
            return scores.index_put((rows, found), added, accumulate=True)
        if candidates.dim() == 1:
            ordered, order = candidates.sort()
            first, last = torch.searchsorted(ordered, found), torch.searchsorted(ordered, found, right=True)
            columns, of_found = spread(first, last - first)  # a candidate may be asked for twice, or not at all
            return scores.index_put((rows[of_found], order[columns]), added[of_found], accumulate=True)
        asked = torch.arange(len(relation), device=relation.device)[:, None] * self.n_entities + candidates
        known = rows * self.n_entities + found
        place = torch.searchsorted(known, asked).clamp(max=max(len(known) - 1, 0))
        if not len(known):
            return scores
        return scores + torch.where(known[place] == asked, added[place], 0)

    def score_relations(self, entities: Tensor) -> Tensor:
        return self.model.score_relations(entities)


def _given(arity: int, position: int) -> list[tuple[int, ...]]:
    """One and two of the given positions."""
    others = [j for j in range(arity) if j != position]
    return [*combinations(others, 1), *combinations(others, 2)]


def _name(arity: int, position: int, given: tuple[int, ...]) -> str:
    return "-".join(map(str, (arity, position, *given)))


def _columns(share: Tensor, pairs: bool) -> Tensor:
    both = torch.stack([share, torch.log((share + FLOOR) / FLOOR)], dim=1)
    nothing = torch.zeros_like(both)
    return torch.cat([nothing, both] if pairs else [both, nothing], dim=1)
