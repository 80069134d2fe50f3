"""The fit of an entity to a slot, against loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from getd.calibration.slot_fit import NEUTRAL, SlotFit
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase

FACTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)),
    min_size=1,
    max_size=14,
    unique=True,
)


@given(FACTS, st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)))
def test_role_fit_against_loops(
    facts: list[tuple[int, int, int]], rated: tuple[int, int, int]
) -> None:
    kb = KnowledgeBase.from_facts({"train": [(f"r{r}", f"e{a}", f"e{b}") for r, a, b in facts]})
    if any(f"e{e}" not in kb.entities for e in rated[1:]) or f"r{rated[0]}" not in kb.relations:
        return
    own = rated in facts
    roles: dict[int, Counter[tuple[int, int]]] = {}
    for relation, *entities in facts:
        for position, entity in enumerate(entities):
            roles.setdefault(entity, Counter())[relation, position] += 1
    expected = []
    for position, entity in enumerate(rated[1:]):
        role, has = (rated[0], position), Counter(roles[entity])
        if own:
            has[role] -= 1
        others = [other for other, number in has.items() if number > 0 and other != role]
        if has[role] > 0:
            expected.append(1.0)
        elif not others:
            expected.append(NEUTRAL)
        else:
            rest = [has for e, has in roles.items() if not (own and e == entity)]
            shares = []
            for other in others:
                holding = [has for has in rest if has[other] > 0]
                shares.append(sum(has[role] > 0 for has in holding) / max(len(holding), 1))
            expected.append(max(shares))
    ids = np.array([[kb.entities.id(f"e{e}") for e in rated[1:]]])
    fit = SlotFit(kb).of(Facts(np.array([kb.relations.id(f"r{rated[0]}")]), ids), own=own)
    assert fit[0].tolist() == pytest.approx(expected)


def test_an_entity_of_which_nothing_is_known_fits_a_role_as_one_in_ten_do() -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b")], "test": [("r", "c", "b")]})
    fit = SlotFit(kb, [kb.split("train")]).of(kb.split("test")[2], own=False)
    assert fit.tolist() == [[0.1, 1.0]]
