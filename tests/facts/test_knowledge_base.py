"""A knowledge base travels whole between processes, and shows its sizes."""

from __future__ import annotations

import copy
import pickle

import pytest

from getd.errors import FactError
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.named import NamedFactsBuilder

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


def odd_notices(train: list[tuple[str, ...]], test: list[tuple[str, ...]]) -> tuple[str, ...]:
    return KnowledgeBase.from_facts({"train": train, "test": test}).notices


def test_facts_that_may_have_lost_a_cell_are_counted() -> None:
    award = [("award", f"p{number}", f"y{number}") for number in range(98)]
    assert odd_notices(award, []) == ()
    notice = "1 fact of award with 1 entities, all 98 others with 2: a lost cell?"
    assert odd_notices(award, [("award", "p7")]) == (notice,)
    notice = "2 facts of award with 1 or 3 entities, all 98 others with 2: a lost cell?"
    assert odd_notices([*award, ("award", "p7", "y", "z")], [("award", "p7")]) == (notice,)

    # Three in a hundred are no oversight.
    assert odd_notices([*award, *award[:3]], [("award", f"p{number}") for number in range(3)]) == (
        "train: 3 duplicate facts dropped",
    )


def test_facts_with_named_roles_are_meant_to_differ() -> None:
    builder = NamedFactsBuilder()
    for number in range(98):
        builder.add_row(number, "award", ("who", "when"), (f"p{number % 9}", f"y{number // 9}"))
    builder.add_row(98, "award", ("who",), ("p7",))
    assert KnowledgeBase.from_named("awards", {"train": builder.build()}).notices == ()


def test_only_a_few_relations_with_odd_facts_are_named() -> None:
    train = [(f"r{number % 5}", f"p{number}", f"y{number}") for number in range(500)]
    test = [(f"r{number}", "p1") for number in range(5)]
    *named, rest = odd_notices(train, test)
    assert [notice.split(" with ")[0] for notice in named] == [f"1 fact of r{n}" for n in range(3)]
    assert rest == "2 more relations have a few facts of another arity"
