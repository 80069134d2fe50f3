"""Known answers: for every question, all entities (or relations) that fill it truly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from getd.arrays import Bools, Ids
from getd.facts.facts import Blocks, Facts
from getd.facts.row_index import RowIndex


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a batch: those of question ``i`` are ``values[offsets[i]:offsets[i + 1]]``, ascending."""

    offsets: Ids  # (b + 1,)
    values: Ids  # (total,)

    @property
    def counts(self) -> Ids:
        """How many answers each question has, ``(b,)``."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Ids:
        """Which question each value answers, ``(total,)``: with ``values``, the indices of a filter."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def others(self, own: Ids) -> tuple[Ids, Ids]:
        """Questions, ascending, and values: all answers but the own one of each question, which ``own (b,)`` names."""
        rows = self.rows
        other = self.values != own[rows]
        return rows[other], self.values[other]


@dataclass(frozen=True, eq=False)
class _Slot:
    """The answers of one open slot, as CSR arrays over its distinct questions."""

    index: RowIndex
    offsets: Ids
    answers: Ids


@dataclass(frozen=True, eq=False)
class OtherAnswers:
    """What else answers the questions that facts answer, found once, so that a batch only gathers."""

    answers: Ids
    starts: Ids  # (n, p): for fact and position, where its answers start
    counts: Ids  # (n, p)
    own: Ids  # (n, p): the fact's own answer

    def take(self, facts: Ids) -> tuple[Ids, Ids]:
        """The questions of these facts, numbered fact by fact, and their other answers: pairs, questions ascending."""
        found = _gather(self.answers, self.starts[facts].ravel(), self.counts[facts].ravel())
        return found.others(self.own[facts].ravel())


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """All answers of all questions that some facts hold: every position of every arity, and the relation.

    Built once by sorting; a look-up of a whole batch is a few binary searches, without a Python loop. The same index
    serves as the filter in training (from the training facts) and in evaluation (from all facts).

    >>> facts = Facts(np.array([0, 0]), np.array([[1, 2], [1, 3]]))
    >>> known = KnownAnswers.build([{2: facts}], n_relations=1, n_entities=4)
    >>> known.lookup(np.array([0]), np.array([[1, 0]]), position=1).values.tolist()
    [2, 3]
    """

    slots: Mapping[tuple[int, int | None], _Slot]

    @classmethod
    def build(cls, splits: Sequence[Blocks], n_relations: int, n_entities: int) -> KnownAnswers:
        """Index the facts of these splits together."""
        slots: dict[tuple[int, int | None], _Slot] = {}
        for arity in sorted({arity for blocks in splits for arity in blocks}):
            blocks = [blocks[arity] for blocks in splits if arity in blocks]
            columns = [np.concatenate([b.relation for b in blocks])]
            columns += [np.concatenate([b.entities[:, j] for b in blocks]) for j in range(arity)]
            sizes = [n_relations] + [n_entities] * arity
            for slot in range(arity + 1):
                slots[arity, slot - 1 if slot else None] = _build_slot(columns, sizes, slot)
        return cls(MappingProxyType(slots))

    def lookup(self, relation: Ids, entities: Ids, position: int | None) -> Answers:
        """The answers of each question ``(relation, entities)`` with ``position`` open; ``None`` opens the relation.

        ``relation`` is ``(b,)`` and ``entities`` ``(b, arity)``; the open column is never read. A question nobody
        has asked has no answers.
        """
        return _gather(*self._spans(relation, entities, position))

    def others(self, facts: Facts, positions: Sequence[int | None]) -> OtherAnswers:
        """What else answers the questions that these facts answer, one for each of these positions."""
        spans = [self._spans(facts.relation, facts.entities, position) for position in positions]
        own = [
            facts.relation if position is None else facts.entities[:, position]
            for position in positions
        ]
        first = np.cumsum([0, *(len(answers) for answers, _, _ in spans)])
        return OtherAnswers(
            np.concatenate([answers for answers, _, _ in spans]),
            np.column_stack(
                [start + starts for start, (_, starts, _) in zip(first, spans, strict=False)]
            ),
            np.column_stack([counts for _, _, counts in spans]),
            np.column_stack(own),
        )

    def _spans(self, relation: Ids, entities: Ids, position: int | None) -> tuple[Ids, Ids, Ids]:
        """Answers of a slot, and where those of each question start and how many they are."""
        slot, numbers = self._find(relation, entities, position)
        if slot is None:
            nothing = np.zeros(len(entities), dtype=np.int64)
            return nothing[:0], nothing, nothing
        starts = slot.offsets[numbers]
        return slot.answers, starts, np.where(numbers >= 0, slot.offsets[numbers + 1] - starts, 0)

    def is_known(self, relation: Ids, entities: Ids, position: int | None) -> Bools:
        """Whether each question has any answer, ``(b,)``."""
        return self._find(relation, entities, position)[1] >= 0

    def contains(self, facts: Facts) -> Bools:
        """Whether each fact is among the indexed facts, ``(n,)``."""
        answers = self.lookup(facts.relation, facts.entities, 0)
        rows = answers.rows
        contained = np.zeros(len(facts), dtype=bool)
        contained[rows[answers.values == facts.entities[rows, 0]]] = True
        return contained

    def _find(self, relation: Ids, entities: Ids, position: int | None) -> tuple[_Slot | None, Ids]:
        slot = self.slots.get((entities.shape[1], position))
        if slot is None:
            return None, np.full(len(entities), -1, dtype=np.int64)
        columns = [] if position is None else [relation]
        columns += [entities[:, j] for j in range(entities.shape[1]) if j != position]
        return slot, slot.index.find(columns)


def _gather(answers: Ids, starts: Ids, counts: Ids) -> Answers:
    """The answers of many questions, from where they start and how many they are."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Answers(
        offsets, answers[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)]
    )


def _build_slot(columns: Sequence[Ids], sizes: Sequence[int], slot: int) -> _Slot:
    given = [j for j in range(len(columns)) if j != slot]
    index, questions = RowIndex.build([columns[j] for j in given], [sizes[j] for j in given])
    pairs = np.unique(questions * sizes[slot] + columns[slot])
    questions, answers = np.divmod(pairs, sizes[slot])
    offsets = np.searchsorted(questions, np.arange(len(index) + 1))
    for array in (offsets, answers):
        array.flags.writeable = False
    return _Slot(index, offsets, answers)


__all__ = ["Answers", "Facts", "KnownAnswers", "OtherAnswers"]
