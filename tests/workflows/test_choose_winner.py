"""The choice does not fool itself: what is fitted on one half is measured on the other."""

from __future__ import annotations

import numpy as np
import pytest

from getd.evaluation.evaluate import baseline_models, validation_mrr
from getd.evaluation.protocol import known_for_choosing
from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.workflows import choose_winner as choice
from getd.workflows.choose_winner import Comparison, Finalist, Judge, Measured, choose_winner
from getd.workflows.winner import explain
from tests.tiny import tiny_knowledge_base, untrained_getd


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


@pytest.fixture(scope="module")
def models(kb: KnowledgeBase) -> dict[str, ScoringModel]:
    return {**baseline_models(kb), "random": untrained_getd(kb)}


def finalists(models: dict[str, ScoringModel], *names: str) -> list[Finalist]:
    return [Finalist(name, models[name]) for name in names]


def test_a_model_alone_is_measured_as_in_training(
    kb: KnowledgeBase, models: dict[str, ScoringModel]
) -> None:
    judge = Judge(kb, None)
    for name, model in models.items():
        expected = validation_mrr(model, kb.split("valid"), known_for_choosing(kb))
        assert judge.alone(Finalist(name, model)).mrr == pytest.approx(expected, abs=1e-12)


def test_halves_share_no_fact_and_miss_none(kb: KnowledgeBase) -> None:
    judge = Judge(kb, None)
    first, second = (half.split("valid") for half in judge.halves)
    assert count(first) + count(second) == count(kb.split("valid"))
    rows = []
    for arity in kb.arities:
        parts = [half[arity].rows() for half in (first, second)]
        rows.append(np.concatenate(parts))
        expected = kb.split("valid")[arity].rows()
        assert sorted(map(tuple, rows[-1])) == sorted(map(tuple, expected))


def test_a_half_is_measured_with_the_weights_of_the_other(
    kb: KnowledgeBase, models: dict[str, ScoringModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted_on = []
    fit = choice.fit_members

    def noted(members: object, half: KnowledgeBase, *options: object) -> object:
        fitted_on.append(half)
        return fit(members, half, *options)  # type: ignore[arg-type]

    judge = Judge(kb, None)
    measured_on = []
    by_fact = judge._by_fact

    def measured(model: ScoringModel, half: KnowledgeBase) -> object:
        measured_on.append(half)
        return by_fact(model, half)

    monkeypatch.setattr(choice, "fit_members", noted)
    monkeypatch.setattr(judge, "_by_fact", measured)
    judge.together(finalists(models, "lookup", "random"))
    assert measured_on == judge.halves
    assert fitted_on == judge.halves[::-1]


def test_the_default_stays_unless_something_else_is_certainly_better(
    kb: KnowledgeBase, models: dict[str, ScoringModel]
) -> None:
    same = [Finalist("default", models["lookup"]), Finalist("other", models["lookup"])]
    winner = choose_winner(same, kb, is_late=lambda: True)
    assert winner.members == ("default",)
    assert explain(winner) == "nothing else is certainly better than the default on validation"

    better = choose_winner(finalists(models, "random", "lookup"), kb, is_late=lambda: True)
    worse = choose_winner(finalists(models, "lookup", "random"), kb, is_late=lambda: True)
    assert better.members == worse.members == ("lookup",)
    (comparison,) = better.comparisons
    assert comparison.is_certain
    assert explain(better) == (
        "its gain over random on validation is certain: "
        f"{comparison.gain:.4f} ± {comparison.error:.4f}"
    )


def test_a_gain_is_certain_beyond_one_standard_error() -> None:
    def comparison(gain: float) -> Comparison:
        return Comparison(("a",), 0.5, ("b",), gain, error=0.01)

    assert comparison(0.011).is_certain
    assert not comparison(0.009).is_certain


def test_the_gain_of_a_single_fact_is_never_certain(
    models: dict[str, ScoringModel],
) -> None:
    measured = []
    for name, ranks in (("a", 1.0), ("b", 3.0)):
        finalist = Finalist(name, models["lookup"])
        measured.append(Measured((finalist,), np.array([ranks]), questions=3))
    comparison = measured[1].compare(measured[0])
    assert comparison.gain == comparison.error == pytest.approx(2 / 3)
    assert not comparison.is_certain


def test_the_error_of_a_gain_is_that_of_its_mean_around_none(
    models: dict[str, ScoringModel],
) -> None:
    finalist = Finalist("any", models["lookup"])
    nothing = Measured((finalist,), np.zeros(4), questions=8)
    gains = Measured((finalist,), np.array([1.0, 0.0, 2.0, -2.0]), questions=8)
    comparison = gains.compare(nothing)
    assert (comparison.gain, comparison.error) == (1 / 8, 3 / 8)


def test_halves_may_lack_an_arity_of_the_models(models: dict[str, ScoringModel]) -> None:
    """Only test has facts of three entities, but the models have slots for them."""
    kb = tiny_knowledge_base()
    splits = {}
    for split in ("train", "valid"):
        splits[split] = {2: kb.split(split)[2]}
    smaller = kb.with_splits(**splits, test=kb.split("test"))
    assert list(smaller.arities) == [2, 3]
    together = Judge(smaller, None).together(finalists(models, "lookup", "random"))
    assert 0 < together.mrr <= 1


def test_combinations_grow_one_by_one_and_are_not_tried_when_it_is_late(
    kb: KnowledgeBase, models: dict[str, ScoringModel]
) -> None:
    three = finalists(models, "frequency", "lookup", "random")
    winner = choose_winner(three, kb)
    sizes = [len(comparison.members) for comparison in winner.comparisons]
    assert sizes[:4] == [1, 1, 2, 2]
    assert sizes[4:] in ([], [3])
    late = choose_winner(three, kb, is_late=lambda: True)
    assert {len(comparison.members) for comparison in late.comparisons} == {1}


def test_one_validation_fact_is_not_split(models: dict[str, ScoringModel]) -> None:
    kb = tiny_knowledge_base()
    valid = {2: kb.split("valid")[2].take(slice(0, 1))}
    small = kb.with_splits(train=kb.split("train"), valid=valid)
    winner = choose_winner(finalists(models, "frequency", "lookup"), small)
    assert all(len(comparison.members) == 1 for comparison in winner.comparisons)
