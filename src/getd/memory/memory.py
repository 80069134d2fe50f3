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

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from getd.arrays import Ids
from getd.facts.facts import Blocks
from getd.models.counts import Counts

EPSILON = 1e-3  # ε
MIN_SHARE = 0.01  # a smaller share counts as 0, so a key has a hundred candidates at most
CO_OCCURRENCE = ("beside", "beside two")  # the sources that know no relation and no position


class Features(NamedTuple):
    """What a memory knows about the candidates of questions; all others have no features."""

    rows: Tensor  # (t,): the questions, ascending
    candidates: Tensor  # (t,): ascending within a question
    values: Tensor  # (t, 2 s): the share and its logarithm, of each source in turn


class Memory(nn.Module):
    """Counts of candidates next to one or two given entities; made by :meth:`from_facts`."""

    def __init__(self, n_entities: int) -> None:
        super().__init__()
        self.n_entities = n_entities
        self.counts = nn.ModuleDict()  # "arity-position-source", and those of CO_OCCURRENCE

    @classmethod
    def from_facts(cls, blocks: Blocks, n_entities: int) -> Self:
        memory = cls(n_entities)
        counted: dict[str, list[tuple[Ids, Ids]]] = {}  # keys and values, by name of counts
        for arity, facts in blocks.items():
            relation, entities = facts.to_tensors()
            for position in range(arity if len(facts) else 0):
                column = facts.entities[:, position]
                for name, _, lookup in memory._lookups(relation, entities, position):
                    counted.setdefault(name, []).append((lookup.numpy(), column))

        for name, parts in counted.items():
            keys, values = map(np.concatenate, zip(*parts, strict=True))
            memory.counts[name] = Counts(keys, values, n_entities, share=True, least=MIN_SHARE)
        return memory

    def sources(self, arity: int, position: int) -> list[str]:
        """Name the sources for questions with this position open."""
        names = [_name(given) for given in _given(arity, position)]
        return [*names, *CO_OCCURRENCE[: min(arity - 1, 2)]]

    def features(self, relation: Tensor, entities: Tensor, position: int) -> Features:
        """Look up the candidates that any source knows, for questions with this position open."""
        sources = self.sources(entities.shape[1], position)
        n_sources = len(sources)
        empty = relation[:0]
        cells = [empty]  # a question and a candidate, as one number
        columns = [empty]
        shares = [empty.double()]
        for name, source, keys in self._lookups(relation, entities, position):
            if name in self.counts:
                counts = self.counts[name]
                assert isinstance(counts, Counts)
                rows, candidates, share = counts.find(keys)
                cells.append(rows * self.n_entities + candidates)
                columns.append(torch.full_like(rows, sources.index(source)))
                shares.append(share)

        # Several lookups may know a candidate by the same source: their features are added.
        distinct, index = torch.unique(torch.cat(cells), return_inverse=True)
        share = torch.cat(shares)
        pairs = torch.stack([share, torch.log((share + EPSILON) / EPSILON)], dim=1)
        sums = pairs.new_zeros(len(distinct) * n_sources, 2)
        sums.index_add_(0, index * n_sources + torch.cat(columns), pairs)

        rows = distinct // self.n_entities
        candidates = distinct % self.n_entities
        return Features(rows, candidates, sums.view(len(distinct), 2 * n_sources))

    def _lookups(
        self, relation: Tensor, entities: Tensor, position: int
    ) -> Iterator[tuple[str, str, Tensor]]:
        """Yield the name of counts, the source they belong to, and the keys to look up."""
        arity = entities.shape[1]
        for given in _given(arity, position):
            name = _name(given)
            chosen = entities[:, given]
            yield f"{arity}-{position}-{name}", name, self._keys(relation, chosen)

            # The entities of a key are in the order of their ids.
            source = CO_OCCURRENCE[len(given) - 1]
            ordered = chosen.sort(dim=1).values
            yield source, source, self._keys(torch.zeros_like(relation), ordered)

    def _keys(self, relation: Tensor, given: Tensor) -> Tensor:
        """Combine a relation and the given entities of each question into one number."""
        keys = relation
        for column in given.unbind(1):
            keys = keys * self.n_entities + column
        return keys


def _given(arity: int, position: int) -> list[tuple[int, ...]]:
    """Return every choice of one or two of the given positions."""
    others = [j for j in range(arity) if j != position]
    return [*combinations(others, 1), *combinations(others, 2)]


def _name(given: tuple[int, ...]) -> str:
    """Name given positions: ``"0"``, ``"0+2"``."""
    return "+".join(map(str, given))
