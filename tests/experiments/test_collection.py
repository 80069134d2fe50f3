"""The collection's command: what it trains, what it writes down, and what it leaves unread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import getd
from experiments.collection.__main__ import line_of, missing, parser, run
from experiments.collection.kinds import FITTING, KINDS, REAL
from experiments.collection.measure import Task, compare_ranks, measure
from experiments.collection.page import write_page
from experiments.collection.results import Result, add_result, read_results
from getd.evaluation.evaluate import baseline_models, evaluate
from getd.run import Run

TASK = Task("default", "valid", "hundred-facts", 0)


def failed(data: str = "hundred-facts", seed: int = 0, split: str = "valid") -> Result:
    about = {"label": "default", "split": split, "data": data, "seed": seed, "commit": None}
    return Result(**about, machine={}, error="FactError: no facts")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Train for one epoch only; returns what was given to train."""
    given_values = []
    train = getd.train

    def train_an_epoch(kb: getd.KnowledgeBase, **given: Any) -> Run:
        given_values.append({name: value for name, value in given.items() if name != "out"})
        return train(kb, **given, epochs=1)

    monkeypatch.setattr(getd, "train", train_an_epoch)
    return given_values


def test_a_training_has_nothing_but_defaults_and_is_compared(calls: list[dict[str, Any]]) -> None:
    result = measure(TASK)
    measured = result.measured
    assert calls == [{"ask_test": False}]
    assert result.error is None
    assert measured is not None
    assert measured.facts == {"train": 80, "valid": 10, "test": 10}
    assert measured.epochs == 1
    assert measured.total.questions == 30
    assert measured.settings["model"]["name"] == "encoder"
    assert measured.arities == {"3": measured.total}
    assert line_of(result).startswith("default, valid, hundred-facts, seed 0: MRR 0.")


def test_the_ranks_are_those_of_evaluate() -> None:
    kb = KINDS["warehouse"].load(0)
    model = baseline_models(kb)["frequency"]
    total, arities = compare_ranks(model, kb, "valid")

    evaluation = evaluate(model, kb, "valid")
    assert total.mrr == total.baselines["frequency"] == pytest.approx(evaluation.mrr)
    assert total.baselines["lookup"] == pytest.approx(evaluation.baselines["lookup"].mrr)
    by_arity = evaluation.by["arity"]
    assert arities.keys() == by_arity.keys()
    assert [part.questions for part in arities.values()] == [
        part.questions for part in by_arity.values()
    ]
    assert np.allclose(
        [part.mrr for part in arities.values()], [part.mrr for part in by_arity.values()]
    )


def test_an_error_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **given: Any) -> None:
        raise getd.GetdError("no facts")

    monkeypatch.setattr(getd, "train", refuse)
    result = measure(TASK)
    assert result.measured is None
    assert result.error == "GetdError: no facts"
    assert result.failures() == ["error"]
    assert line_of(result) == "default, valid, hundred-facts, seed 0: GetdError: no facts"


def test_all_kinds_are_measured_on_test_with_the_seeds_5_to_9() -> None:
    tasks = missing(parser().parse_args([]), {})
    assert {task.split for task in tasks} == {"test"}
    assert {task.seed for task in tasks} == {5, 6, 7, 8, 9}
    assert [task.data for task in tasks] == 5 * list(KINDS)


def test_fitting_kinds_are_measured_on_validation_with_the_seeds_0_to_4() -> None:
    tasks = missing(parser().parse_args(["--valid"]), {})
    assert {task.split for task in tasks} == {"valid"}
    assert {task.seed for task in tasks} == {0, 1, 2, 3, 4}
    assert [task.data for task in tasks] == 5 * list(FITTING)


def test_held_out_kinds_are_not_for_fitting() -> None:
    options = parser().parse_args(["--valid", "--kinds", "shop-orders", "recipes", "bundles"])
    with pytest.raises(SystemExit) as error:
        missing(options, {})
    assert str(error.value) == "--valid is for fitting; held out from that: recipes, bundles"


def test_real_data_sets_are_added_with_seed_0() -> None:
    tasks = missing(parser().parse_args(["--kinds", "--real"]), {})
    assert [(task.data, task.seed) for task in tasks] == [(name, 0) for name in REAL]


def test_finished_trainings_are_skipped_and_failed_ones_are_tried_again() -> None:
    options = parser().parse_args(["--valid", "--kinds", "hundred-facts", "--seeds", "0", "1"])
    finished = failed().model_copy(update={"error": None})
    assert missing(options, {finished.key: finished}) == [
        Task("default", "valid", "hundred-facts", 1)
    ]
    assert len(missing(options, {failed().key: failed()})) == 2

    options.label = "other"
    assert len(missing(options, {finished.key: finished})) == 2


def test_no_training_is_begun_after_the_deadline() -> None:
    assert list(run([TASK], jobs=1, deadline=0)) == []


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert read_results(path) == {}
    for seed in (1, 0):
        add_result(failed(seed=seed), path)
    results = read_results(path)
    assert list(results.values()) == [failed(seed=0), failed(seed=1)]
    assert list(results) == [failed(seed=0).key, failed(seed=1).key]


def test_the_page_has_a_table_for_each_part_with_results(
    calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    results = [
        measure(TASK),
        failed("hundred-facts", 5, "test"),
        failed("hundred-facts", 1, "test"),  # fitted seeds are not reported
        failed("recipes", 5, "test"),
        failed("demo", 0, "test"),
    ]
    write_page(results, tmp_path / "README.md")

    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Kinds",
        "## Fitting kinds, seeds 5 to 9: default",
        "## Held-out kinds: default",
        "## Real data sets: default",
        "## Fitting kinds, seeds 0 to 4, on validation: default",
    ]
    row = "| recipes |  | 1 |  |  |  |  |  |  |  |  | error 1 |"
    assert row in page.splitlines()
    assert "| hundred-facts | 100 | 1 | 0." in page
    assert all(f"| {name} |" in page for name in KINDS)
