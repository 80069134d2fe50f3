"""The report says of small data what a nested loop says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from getd.facts.knowledge_base import KnowledgeBase
from getd.profile.describe import describe
from tests import reference

FACT = st.one_of(
    st.tuples(st.sampled_from("rs"), *[st.sampled_from("abcd")] * 2),
    st.tuples(st.sampled_from("rs"), *[st.sampled_from("abcd")] * 3),
    st.tuples(st.sampled_from("rs"), *[st.sampled_from("abcde")] * 4),
)


@given(
    st.lists(FACT, min_size=1, max_size=10, unique=True),
    st.lists(FACT, min_size=1, max_size=6, unique=True),
)
def test_leakage_equals_a_nested_loop(
    train: list[tuple[str, ...]], test: list[tuple[str, ...]]
) -> None:
    leakage = describe(KnowledgeBase.from_facts({"train": train, "test": test})).leakage
    assert leakage is not None
    entities = {entity for fact in train for entity in fact[1:]}
    bags = {tuple(sorted(fact[1:])) for fact in train}
    assert leakage.questions == sum(len(fact) - 1 for fact in test)
    assert leakage.key_seen == pytest.approx(reference.key_seen(train, test))
    assert leakage.all_but_one == pytest.approx(
        sum(reference.shares_all_but(train, fact, 1) for fact in test) / len(test)
    )
    assert leakage.all_but_two == pytest.approx(
        sum(reference.shares_all_but(train, fact, 2) for fact in test) / len(test)
    )
    assert leakage.same_entities == pytest.approx(
        sum(tuple(sorted(fact[1:])) in bags for fact in test) / len(test)
    )
    assert leakage.unseen_entity_facts == pytest.approx(
        sum(not set(fact[1:]) <= entities for fact in test) / len(test)
    )


def test_a_small_report_by_hand() -> None:
    train = [
        ("won", "Ann", "gold", "1991"),
        ("won", "Bob", "gold", "1992"),
        ("won", "Ann", "gold", "1991"),
        ("knows", "Ann", "Bob"),
    ]
    report = describe(
        KnowledgeBase.from_facts({"train": train, "test": [("won", "Cy", "gold", "1991")]})
    )
    assert (report.entities, report.relations, report.duplicates) == (6, 2, 1)
    assert report.splits["train"].arities == {2: 1, 3: 2}
    assert (report.splits["test"].unseen_entities, report.splits["test"].literal_facts) == (1, 1.0)
    won = report.by_relation["won"]
    assert (won.facts, won.roles, won.density) == (
        {"train": 2, "test": 1},
        (("e1", 3), ("e2", 1), ("e3", 2)),
        0.5,
    )
    assert report.arities[3].density == 0.5
    assert report.literals == {"dates": 0.0, "numbers": 2 / 6}
    assert report.leakage is not None
    assert report.leakage.key_seen_by_position == (1.0, 0.0, 0.0)


def test_without_train_there_is_no_leakage_to_measure() -> None:
    report = describe(KnowledgeBase.from_facts({"test": [("r", "a", "b")]}))
    assert (report.leakage, report.splits["test"].unseen_entities) == (None, None)


def test_a_report_is_plain_json_with_text_for_keys() -> None:
    plain = describe(
        KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("s", "a", "b", "c")]})
    ).as_dict()
    assert json.loads(json.dumps(plain)) == plain
