r"""Memory: co-occurrence with the given entities in training, added to the scores of a model.

.. math::
    f(c) = T \phi(c) + \sum_s w_s P_s(c) + v_s \log\frac{P_s(c) + \varepsilon}{\varepsilon}

A source :math:`s` is one of these:

- one or two given entities at their positions: :math:`P_s(c)` is the share of ``c`` at the open
  position, among the facts of the relation that have these entities there;
- ``beside``: the share of ``c`` among all entities in the facts of a given entity, in any relation
  and at any position, summed over the given entities;
- ``beside two``: the same with two given entities.

Shares below a hundredth count as 0, so the sums are sparse: an entity of many facts says little
about any. The weights are fitted on validation (:mod:`~getd.memory.fit`).
"""

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from getd.arrays import Ids
from getd.errors import ConfigError
from getd.facts.facts import Blocks
from getd.models.aliases import Positions
from getd.models.counts import Counts

EPSILON = 1e-3  # ε
MIN_SHARE = 0.01  # a smaller share counts as 0, so a key has a hundred candidates at most
MAX_KEY = 2**63 - 1
CO_OCCURRENCE = ("beside", "beside two")  # the sources that know no relation and no position


class Features(NamedTuple):
    """What a memory knows about the candidates of questions; all others have no features.

    Row ``fact * p + index`` is the question of a fact that asks for one of ``p`` positions.
    """

    rows: Tensor  # (t,): ascending
    candidates: Tensor  # (t,): ascending within a question
    values: Tensor  # (t, 2 s): the share and its logarithm, of each source in turn


class Lookups(NamedTuple):
    """The tables in which questions are looked up, and what makes their keys: ``(l, 1)`` each."""

    start: Tensor  # where the keys of the table begin
    first: Tensor  # the position of a given entity
    second: Tensor  # of another; the same: there is only one
    in_relation: Tensor  # whether the table counts for each relation apart
    position: Tensor  # the open one, by its index among those that are asked for
    source: Tensor  # the number of the source


class Memory(nn.Module):
    """Counts of candidates next to one or two given entities; made by :meth:`from_facts`.

    All tables are one, in which each has a range of keys.
    """

    counts: Counts

    def __init__(self, n_entities: int, n_relations: int) -> None:
        super().__init__()
        self.n_entities = n_entities
        self.n_relations = n_relations  # of the facts that are counted
        self._starts: dict[str, int] = {}  # by name: "arity-position-source", or co-occurrence
        self._kept_lookups: dict[tuple[int, tuple[int, ...], torch.device], Lookups] = {}

    @classmethod
    def from_facts(cls, blocks: Blocks, n_entities: int) -> Self:
        """Count the facts."""
        counted = {arity: facts for arity, facts in blocks.items() if len(facts)}
        n_relations = 1 + max((int(facts.relation.max()) for facts in counted.values()), default=-1)
        memory = cls(n_entities, n_relations)
        memory._number_tables(counted)

        columns: dict[int, list[tuple[Ids, Ids]]] = {}  # keys and values, by start of a table
        for arity, facts in counted.items():
            for position in range(arity):
                lookups = memory._lookups(arity, (position,), torch.device("cpu"))
                keys = memory._keys(*facts.to_tensors(), lookups).numpy()
                values = facts.entities[:, position]
                for start, row in zip(lookups.start.flatten().tolist(), keys, strict=True):
                    columns.setdefault(start, []).append((row, values))

        tables = []
        for start in sorted(columns):
            all_keys, all_values = map(np.concatenate, zip(*columns.pop(start), strict=True))
            tables.append(Counts(all_keys, all_values, n_entities, share=True, least=MIN_SHARE))
        memory.counts = Counts.join(tables)
        return memory

    def _number_tables(self, arities: Iterable[int]) -> None:
        """Give each table a range of keys."""
        start = 0
        for source, size in zip(CO_OCCURRENCE, (self.n_entities, self.n_entities**2), strict=True):
            self._starts[source] = start
            start += size
        for arity in arities:
            for position in range(arity):
                for given in _given(arity, position):
                    self._starts[f"{arity}-{position}-{_name(given)}"] = start
                    start += self.n_relations * self.n_entities ** len(given)
        if start > MAX_KEY:
            raise ConfigError(
                f"a memory of {self.n_entities:,} entities and {self.n_relations:,} relations "
                "is too large: there are not enough keys"
            )

    def sources(self, arity: int, position: int) -> list[str]:
        """Name the sources for questions with this position open."""
        names = [_name(given) for given in _given(arity, position)]
        return [*names, *CO_OCCURRENCE[: min(arity - 1, 2)]]

    def features(self, relation: Tensor, entities: Tensor, positions: Positions) -> Features:
        """Look up the candidates that any source knows, for questions that open each position."""
        b, arity = entities.shape
        n_sources = len(self.sources(arity, 0))
        lookups = self._lookups(arity, tuple(positions), relation.device)
        keys = self._keys(relation, entities, lookups)
        key_numbers, candidates, share = self.counts.find(keys.flatten())
        lookup = key_numbers // max(b, 1)
        rows = key_numbers % max(b, 1) * len(positions) + lookups.position[lookup, 0]

        # Several lookups may know a candidate by the same source: their features are added.
        distinct, index = torch.unique(rows * self.n_entities + candidates, return_inverse=True)
        pairs = torch.stack([share, torch.log((share + EPSILON) / EPSILON)], dim=1)
        sums = pairs.new_zeros(len(distinct) * n_sources, 2)
        sums.index_add_(0, index * n_sources + lookups.source[lookup, 0], pairs)

        rows = distinct // self.n_entities
        candidates = distinct % self.n_entities
        return Features(rows, candidates, sums.view(len(distinct), 2 * n_sources))

    def _lookups(self, arity: int, positions: tuple[int, ...], device: torch.device) -> Lookups:
        """Return two lookups for each choice of given entities: in the relation, and in any."""
        key = (arity, positions, device)
        if key in self._kept_lookups:
            return self._kept_lookups[key]

        rows = []
        for index, position in enumerate(positions):
            n_in_relation = len(_given(arity, position))
            for source, given in enumerate(_given(arity, position)):
                start = self._starts.get(f"{arity}-{position}-{_name(given)}")
                ends = (given[0], given[-1])
                if start is not None:
                    rows.append((start, *ends, 1, index, source))
                co_occurrence = len(given) - 1
                start = self._starts[CO_OCCURRENCE[co_occurrence]]
                rows.append((start, *ends, 0, index, n_in_relation + co_occurrence))
        table = torch.tensor(rows, dtype=torch.int64, device=device).view(-1, 6, 1)
        self._kept_lookups[key] = Lookups(*table.unbind(1))
        return self._kept_lookups[key]

    def _keys(self, relation: Tensor, entities: Tensor, lookups: Lookups) -> Tensor:
        """Combine the relation and the given entities of each question into one number, (l, b)."""
        first = entities.T[lookups.first[:, 0]]
        second = entities.T[lookups.second[:, 0]]
        in_relation = lookups.in_relation.bool()
        is_pair = lookups.first != lookups.second

        # In any relation, the entities of a key are in the order of their ids.
        low = torch.where(in_relation, first, torch.minimum(first, second))
        high = torch.where(in_relation, second, torch.maximum(first, second))
        keys = lookups.in_relation * relation * self.n_entities + low
        keys = torch.where(is_pair, keys * self.n_entities + high, keys) + lookups.start
        is_counted = ~in_relation | (relation < self.n_relations)
        return torch.where(is_counted, keys, -1)


def _given(arity: int, position: int) -> list[tuple[int, ...]]:
    """Return every choice of one or two of the given positions."""
    others = [j for j in range(arity) if j != position]
    return [*combinations(others, 1), *combinations(others, 2)]


def _name(given: tuple[int, ...]) -> str:
    """Name given positions: ``"0"``, ``"0+2"``."""
    return "+".join(map(str, given))
