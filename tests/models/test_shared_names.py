"""Relations of one name with other roles have a vector in common in the encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import getd
from getd.models.base import ModelSizes
from getd.models.encoder import Encoder, EncoderSettings
from getd.models.registry import make_model

SHARED = [0, 1, 0]  # the names of three relations


def encoder(names: list[int] | None) -> Encoder:
    """A model whose relations have the same roles and no vectors of their own."""
    sizes = ModelSizes(9, 3, (2,), roles=[[0, 1]] * 3, names=names)
    generator = torch.Generator().manual_seed(0)
    model = make_model("encoder", EncoderSettings(entity_dim=8, heads=2), sizes, generator)
    assert isinstance(model, Encoder)
    torch.nn.init.zeros_(model.relation.weight)
    return model.eval()


@pytest.mark.parametrize("position", [0, 1])
def test_what_relations_of_one_name_have_in_common_is_that_of_the_name(position: int) -> None:
    entities = torch.tensor([[1, 2]]).expand(3, -1)
    queries = encoder(SHARED).query(torch.arange(3), entities, position)
    torch.testing.assert_close(queries[0], queries[2])
    assert not torch.allclose(queries[0], queries[1])


def test_names_tell_open_relations_apart() -> None:
    scores = encoder(SHARED).score_relations(torch.tensor([[1, 2]])).flatten().tolist()
    assert scores[0] == pytest.approx(scores[2])
    assert scores[0] != pytest.approx(scores[1])


def test_exported_vectors_of_relations_are_those_that_are_scored() -> None:
    model = encoder(SHARED)
    torch.nn.init.normal_(model.relation.weight)
    table = model.relation_tables()["relation"]
    torch.testing.assert_close(table.weight, model.relation_candidates())
    assert not torch.allclose(table.weight, model.relation.weight)


def test_a_run_from_before_names_were_shared_opens(tmp_path: Path) -> None:
    lines = []
    for i in range(12):
        entities = {"who": f"p{i}", "where": f"w{i % 3}"}
        lines.append(json.dumps({"relation": "worked", "entities": entities}))
        lines.append(json.dumps({"relation": "worked", "entities": entities | {"since": f"y{i}"}}))
    data = tmp_path / "facts.jsonl"
    data.write_text("\n".join(lines))
    config = {"model": {"name": "encoder", "entity_dim": 8}, "training": {"epochs": 1}}
    path = getd.train(data, out=tmp_path / "run", config=config).path

    sizes = json.loads((path / "model.json").read_text())
    assert sizes.pop("names") == [0, 0]
    (path / "model.json").write_text(json.dumps(sizes))
    weights = load_file(path / "weights.safetensors")
    del weights["name.weight"]
    save_file(weights, path / "weights.safetensors")

    run = getd.open_run(path)
    assert run.predict("worked", {"who": "p1", "where": "?"}, include_known=True)
