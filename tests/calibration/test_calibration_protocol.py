"""What a calibration is fitted on, and what its numbers mean."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.calibration.calibrate import Calibration, calibrate, reliability
from getd.calibration.confidence import Evidence, fit_confidence
from getd.calibration.slot_fit import SlotFit
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from tests.evaluation.reference_evaluation import Table
from tests.reference import known_answers

NAMES = [f"e{i}" for i in range(9)]


class Constant(Table):
    """A model that finds everything equally likely."""

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        return torch.zeros_like(super().score_candidates(relation, entities, position, candidates))


def random_kb(test: list[tuple[str, ...]] | None = None) -> KnowledgeBase:
    """A relation ``r`` that is validated, and ``s``, which is not."""
    rng = np.random.default_rng(0)
    facts = [("r", *rng.permutation(NAMES[:7])[:3]) for _ in range(160)]
    other = [("s", NAMES[i % 9], NAMES[(i * i) % 9], NAMES[(3 * i) % 9]) for i in range(9)]
    return KnowledgeBase.from_facts(
        {"train": facts[:60] + other, "valid": facts[60:], "test": test or other[:1]}
    )


def fitted(model: type[Table], kb: KnowledgeBase) -> Calibration:
    made: ScoringModel = model(kb.n_relations, kb.n_entities)
    return calibrate(made.eval(), kb)


def test_no_fact_of_test_plays_a_part() -> None:
    """Poisoned: facts of a relation that valid has not, so no question is filtered by them, but every role is held."""
    poison = [("s", *names) for names in product(NAMES[:7], repeat=3)]
    calibration = fitted(Table, random_kb())
    assert calibration.confidence["3"].fit_slope > 0
    assert fitted(Table, random_kb(poison)) == calibration


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_probability_of_a_first_answer_is_that_of_a_softmax_over_the_temperature(
    temperature: float,
) -> None:
    kb = random_kb()
    model = Table(kb.n_relations, kb.n_entities).eval()
    facts = kb.split("valid")[3].take(slice(0, 10))
    every = [
        fact
        for blocks in kb.splits.values()
        for block in blocks.values()
        for fact in kb.decode(block)
    ]
    said = []
    for row, position in product(range(len(facts)), range(3)):
        fact = facts.take(slice(row, row + 1))
        (names,) = kb.decode(fact)
        others = set(known_answers(every, names, position + 1)) - {names[position + 1]}
        scores = model.score_candidates(
            torch.tensor(fact.relation), torch.tensor(fact.entities), position
        )[0].tolist()
        kept = [
            math.exp(s / temperature)
            for name, s in zip(kb.entities, scores, strict=True)
            if name not in others
        ]
        said.append(max(kept) / sum(kept))
    (found,) = reliability(
        model, {3: facts}, kb.known(), [Calibration(temperature={"3": temperature})]
    )
    sizes = [len(part) for part in np.array_split(np.arange(30), len(found.probability))]
    total = sum(size * mean for size, mean in zip(sizes, found.probability, strict=True))
    assert total == pytest.approx(sum(said), rel=1e-5)


def test_true_facts_weigh_as_much_as_false_ones() -> None:
    """Where nothing tells them apart a fact is as likely true as false, though there are twice as many false ones."""
    pairs = [(f"e{i}", f"e{j}") for i in range(12) for j in range(12) if i != j]
    held_out = [pair for number, pair in enumerate(pairs) if number % 2]
    kept = [pair for number, pair in enumerate(pairs) if not number % 2]
    kb = KnowledgeBase.from_facts(
        {"train": [("r", *pair) for pair in kept], "valid": [("r", *pair) for pair in held_out]}
    )
    confidence = fitted(Constant, kb).confidence["2"]
    assert confidence.of(np.array([-math.log(7)]), np.ones(1))[0] == pytest.approx(0.5, abs=0.07)


def test_an_entity_of_which_nothing_is_known_fits_a_role_as_one_in_ten_do() -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b")], "test": [("r", "c", "b")]})
    found = SlotFit(kb, [kb.split("train")]).of(kb.split("test")[2], own=False)
    assert found.tolist() == [[0.1, 1.0]]


def test_confidence_is_one_half_halfway_between_what_is_true_and_what_is_false() -> None:
    plausibility = np.concatenate([np.linspace(-3, -1, 50), np.linspace(-7, -5, 50)])
    is_true = np.repeat([1.0, 0.0], 50)
    features = np.column_stack([plausibility, np.zeros(100)])
    found = fit_confidence(Evidence(features, is_true, np.ones(100))).of(
        np.array([-1.0, -4.0, -7.0]), np.ones(3)
    )
    assert found[0] > 0.9
    assert found[1] == pytest.approx(0.5, abs=0.02)
    assert found[2] < 0.1
