r"""What stood beside the given entities in the training facts, added to the scores of a model that is trained.

.. math::
    f(c) = T \phi(c) + \sum_s w_s P_s(c) + v_s \log\frac{P_s(c) + \varepsilon}{\varepsilon}

A source :math:`s` is one given entity at its position or two, and :math:`P_s(c)` the share of ``c`` at the open
position among the facts of the relation that have them there; or ``beside``: the share of ``c`` among all entities
that stand in a fact with a given entity, whatever the relation and the positions, summed over the given entities; or
``beside two``: the same with two given entities. Shares below a hundredth count as 0, so the sums are sparse: an
entity that stands in many facts says little about any. The weights are fitted on validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import torch
from pydantic import Field, FiniteFloat
from torch import Tensor, nn

from getd.arrays import Ids
from getd.config import Settings
from getd.facts.facts import Facts
from getd.models.base import ScoringModel
from getd.models.frequency import Counts, spread

FLOOR = 1e-3  # ε
LEAST = 0.01  # a smaller share counts nothing: so a key has a hundred candidates at most
BESIDE = ("beside", "beside two")


class SourceWeights(Settings):
    """How much a source counts."""

    share: FiniteFloat = 0.0
    log_share: FiniteFloat = 0.0


class MemoryWeights(Settings):
    """How much the model and the sources of the memory count at a position."""

    scale: FiniteFloat = 1.0  # of the model
    sources: dict[str, SourceWeights] = Field(
        default_factory=dict
    )  # those that are not named count nothing

    def as_tensor(self, sources: list[str]) -> Tensor:
        """In the order of :meth:`Memory.features`."""
        chosen = [self.sources.get(source, SourceWeights()) for source in sources]
        return torch.tensor(
            [[each.share, each.log_share] for each in chosen], dtype=torch.float64
        ).flatten()


class Memory(nn.Module):
    """How often candidates stood beside one or two given entities; made by :meth:`from_facts`."""

    def __init__(self, n_entities: int) -> None:
        super().__init__()
        self.n_entities = n_entities
        self.counts = nn.ModuleDict()  # "arity-position-source", and those of BESIDE

    @classmethod
    def from_facts(cls, blocks: Mapping[int, Facts], n_entities: int) -> Memory:
        """Count the facts."""
        memory = cls(n_entities)
        for arity, facts in blocks.items():
            for position in range(arity if len(facts) else 0):
                relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
                for given in _given(arity, position):
                    keys = memory._keys(relation, entities, given).numpy()
                    counted = Counts(
                        keys, facts.entities[:, position], n_entities, share=True, least=LEAST
                    )
                    memory.counts[f"{arity}-{position}-{_name(given)}"] = counted
        for source, number in zip(BESIDE, (1, 2), strict=True):
            keys, values = _together(blocks, n_entities, number)
            if len(keys):
                memory.counts[source] = Counts(keys, values, n_entities, share=True, least=LEAST)
        return memory

    def sources(self, arity: int, position: int) -> list[str]:
        """What there is for questions with that position open."""
        return [*map(_name, _given(arity, position)), *BESIDE[: min(arity - 1, 2)]]

    def features(
        self, relation: Tensor, entities: Tensor, position: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What is remembered of the candidates of questions: rows, candidates, and numbers for each, ``(t, 2 s)``.

        They are P and its logarithm of each source in turn; a candidate that has none of them is left out. Rows
        ascend, and so do the candidates of each.
        """
        arity = entities.shape[1]
        sources = self.sources(arity, position)
        places, columns, values = (
            [relation.new_zeros(0)],
            [relation.new_zeros(0)],
            [relation.new_zeros(0).double()],
        )
        for name, source, keys in self._asked(relation, entities, position):
            if name in self.counts:
                counted = self.counts[name]
                assert isinstance(counted, Counts)
                rows, candidates, share = counted.find(keys)
                places.append(rows * self.n_entities + candidates)
                columns.append(torch.full_like(rows, sources.index(source)))
                values.append(share)
        place, column, share = torch.cat(places), torch.cat(columns), torch.cat(values)
        distinct, number = torch.unique(place, return_inverse=True)
        sums = torch.zeros(
            len(distinct) * len(sources), 2, dtype=torch.float64, device=relation.device
        )
        both = torch.stack([share, torch.log((share + FLOOR) / FLOOR)], dim=1)
        sums.index_add_(0, number * len(sources) + column, both)
        return (
            distinct // self.n_entities,
            distinct % self.n_entities,
            sums.view(len(distinct), 2 * len(sources)),
        )

    def _asked(
        self, relation: Tensor, entities: Tensor, position: int
    ) -> Iterator[tuple[str, str, Tensor]]:
        """The counts to ask, the source they are of, and the keys to ask for."""
        arity = entities.shape[1]
        for given in _given(arity, position):
            yield (
                f"{arity}-{position}-{_name(given)}",
                _name(given),
                self._keys(relation, entities, given),
            )
            source = BESIDE[len(given) - 1]
            ordered = entities[:, given].sort(dim=1).values
            yield (
                source,
                source,
                self._keys(torch.zeros_like(relation), ordered, tuple(range(len(given)))),
            )

    def _keys(self, relation: Tensor, entities: Tensor, given: tuple[int, ...]) -> Tensor:
        keys = relation
        for column in given:
            keys = keys * self.n_entities + entities[:, column]
        return keys


class WithMemory(ScoringModel):
    """A trained model with a memory beside it; weights are by arity and position, ``"4-0"``."""

    def __init__(
        self, model: ScoringModel, memory: Memory, weights: Mapping[str, MemoryWeights]
    ) -> None:
        super().__init__(model.sizes)
        self.model, self.memory, self.weights = model, memory, dict(weights)

    @property
    def bare(self) -> ScoringModel:
        return self.model

    @property
    def memory_weights(self) -> int:
        """How many numbers were fitted: at each position where the memory counts, a scale and two for each source."""
        return sum(
            1 + 2 * len(weights.sources) for weights in self.weights.values() if weights.sources
        )

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        scores = self.model.score_candidates(relation, entities, position, candidates)
        arity = entities.shape[1]
        weights = self.weights.get(f"{arity}-{position}", MemoryWeights())
        scores = scores * weights.scale
        if not weights.sources:
            return scores
        rows, found, features = self.memory.features(relation, entities, position)
        added = (
            features @ weights.as_tensor(self.memory.sources(arity, position)).to(features)
        ).to(scores)
        if candidates is None:
            return scores.index_put((rows, found), added, accumulate=True)
        if candidates.dim() == 1:
            ordered, order = candidates.sort()
            first, last = (
                torch.searchsorted(ordered, found),
                torch.searchsorted(ordered, found, right=True),
            )
            columns, of_found = spread(
                first, last - first
            )  # a candidate may be asked for twice, or not at all
            return scores.index_put(
                (rows[of_found], order[columns]), added[of_found], accumulate=True
            )
        asked = (
            torch.arange(len(relation), device=relation.device)[:, None] * self.n_entities
            + candidates
        )
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


def _name(given: tuple[int, ...]) -> str:
    """The given positions: ``"0"``, ``"0+2"``."""
    return "+".join(map(str, given))


def _together(blocks: Mapping[int, Facts], n_entities: int, number: int) -> tuple[Ids, Ids]:
    """So many entities of a fact, in the order of their ids, as a key, and each of the others; over all facts."""
    keys, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for arity, facts in blocks.items():
        for given in combinations(range(arity), number):
            key = np.zeros(len(facts), dtype=np.int64)
            for column in np.sort(facts.entities[:, given], axis=1).T:
                key = key * n_entities + column
            for other in set(range(arity)) - set(given):
                keys.append(key)
                values.append(facts.entities[:, other])
    return np.concatenate(keys), np.concatenate(values)
