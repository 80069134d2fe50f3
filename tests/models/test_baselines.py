"""The counting models equal nested loops over the facts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from getd.models.base import ScoringModel
from getd.models.counts import Counts
from getd.models.frequency import Frequency
from getd.models.lookup import GRID, Lookup
from tests.evaluation import reference_evaluation as reference
from tests.evaluation.reference_evaluation import Fact

N_RELATIONS, N_ENTITIES = 3, 4
SIZES = (N_RELATIONS, N_ENTITIES)


def facts_of(arity: int) -> st.SearchStrategy[Fact]:
    return st.tuples(st.integers(0, N_RELATIONS - 1), *[st.integers(0, N_ENTITIES - 1)] * arity)


MIXED = st.lists(st.one_of([facts_of(arity) for arity in (1, 2, 3, 4)]), max_size=25)
FACTS: list[Fact] = [
    (0, 1, 2, 2),
    (0, 1, 3, 2),
    (0, 3, 3, 0),
    (1, 1, 2, 2),
    (2, 0, 1),
    (2, 0, 2),
    (2, 3),
]
BASELINES = pytest.mark.parametrize("baseline", [Frequency, Lookup])


def slot_scores(model: ScoringModel, questions: list[Fact], slot: int) -> list[list[float]]:
    table = torch.tensor(questions)
    return model.score_candidates(table[:, 0], table[:, 1:], slot - 1).tolist()


@given(facts=MIXED, questions=MIXED)
def test_frequency_equals_a_nested_loop(facts: list[Fact], questions: list[Fact]) -> None:
    model = Frequency.from_facts(reference.blocks(facts), *SIZES)
    for question in questions:
        for slot in range(1, len(question)):
            expected = [
                reference.frequency(facts, question, slot, candidate)
                for candidate in range(N_ENTITIES)
            ]
            assert slot_scores(model, [question], slot) == [expected]


@given(facts=MIXED, questions=MIXED)
def test_lookup_equals_a_nested_loop_and_frequency_breaks_its_ties(
    facts: list[Fact], questions: list[Fact]
) -> None:
    model = Lookup.from_facts(reference.blocks(facts), *SIZES)
    candidates = range(N_ENTITIES)
    for question in questions:
        for slot in range(1, len(question)):
            [scores] = slot_scores(model, [question], slot)
            sums = [reference.lookup(facts, question, slot, candidate) for candidate in candidates]
            assert scores == pytest.approx([float(value) for value in sums], abs=2 * GRID)
            keys = [(sums[c], reference.frequency(facts, question, slot, c)) for c in candidates]
            for c in (
                candidates
            ):  # the order is that of (sum, frequency), and what is equal there is level
                for d in candidates:
                    assert (scores[c] > scores[d]) == (keys[c] > keys[d])


@given(facts=MIXED)
def test_a_batch_scores_as_each_question_alone(facts: list[Fact]) -> None:
    for baseline in (Frequency, Lookup):
        model = baseline.from_facts(reference.blocks(facts), *SIZES)
        questions = [fact for fact in [*facts, *FACTS] if len(fact) == 4]
        for slot in (1, 2, 3):
            together = slot_scores(model, questions, slot)
            assert together == [
                row for question in questions for row in slot_scores(model, [question], slot)
            ]


@BASELINES
@pytest.mark.parametrize("candidates", [[0, 1, 2, 3], [3, 1], [2], [1, 3, 1, 1, 0], []])
def test_candidates_choose_columns(
    baseline: type[Frequency | Lookup], candidates: list[int]
) -> None:
    model = baseline.from_facts(reference.blocks(FACTS), *SIZES)
    relation, entities = torch.tensor([0, 1, 2]), torch.tensor([[1, 2, 2], [1, 3, 2], [3, 3, 0]])
    chosen = torch.tensor(candidates, dtype=torch.int64)
    for position in range(3):
        whole = model.score_candidates(relation, entities, position)
        assert torch.equal(
            model.score_candidates(relation, entities, position, chosen), whole[:, chosen]
        )


@BASELINES
def test_the_open_column_is_never_read(baseline: type[Frequency | Lookup]) -> None:
    model = baseline.from_facts(reference.blocks(FACTS), *SIZES)
    relation, entities = torch.tensor([0, 0]), torch.tensor([[1, 2, 2], [3, 3, 0]])
    for position in range(3):
        blank = entities.clone()
        blank[:, position] = -(10**9)
        scores = model.score_candidates(relation, blank, position)
        assert torch.equal(scores, model.score_candidates(relation, entities, position))


@BASELINES
def test_what_was_never_counted_scores_0(baseline: type[Frequency | Lookup]) -> None:
    model = baseline.from_facts(reference.blocks(FACTS), *SIZES)
    assert model.arities == (1, 2, 3)
    for arity in (3, 5):  # a relation without facts of that arity, an arity without facts
        entities = torch.zeros(2, arity, dtype=torch.int64)
        for position in range(arity):
            assert (
                model.score_candidates(torch.tensor([2, 2]), entities, position).tolist()
                == [[0.0] * 4] * 2
            )


@BASELINES
def test_nothing_is_learnt_and_all_counts_move_with_the_model(
    baseline: type[Frequency | Lookup],
) -> None:
    model = baseline.from_facts(reference.blocks(FACTS), *SIZES)
    assert list(model.parameters()) == []
    assert {buffer.device.type for buffer in model.to("meta").buffers()} == {"meta"}


def test_sums_equal_as_fractions_are_level_whatever_the_order_of_their_terms() -> None:
    facts: list[Fact] = []
    # Entity 5 has the shares 1/10, 2/10, 3/10 with the three given entities, entity 6 the reverse.
    for column in range(3):
        for number in range(10):
            row = [7, 7, 7]
            row[column] = column + 1
            five, six = column + 1, 3 - column
            facts.append(
                (0, *row, 5 if number < five else 6 if number < five + six else 8 + number)
            )
    model = Lookup.from_facts(reference.blocks(facts), 1, 20)
    [scores] = model.score_candidates(torch.tensor([0]), torch.tensor([[1, 2, 3, 0]]), 3).tolist()
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    assert scores[5] == scores[6] == pytest.approx(0.6, abs=2 * GRID)


def test_shares_below_the_least_are_left_out_and_the_others_stay_what_they_are() -> None:
    keys, values = np.array([7] * 10 + [9]), np.array([0] * 5 + [1] * 3 + [2, 3] + [1])
    counted = Counts(keys, values, 4, share=True, least=0.3)
    rows, kept, weights = counted.find(torch.tensor([7, 8, 9]))
    assert (rows.tolist(), kept.tolist(), weights.tolist()) == (
        [0, 0, 2],
        [0, 1, 1],
        [0.5, 0.3, 1.0],
    )
