"""Results are files, and the table is made from them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import record as record_module
from experiments.record import BEGIN, END, RESULTS, ROWS, record, result_path, write_table
from getd.facts.load import load
from getd.settings import read_toml
from getd.training.fit import full_config, train


def test_a_run_becomes_a_result_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.setattr(record_module, "RESULTS", tmp_path)
    monkeypatch.setattr(record_module, "PAGE", page)
    kb, config = load("Synthetic10-3"), {"model": {"entity_dim": 3, "ring_ranks": 2}, "published": {"mrr": 0.5}}
    for seed in (0, 1):
        run = train(kb, out=tmp_path / f"run-{seed}", config=config, epochs=1, seed=seed)
        assert record(run.folder, "some/row") == tmp_path / f"some-row-seed-{seed}.json"
    found = json.loads((tmp_path / "some-row-seed-1.json").read_text())
    assert found["seed"] == 1
    assert found["command"].endswith("some/row.toml --seed 1")
    write_table()
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| `some/row` | 0, 1 |" in text
    assert "| 0.500 |" in text


def test_committed_results_are_those_of_their_rows() -> None:
    """The settings of a row may not change without its results."""
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        assert path == result_path(result["row"], result["seed"])
        row = read_toml(ROWS / f"{result['row']}.toml")
        wanted = full_config(row, None, {"seed": result["seed"]})
        kept = full_config(result["config"], None, {})  # settings that came later stand at what was done before
        for section in ("model", "training"):
            assert kept[section] == wanted[section], f"{path.name} [{section}]"


def test_a_typo_gets_the_nearest_row() -> None:
    command = [sys.executable, "-m", "experiments", "best/getd-jf17k4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=RESULTS.parent.parent)
    assert done.returncode == 2
    assert "did you mean 'best/getd-jf17k-4'" in done.stderr
