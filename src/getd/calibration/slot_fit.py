"""How well an entity fits a place, by what else it does.

A *role* here is a relation and a position in it. An entity fits a role as the share, among the entities that have
another role of its, of those that have this one too; its best other role counts. With another fact in the same role it
fits wholly; of an entity without other facts nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from getd.arrays import Floats, Ids
from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase

NEUTRAL = 0.1  # where nothing is known
JOINED = 2**22  # pairs of roles of one entity that are held at a time


class SlotFit:
    """The roles of all entities in some facts; :meth:`of` says how well others, or these themselves, fit in."""

    def __init__(self, kb: KnowledgeBase, splits: Iterable[Blocks] | None = None) -> None:
        blocks = [
            facts
            for split in (kb.splits.values() if splits is None else splits)
            for facts in split.values()
        ]
        self._first = np.cumsum([0, *(signature.arity for signature in kb.signatures)])
        self._n = int(self._first[-1])
        places = [self._places(facts).reshape(-1) for facts in blocks] or [
            np.zeros(0, dtype=np.int64)
        ]
        self._pairs, self._counts = np.unique(np.concatenate(places), return_counts=True)
        self._entity, self._role = np.divmod(self._pairs, self._n)
        self._holders = np.bincount(self._role, minlength=self._n)
        self._starts = np.searchsorted(self._entity, np.arange(kb.n_entities + 1))
        self._keys, self._together = _sums(
            self._role[first] * self._n + self._role[second]
            for first, second in _joined(self._entity)
        )

    def of(self, facts: Facts, own: bool | npt.NDArray[np.bool_]) -> Floats:
        """How well the entities of facts fit their places, ``(n, arity)``, between 0 and 1.

        ``own`` says whether a fact is among those that were counted: then it does not speak for itself.
        """
        places = self._places(facts)
        is_own = np.broadcast_to(np.asarray(own, dtype=bool).reshape(-1, 1), places.shape)
        asked, number = np.unique(
            np.stack([places[..., None], is_own[..., None]], -1).reshape(-1, 2),
            axis=0,
            return_inverse=True,
        )
        fit = self._fit(asked[:, 0], asked[:, 1])
        found: Floats = fit[number.reshape(-1)].reshape(places.shape)
        return found

    def _fit(self, places: Ids, own: Ids) -> Floats:
        entity, role = np.divmod(places, self._n)
        place = np.minimum(np.searchsorted(self._pairs, places), max(len(self._pairs) - 1, 0))
        count = (
            np.where(self._pairs[place] == places, self._counts[place], 0)
            if len(self._pairs)
            else 0 * places
        )
        fit = np.where(count - own > 0, 1.0, 0.0)
        asked = np.flatnonzero(count - own <= 0)
        sizes = self._starts[entity[asked] + 1] - self._starts[entity[asked]]
        alone = np.ones(len(asked), dtype=bool)
        for part in _parts(sizes):
            some, size = asked[part], sizes[part]
            row = np.repeat(np.arange(len(some)), size)
            other = (
                np.repeat(self._starts[entity[some]], size)
                + np.arange(size.sum())
                - np.repeat(np.cumsum(size) - size, size)
            )
            differs = self._role[other] != role[some][row]
            row, other = row[differs], other[differs]
            without = own[some][row]  # the entity itself does not count among those that have both
            share = (self._both(role[some][row], self._role[other]) - without) / np.maximum(
                self._holders[self._role[other]] - without, 1
            )
            np.maximum.at(fit, some[row], share)
            alone[part.start + np.unique(row)] = False
        fit[asked[alone]] = NEUTRAL
        return np.clip(fit, 0.0, 1.0)

    def _both(self, first: Ids, second: Ids) -> Ids:
        """How many entities have both of two roles."""
        keys = first * self._n + second
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        return np.where(self._keys[place] == keys, self._together[place], 0)

    def _places(self, facts: Facts) -> Ids:
        """The entity and the role at each position of each fact, as one number."""
        found: Ids = (
            facts.entities * self._n + self._first[facts.relation][:, None] + np.arange(facts.arity)
        )
        return found


def _parts(sizes: Ids) -> Iterator[slice]:
    """Slices whose sizes do not add up to much."""
    cuts = [0, *(np.flatnonzero(np.diff(np.cumsum(sizes) // JOINED)) + 1).tolist(), len(sizes)]
    yield from (slice(start, stop) for start, stop in pairwise(cuts) if stop > start)


def _joined(groups: Ids) -> Iterator[tuple[Ids, Ids]]:
    """All pairs of rows of one group, some groups at a time; ``groups`` ascend."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff([*starts, len(groups)])
    for part in _parts(sizes**2):
        size = np.repeat(sizes[part], sizes[part])
        first = np.arange(starts[part][0], starts[part][-1] + sizes[part][-1])
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        yield np.repeat(first, size), np.repeat(np.repeat(starts[part], sizes[part]), size) + within


def _sums(parts: Iterable[Ids]) -> tuple[Ids, Ids]:
    """Distinct keys, ascending, and how often each stands."""
    keys, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for part in parts:
        more, number = np.unique(part, return_counts=True)
        keys, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, number]), len(keys)).astype(np.int64)
    return keys, counts
