"""``getd reproduce``: rows are measured once, and the page shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from getd.experiments import rows as rows_module
from getd.experiments.result import Measurement, StudyMeasurement, chosen_by, read_results
from getd.experiments.rows import all_rows
from getd.io.environment import commit_of

VERSION = version("getd")
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


def measurements(folder: Path, row: str) -> list[Measurement]:
    results = [result for result in read_results(folder) if result.row == row]
    assert all(isinstance(result, Measurement) for result in results)
    return results  # type: ignore[return-value]


def test_a_row_is_measured_once_and_comes_back_when_it_is_deleted(
    getd: Getd, tiny_rows: Path
) -> None:
    assert getd("reproduce", "best/getd-tiny", "figures/small", "--seeds", 2, "--quiet").code == 0
    first, second = measurements(tiny_rows, "best/getd-tiny")
    assert [first.seed, second.seed] == [0, 1]
    assert first.published == {"mrr": 0.5}
    assert first.commit == commit_of()
    assert first.versions["getd"] == (f"{VERSION}+{commit_of()}" if commit_of() else VERSION)

    page = (tiny_rows / "README.md").read_text(encoding="utf-8")
    assert "![small](figures/small.svg)" in page
    assert f"{first.mrr:.4f}, {second.mrr:.4f}" in page
    again = json.loads(getd("reproduce", "best/getd-tiny", "--seeds", 2, "--quiet", "--json").out)
    assert again["written"] == []

    (tiny_rows / "results" / "best-getd-tiny-seed-0.json").unlink()
    (tiny_rows / "figures" / "small.png").unlink()
    again = json.loads(getd("reproduce", "best/getd-tiny", "--quiet", "--json").out)
    assert [Path(path).name for path in again["written"]] == ["best-getd-tiny-seed-0.json"]
    assert measurements(tiny_rows, "best/getd-tiny")[0].metrics == first.metrics
    assert (tiny_rows / "figures" / "small.png").exists()


@pytest.mark.parametrize("added", ["+memory", "+ensemble", "+valid", "+memory+ensemble+valid"])
def test_rows_made_from_the_runs_of_another(getd: Getd, tiny_rows: Path, added: str) -> None:
    assert getd("reproduce", f"best/getd-tiny{added}", "--quiet").code == 0
    (result,) = measurements(tiny_rows, f"best/getd-tiny{added}")
    assert result.members == ((0, 1, 2) if "ensemble" in added else (0,))
    assert bool(result.memory) == ("memory" in added)

    protocol = result.protocol.as_dict()
    trained_on = ["train", "valid"] if "valid" in added else ["train"]
    ranked = {"filter": "known answers of train and valid left out", "sample": None}
    assert protocol["trained_on"] == trained_on
    assert protocol["filter"] == "known answers of train, valid and test left out"
    assert protocol["members"] == len(result.members)
    assert protocol["epoch"] == {"chosen_on": "valid", **ranked}
    if "memory" in added:
        sources = [weights["sources"] for weights in result.memory.values()]
        n_weights = sum(1 + 2 * len(each) for each in sources if each)
        assert protocol["memory"].pop("weights") == n_weights
        assert protocol["memory"] == {"counts": trained_on, "fitted_on": "valid", **ranked}
    else:
        assert protocol["memory"] is None
    assert chosen_by(result) == "valid, train and valid in the filter"


def test_curves_show_every_epoch(getd: Getd, tiny_rows: Path) -> None:
    assert getd("reproduce", "figures/curves", "--quiet").code == 0
    (result,) = measurements(tiny_rows, "figures/curves")
    curves = result.curves
    assert curves is not None
    assert curves.epoch == (1, 2, 3)
    lengths = [len(curve) for curve in (curves.train_loss, curves.test_loss, curves.test_mrr)]
    assert lengths == [3, 3, 3]
    assert (tiny_rows / "figures" / "curves.svg").exists()

    filtered = "known answers of train and valid left out"  # of which valid is test here
    assert result.protocol.epoch is not None
    assert result.protocol.epoch.model_dump() == {
        "chosen_on": "test",
        "filter": filtered,
        "sample": None,
    }
    page = (tiny_rows / "README.md").read_text(encoding="utf-8")
    assert "what the files call their best epoch was chosen on it" in page


def test_a_study_is_kept_with_its_trials_and_drawn_from_them(getd: Getd, tiny_rows: Path) -> None:
    assert "not run; about 1 minutes" in getd_page(getd, tiny_rows)
    assert getd("reproduce", "tuning/small", "--quiet").code == 0
    (result,) = measurements(tiny_rows, "tuning/small")
    assert isinstance(result, StudyMeasurement)
    assert [trial.number for trial in result.trials] == [0, 1, 2]
    assert result.best == max(result.trials, key=lambda trial: trial.mrr or 0.0).number

    picture = tiny_rows / "figures" / "tuning-small.svg"
    first = picture.read_bytes()
    picture.unlink()
    page = getd_page(getd, tiny_rows)
    assert picture.read_bytes() == first
    assert "### A small study\n\n3 complete; 0 minutes. Best on validation: trial " in page
    first_trial = f"Trial 0, {result.trials[0].mrr:.4g}, has the settings that it began with."
    assert page.count("has the settings that it began with") == page.count(first_trial) == 1


def getd_page(getd: Getd, folder: Path) -> str:
    assert getd("reproduce", "--quiet").code == 0
    return (folder / "README.md").read_text(encoding="utf-8")


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


def test_a_typo_gets_the_nearest_row(getd: Getd) -> None:
    result = getd("reproduce", "best/getd-jf17k4")
    assert result.code == 2
    hint = "did you mean 'best/getd-jf17k-4'? (see: getd reproduce list)"
    assert result.err == f"no row 'best/getd-jf17k4'; {hint}\n"
