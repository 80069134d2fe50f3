"""Rows: their settings, their data, and the results that were measured with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from getd.datasets.catalogue import DATASETS
from getd.datasets.load import load
from getd.datasets.synthetic import SYNTHETIC
from getd.experiments.measure import valid_in_train, with_test_as_valid
from getd.experiments.result import Measurement, read_results, result_path
from getd.experiments.rows import ROWS, Point, all_rows, find_row
from getd.experiments.tables import published
from getd.models.base import ModelSizes
from getd.models.registry import make_model

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize(
    "name",
    [name for name, row in all_rows().items() if row.kind not in ("combined", "derived", "table")],
)
def test_every_row_builds_its_model_on_a_known_data_set(name: str) -> None:
    row = find_row(name)
    assert row.data in {*DATASETS, *SYNTHETIC}
    arity = int(row.data[-1]) if row.data[-2:-1] == "-" else 2
    assert row.points
    for point in row.points:
        with torch.device("meta"):
            sizes = ModelSizes(20, 3, [arity])
            make_model(point.config.model_name, point.config.model, sizes)


def test_committed_results_are_those_of_their_rows() -> None:
    """The settings of a row may not change without its results."""
    for result in read_results(EXPERIMENTS):
        row = find_row(result.row)
        points = {point.name: point for point in row.with_seeds([result.seed])}
        name = Point(row.name, result.seed).name
        if isinstance(result, Measurement):
            name = Point(row.name, result.seed, series=result.series, x=result.x).name
        assert name in points
        assert result_path(EXPERIMENTS, points[name]).exists()

        if row.kind in ("training", "figure"):
            assert isinstance(result, Measurement)
            expected = points[name].config.with_values({"training.seed": result.seed}).tables()
            # Settings that came later have the value of what was done before.
            measured = result.settings.tables()
            if expected["training"]["precision"] == "auto":  # a run says what it used
                expected["training"]["precision"] = measured["training"]["precision"]
            for section in ("model", "training"):
                assert measured[section] == expected[section], f"{name} [{section}]"


def test_derived_rows_are_named_by_what_they_add() -> None:
    names = [name for name in all_rows() if name.startswith("best/getd-jf17k-4+")]
    assert [name.removeprefix("best/getd-jf17k-4") for name in names] == [
        "+memory",
        "+ensemble",
        "+memory+ensemble",
        "+valid",
        "+memory+valid",
        "+ensemble+valid",
        "+memory+ensemble+valid",
    ]
    base = find_row("best/getd-jf17k-4")
    row = find_row("best/getd-jf17k-4+ensemble+valid")
    assert row.info.about == f"{base.info.about}, 3 seeds as one, trained again on train and valid"
    assert row.info.minutes == 6 * base.info.minutes
    assert [point.seed for point in row.with_seeds(range(3))] == [0]
    assert [point.seed for point in find_row("best/getd-jf17k-4+valid").with_seeds([0, 1])] == [
        0,
        1,
    ]


def test_splits_put_together() -> None:
    kb = load("Synthetic10-3")
    merged = valid_in_train(kb)
    assert list(merged.splits) == ["train", "test"]
    assert len(merged.split("train")[3]) == len(kb.split("train")[3]) + len(kb.split("valid")[3])
    valid = with_test_as_valid(kb).split("valid")[3]
    assert np.array_equal(valid.entities, kb.split("test")[3].entities)


def test_the_paper_counts_what_we_count(real_data: Path) -> None:
    for data in ("WikiPeople-4", "JF17K-4"):
        kb = load(data)
        n_facts = [len(kb.split(split)[4]) for split in ("train", "valid", "test")]
        assert (kb.n_entities, kb.n_relations, *n_facts) == published().statistics[data]


def test_every_row_is_in_the_package() -> None:
    folders = {path.parent.name for path in ROWS.rglob("*.toml")}
    assert folders == {"best", "combined", "figures", "paper", "tuning"}
