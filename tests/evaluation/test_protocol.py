"""Test decides nothing but its own evaluation, and the protocol says what decided what."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import getd
from getd.api import open_run
from getd.calibration.calibrate import calibrate
from getd.errors import RunError
from getd.evaluation.evaluate import evaluate, evaluate_baselines
from getd.evaluation.metrics import mrr_at_chance
from getd.evaluation.protocol import Choice, Protocol, filter_splits, known_for_choosing
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ModelSizes, ScoringModel
from getd.models.ensemble import Ensemble
from getd.models.registry import make_model, model_settings
from getd.tuning.tune import tune

TRAINING = {"epochs": 3, "patience": 0, "learning_rate": 0.05, "threads": 1}


def clean_kb() -> KnowledgeBase:
    """Facts whose last entity follows from the first two, more or less."""
    rng = np.random.default_rng(0)
    rows = [
        (a, b, (a + b + rng.integers(2)) % 8)
        for a, b in product(range(8), range(8))
        for _ in range(2)
    ]
    facts = [("r", *(f"e{entity}" for entity in row)) for row in sorted({*rows})]
    rng.shuffle(facts)
    return KnowledgeBase.from_facts(
        {"train": facts[:50], "valid": facts[50:80], "test": facts[80:]}
    )


def poisoned(kb: KnowledgeBase, share: float = 0.5) -> KnowledgeBase:
    """The same train and valid, and a test split that makes half of valid's wrong answers known."""
    rng, valid = np.random.default_rng(1), kb.split("valid")[3]
    rows = []
    for row, position in product(valid.entities, range(3)):
        for entity in rng.permutation(kb.n_entities)[: int(share * kb.n_entities)]:
            fact = row.copy()
            fact[position] = entity
            rows.append(fact)
    entities = np.unique(np.array(rows), axis=0)
    test = {3: Facts(np.zeros(len(entities), dtype=np.int64), entities)}
    return kb.with_splits(train=kb.split("train"), valid=kb.split("valid"), test=test)


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return clean_kb()


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> ScoringModel:
    settings = model_settings("n-cp", {"entity_dim": 4, "initial_scale": 1.0})
    generator = torch.Generator().manual_seed(0)
    return make_model(
        "n-cp", settings, ModelSizes(kb.n_entities, kb.n_relations, kb.arities), generator
    ).eval()


def test_the_poison_would_show(kb: KnowledgeBase, model: ScoringModel) -> None:
    """The test split of these tests changes ranks of validation wherever it is in the filter."""
    bad = poisoned(kb)
    everything, honest = bad.known(), known_for_choosing(bad)
    facts = bad.split("valid")[3]
    question = (facts.relation, facts.entities, 0)
    assert everything.lookup(*question).counts.sum() > honest.lookup(*question).counts.sum()
    assert filter_splits(bad, "valid") == filter_splits(bad, "train") == ("train", "valid")
    assert filter_splits(bad, "test") == ("train", "valid", "test")
    assert evaluate(model, bad).protocol.filter == "known answers of train, valid and test left out"


def test_evaluating_another_split_does_not_read_test(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    for split in ("train", "valid"):
        clean, bad = (evaluate(model, each, split).as_dict() for each in (kb, poisoned(kb)))
        assert clean == bad
        assert clean["protocol"]["filter"] == "known answers of train and valid left out"
        assert evaluate_baselines(kb, split) == evaluate_baselines(poisoned(kb), split)


def test_evaluating_test_leaves_out_the_answers_of_all_splits(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    bad = poisoned(kb)
    alone = bad.with_splits(train=bad.split("train"), test=bad.split("test"))
    assert evaluate(model, bad).mrr > evaluate(model, alone).mrr
    assert evaluate_baselines(bad)["lookup"].mrr > evaluate_baselines(alone)["lookup"].mrr


def test_the_weights_of_a_memory_do_not_depend_on_test(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    assert fit_weights(model, memory, kb) == fit_weights(model, memory, poisoned(kb))


def test_temperature_and_confidence_do_not_depend_on_test(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    assert calibrate(model, kb) == calibrate(model, poisoned(kb))


def test_early_stopping_and_the_loss_of_validation_do_not_depend_on_test(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    runs = {}
    for name, each in (("clean", kb), ("bad", poisoned(kb))):
        config = {"model": {"entity_dim": 4}, "training": {**TRAINING, "validation_loss": True}}
        runs[name] = getd.train(each, "n-cp", tmp_path / name, config=config)
    assert _without_seconds(runs["clean"]) == _without_seconds(runs["bad"])
    assert (runs["clean"].path / "weights.safetensors").read_bytes() == (
        runs["bad"].path / "weights.safetensors"
    ).read_bytes()
    calibrations = [run.folder.read_json("calibration.json") for run in runs.values()]
    assert calibrations[0] == calibrations[1]
    assert runs["clean"].remember() == runs["bad"].remember()
    memories = [run.folder.read_json("memory.json") for run in runs.values()]
    assert memories[0] == memories[1]


def test_tuning_and_the_run_that_follows_do_not_depend_on_test(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    tuned = {}
    for name, each in (("clean", kb), ("bad", poisoned(kb))):
        config = {"model": {"entity_dim": 4}, "training": TRAINING}
        study, out = tmp_path / f"{name}.db", tmp_path / name
        tuned[name] = tune(each, "n-cp", study, trials=2, config=config, out=out)
    assert [trial.curve for trial in tuned["clean"].study.trials()] == [
        trial.curve for trial in tuned["bad"].study.trials()
    ]
    runs = [each.run for each in tuned.values()]
    assert runs[0] is not None
    assert runs[1] is not None
    assert _without_seconds(runs[0]) == _without_seconds(runs[1])
    assert not (runs[0].path / "report.json").exists()


def test_validation_in_training_is_what_evaluating_valid_shows(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    run = getd.train(
        poisoned(kb), "n-cp", tmp_path / "run", config={"model": {"entity_dim": 4}}, **TRAINING
    )
    best = max(line.valid_mrr for line in run.folder.read_history())
    assert run.evaluate("valid", by=(), baselines=False).mrr == pytest.approx(best, abs=1e-6)


def test_a_run_says_what_chose_its_epoch_and_its_memory(kb: KnowledgeBase, tmp_path: Path) -> None:
    config = {"model": {"entity_dim": 4}, "memory": {"use": True}}
    run = getd.train(kb, "n-cp", tmp_path / "run", config=config, validation_sample=20, **TRAINING)
    protocol = run.folder.read_json("report.json")["protocol"]
    ranked = {"filter": "known answers of train and valid left out", "sample": 20}
    assert protocol["epoch"] == {"chosen_on": "valid", **ranked}
    assert isinstance(run.model, WithMemory)
    weights = run.model.memory_weights
    assert protocol["memory"] == {
        "counts": ["train"],
        "weights": weights,
        "fitted_on": "valid",
        **ranked,
    }
    assert Protocol.model_validate(protocol).sentence() == (
        "trained on train; known answers of train, valid and test left out; "
        "epoch chosen on valid (known answers of train and valid left out, 20 facts); "
        f"a memory that counts train, its {weights} weights fitted on the labels of valid "
        "(known answers of train and valid left out, 20 facts)"
    )
    assert open_run(run.path, memory=False).evaluate("test").protocol.memory is None


def test_a_run_of_before_says_that_test_was_in_the_filter(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    run = getd.train(kb, "n-cp", tmp_path / "run", config={"model": {"entity_dim": 4}}, **TRAINING)
    environment = run.folder.read_json("environment.json")
    assert environment["validation_filter"] == ["train", "valid"]
    before = {key: value for key, value in environment.items() if key != "validation_filter"}
    run.folder.write_json("environment.json", before)
    assert run.opened.epoch_choice() == Choice("valid", ("train", "valid", "test"))
    (run.path / "environment.json").unlink()
    assert run.opened.epoch_choice() == Choice("valid", ("train", "valid", "test"))


@pytest.mark.parametrize(
    "broken", ['{"validation_filter": 3}', '{"validation_filter": ["train", []]}']
)
def test_a_filter_that_names_no_splits_is_refused(
    kb: KnowledgeBase, tmp_path: Path, broken: str
) -> None:
    run = getd.train(
        kb,
        "n-cp",
        tmp_path / "run",
        config={"model": {"entity_dim": 4}},
        **{**TRAINING, "epochs": 1},
    )
    path = run.path / "environment.json"
    path.write_text(broken)
    with pytest.raises(RunError) as refused:
        run.evaluate("test")
    assert (
        str(refused.value)
        == f"{path}: expected validation_filter to name splits, found another thing"
    )


def test_without_validation_the_last_epoch_is_kept_and_said(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    alone = kb.with_splits(train=kb.split("train"), test=kb.split("test"))
    run = getd.train(
        alone, "n-cp", tmp_path / "run", config={"model": {"entity_dim": 4}}, **TRAINING
    )
    protocol = run.folder.read_json("report.json")["protocol"]
    assert protocol["epoch"] == {"chosen_on": None, "filter": None, "sample": None}
    assert (
        Protocol.model_validate(protocol).sentence()
        == "trained on train; known answers of train and test left out; the last epoch"
    )


def test_an_ensemble_says_how_many_it_is(kb: KnowledgeBase, model: ScoringModel) -> None:
    protocol = evaluate(Ensemble([model] * 3), kb, sample=10).protocol
    assert protocol.members == 3
    assert protocol.sentence() == (
        "trained on train; known answers of train, valid and test left out; "
        "10 facts, drawn at random; 3 models as one"
    )
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    counting = WithMemory(Ensemble([model] * 2), memory, {})
    assert evaluate(counting, kb).protocol.members == 2


def test_the_weights_of_a_memory_are_counted_where_it_counts(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    used = MemoryWeights(scale=2.0, sources={"0": SourceWeights(), "0+1": SourceWeights()})
    evaluation = evaluate(WithMemory(model, memory, {"3-2": used, "3-0": MemoryWeights()}), kb)
    assert evaluation.protocol.as_dict()["memory"] == {"counts": ["train"], "weights": 5}
    assert json.loads(json.dumps(evaluation.as_dict())) == evaluation.as_dict()


@pytest.mark.parametrize("candidates", [[1], [6, 6, 1], [31, 32, 33, 34], [100_000, 2]])
def test_chance_is_what_random_order_earns(candidates: list[int]) -> None:
    slow = [sum(1 / rank for rank in range(1, c + 1)) / c for c in candidates]
    assert mrr_at_chance(np.array(candidates)) == pytest.approx(sum(slow) / len(slow), rel=1e-11)


def test_chance_is_that_of_the_candidates_which_the_filter_leaves(
    kb: KnowledgeBase, model: ScoringModel
) -> None:
    bad = poisoned(kb, share=1.0)  # every fact with two entities of a validation fact is known
    assert evaluate(model, bad).mrr_at_chance > evaluate(model, kb).mrr_at_chance
    assert evaluate(model, bad, "valid").mrr_at_chance == evaluate(model, kb, "valid").mrr_at_chance


def _without_seconds(run: Any) -> list[dict[str, Any]]:
    return [line.model_dump(exclude={"seconds"}) for line in run.folder.read_history()]
