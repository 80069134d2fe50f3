"""A run folder that was tampered with is refused with one line, and nothing in it is executed."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import torch
from safetensors.torch import load_file, save_file

import getd
from getd.api import open_run
from getd.cli.app import main
from getd.errors import RunError


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = {"entity_dim": 4, "ring_ranks": 2}
    config = {"preset": "paper", "model": model, "training": {"epochs": 1, "threads": 1}}
    out = tmp_path_factory.mktemp("tampered") / "run"
    return getd.train(getd.load("demo"), out=out, config=config).path


class Bomb:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return Path("executed").touch, ()


def cut(run: Path) -> None:
    path = run / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def reshape(run: Path) -> None:
    path = run / "weights.safetensors"
    weights = load_file(path)
    weights["entity.weight"] = weights["entity.weight"][:-1].clone()
    save_file(weights, path)


def declare_much(run: Path) -> None:
    entry = {"dtype": "F32", "shape": [1 << 40, 1 << 20], "data_offsets": [0, 1 << 62]}
    head = json.dumps({"entity.weight": entry}).encode()
    (run / "weights.safetensors").write_bytes(struct.pack("<Q", len(head)) + head)


def declare_a_long_head(run: Path) -> None:
    (run / "weights.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")


def pickle_weights(run: Path) -> None:
    (run / "weights.safetensors").write_bytes(pickle.dumps(Bomb()))


def torch_weights(run: Path) -> None:
    torch.save({"entity.weight": torch.zeros(3)}, run / "weights.safetensors")


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new, 1))

    return change


def more_entities(run: Path) -> None:
    sizes = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps({**sizes, "n_entities": 10**15}))


def fewer_names(run: Path) -> None:
    lines = (run / "entities.txt").read_text().splitlines(keepends=True)
    (run / "entities.txt").write_text("".join(lines[:-3]))


def name_of_data(run: Path) -> None:
    roles = json.loads((run / "roles.json").read_text())
    (run / "roles.json").write_text(json.dumps({**roles, "data": "../../elsewhere"}))


def facts_beyond(run: Path) -> None:
    table = pl.read_parquet(run / "facts.parquet")
    table.with_columns(pl.col("relation") + 1000).write_parquet(run / "facts.parquet")


def packed_facts(run: Path) -> None:
    table = pl.read_parquet(run / "facts.parquet").head(1)
    pl.concat([table] * 1000).sample(2_000_000, with_replacement=True).write_parquet(
        run / "facts.parquet"
    )


def deep_json(run: Path) -> None:
    (run / "roles.json").write_text("[" * 200_000)


def whole_weights(run: Path) -> None:
    path = run / "weights.safetensors"
    save_file({name: tensor.to(torch.int8) for name, tensor in load_file(path).items()}, path)


def cold(run: Path) -> None:
    calibration = json.loads((run / "calibration.json").read_text())
    calibration["temperature"] = {"2": 1e-320}
    (run / "calibration.json").write_text(json.dumps(calibration))


def no_number(run: Path) -> None:
    (run / "memory.json").write_text('{"weights": {"2/0": {"scale": NaN, "sources": {}}}}')


def no_facts(run: Path) -> None:
    (run / "facts.parquet").write_bytes(b"PAR1 and no more")


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (cut, r"weights.safetensors: expected weights, found a broken file"),
        (
            reshape,
            r"weights.safetensors: expected entity.weight of shape \[201, 4\], found \[200, 4\]",
        ),
        (declare_much, r"weights.safetensors: expected weights, found a broken file"),
        (declare_a_long_head, r"weights.safetensors: expected weights, found a broken file"),
        (pickle_weights, r"weights.safetensors: expected weights, found a broken file"),
        (torch_weights, r"weights.safetensors: expected weights, found a broken file"),
        (
            edit("config.toml", "entity_dim = 4", "entity_dim = 4000000000"),
            r"make no model \(a tensor of shape \[201, 4000000000\], "
            r"larger than any of its weights\)",
        ),
        (
            edit("config.toml", "[model]", "[modell]"),
            r"config.toml: expected a table \[model\] with a name, found none",
        ),
        (
            more_entities,
            r"model.json: expected n_entities = 201, as the names and facts say, found 10{15}$",
        ),
        (
            edit("model.json", '"roles": [', '"roles": [9, '),
            r"model.json: expected roles, as the names and facts say",
        ),
        (fewer_names, r"facts.parquet: expected facts of the names of this run, found others"),
        (name_of_data, r"roles.json: expected the name of a data set, found '../../elsewhere'"),
        (
            edit("roles.json", '"relations"', '"relation"'),
            r"roles.json: expected relations, found none",
        ),
        (edit("model.json", "{", "["), r"model.json: expected JSON, found a broken file"),
        (facts_beyond, r"facts.parquet: expected facts of the names of this run, found others"),
        (no_facts, r"facts.parquet: expected facts, found a broken file"),
        (packed_facts, r"facts.parquet: expected distinct facts, found 2,000,000 in [\d,]+ bytes"),
        (deep_json, r"roles.json: expected JSON, found a broken file"),
        (whole_weights, r"weights.safetensors: expected .* of float32, found int8"),
        (cold, r"calibration.json: expected a calibration, found another thing"),
        (no_number, r"memory.json: expected the weights of a memory, found others"),
    ],
)
def test_a_tampered_run_is_refused(
    good: Path,
    tmp_path: Path,
    tamper: Callable[[Path], None],
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "run")
    tamper(tmp_path / "run")
    with pytest.raises(RunError, match=message):
        open_run(tmp_path / "run")
    assert main(["predict", "run", "born in", "Ada Hale", "?"]) == 1
    out, error = capfd.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert not (tmp_path / "executed").exists()


def test_scores_without_end_are_an_error(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    path = tmp_path / "run" / "weights.safetensors"
    weights = load_file(path)
    weights["entity.weight"] *= 1e30
    save_file(weights, path)
    assert main(["predict", str(tmp_path / "run"), "born in", "Ada Hale", "?"]) == 1
    out, error = capfd.readouterr()
    assert out == ""
    note, message = error.splitlines()
    assert note.startswith(
        f"note: {tmp_path / 'run' / 'calibration.json'} was fitted to another model and is not used"
    )
    assert "NaN or infinite" in message


def test_names_may_look_like_paths(tmp_path: Path) -> None:
    """They are names and never become paths."""
    facts = [("../r", "../../etc/passwd", f"e{i}") for i in range(6)]
    kb = getd.KnowledgeBase.from_facts({"train": facts, "valid": facts[:1]}, name="names")
    run = getd.train(kb, out=tmp_path / "run", config={"training": {"epochs": 1, "threads": 1}})
    assert open_run(run.path).predict("../r", ["?", "e1"], include_known=True)[0].name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
