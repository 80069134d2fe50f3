"""The collection's kinds: the same data for the same seed, and data that can be trained on."""

from __future__ import annotations

from collections import defaultdict

import pytest

from experiments.collection.kinds import FITTING, HELD_OUT, KINDS, ONLY_COUNTS, PAIRS, REAL, Kind
from getd.datasets.catalogue import DATA_NAMES
from getd.facts.facts import count

EVERY_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@EVERY_KIND
def test_a_seed_decides_the_data_of_a_kind(kind: Kind) -> None:
    data = kind.make(0)
    assert kind.make(0) == data
    assert kind.make(1) != data


@EVERY_KIND
def test_a_kind_is_a_knowledge_base_that_can_be_trained_on(kind: Kind) -> None:
    kb = kind.load(0)
    n_facts = {split: count(blocks) for split, blocks in kb.splits.items()}
    assert kb.name == kind.name
    assert n_facts["train"] > n_facts["valid"] == n_facts["test"] > 0
    assert 100 <= sum(n_facts.values()) < 60_000

    entities = defaultdict(set)
    for blocks in kb.splits.values():
        for facts in blocks.values():
            for relation, row in zip(facts.relation, facts.entities, strict=True):
                signature = kb.signatures[relation]
                for role, entity in zip(signature.roles, row, strict=True):
                    entities[signature.name, role].add(entity)
    assert min(map(len, entities.values())) >= 2


@EVERY_KIND
def test_a_kind_is_described_in_one_sentence(kind: Kind) -> None:
    assert kind.description.endswith(".")
    assert "\n" not in kind.description
    assert "|" not in kind.description


def test_half_of_the_kinds_are_for_fitting_and_half_are_held_out() -> None:
    assert len(KINDS) >= 36
    assert len(FITTING) == len(HELD_OUT) == len(PAIRS)
    assert FITTING | HELD_OUT == KINDS
    assert not set(FITTING) & set(HELD_OUT)


def test_both_halves_have_the_same_shapes() -> None:
    fitting = [kind.shape for kind in FITTING.values()]
    assert fitting == [kind.shape for kind in HELD_OUT.values()]


def test_the_other_data_sets_have_names_of_their_own() -> None:
    assert set(REAL) <= set(DATA_NAMES)
    assert not set(REAL) & set(KINDS)
    assert set(ONLY_COUNTS) <= set(KINDS)
