"""The files of a run."""

from __future__ import annotations

from pathlib import Path

from getd.runs.folder import RunFolder


def test_a_history_with_a_torn_last_line_is_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append_history({"epoch": 1, "loss": 2.5, "seconds": 1})
    folder.append_history({"epoch": 2, "loss": 1.5, "seconds": 1})
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert [line.epoch for line in folder.read_history()] == [1, 2]
    folder.cut_history(1)
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1, "loss": 2.5, "seconds": 1}\n'


def test_the_config_of_a_run_says_single_values(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    model = {"name": "getd", "entity_dim": 4}
    folder.write_config({"model": model})
    config = folder.read_config()
    assert (config.model_name, config.model_values) == ("getd", {"entity_dim": 4})
    assert (config.validation_sample, config.learns_relations) == (None, False)

    training = {"validation_sample": 30, "relation_loss": 0.1}
    folder.write_config({"model": model, "training": training})
    config = folder.read_config()
    assert (config.validation_sample, config.learns_relations) == (30, True)
