"""Members get the weights under which validation is likeliest; test plays no part."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.errors import NonFiniteScores
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.models.ensemble import slot_names
from getd.runs.sizes import model_sizes
from getd.workflows import member_weights
from getd.workflows.member_weights import (
    Questions,
    fit_members,
    fit_slots,
    fitting_facts,
    likeliest,
    prior_of,
)

ARITIES = (2, 3, 4, 5)
N_ENTITIES = 20


class Table(ScoringModel):
    """A model whose scores are random numbers, higher by ``skill`` where a fact is true."""

    def __init__(
        self, kb: KnowledgeBase, seed: int, skill: float, scale: float = 1.0, splits: str = "valid"
    ) -> None:
        super().__init__(model_sizes(kb))
        self.seed = seed
        self.skill = skill
        self.scale = scale
        self.truth = kb.known(splits)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        key = self.seed + 97 * relation + 1009 * entities.sum(dim=1) - 1009 * entities[:, position]
        noise = torch.sin((key[:, None] + 1) * (torch.arange(self.n_entities) + 1.7))
        answers = self.truth.lookup(relation.numpy(), entities.numpy(), position)
        noise[answers.rows, answers.values] += self.skill
        scores = self.scale * noise
        return scores if candidates is None else scores[:, candidates]

    def score_relations(self, entities: Tensor) -> Tensor:
        return torch.zeros(len(entities), self.n_relations)


def knowledge_base(n_valid: int = 40, test: list[tuple[str, ...]] | None = None) -> KnowledgeBase:
    """Facts of two to five entities; few of them are of five."""
    rng = np.random.default_rng(0)
    splits: dict[str, list[tuple[str, ...]]] = {"train": [], "valid": [], "test": test or []}
    splits["train"] += [("all", f"e{i}", f"e{N_ENTITIES - 1 - i}") for i in range(N_ENTITIES)]
    for arity, split in product(ARITIES, ("train", "valid")):
        for _ in range(3 if arity == 5 else n_valid):
            entities = rng.integers(0, N_ENTITIES, arity)
            splits[split].append((f"r{arity}", *(f"e{entity}" for entity in entities)))
    return KnowledgeBase.from_facts({split: facts for split, facts in splits.items() if facts})


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return knowledge_base()


def scored(
    members: list[Table], kb: KnowledgeBase, arity: int, position: int, drawn: Tensor | None = None
) -> Questions:
    drawn = torch.arange(kb.n_entities) if drawn is None else drawn
    known = kb.known("train", "valid")
    return Questions.score(members, kb.split("valid")[arity], position, known, drawn)


def all_questions(members: list[Table], kb: KnowledgeBase) -> dict[str, Questions]:
    slots = [(arity, position) for arity in ARITIES for position in range(arity)]
    return {
        f"{arity}-{position}": scored(members, kb, arity, position) for arity, position in slots
    }


def slow_loss(
    members: list[Table], kb: KnowledgeBase, facts: Facts, position: int, weights: list[float]
) -> float:
    """Go through all candidates of all questions."""
    known = kb.known("train", "valid")
    total = 0.0
    for row in range(len(facts)):
        fact = facts.take(slice(row, row + 1))
        scores = torch.zeros(kb.n_entities, dtype=torch.float64)
        for member, weight in zip(members, weights, strict=True):
            scores += weight * member.score_candidates(*fact.to_tensors(), position)[0].double()
        answer = int(fact.entities[0, position])
        others = known.lookup(fact.relation, fact.entities, position).values
        kept = [c for c in range(kb.n_entities) if c == answer or c not in others]
        total += float(scores[kept].logsumexp(dim=0) - scores[answer])
    return total


@pytest.mark.parametrize("arity", ARITIES)
def test_the_loss_is_that_of_all_candidates_that_are_not_known(
    kb: KnowledgeBase, arity: int
) -> None:
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    weights = [0.7, 1.9]
    for position in range(arity):
        loss = scored(members, kb, arity, position).loss(torch.tensor(weights).double())
        expected = slow_loss(members, kb, kb.split("valid")[arity], position, weights)
        assert loss.value == pytest.approx(expected, rel=1e-5)


def test_the_slope_and_the_curvature_are_those_of_the_loss(kb: KnowledgeBase) -> None:
    questions = scored([Table(kb, 1, 1.0), Table(kb, 2, 0.5)], kb, 3, 1)
    weights = torch.tensor([0.4, 1.1], dtype=torch.float64)
    curve = questions.loss(weights)
    step = 1e-5
    for index in range(2):
        moved = torch.zeros(2, dtype=torch.float64)
        moved[index] = step
        after = questions.loss(weights + moved)
        before = questions.loss(weights - moved)
        slope = float(after.value - before.value) / (2 * step)
        assert float(curve.gradient[index]) == pytest.approx(slope, rel=1e-4)
        assert_close(
            curve.hessian[index],
            (after.gradient - before.gradient) / (2 * step),
            rtol=1e-4,
            atol=1e-4,
        )


def test_candidates_that_are_drawn_stand_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_weights, "HIGHEST", 4)
    kb = knowledge_base(200)
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    weights = torch.tensor([0.4, 1.1], dtype=torch.float64)
    exact = float(scored(members, kb, 3, 0).loss(weights).value)
    some = torch.randperm(kb.n_entities, generator=torch.Generator().manual_seed(0))[:8]
    reduced = scored(members, kb, 3, 0, some)
    assert len(reduced.leads) < 0.8 * 200 * kb.n_entities
    assert float(reduced.loss(weights).value) == pytest.approx(exact, rel=0.02)


def test_no_weights_are_likelier_near_the_centre(kb: KnowledgeBase) -> None:
    questions = list(all_questions([Table(kb, 1, 1.0), Table(kb, 2, -0.5)], kb).values())
    centre = torch.tensor([1.0, 1.0], dtype=torch.float64)
    weights = likeliest(questions, centre)
    slope = 2 * prior_of(centre) * (weights - centre)
    for part in questions:
        slope = slope + part.loss(weights).gradient
    assert weights[0] > 0.1
    assert abs(float(slope[0])) < 1e-3
    assert float(weights[1]) == 0  # it is wrong, and a weight is never negative
    assert float(slope[1]) > 0


@pytest.mark.parametrize("skills", [(1.0, 0.5), (0.1, 2.0), (0.0, 0.0), (-1.0, 1.0)])
def test_fitted_weights_are_at_least_as_likely_as_equal_ones(
    kb: KnowledgeBase, skills: tuple[float, float]
) -> None:
    members = [Table(kb, 1, skills[0]), Table(kb, 2, skills[1], scale=3.0)]
    questions = all_questions(members, kb)
    weights = fit_slots(questions, slot_names(ARITIES))
    fitted = 0.0
    equal = 0.0
    for slot, part in questions.items():
        fitted += part.loss(torch.tensor(weights[slot]).double()).value
        equal += part.loss(torch.tensor([0.5, 0.5]).double()).value
    assert fitted <= equal + 1e-9
    assert min(min(each) for each in weights.values()) >= 0


def test_a_slot_of_few_questions_keeps_to_the_weights_of_all(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    questions = all_questions(members, kb)
    slots = [*slot_names(ARITIES), "6-0"]
    weights = fit_slots(questions, slots)
    assert weights["6-0"] == weights["relation"]  # without questions
    monkeypatch.setattr(member_weights, "PRIOR", 1e-3)
    free = fit_slots(questions, slots)

    def distance(fitted: dict[str, list[float]], arity: str) -> float:
        shared = np.array(fitted["relation"])
        chosen = [slot for slot in questions if slot.startswith(arity)]
        return sum(float(np.abs(np.array(fitted[slot]) - shared).sum()) for slot in chosen)

    few = distance(weights, "5") / distance(free, "5")
    many = distance(weights, "3") / distance(free, "3")
    assert few < many, (few, many)


def test_the_scale_of_a_member_changes_its_weight_and_nothing_else(kb: KnowledgeBase) -> None:
    plain = fit_members([Table(kb, 1, 1.0), Table(kb, 2, 0.5)], kb, [False] * 2).weights
    scaled = fit_members([Table(kb, 1, 1.0), Table(kb, 2, 0.5, 2.0)], kb, [False] * 2).weights
    # Equal weights, to which all are drawn, are those of other scores.
    for slot, (first, second) in plain.items():
        assert scaled[slot][0] == pytest.approx(first, rel=0.25)
        assert 2 * scaled[slot][1] == pytest.approx(second, rel=0.25)


def test_no_fact_of_test_plays_a_part() -> None:
    """Poisoned: every fact of test is wrong about the validation facts."""
    clean = knowledge_base(test=[("r2", "e0", "e1")])
    valid = [fact for block in clean.split("valid").values() for fact in clean.decode(block)]
    poison = [(*fact[:-1], f"e{number % N_ENTITIES}") for number, fact in enumerate(valid)]
    bad = knowledge_base(test=poison)
    assert clean.entities == bad.entities
    weights = []
    for kb in (clean, bad):
        members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
        weights.append(fit_members(members, kb, [False, False]))
    assert weights[0] == weights[1]


def test_an_open_relation_counts_those_that_learnt_it(kb: KnowledgeBase) -> None:
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    none = fit_members(members, kb, [False, False]).weights["relation"]
    assert min(none) > 0
    assert fit_members(members, kb, [True, False]).weights["relation"] == [none[0], 0.0]


def test_an_open_relation_has_scores_even_if_its_learner_has_no_weight(kb: KnowledgeBase) -> None:
    """The worse member is the only one that learnt relations, and weighs nothing elsewhere."""
    members = [Table(kb, 1, 2.0), Table(kb, 2, -1.0), Table(kb, 3, -1.0)]
    weights = fit_members(members, kb, [False] * 3).weights["relation"]
    assert weights[1:] == [0.0, 0.0]
    learners = fit_members(members, kb, [False, True, False]).weights["relation"]
    assert learners == [0.0, 1.0, 0.0]
    learners = fit_members(members, kb, [False, True, True]).weights["relation"]
    assert learners == [0.0, 0.5, 0.5]


def test_members_may_know_arities_that_the_facts_lack(kb: KnowledgeBase) -> None:
    """A slot without questions has the weights of all slots together."""
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    splits = {}
    for split in ("train", "valid"):
        blocks = kb.split(split)
        splits[split] = {arity: facts for arity, facts in blocks.items() if arity != 4}
    weights = fit_members(members, kb.with_splits(**splits), [False, False]).weights
    assert list(weights) == slot_names(ARITIES)
    assert weights["4-0"] == weights["4-3"] == weights["relation"]
    assert weights["3-0"] != weights["relation"]


def test_a_sample_is_said_and_does_not_touch_the_others(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [Table(kb, 1, 1.0), Table(kb, 2, 0.5)]
    steps: list[None] = []
    whole = fit_members(members, kb, [False] * 2, progress=lambda: steps.append(None))
    assert (whole.sample, len(steps)) == (None, 14)
    part = fit_members(members, kb, [False] * 2, sample=10)
    assert part.sample == 33  # ten of each arity, and all three of five entities
    assert part == fit_members(members, kb, [False] * 2, sample=10)
    monkeypatch.setattr(member_weights, "MAX_FACTS", 7)
    assert {arity: len(facts) for arity, facts in fitting_facts(members, kb, None).items()} == {
        **dict.fromkeys((2, 3, 4), 7),
        5: 3,
    }


def test_scores_without_end_are_an_error(kb: KnowledgeBase) -> None:
    members = [Table(kb, 1, 1.0), Table(kb, 2, float("nan"))]
    with pytest.raises(NonFiniteScores, match=r"scores are NaN or infinite$"):
        fit_members(members, kb, [False, False])
