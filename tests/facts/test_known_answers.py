"""Known answers equal a nested loop over the facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from tests import reference

N_RELATIONS, N_ENTITIES = 3, 4  # ids are shared between the two, and entities repeat within facts


def facts_of(arity: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    fact = st.tuples(st.integers(0, N_RELATIONS - 1), *[st.integers(0, N_ENTITIES - 1)] * arity)
    return st.lists(fact, max_size=12)


MIXED = st.fixed_dictionaries({arity: facts_of(arity) for arity in (1, 2, 3, 4, 5)})


def blocks(facts: dict[int, list[tuple[int, ...]]]) -> dict[int, Facts]:
    tables = {arity: np.array(rows).reshape(-1, arity + 1) for arity, rows in facts.items() if rows}
    return {arity: Facts(table[:, 0], table[:, 1:]) for arity, table in tables.items()}


@given(first=MIXED, second=MIXED, questions=MIXED)
def test_known_answers_equal_a_nested_loop(
    first: dict[int, list[tuple[int, ...]]],
    second: dict[int, list[tuple[int, ...]]],
    questions: dict[int, list[tuple[int, ...]]],
) -> None:
    known = KnownAnswers.build([blocks(first), blocks(second)])
    everything = [fact for part in (first, second) for rows in part.values() for fact in rows]
    for arity in questions:
        batch = questions[arity] + first[arity]
        table = np.array(batch, dtype=np.int64).reshape(-1, 1 + arity)
        relation = table[:, 0]
        entities = table[:, 1:]
        contained = known.contains(Facts(relation, entities))
        assert contained.tolist() == [fact in everything for fact in batch]
        for slot in range(arity + 1):
            position = slot - 1 if slot else None
            answers = known.lookup(relation, entities, position)
            expected = [reference.known_answers(everything, question, slot) for question in batch]
            spans = np.split(answers.values, answers.offsets[1:-1])
            assert [values.tolist() for values in spans[: len(batch)]] == expected
            assert known.is_known(relation, entities, position).tolist() == [
                bool(e) for e in expected
            ]
            assert answers.rows.tolist() == [row for row, e in enumerate(expected) for _ in e]


def test_the_open_column_is_never_read() -> None:
    known = KnownAnswers.build([{2: Facts(np.array([1]), np.array([[2, 3]]))}])
    nonsense = np.array([[2, -7], [2, 10**12]])
    assert known.lookup(np.array([1, 1]), nonsense, 1).values.tolist() == [3, 3]
    assert known.lookup(np.array([-5]), np.array([[2, 3]]), None).values.tolist() == [1]


def test_ids_outside_the_vocabulary_are_unknown_not_somebody_else() -> None:
    known = KnownAnswers.build([{2: Facts(np.array([1]), np.array([[0, 3]]))}])
    assert (
        known.is_known(np.array([0, 1, -1]), np.array([[4, 0], [-4, 0], [0, 0]]), 1).tolist()
        == [False] * 3
    )


def test_the_arrays_cannot_be_changed() -> None:
    facts = Facts(np.array([0]), np.array([[1, 2]]))
    with pytest.raises(ValueError, match="read-only"):
        facts.entities[0, 0] = 5
    answers = next(iter(KnownAnswers.build([{2: facts}]).slots.values()))
    with pytest.raises(ValueError, match="read-only"):
        answers.answers[0] = 5
