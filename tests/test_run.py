"""A run shows itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import getd
from tests.tiny import tiny_knowledge_base


def test_a_run_shows_itself_in_a_line_and_as_a_table(tmp_path: Path) -> None:
    config = {"model": {"name": "n-cp", "entity_dim": 4}, "training": {"epochs": 1}}
    run = getd.train(tiny_knowledge_base(), out=tmp_path / "run", config=config)
    mrr = run.folder.read_report().metrics.mrr
    known = f"path={run.path}, data=tiny, model=n-cp, facts=120"
    assert repr(run) == f"Run({known}, mrr={mrr:.3f})"
    assert f"{mrr:.3f}" in run._repr_html_()

    copy = shutil.copytree(run.path, tmp_path / "<copy>")
    (copy / "report.json").write_text("{")
    assert "mrr" not in repr(getd.open_run(copy))
    assert "&lt;copy&gt;" in getd.open_run(copy)._repr_html_()
