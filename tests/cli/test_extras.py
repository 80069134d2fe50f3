"""Without extras, getd trains and predicts; a missing extra is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Result

EXTRAS = [
    *("matplotlib", "optuna", "sqlalchemy", "psycopg", "pandas", "pyarrow"),
    *("fastapi", "uvicorn", "starlette", "prometheus_client", "onnx", "onnxscript", "onnxruntime"),
]
BARE = f"""
import contextlib, io, json, sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))  # as if they were not there
from getd.cli.app import main

results = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


def bare(folder: Path, *commands: list[str]) -> list[Result]:
    """What each command does without any extra, one after the other in one process."""
    process = [sys.executable, "-c", BARE, json.dumps(commands)]
    done = subprocess.run(
        process, cwd=folder, stdout=subprocess.PIPE, env=os.environ | {"COLUMNS": "200"}, check=True
    )
    return [Result(*result) for result in json.loads(done.stdout)]


def test_the_core_alone_trains_and_predicts(tmp_path: Path) -> None:
    small = ["training.epochs=2", "model.entity_dim=8", "model.ring_ranks=4"]
    trained, answered, exported, served, drawn = bare(
        tmp_path,
        ["train", "demo", "--out", "run", "--quiet", *(f"--set={setting}" for setting in small)],
        ["predict", "run", "born in", "Ada Hale", "?", "--why"],
        ["export", "run", "--to", "parquet", "--out", "vectors"],
        ["serve", "run"],
        ["export", "run", "--to", "onnx", "--out", "graphs"],
    )
    assert trained.code == 0, trained.err
    assert "pip install 'getd[plots]'" in trained.err
    assert answered.code == 0, answered.err
    assert exported.code == 0, exported.err
    names_it(served, "serve")
    names_it(drawn, "onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "vectors"]


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["tune", "demo", "--trials", "1"], "tune"),
        (["reproduce", "paper/n-cp-jf17k-4"], "plots"),
    ],
)
def test_an_extra_that_is_missing_is_named(tmp_path: Path, command: list[str], extra: str) -> None:
    names_it(*bare(tmp_path, command), extra)
    assert not list(tmp_path.iterdir())


def names_it(result: Result, extra: str) -> None:
    """It ended with one line that says how to install the extra."""
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert result.err.strip().endswith(f"pip install 'getd[{extra}]'")
