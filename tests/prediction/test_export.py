"""A run for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import getd
from getd.errors import RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.export import vectors
from getd.run import Run

FACTS = [("r", f"e{i}", f"e{(i + 1) % 9}", f"e{(i * i) % 9}") for i in range(9)]
FACTS += [("s", f"e{i}", f"e{(2 * i) % 9}") for i in range(9)]


def train(tmp_path: Path, model: str = "getd", facts: object = None, **settings: object) -> Run:
    kb = KnowledgeBase.from_facts({"train": facts or FACTS})
    config = {"model": {"entity_dim": 4, **settings}, "training": {"epochs": 1, "threads": 1}}
    return getd.train(kb, model=model, out=tmp_path / "run", config=config)


def test_vectors_come_with_their_names(tmp_path: Path) -> None:
    run = train(tmp_path)
    names = [path.name for path in run.export(tmp_path / "tables", "parquet")]
    assert names == ["entity.parquet", "relation.parquet"]
    table = pl.read_parquet(tmp_path / "tables" / "entity.parquet")
    assert table["name"].to_list() == list(run.kb.entities)
    expected = run.model.bare.state_dict()["entity.weight"].numpy()
    assert np.array_equal(table["vector"].to_numpy(), expected)
    run.export(tmp_path / "arrays", "npz")
    with np.load(tmp_path / "arrays" / "relation.npz", allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == list(run.kb.relations)


@pytest.mark.parametrize(
    ("model", "settings", "sizes"),
    [
        ("getd", {"reciprocal": True}, {"entity": 9, "relation": 6}),
        ("n-cp", {}, {"entity-0": 9, "entity-1": 9, "entity-2": 9, "relation": 2}),
        ("nalp", {}, {"entity": 9, "role": 6}),
        ("rae", {}, {"entity": 9, "relation": 2, "normal": 2, "share": 2}),
    ],
)
def test_every_table_is_there(
    model: str, settings: dict[str, object], sizes: dict[str, int], tmp_path: Path
) -> None:
    tables = vectors(train(tmp_path, model, **settings).opened)
    assert {name: len(labels) for name, (labels, _) in tables.items()} == sizes
    assert all(len(labels) == len(table) for labels, table in tables.values())
    if model == "getd":
        labels = [f"{label} at {position}" for position in range(3) for label in "rs"]
        assert tables["relation"][0] == labels


def test_what_is_no_export_is_not_replaced(tmp_path: Path) -> None:
    run = train(tmp_path)
    with pytest.raises(RunError, match="is no export"):
        run.export(tmp_path / "run", "npz", overwrite=True)
    run.export(tmp_path / "tables", "npz")
    run.export(tmp_path / "tables", "parquet", overwrite=True)
    suffixes = sorted(path.suffix for path in (tmp_path / "tables").iterdir())
    assert suffixes == [".json", ".parquet", ".parquet"]
    (tmp_path / "tables" / "mine.parquet").touch()
    with pytest.raises(RunError, match="is no export"):
        run.export(tmp_path / "tables", "npz", overwrite=True)
    assert (tmp_path / "tables" / "mine.parquet").exists()
    assert (tmp_path / "run" / "weights.safetensors").exists()


@pytest.mark.parametrize(
    "model",
    ["getd", *(pytest.param(name, marks=pytest.mark.slow) for name in ("n-tucker", "n-cp"))],
)
def test_graphs_score_as_the_model_does(model: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="getd[onnx] is not installed")
    pytest.importorskip("onnxscript", reason="getd[onnx] is not installed")
    run = train(tmp_path, model)
    run.export(tmp_path / "graphs", "onnx")
    assert json.loads((tmp_path / "graphs" / "names.json").read_text())["relations"] == ["r", "s"]
    for arity, facts in run.kb.split("train").items():
        inputs = {"relation": facts.relation, "entities": facts.entities}
        for position in range(arity):
            path = tmp_path / "graphs" / f"arity-{arity}-position-{position}.onnx"
            (scores,) = onnxruntime.InferenceSession(path).run(["scores"], inputs)
            with torch.no_grad():
                expected = run.model.score_candidates(*facts.to_tensors(), position).numpy()
            assert np.abs(scores - expected).max() <= 1e-5


def test_what_is_no_graph_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="getd[onnx] is not installed")
    with pytest.raises(RunError, match="nalp cannot be exported to ONNX"):
        train(tmp_path, "nalp").export(tmp_path / "graphs", "onnx")
    assert not (tmp_path / "graphs").exists()
