"""A knowledge base travels whole between processes, and shows its sizes."""

from __future__ import annotations

import copy
import pickle

import pytest

from getd.errors import FactError
from getd.facts.knowledge_base import KnowledgeBase

FACTS = {
    "train": [("award", "Jordan", "Bulls"), ("award", "Bird", "Celtics"), ("met", "a", "b", "c")],
    "test": [("award", "Bird", "Bulls"), ("award", "Jordan", "Bulls")],
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_knowledge_base_is_the_same_and_as_immutable(protocol: int) -> None:
    kb = KnowledgeBase.from_facts(FACTS, name="players")
    again = pickle.loads(pickle.dumps(kb, protocol))
    for field in ("name", "entities", "relations", "signatures", "duplicates", "notices"):
        assert getattr(again, field) == getattr(kb, field)
    assert {split: dict(blocks) for split, blocks in again.splits.items()} == {
        split: dict(blocks) for split, blocks in kb.splits.items()
    }
    with pytest.raises(TypeError, match="does not support item assignment"):
        again.splits["valid"] = {}
    with pytest.raises(ValueError, match="read-only"):
        again.split("train")[2].entities[0, 0] = 5


def test_a_copy_answers_as_the_original_does() -> None:
    kb = KnowledgeBase.from_facts(FACTS)
    test = kb.split("test")[2]
    assert copy.deepcopy(kb).known("train").contains(test).tolist() == [False, True]


def test_its_repr_has_the_number_of_names_and_facts() -> None:
    kb = KnowledgeBase.from_facts(FACTS, name="players")
    assert repr(kb) == "KnowledgeBase('players', entities=7, relations=2, train=3, test=2)"


def test_its_html_is_a_table_of_facts_by_split_and_arity_with_the_name_escaped() -> None:
    kb = KnowledgeBase.from_facts(FACTS, name="<b>\x1b&")
    assert kb._repr_html_() == (
        "<table><caption>&lt;b&gt;\\x1b&amp; (entities: 7, relations: 2)</caption>"
        "<tr><th>facts</th><th>2-ary</th><th>3-ary</th><th>all</th></tr>"
        "<tr><th>train</th><td>2</td><td>1</td><td>3</td></tr>"
        "<tr><th>test</th><td>2</td><td>0</td><td>2</td></tr></table>"
    )


def test_a_split_that_is_required_must_be_there() -> None:
    kb = KnowledgeBase.from_facts(FACTS, name="players")
    kb.require("train", "test")
    with pytest.raises(FactError, match=r"^players has no valid facts: it has train and test only"):
        kb.require("train", "valid")
