"""A split is 8:1:1, random by seed, and leaves every symbol in train where that can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from getd.facts.knowledge_base import KnowledgeBase, tuples_to_named
from getd.facts.split import split_named, split_rows
from tests.tiny import rows_of

FACTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("rst"), st.sampled_from("abcdef"), st.sampled_from("abcdef")),
        st.tuples(st.sampled_from("rst"), *[st.sampled_from("abcdef")] * 3),
    ),
    min_size=1,
    max_size=60,
)


@given(FACTS, st.integers(0, 5))
def test_every_fact_goes_to_one_split_and_copies_go_together(
    facts: list[tuple[str, ...]], seed: int
) -> None:
    parts = {
        split: rows_of(named) for split, named in split_named(tuples_to_named(facts), seed).items()
    }
    assert sorted(fact for rows in parts.values() for fact in rows) == sorted(facts)
    distinct = {split: set(rows) for split, rows in parts.items()}
    tenth = len(set(facts)) // 10
    assert len(distinct.get("valid", ())) == len(distinct.get("test", ())) == tenth
    assert sum(map(len, distinct.values())) == len(set(facts))


def greedy(facts: list[tuple[int, ...]], seed: int, held_out: int) -> int:
    """How many facts one can take by hand, in the same order, while every symbol stays."""
    rank = np.random.default_rng(seed).permutation(len(facts))
    taken: list[int] = []
    for i in np.argsort(rank).tolist():
        rest = [set(fact) for j, fact in enumerate(facts) if j not in taken and j != i]
        if len(taken) < held_out and all(
            any(symbol in other for other in rest) for symbol in facts[i]
        ):
            taken.append(i)
    return len(taken)


@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=10, max_size=40, unique=True),
    st.integers(0, 3),
)
def test_held_out_facts_leave_every_symbol_where_that_can_be(
    facts: list[tuple[int, ...]], seed: int
) -> None:
    held_out = greedy(facts, seed, len(facts) // 5)
    chosen = split_rows([np.array(facts)], np.arange(len(facts)), seed, held_out)
    left = {
        symbol for fact, is_out in zip(facts, chosen, strict=True) if not is_out for symbol in fact
    }
    assert chosen.sum() == held_out
    assert left == {symbol for fact in facts for symbol in fact}


def test_where_covering_leaves_too_few_the_ratio_still_holds() -> None:
    facts = [("r", f"a{i}", f"b{i}") for i in range(20)]
    kb = KnowledgeBase.from_facts(facts)
    assert {split: len(blocks[2]) for split, blocks in kb.splits.items()} == {
        "train": 16,
        "valid": 2,
        "test": 2,
    }


def test_the_seed_decides() -> None:
    named = tuples_to_named([("r", f"a{i % 7}", f"b{i % 11}") for i in range(77)])
    first, again, other = (rows_of(split_named(named, seed)["test"]) for seed in (1, 1, 2))
    assert first == again != other


def test_the_seed_decides_what_is_held_out_too() -> None:
    """Not only what of it is valid and what is test."""
    table = np.arange(200).reshape(100, 2) % 20
    first, again, other = (split_rows([table], np.arange(100), seed, 20) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_large_file_is_split_without_a_loop_over_facts() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 30_000, (200_000, 4))
    chosen = split_rows([table], np.arange(200_000), 0, 40_000)
    assert chosen.sum() == 40_000
    assert np.array_equal(np.unique(table[~chosen]), np.unique(table))
