"""How well an entity fits a slot, judged by the other slots it fills.

A slot is a relation and one of its positions. An entity fits a slot as well as the best of its
other slots says: the share, among the entities that fill that other slot, of those that fill this
one too. An entity with another fact in the same slot fits wholly. Nothing is known about an entity
without other facts.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from getd.arrays import Bools, Floats, Ids, expand_spans, find_sorted
from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase

NEUTRAL = 0.1  # the fit of an entity about which nothing is known
MAX_PAIRS = 2**22  # pairs of slots of one entity that are held at a time


class SlotFit:
    """The slots that every entity fills in facts; :meth:`of` rates other facts, or the same."""

    def __init__(self, kb: KnowledgeBase, splits: Iterable[Blocks] | None = None) -> None:
        self._first_slot = np.cumsum([0, *(signature.arity for signature in kb.signatures)])
        self._n_slots = int(self._first_slot[-1])

        # A fill is an entity and a slot, as one number. Index -1, no such fill, has the count 0.
        fills = [np.zeros(0, dtype=np.int64)]
        for blocks in kb.splits.values() if splits is None else splits:
            fills += [self._fills(facts).ravel() for facts in blocks.values()]
        self._distinct, counts = np.unique(np.concatenate(fills), return_counts=True)
        self._counts = np.append(counts, 0)

        entity, self._slot = np.divmod(self._distinct, self._n_slots)
        self._starts = np.searchsorted(entity, np.arange(kb.n_entities + 1))
        self._holders = np.bincount(self._slot, minlength=self._n_slots)
        self._count_pairs(entity)

    def _count_pairs(self, entity: Ids) -> None:
        """Count the entities that fill both of two slots; index -1 has the count 0."""
        slot_pairs = counts = np.zeros(0, dtype=np.int64)
        for fill, other in self._slots_of(entity):
            # Every fill of an entity meets every fill of the same entity: two slots, one number.
            pairs = self._slot[fill] * self._n_slots + other
            pairs, more = np.unique(pairs, return_counts=True)
            joined = np.concatenate([slot_pairs, pairs])
            slot_pairs, index = np.unique(joined, return_inverse=True)
            both = np.bincount(index, np.concatenate([counts, more]))
            counts = both.astype(np.int64)
        self._slot_pairs = slot_pairs
        self._both = np.append(counts, 0)

    def of(self, facts: Facts, own: bool | Bools) -> Floats:
        """Rate how well the entities of facts fit their slots: ``(n, arity)``, between 0 and 1.

        ``own`` says whether a fact is among those counted: then it is no evidence for itself.
        """
        fills = self._fills(facts)
        is_own = np.asarray(own, dtype=bool).reshape(-1, 1)
        keys, inverse = np.unique(2 * fills + is_own, return_inverse=True)
        fit: Floats = self._fit(*np.divmod(keys, 2))[inverse].reshape(fills.shape)
        return fit

    def _fit(self, fills: Ids, own: Ids) -> Floats:
        entity, slot = np.divmod(fills, self._n_slots)
        is_alone = self._counts[find_sorted(self._distinct, fills)] <= own
        fit = np.where(is_alone, 0.0, 1.0)

        # The rest are judged by the other slots of their entities.
        rest = np.flatnonzero(is_alone)
        for row, other in self._slots_of(entity[rest]):
            fill = rest[row]
            differs = other != slot[fill]
            fill = fill[differs]
            other = other[differs]

            # The entity itself does not count among those that fill both slots.
            without = own[fill]
            pairs = slot[fill] * self._n_slots + other
            both = self._both[find_sorted(self._slot_pairs, pairs)]
            holders = np.maximum(self._holders[other] - without, 1)
            np.maximum.at(fit, fill, (both - without) / holders)
            is_alone[fill] = False

        fit[is_alone] = NEUTRAL
        return np.clip(fit, 0.0, 1.0)

    def _fills(self, facts: Facts) -> Ids:
        """Return the entity and the slot at each position of each fact, as one number."""
        slots = self._first_slot[facts.relation, None] + np.arange(facts.arity)
        fills: Ids = facts.entities * self._n_slots + slots
        return fills

    def _slots_of(self, entity: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Yield rows of entities with each slot that they fill, about ``MAX_PAIRS`` at a time."""
        starts = self._starts[entity]
        sizes = self._starts[entity + 1] - starts
        cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // MAX_PAIRS)) + 1
        for rows in np.split(np.arange(len(entity)), cuts):
            size = sizes[rows]
            yield np.repeat(rows, size), self._slot[expand_spans(starts[rows], size)]
