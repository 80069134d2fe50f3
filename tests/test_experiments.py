"""Rows, their results, and the page made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from getd.datasets.catalogue import DATASETS
from getd.datasets.load import load
from getd.datasets.synthetic import SYNTHETIC
from getd.experiments import rows as rows_module
from getd.experiments.claims import check_claims
from getd.experiments.measure import valid_in_train, with_test_as_valid
from getd.experiments.result import chosen_by, read_results, result_path
from getd.experiments.results_page import page_text
from getd.experiments.rows import ROWS, Point, all_rows, find_row, points
from getd.experiments.tables import published
from getd.io.environment import commit_of
from getd.models.base import ModelSizes
from getd.models.registry import make_model
from getd.runs.config import Config

VERSION = version("getd")
EXPERIMENTS = Path(__file__).parent.parent / "experiments"
TINY = """
data = "Synthetic10-3"

[row]
about = "A small one"
minutes = 1

[model]
name = "getd"
entity_dim = 3
ring_ranks = 2

[training]
epochs = 2
threads = 1

[published]
mrr = 0.5
"""
FIGURE = """
data = "Synthetic10-3"

[row]
about = "A small figure"
x = "size"
parameters = true
reference = "best/getd-tiny"

[training]
epochs = 1
threads = 1

[[series]]
label = "GETD"
base = { "model.name" = "getd", "model.ring_ranks" = 2 }
points = [{ x = 2, "model.entity_dim" = 2 }, { x = 3, "model.entity_dim" = 3 }]

[[series]]
label = "n-CP"
base = { "model.name" = "n-cp" }
points = [{ x = 2, "model.entity_dim" = 2 }]
"""
CURVES = """
data = "Synthetic10-3"

[row]
about = "Small curves"
curves = true

[training]
epochs = 3
patience = 0
validation_loss = true
threads = 1

[[series]]
label = "n-CP"
base = { "model.name" = "n-cp", "model.entity_dim" = 2 }
"""
STUDY = """
data = "Synthetic10-3"

[row]
about = "A small study"
minutes = 1

[study]
trials = 3

[study.space.training]
learning_rate = { low = 0.001, high = 0.1, log = true }

[study.space.model]
norm = { choices = ["batch", "none"] }

[model]
name = "n-cp"
entity_dim = 2

[training]
epochs = 2
threads = 1
"""
FILES = {
    "best/getd-tiny": TINY,
    "figures/small": FIGURE,
    "figures/curves": CURVES,
    "tuning/small": STUDY,
}
Getd = Callable[..., Any]


@pytest.fixture
def tiny_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Rows that take no time, and a folder of results beside them."""
    for name, text in FILES.items():
        path = tmp_path / "rows" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(rows_module, "ROWS", tmp_path / "rows")
    monkeypatch.chdir(tmp_path)
    all_rows.cache_clear()
    yield tmp_path / "experiments"
    all_rows.cache_clear()


@pytest.mark.parametrize(
    "name", [name for name, row in all_rows().items() if row.kind not in ("derived", "table")]
)
def test_every_row_builds_its_model_on_a_known_data_set(name: str) -> None:
    row = find_row(name)
    assert row.tables["data"] in {*DATASETS, *SYNTHETIC}
    arity = int(row.tables["data"][-1]) if row.tables["data"][-2:-1] == "-" else 2
    for point in points(row, [0]):
        config = Config.parse(point.config)
        with torch.device("meta"):
            make_model(
                config.model_name,
                config.model,
                ModelSizes(20, 3, [arity]),
            )


def test_committed_results_are_those_of_their_rows() -> None:
    """The settings of a row may not change without its results."""
    for result in read_results(EXPERIMENTS):
        row = find_row(result["row"])
        known = {point.name: point for point in points(row, [result["seed"]])}
        name = Point(row.name, result["seed"], {}, result.get("series", ""), result.get("x")).name
        assert name in known
        assert result_path(EXPERIMENTS, known[name]).exists()
        if row.kind in ("training", "figure"):
            wanted = Config.parse(known[name].config, seed=result["seed"]).tables()
            # Settings that came later have the value of what was done before.
            kept = Config.parse(result["config"]).tables()
            for section in ("model", "training"):
                assert kept[section] == wanted[section], f"{name} [{section}]"


def test_results_say_what_they_must() -> None:
    for result in read_results(EXPERIMENTS):
        assert {"row", "seed", "versions", "machine"} <= set(result)
        if find_row(result["row"]).kind != "table":
            assert {"data", "model", "metrics", "interval", "protocol", "config", "seconds"} <= set(
                result
            )
            assert 0 < result["metrics"]["mrr"] <= 1


def test_a_row_is_measured_once_and_comes_back_when_it_is_deleted(
    getd: Getd, tiny_rows: Path
) -> None:
    assert getd("reproduce", "best/getd-tiny", "figures/small", "--seeds", 2, "--quiet").code == 0
    first = {
        result["seed"]: result
        for result in read_results(tiny_rows)
        if result["row"] == "best/getd-tiny"
    }
    assert sorted(first) == [0, 1]
    assert first[0]["published"] == {"mrr": 0.5}
    assert first[0]["commit"] == commit_of()
    assert first[0]["versions"]["getd"] == (f"{VERSION}+{commit_of()}" if commit_of() else VERSION)
    page = (tiny_rows / "README.md").read_text(encoding="utf-8")
    assert "![small](figures/small.svg)" in page
    assert f"{first[0]['metrics']['mrr']:.4f}, {first[1]['metrics']['mrr']:.4f}" in page
    found = json.loads(getd("reproduce", "best/getd-tiny", "--seeds", 2, "--quiet", "--json").out)
    assert found["written"] == []
    (tiny_rows / "results" / "best-getd-tiny-seed-0.json").unlink()
    (tiny_rows / "figures" / "small.png").unlink()
    found = json.loads(getd("reproduce", "best/getd-tiny", "--quiet", "--json").out)
    assert [Path(path).name for path in found["written"]] == ["best-getd-tiny-seed-0.json"]
    again = json.loads((tiny_rows / "results" / "best-getd-tiny-seed-0.json").read_text())
    assert again["metrics"] == first[0]["metrics"]
    assert (tiny_rows / "figures" / "small.png").exists()


@pytest.mark.parametrize("added", ["+memory", "+ensemble", "+valid", "+memory+ensemble+valid"])
def test_rows_made_from_the_runs_of_another(getd: Getd, tiny_rows: Path, added: str) -> None:
    assert getd("reproduce", f"best/getd-tiny{added}", "--quiet").code == 0
    (result,) = [
        found for found in read_results(tiny_rows) if found["row"] == f"best/getd-tiny{added}"
    ]
    assert result["members"] == ([0, 1, 2] if "ensemble" in added else [0])
    assert ("memory" in result) == ("memory" in added)
    protocol, trained_on = result["protocol"], ["train", "valid"] if "valid" in added else ["train"]
    ranked = {"filter": "known answers of train and valid left out", "sample": None}
    assert protocol["trained_on"] == trained_on
    assert protocol["filter"] == "known answers of train, valid and test left out"
    assert protocol["members"] == len(result["members"])
    assert protocol["epoch"] == {"chosen_on": "valid", **ranked}
    if "memory" in added:
        assert protocol["memory"].pop("weights") == sum(
            1 + 2 * len(weights["sources"])
            for weights in result["memory"].values()
            if weights["sources"]
        )
        assert protocol["memory"] == {"counts": trained_on, "fitted_on": "valid", **ranked}
    else:
        assert protocol["memory"] is None
    assert chosen_by(result) == "valid, train and valid in the filter"


def test_curves_show_every_epoch(getd: Getd, tiny_rows: Path) -> None:
    assert getd("reproduce", "figures/curves", "--quiet").code == 0
    (result,) = read_results(tiny_rows)
    assert result["curves"]["epoch"] == [1, 2, 3]
    assert all(len(result["curves"][key]) == 3 for key in ("train_loss", "test_loss", "test_mrr"))
    assert (tiny_rows / "figures" / "curves.svg").exists()
    filtered = "known answers of train and valid left out"  # of which valid is test here
    assert result["protocol"]["epoch"] == {"chosen_on": "test", "filter": filtered, "sample": None}
    assert (
        "what the files call their best epoch was chosen on it"
        in (tiny_rows / "README.md").read_text()
    )


def test_a_study_is_kept_with_its_trials_and_drawn_from_them(getd: Getd, tiny_rows: Path) -> None:
    assert "not run; about 1 minutes" in getd_page(getd, tiny_rows)
    assert getd("reproduce", "tuning/small", "--quiet").code == 0
    (result,) = read_results(tiny_rows)
    assert [trial["number"] for trial in result["trials"]] == [0, 1, 2]
    assert result["best"] == max(result["trials"], key=lambda trial: trial["mrr"])["number"]
    picture = tiny_rows / "figures" / "tuning-small.svg"
    first = picture.read_bytes()
    picture.unlink()
    page = getd_page(getd, tiny_rows)
    assert picture.read_bytes()[:200] == first[:200]
    assert "### A small study\n\n3 complete; 0 minutes. Best on validation: trial " in page


def getd_page(getd: Getd, into: Path) -> str:
    assert getd("reproduce", "--quiet").code == 0
    return (into / "README.md").read_text()


def test_a_budget_ends_and_the_same_command_goes_on(getd: Getd, tiny_rows: Path) -> None:
    result = getd("reproduce", "best/getd-tiny", "--quiet", "--budget", 0)
    assert (result.code, read_results(tiny_rows)) == (0, [])
    assert getd("reproduce", "best/getd-tiny", "--quiet").code == 0
    assert len(read_results(tiny_rows)) == 1


def test_rows_are_listed_with_what_is_measured(getd: Getd, tiny_rows: Path) -> None:
    getd("reproduce", "best/getd-tiny", "--quiet")
    listed = {
        row["row"]: row for row in json.loads(getd("reproduce", "list", "--json").out)["rows"]
    }
    assert listed["best/getd-tiny"]["results"] == 1
    assert listed["best/getd-tiny+memory"]["results"] == 0
    assert "claims" in listed


def test_results_of_before_say_which_filter_chose_them() -> None:
    plain = {"protocol": {"split": "test"}}
    assert chosen_by(plain) == "valid, all splits in the filter"
    assert chosen_by({**plain, "curves": {}}) == "test, all splits in the filter"
    last = {"chosen_on": None, "filter": None, "sample": None}
    assert chosen_by({"protocol": {"epoch": last}}) == "the last epoch"


def test_the_committed_page_is_made_from_the_committed_results() -> None:
    assert page_text(read_results(EXPERIMENTS)) == (EXPERIMENTS / "README.md").read_text(
        encoding="utf-8"
    )


def test_the_committed_verdicts_are_those_of_the_committed_results() -> None:
    results = read_results(EXPERIMENTS)
    (kept,) = [result for result in results if result["row"] == "claims"]
    assert kept["claims"] == check_claims(results)


def test_a_typo_gets_the_nearest_row(getd: Getd) -> None:
    result = getd("reproduce", "best/getd-jf17k4")
    assert result.code == 2
    assert (
        result.err
        == "no row 'best/getd-jf17k4'; did you mean 'best/getd-jf17k-4'? (see: getd reproduce list)\n"
    )


def test_splits_put_together() -> None:
    kb = load("Synthetic10-3")
    merged = valid_in_train(kb)
    assert list(merged.splits) == ["train", "test"]
    assert len(merged.split("train")[3]) == len(kb.split("train")[3]) + len(kb.split("valid")[3])
    assert np.array_equal(
        with_test_as_valid(kb).split("valid")[3].entities, kb.split("test")[3].entities
    )


def test_the_paper_counts_what_we_count(real_data: Path) -> None:
    for data in ("WikiPeople-4", "JF17K-4"):
        kb = load(data)
        found = [
            kb.n_entities,
            kb.n_relations,
            *(len(kb.split(split)[4]) for split in ("train", "valid", "test")),
        ]
        assert found == published()["statistics"][data]


def test_every_row_is_in_the_package() -> None:
    assert {path.parent.name for path in ROWS.rglob("*.toml")} == {
        "best",
        "figures",
        "paper",
        "tuning",
    }
