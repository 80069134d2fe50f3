"""Training is deterministic, resumes anywhere bit for bit, and keeps its best weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import getd
from getd.errors import ConfigError, FactError, NonFiniteScores, RunError, ShapeError
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.predictor import Predictor
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training import loop
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.workflows.demo import answer_held_out, train_demo
from tests.conftest import Result
from tests.tiny import tiny_knowledge_base

SMALL = {"entity_dim": 6, "ring_ranks": 3, "entity_dropout": 0.1, "query_dropout": 0.1}
CONFIG = {
    "model": {"name": "getd", **SMALL},
    "training": {"epochs": 4, "batch_size": 8, "learning_rate": 0.01, "threads": 1},
}


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "weights.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def config(**training: object) -> dict[str, object]:
    values = {"model": CONFIG["model"], "training": {**CONFIG["training"], **training}}
    return {"preset": "paper", **values}


def test_the_same_seed_gives_the_same_weights(kb: KnowledgeBase, tmp_path: Path) -> None:
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        getd.train(kb, out=tmp_path / name, config=config(seed=seed, epochs=2))
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"ema": 0.9, "label_smoothing": 0.1, "relation_loss": 0.5, "n3": 0.001, "clip": 1.0},
        {"regime": "kvsall", "batch_size": 16, "epochs": 2},
        {"precision": "bf16", "ema": 0.9, "relation_loss": 0.5},
        {"precision": "bf16", "regime": "kvsall", "relation_loss": 0.5, "epochs": 2},
        {"precision": "bf16", "regime": "sampled", "negatives": 16, "epochs": 2},
        {"regime": "kvsall", "kvsall_loss": "bce-over-softmax", "batch_size": 16, "epochs": 2},
        {"validate_every": 2, "validation_sample": 5, "checkpoint_every": 2},
    ],
)
def test_a_training_that_was_stopped_anywhere_goes_on_bit_for_bit(
    kb: KnowledgeBase, tmp_path: Path, extra: dict[str, object]
) -> None:
    getd.train(kb, out=tmp_path / "whole", config=config(**extra))
    stops = iter([3, 1, 40, 11])
    left = next(stops)

    def should_stop() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    while True:
        try:
            getd.train(
                kb,
                out=tmp_path / "parts",
                config=config(**extra),
                resume=True,
                callbacks=Callbacks(should_stop=should_stop),
            )
            break
        except Interrupted:
            left = next(stops, -1)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    whole, parts = (
        [line.model_dump(exclude={"seconds"}) for line in RunFolder(tmp_path / name).read_history()]
        for name in ("whole", "parts")
    )
    assert whole == parts


def test_an_interrupt_leaves_a_checkpoint_and_says_how_to_go_on(
    getd: Callable[..., Result], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "getd",
        "train",
        "demo",
        "--out",
        str(out),
        "--set",
        "training.epochs=1000",
    ]
    process = subprocess.Popen(
        [*command, "--set", "training.threads=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("epoch 2"):
                break
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert (process.returncode, err.splitlines()[-1]) == (
        130,
        f"interrupted; resume with: getd train --resume --out {out}",
    )
    done = getd("train", "--resume", "--out", out, "--set", "training.epochs=3", "--json")
    assert done.code == 0
    assert json.loads(done.out)["epochs"] >= 2


def test_an_interrupt_in_the_last_validation_stops_before_test_is_read(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    def on_epoch(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            signal.raise_signal(signal.SIGINT)

    out = tmp_path / "run"
    callbacks = Callbacks(on_epoch=on_epoch)
    with pytest.raises(Interrupted) as stopped:
        getd.train(kb, out=out, config=config(epochs=2), callbacks=callbacks)
    assert stopped.value.by_signal
    assert str(stopped.value) == f"resume with: getd train --resume --out {out}"
    assert not (out / "report.json").exists()

    getd.train(kb, out=out, config=config(epochs=2), resume=True)
    getd.train(kb, out=tmp_path / "whole", config=config(epochs=2))
    assert same(weights(out), weights(tmp_path / "whole"))
    assert len(RunFolder(out).read_history()) == 2


def test_an_interrupt_while_a_callback_stops_the_training_is_not_lost(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the checkpoint is written."""
    save = loop.save_checkpoint
    callbacks = Callbacks(should_stop=lambda: True)

    def train() -> Interrupted:
        with pytest.raises(Interrupted) as stopped:
            getd.train(kb, out=tmp_path / "run", config=config(), callbacks=callbacks, resume=True)
        return stopped.value

    def interrupted_save(*arguments: Any) -> None:
        save(*arguments)
        signal.raise_signal(signal.SIGINT)

    assert not train().by_signal
    monkeypatch.setattr(loop, "save_checkpoint", interrupted_save)
    assert train().by_signal


def test_the_best_weights_are_a_copy_not_the_last(kb: KnowledgeBase, tmp_path: Path) -> None:
    run = getd.train(
        kb, out=tmp_path / "run", config=config(epochs=8, learning_rate=0.3, patience=3)
    )
    history = RunFolder(tmp_path / "run").read_history()
    best = max(history, key=lambda line: line.valid_mrr)
    assert run.evaluate("valid", baselines=False, by=()).mrr == pytest.approx(
        best.valid_mrr, abs=1e-9
    )
    report = run.folder.read_json("report.json")
    assert (report["best_epoch"], report["valid_mrr"]) == (best.epoch, best.valid_mrr)


def test_patience_ends_a_training(kb: KnowledgeBase, tmp_path: Path) -> None:
    getd.train(
        kb, out=tmp_path / "run", config=config(epochs=50, learning_rate=1e-9, patience=2, ema=0.0)
    )
    assert len(RunFolder(tmp_path / "run").read_history()) <= 10
    getd.train(
        kb, out=tmp_path / "never", config=config(epochs=5, learning_rate=1e-9, patience=0, ema=0.0)
    )
    assert len(RunFolder(tmp_path / "never").read_history()) == 5
    assert RunFolder(tmp_path / "never").read_config()["training"]["patience"] == 0


def test_a_loss_that_explodes_stops_the_training(kb: KnowledgeBase, tmp_path: Path) -> None:
    wild = {
        "model": {"name": "n-cp", "entity_dim": 4, "initial_scale": 1e30, "norm": "none"},
        "training": {"epochs": 1},
    }
    with pytest.raises(
        NonFiniteScores, match=r"^the loss became (nan|inf); try a smaller learning_rate$"
    ):
        getd.train(kb, out=tmp_path / "run", config=wild)


def test_one_fact_can_be_learnt_from(tmp_path: Path) -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("s", "a", "b", "c")]})
    run = getd.train(kb, out=tmp_path / "run", config=config())
    assert len(run.predict("r", ["a", "?"], include_known=True)) == 3


def test_a_run_is_kept_unless_told(kb: KnowledgeBase, tmp_path: Path) -> None:
    out = tmp_path / "run"
    getd.train(kb, out=out, config=config(epochs=1))
    with pytest.raises(RunError) as caught:
        getd.train(kb, out=out, config=config(epochs=1))
    assert (
        str(caught.value)
        == f"{out} holds a run already; pass --resume to continue it or --overwrite to replace it"
    )
    getd.train(kb, out=out, config=config(epochs=2), overwrite=True)
    with pytest.raises(RunError) as caught:
        getd.train(kb, out=out, config=config(learning_rate=0.5), resume=True)
    assert (
        str(caught.value)
        == f"{out} was begun with training.learning_rate = 0.01, found 0.5; begin another run"
    )
    other = KnowledgeBase.from_facts({"train": [("r", "a", "b")]})
    with pytest.raises(RunError, match=r" was trained on other data than facts$"):
        getd.train(other, out=out, resume=True)


def test_a_folder_that_is_no_run_is_never_replaced(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "thesis.md").write_text("years of work")
    with pytest.raises(RunError) as caught:
        getd.train(kb, out=tmp_path, overwrite=True)
    assert str(caught.value) == f"{tmp_path} is there and is no run; choose another place"
    assert (tmp_path / "thesis.md").exists()


def test_wrong_settings_are_refused_before_anything_is_written(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"^no setting training.epoch; did you mean 'epochs'\?$"):
        getd.train(kb, out=tmp_path / "run", epoch=3)
    with pytest.raises(
        ConfigError, match=r"^no section 'modell' in a config; did you mean 'model'\?$"
    ):
        getd.train(kb, out=tmp_path / "run", config={"modell": {}})
    with pytest.raises(
        ConfigError, match=r"question_weight goes with the kvsall_loss softmax or each"
    ):
        getd.train(kb, out=tmp_path / "run", kvsall_loss="bce", question_weight=1.0)
    with pytest.raises(
        ShapeError, match=r"^ring_shape is for facts of one arity; leave it out for mixed arities$"
    ):
        getd.train(kb, out=tmp_path / "run", config={"model": {"ring_shape": [5, 5]}})
    with pytest.raises(FactError, match=r"^facts has no train facts: it has test only$"):
        getd.train(KnowledgeBase.from_facts({"test": [("r", "a", "b")]}), out=tmp_path / "run")
    if not torch.cuda.is_available():
        with pytest.raises(
            ConfigError, match=r"^training.device is cuda, but torch finds no GPU here$"
        ):
            getd.train(kb, out=tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()


def test_epochs_are_told_as_they_come(kb: KnowledgeBase, tmp_path: Path) -> None:
    seen: list[Epoch] = []
    getd.train(
        kb,
        out=tmp_path / "run",
        config=config(validate_every=2),
        callbacks=Callbacks(on_epoch=seen.append),
    )
    assert [epoch.epoch for epoch in seen] == [1, 2, 3, 4]
    assert [epoch.valid_mrr is None for epoch in seen] == [True, False, True, False]
    assert seen[0].facts == sum(len(facts) for facts in kb.split("train").values())


def test_the_demo_replaces_no_run_but_its_own(kb: KnowledgeBase, tmp_path: Path) -> None:
    other = KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("r", "b", "c")]}, name="mine")
    getd.train(other, out=tmp_path / "run", config=config(epochs=1))
    with pytest.raises(RunError) as caught:
        train_demo(tmp_path / "run")
    assert (
        str(caught.value)
        == f"{tmp_path / 'run'} holds a run on mine; choose another place for the demo"
    )


def test_the_demo_is_far_above_its_baselines(trained_demo: OpenedRun) -> None:
    run = trained_demo
    report = run.folder.read_json("report.json")
    baseline = max(answers["mrr"] for answers in report["baselines"].values())
    assert report["metrics"]["mrr"] >= baseline + 0.10
    right = [each.answers[0].name == each.right for each in answer_held_out(Predictor(run))]
    assert sum(right) >= 3


def test_the_loss_on_validation_is_that_of_the_formula(kb: KnowledgeBase, tmp_path: Path) -> None:
    run = getd.train(kb, out=tmp_path / "run", config=config(epochs=1, validation_loss=True))
    known, losses = kb.known("train", "valid"), []
    for facts in kb.split("valid").values():
        for row in range(len(facts)):
            fact = facts.take(slice(row, row + 1))
            relation, entities = torch.tensor(fact.relation), torch.tensor(fact.entities)
            for position in range(facts.arity):
                scores = run.model.score_candidates(relation, entities, position)[0].tolist()
                answer, others = (
                    int(entities[0, position]),
                    known.lookup(fact.relation, fact.entities, position).values,
                )
                kept = [s for c, s in enumerate(scores) if c == answer or c not in others]
                losses.append(np.log(np.sum(np.exp(kept))) - scores[answer])
    (line,) = run.folder.read_history()
    assert line.valid_loss == pytest.approx(np.mean(losses), rel=1e-5)
    without = getd.train(kb, out=tmp_path / "b", config=config(epochs=1))
    assert without.folder.read_history()[0].valid_loss is None
