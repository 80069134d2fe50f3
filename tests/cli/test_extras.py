"""What is installed with getd alone is enough to train and to ask; each extra that is missing is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = [
    *("matplotlib", "optuna", "sqlalchemy", "psycopg", "sklearn", "pandas", "pyarrow"),
    *("fastapi", "uvicorn", "starlette", "prometheus_client", "onnx", "onnxscript", "onnxruntime"),
]
BARE = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))  # as if they were not there
from getd.cli.entry import run
sys.exit(run())
"""


def bare(where: Path, *given: str) -> subprocess.CompletedProcess[str]:
    """The command line without any extra."""
    told = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", BARE, *given], cwd=where, capture_output=True, text=True, env=told, check=False
    )


def test_the_core_alone_trains_and_predicts(tmp_path: Path) -> None:
    small = ["training.epochs=2", "model.entity_dim=8", "model.ring_ranks=4"]
    trained = bare(tmp_path, "train", "demo", "--out", "run", "--quiet", *(f"--set={setting}" for setting in small))
    assert trained.returncode == 0, trained.stderr
    assert "pip install 'getd[plots]'" in trained.stderr
    asked = bare(tmp_path, "predict", "run", "born in", "Ada Hale", "?", "--why")
    assert asked.returncode == 0, asked.stderr
    assert bare(tmp_path, "export", "run", "--to", "parquet", "--out", "vectors").returncode == 0
    names_it(bare(tmp_path, "serve", "run"), "serve")
    names_it(bare(tmp_path, "export", "run", "--to", "onnx", "--out", "graphs"), "onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "vectors"]


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["tune", "demo", "--trials", "1"], "tune"),
        (["reproduce", "paper/n-cp-jf17k-4"], "plots"),
    ],
)
def test_an_extra_that_is_missing_is_named(tmp_path: Path, command: list[str], extra: str) -> None:
    names_it(bare(tmp_path, *command), extra)
    assert not list(tmp_path.iterdir())


def names_it(found: subprocess.CompletedProcess[str], extra: str) -> None:
    """It ended with one line that says how to install the extra."""
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert found.stderr.strip().endswith(f"pip install 'getd[{extra}]'")
