"""Known answers: for every question, all entities (or relations) that make it true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from getd.arrays import Bools, Ids, expand_spans
from getd.facts.facts import Blocks, Facts, join
from getd.facts.row_index import RowIndex


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a batch, as CSR arrays.

    Those of question ``i`` are ``values[offsets[i]:offsets[i + 1]]``, ascending.
    """

    offsets: Ids  # (b + 1,)
    values: Ids  # (total,)

    @property
    def counts(self) -> Ids:
        """The number of answers of each question, ``(b,)``."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Ids:
        """The question that each value answers, ``(total,)``; ``rows, values`` index a filter."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def others(self, own: Ids) -> tuple[Ids, Ids]:
        """Questions, ascending, and values: all answers but the own one of each, ``own (b,)``."""
        rows = self.rows
        is_other = self.values != own[rows]
        return rows[is_other], self.values[is_other]


Position = int | None  # None: the relation
_SlotKey = tuple[int, Position]  # arity and position


@dataclass(frozen=True, eq=False)
class _Slot:
    """The answers of one open slot, as CSR arrays over its distinct questions."""

    index: RowIndex
    offsets: Ids
    answers: Ids


@dataclass(frozen=True, eq=False)
class OtherAnswers:
    """The other answers of the questions that facts answer, looked up once for all batches."""

    answers: Ids
    starts: Ids  # (n, p): for each fact and position, where its answers start
    counts: Ids  # (n, p)
    own: Ids  # (n, p): the fact's own answer


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """All answers to all questions of some facts: every position of every arity, and the relation.

    The index is built once by sorting; the look-up of a whole batch is a few binary searches,
    without a Python loop. It serves as the filter in training (from the training facts) and in
    evaluation (from all facts).

    >>> facts = Facts(np.array([0, 0]), np.array([[1, 2], [1, 3]]))
    >>> known = KnownAnswers.build([{2: facts}])
    >>> known.lookup(np.array([0]), np.array([[1, 0]]), position=1).values.tolist()
    [2, 3]
    """

    slots: Mapping[_SlotKey, _Slot]

    @classmethod
    def build(cls, splits: Sequence[Blocks]) -> Self:
        """Index the facts of these splits together."""
        slots: dict[_SlotKey, _Slot] = {}
        for arity, facts in join(*splits).items():
            columns = [np.ascontiguousarray(column) for column in facts.columns()]
            for opened, position in enumerate([None, *range(arity)]):
                slots[arity, position] = _build_slot(columns, opened)
        return cls(slots)

    def lookup(self, relation: Ids, entities: Ids, position: Position) -> Answers:
        """The answers of each question ``(relation, entities)`` with ``position`` open.

        ``relation`` is ``(b,)`` and ``entities`` ``(b, arity)``; the open column is never read.
        ``None`` opens the relation. A question that no fact answers has no answers.
        """
        answers, starts, counts = self._spans(relation, entities, position)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Answers(offsets, answers[expand_spans(starts, counts)])

    def others(self, facts: Facts, positions: Sequence[Position]) -> OtherAnswers:
        """Look up the other answers of the questions of these facts, one for each position."""
        spans = [self._spans(facts.relation, facts.entities, position) for position in positions]
        answers, starts, counts = zip(*spans, strict=True)
        ends = np.cumsum([len(values) for values in answers])

        columns = facts.columns()
        own = [columns[0 if position is None else 1 + position] for position in positions]
        return OtherAnswers(
            answers=np.concatenate(answers),
            starts=np.column_stack(starts) + np.append(0, ends[:-1]),
            counts=np.column_stack(counts),
            own=np.column_stack(own),
        )

    def is_known(self, relation: Ids, entities: Ids, position: Position) -> Bools:
        """Whether each question has any answer, ``(b,)``."""
        _, _, counts = self._spans(relation, entities, position)
        return counts > 0

    def contains(self, facts: Facts) -> Bools:
        """Whether each fact is among the indexed facts, ``(n,)``."""
        answers = self.lookup(facts.relation, facts.entities, 0)
        rows = answers.rows
        contained = np.zeros(len(facts), dtype=bool)
        contained[rows[answers.values == facts.entities[rows, 0]]] = True
        return contained

    def _spans(self, relation: Ids, entities: Ids, position: Position) -> tuple[Ids, Ids, Ids]:
        """The answers of a slot; for each question, where its answers start and their number."""
        slot = self.slots.get((entities.shape[1], position))
        if slot is None:
            zeros = np.zeros_like(relation)
            return zeros[:0], zeros, zeros

        # A question that no fact answers has the number -1.
        columns = [relation, *entities.T]
        del columns[0 if position is None else 1 + position]
        numbers = slot.index.find(columns)
        starts = slot.offsets[numbers]
        counts = np.where(numbers >= 0, slot.offsets[numbers + 1] - starts, 0)
        return slot.answers, starts, counts


def _build_slot(columns: Sequence[Ids], opened: int) -> _Slot:
    """Index the questions with one column open."""
    given = list(columns)
    column = given.pop(opened)
    index, questions = RowIndex.build(given)

    size = 1 + int(column.max(initial=0))
    pairs = np.unique(questions * size + column)
    questions, answers = np.divmod(pairs, size)
    offsets = np.searchsorted(questions, np.arange(len(index) + 1))
    for array in (offsets, answers):
        array.flags.writeable = False
    return _Slot(index, offsets, answers)
