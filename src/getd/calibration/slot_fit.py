"""How well an entity fits a slot, judged by the other slots it fills.

A slot is a relation and one of its positions. An entity fits a slot as well as the best of its
other slots says: the share, among the entities that fill that other slot, of those that fill this
one too. An entity with another fact in the same slot fits wholly. Nothing is known about an entity
without other facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

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
            fills += [self._fills(facts).reshape(-1) for facts in blocks.values()]
        self._distinct, counts = np.unique(np.concatenate(fills), return_counts=True)
        self._counts = np.append(counts, 0)

        entity, self._slot = np.divmod(self._distinct, self._n_slots)
        self._starts = np.searchsorted(entity, np.arange(kb.n_entities + 1))
        self._holders = np.bincount(self._slot, minlength=self._n_slots)
        self._slot_pairs, self._both = _count_pairs(entity, self._slot, self._n_slots)

    def of(self, facts: Facts, own: bool | Bools) -> Floats:
        """Rate how well the entities of facts fit their slots: ``(n, arity)``, between 0 and 1.

        ``own`` says whether a fact is among those counted: then it is no evidence for itself.
        """
        fills = self._fills(facts)
        is_own = np.broadcast_to(np.asarray(own, dtype=bool).reshape(-1, 1), fills.shape)
        keys, inverse = np.unique(2 * fills + is_own, return_inverse=True)

        fit: Floats = self._fit(*np.divmod(keys, 2))[inverse].reshape(fills.shape)
        return fit

    def _fit(self, fills: Ids, own: Ids) -> Floats:
        entity, slot = np.divmod(fills, self._n_slots)
        count = self._counts[find_sorted(self._distinct, fills)]
        fit = np.where(count - own > 0, 1.0, 0.0)

        # The rest are judged by the other slots of their entities, in parts.
        rest = np.flatnonzero(count - own <= 0)
        sizes = self._starts[entity[rest] + 1] - self._starts[entity[rest]]
        alone = np.ones(len(rest), dtype=bool)
        for part in _parts(sizes):
            chosen = rest[part]
            row = np.repeat(np.arange(len(chosen)), sizes[part])
            other = self._slot[expand_spans(self._starts[entity[chosen]], sizes[part])]
            differs = other != slot[chosen][row]
            row = row[differs]
            other = other[differs]

            # The entity itself does not count among those that fill both slots.
            without = own[chosen][row]
            pair = find_sorted(self._slot_pairs, slot[chosen][row] * self._n_slots + other)
            holders = np.maximum(self._holders[other] - without, 1)
            np.maximum.at(fit, chosen[row], (self._both[pair] - without) / holders)
            alone[part.start + np.unique(row)] = False

        fit[rest[alone]] = NEUTRAL
        return np.clip(fit, 0.0, 1.0)

    def _fills(self, facts: Facts) -> Ids:
        """Return the entity and the slot at each position of each fact, as one number."""
        slots = self._first_slot[facts.relation][:, None] + np.arange(facts.arity)
        fills: Ids = facts.entities * self._n_slots + slots
        return fills


def _parts(sizes: Ids) -> Iterator[slice]:
    """Cut rows into slices whose sizes add up to about ``MAX_PAIRS``."""
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // MAX_PAIRS)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(sizes)]):
        if stop > start:
            yield slice(start, stop)


def _count_pairs(entity: Ids, slot: Ids, n_slots: int) -> tuple[Ids, Ids]:
    """Count the entities that fill both of two slots.

    ``entity``, ascending, and ``slot`` are those of all distinct fills. Returns sorted pairs of
    slots, and their counts, which end with a 0 for index -1.
    """
    starts = np.flatnonzero(np.diff(entity, prepend=-1))
    sizes = np.diff([*starts, len(entity)])
    pairs = np.zeros(0, dtype=np.int64)
    counts = np.zeros(0, dtype=np.int64)
    for part in _parts(sizes**2):
        # Every fill of an entity meets every fill of the same entity.
        size = np.repeat(sizes[part], sizes[part])
        first = np.repeat(expand_spans(starts[part], sizes[part]), size)
        second = expand_spans(np.repeat(starts[part], sizes[part]), size)

        more, more_counts = np.unique(slot[first] * n_slots + slot[second], return_counts=True)
        pairs, index = np.unique(np.concatenate([pairs, more]), return_inverse=True)
        both = np.bincount(index, np.concatenate([counts, more_counts]), len(pairs))
        counts = both.astype(np.int64)
    return pairs, np.append(counts, 0)
