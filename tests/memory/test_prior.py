"""What training facts alone say about the weights of a memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.prior import OWN_PRIOR, START, learn_prior, start_weights
from getd.memory.questions import Questions

Fact = tuple[str, ...]


def learnt(train: list[Fact]) -> dict[str, dict[str, tuple[float, float]]]:
    """The weights by position and source."""
    kb = KnowledgeBase.from_facts({"train": train})
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    prior = learn_prior(memory, kb.split("train"), kb.known("train"))
    weights = {}
    for name, theta in prior.items():
        arity, position = map(int, name.split("-"))
        sources = memory.sources(arity, position)
        weights[name] = {
            source: (float(pair[0]), float(pair[1]))
            for source, pair in zip(sources, theta.view(-1, 2), strict=True)
        }
    return weights


def functional(n: int = 200) -> list[Fact]:
    """The first entity determines the third one; the second one says nothing."""
    rng = np.random.default_rng(0)
    return [("r", f"a{i % 40}", f"b{rng.integers(30)}", f"c{i % 40 % 7}") for i in range(n)]


def test_a_column_that_determines_another_one_weighs_most() -> None:
    weights = learnt(functional())["3-2"]
    assert weights["0"][0] > START["one"][0] + 2
    assert weights["0"][0] > weights["1"][0]


def test_facts_do_not_vouch_for_themselves() -> None:
    """All entities occur once: counted as they are, each fact would be its own proof."""
    weights = learnt([("r", f"a{i}", f"b{i}") for i in range(40)])
    for position in ("2-0", "2-1"):
        own = weights[position]["1" if position == "2-0" else "0"]
        assert own[0] < START["one"][0] + 0.2


def test_an_arity_of_few_facts_begins_with_what_all_facts_have_shown() -> None:
    few = [("s", "a0", "b0", "c0", "d0"), ("s", "a1", "b1", "c1", "d1")]
    alone = learnt(few)["4-2"]["0"][0]
    together = learnt([*functional(), *few])["4-2"]["0"][0]
    assert together > alone + 0.5


def test_own_weights_are_where_likelihood_and_shared_weights_are_in_balance() -> None:
    kb = KnowledgeBase.from_facts({"train": functional()})
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    known = kb.known("train")
    prior = learn_prior(memory, kb.split("train"), known)
    centres = []
    for position in range(3):
        questions = Questions.leave_out(memory, kb.split("train")[3], position, known)
        theta = prior[f"3-{position}"]
        centres.append(theta + questions.loss(theta, 0).gradient / (2 * OWN_PRIOR))

    # Every position has a source for frequency, two for one entity, one for two: shared weights.
    for other in centres[1:]:
        assert_close(other, centres[0], rtol=0.05, atol=0.05)
    assert_close(centres[0][2:4], centres[0][4:6], rtol=0.05, atol=0.05)


def test_positions_without_facts_have_the_weights_of_the_start() -> None:
    memory = Memory(5)
    theta = start_weights(memory, 3, 1)
    expected = [START[kind] for kind in ("frequency", "one", "one", "two", "beside", "beside two")]
    assert theta.tolist() == pytest.approx(torch.tensor(expected).flatten().tolist())
    assert learn_prior(memory, {}, KnowledgeBase.from_facts({"train": functional()}).known()) == {}
