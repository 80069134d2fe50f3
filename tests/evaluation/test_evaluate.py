"""The report says what was measured, and its parts add up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import getd
from getd.errors import ConfigError, FactError
from getd.evaluation.evaluate import (
    baseline_models,
    evaluate,
    evaluate_baselines,
    validation_mrr,
)
from getd.evaluation.groups import GROUPINGS
from getd.evaluation.metrics import Metrics
from getd.evaluation.protocol import Provenance
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import count, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from tests import reference as facts_reference
from tests.evaluation import reference_evaluation as reference
from tests.evaluation.reference_evaluation import Table

METRICS = {
    "mrr",
    "hits_at_1",
    "hits_at_3",
    "hits_at_10",
    "mean_rank",
    "amri",
    "mrr_at_chance",
    "mrr_interval",
    "questions",
}


def random_kb(n: int = 120, seed: int = 0) -> KnowledgeBase:
    """Facts of arity 1 to 4 over 9 entities and 2 names of relations (so up to 8 relations)."""
    rng = np.random.default_rng(seed)
    facts = [("ab"[i % 2], *rng.choice(list("efghijklm"), 1 + rng.integers(4))) for i in range(n)]
    return KnowledgeBase.from_facts(
        {"train": facts[: n // 2], "valid": facts[n // 2 : n - 40], "test": facts[n - 40 :]}
    )


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return random_kb()


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> Table:
    return Table(kb.n_relations, kb.n_entities)


def test_the_report_is_json_and_names_its_protocol(kb: KnowledgeBase, model: Table) -> None:
    report = evaluate(model, kb).as_dict()
    assert json.loads(json.dumps(report)) == report
    questions = sum(facts.entities.size for facts in kb.split("test").values())
    assert report["protocol"] == {
        "split": "test",
        "trained_on": ["train"],
        "filter": "known answers of train, valid and test left out",
        "ties": "realistic",
        "level": "scores that rounding alone can put apart",
        "sample": None,
        "seed": 0,
        "candidates": kb.n_entities,
        "questions": questions,
        "members": 1,
        "epoch": None,
        "memory": None,
    }
    assert set(report) == {"protocol", "metrics", "baselines", "by"}
    assert report["metrics"]["questions"] == questions
    assert set(report["baselines"]) == {"frequency", "lookup"}
    assert set(report["by"]) == set(GROUPINGS)
    assert set(report["by"]["arity"]) == {"1", "2", "3", "4"}
    assert set(report["by"]["position"]) == {"0", "1", "2", "3"}
    assert set(report["by"]["relation"]) <= set(kb.relations)
    assert set(report["by"]["seen"]) == {"seen", "unseen"}
    groups = [report["metrics"], *report["baselines"].values()]
    groups += [group for grouping in report["by"].values() for group in grouping.values()]
    assert all(set(group) - {"baselines"} == METRICS for group in groups)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_the_parts_of_a_breakdown_add_up_to_the_total(
    kb: KnowledgeBase, model: Table, grouping: str
) -> None:
    evaluation = evaluate(model, kb, baselines=False, by=[grouping])
    parts = evaluation.by[grouping].values()
    assert sum(part.questions for part in parts) == evaluation.questions
    for name in ("mrr", "hits_at_1", "hits_at_3", "hits_at_10", "mean_rank"):
        total = sum(getattr(part, name) * part.questions for part in parts) / evaluation.questions
        assert total == pytest.approx(getattr(evaluation, name))


def test_every_question_is_in_its_group(kb: KnowledgeBase, model: Table) -> None:
    train = [fact for facts in kb.split("train").values() for fact in reference.plain(facts)]
    expected: dict[tuple[str, str], list[float]] = {}
    for arity, facts in kb.split("test").items():
        rank = rank_facts(model, facts, kb.known()).rank
        for row, fact in enumerate(reference.plain(facts)):
            for position in range(arity):
                seen = facts_reference.known_answers(train, fact, position + 1)
                groups = {
                    "arity": str(arity),
                    "position": str(position),
                    "relation": kb.relations[fact[0]],
                }
                for key in {**groups, "seen": "seen" if seen else "unseen"}.items():
                    expected.setdefault(key, []).append(1 / rank[row, position])
    by = evaluate(model, kb, baselines=False).by
    mrrs = {
        (grouping, group): metrics.mrr
        for grouping, groups in by.items()
        for group, metrics in groups.items()
    }
    assert mrrs == pytest.approx(
        {key: sum(values) / len(values) for key, values in expected.items()}
    )


def test_the_baselines_are_measured_as_any_model_is(kb: KnowledgeBase, model: Table) -> None:
    evaluation = evaluate(model, kb, by=(), provenance=Provenance(("train", "valid")))
    for name, baseline in baseline_models(kb, ("train", "valid")).items():
        assert evaluation.baselines[name] == evaluate(baseline, kb, by=(), baselines=False).metrics
    assert evaluation.protocol.trained_on == ("train", "valid")
    assert evaluation.baselines != evaluate(model, kb, by=()).baselines


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_baselines_alone_are_those_beside_a_model(
    kb: KnowledgeBase, model: Table, split: str
) -> None:
    assert evaluate_baselines(kb, split) == evaluate(model, kb, split, by=()).baselines


def test_what_the_model_was_trained_on_is_seen(kb: KnowledgeBase, model: Table) -> None:
    both = Provenance(("train", "valid"))
    evaluation = evaluate(model, kb, "valid", baselines=False, by=["seen"], provenance=both)
    assert set(evaluation.by["seen"]) == {"seen"}


def test_the_evaluation_gives_its_metrics_by_name(kb: KnowledgeBase, model: Table) -> None:
    evaluation = evaluate(model, kb, baselines=False, by=())
    names = list(Metrics.model_fields)
    assert [getattr(evaluation, name) for name in names] == [
        getattr(evaluation.metrics, name) for name in names
    ]
    assert (evaluation.baselines, evaluation.by) == ({}, {})


def test_optimistic_ties_are_never_worse_than_realistic_nor_those_than_pessimistic(
    kb: KnowledgeBase, model: Table
) -> None:
    best, middle, worst = (
        evaluate(model, kb, ties=ties, baselines=False, by=()).mrr
        for ties in ("optimistic", "realistic", "pessimistic")
    )
    assert best > middle > worst


def test_a_sample_is_drawn_by_its_seed_without_replacement(kb: KnowledgeBase) -> None:
    test = kb.split("test")
    drawn = sample_facts(test, 15, seed=1)
    rows = [fact for facts in drawn.values() for fact in reference.plain(facts)]
    whole = [fact for facts in test.values() for fact in reference.plain(facts)]
    assert count(drawn) == 15 == len(set(rows))
    assert set(rows) <= set(whole)
    assert drawn == sample_facts(test, 15, seed=1) != sample_facts(test, 15, seed=2)


def test_a_sample_of_everything_is_everything(kb: KnowledgeBase, model: Table) -> None:
    whole = evaluate(model, kb, baselines=False, by=())
    assert evaluate(model, kb, sample=10**6, baselines=False, by=()) == whole


def test_a_sample_names_its_size_and_counts_its_questions(kb: KnowledgeBase, model: Table) -> None:
    evaluation = evaluate(model, kb, sample=10, seed=4, baselines=False, by=())
    drawn = sample_facts(kb.split("test"), 10, seed=4)
    assert (evaluation.protocol.sample, evaluation.protocol.seed) == (10, 4)
    assert (
        evaluation.questions
        == evaluation.protocol.questions
        == sum(facts.entities.size for facts in drawn.values())
    )


def test_the_seed_decides_which_resamples_an_interval_is_taken_over(
    kb: KnowledgeBase, model: Table
) -> None:
    first, again, other = (
        evaluate(model, kb, seed=seed, baselines=False, by=()) for seed in (1, 1, 2)
    )
    assert first.mrr_interval == again.mrr_interval != other.mrr_interval
    assert first.mrr == other.mrr


@pytest.mark.parametrize("sample", [None, 7])
def test_the_validation_mrr_is_the_mrr_of_the_evaluation(
    kb: KnowledgeBase, model: Table, sample: int | None
) -> None:
    expected = evaluate(model, kb, "valid", sample=sample, seed=2, baselines=False, by=()).mrr
    known = kb.known("train", "valid")
    assert validation_mrr(model, kb.split("valid"), known, sample=sample, seed=2) == expected


def test_an_unknown_breakdown_is_refused(kb: KnowledgeBase, model: Table) -> None:
    message = (
        r"^by: expected one of arity, position, relation, seen, found 'relations'; "
        r"did you mean 'relation'\?$"
    )
    with pytest.raises(ConfigError, match=message):
        evaluate(model, kb, by=["relations"])


@pytest.mark.parametrize("sample", [0, -1])
def test_a_sample_of_nothing_is_refused(kb: KnowledgeBase, model: Table, sample: int) -> None:
    with pytest.raises(ConfigError, match=rf"^sample: expected at least 1 fact, found {sample}$"):
        evaluate(model, kb, sample=sample)


def test_a_split_that_the_data_has_not_is_refused(model: Table) -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b")]}, name="tiny")
    with pytest.raises(FactError, match=r"^tiny has no test facts: it has train only$"):
        evaluate(model, kb)


@pytest.mark.parametrize(("name", "expected"), [("WikiPeople-4", 0.338), ("JF17K-4", 0.754)])
def test_lookup_stands_where_it_stands_on_the_real_data(
    real_data: Path, name: str, expected: float
) -> None:
    kb = getd.load(real_data / name)
    baselines = baseline_models(kb)
    mrrs = {
        kind: validation_mrr(baseline, kb.split("test"), kb.known())
        for kind, baseline in baselines.items()
    }
    assert mrrs["lookup"] == pytest.approx(expected, abs=0.01)
    assert mrrs["frequency"] < mrrs["lookup"]


def test_the_baselines_of_groups_add_up_to_the_baselines() -> None:
    kb = getd.load("demo")
    report = evaluate(baseline_models(kb)["lookup"], kb).as_dict()
    for groups in report["by"].values():
        n_questions = sum(group["questions"] for group in groups.values())
        for baseline, metrics in report["baselines"].items():
            total = sum(
                group["questions"] * group["baselines"][baseline] for group in groups.values()
            )
            assert total / n_questions == pytest.approx(metrics["mrr"])
        assert all(
            group["baselines"]["lookup"] == pytest.approx(group["mrr"]) for group in groups.values()
        )
