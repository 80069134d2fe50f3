"""A training resumes only with its own facts, settings and files; one line names any other."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import getd
from getd.cli.app import main
from getd.errors import RunError
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.folder import RunFolder
from getd.training import checkpoint
from getd.training.callbacks import Callbacks, Interrupted
from tests.tiny import tiny_knowledge_base

CONFIG: dict[str, Any] = {
    "model": {"name": "getd", "entity_dim": 4, "ring_ranks": 2},
    "training": {
        "regime": "sampled",
        "hard_negatives": 2,
        "shared_negatives": False,
        "ema": 0.5,
        "epochs": 2,
        "batch_size": 32,
        "threads": 1,
        "patience": 0,
    },
}
FIRST = "; --overwrite trains it from the first epoch"
STATE = "checkpoint/state.safetensors"
BROKEN = f"{STATE}: expected a checkpoint, found a broken file"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return getd.train(
        tiny_knowledge_base(), out=tmp_path_factory.mktemp("resume") / "run", config=CONFIG
    ).path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def resume(run: Path, kb: KnowledgeBase | None = None) -> None:
    getd.train(kb or tiny_knowledge_base(), out=run, resume=True, epochs=3)


def refusal(run: Path, kb: KnowledgeBase | None = None) -> str:
    with pytest.raises(RunError) as caught:
        resume(run, kb)
    return str(caught.value)


def forget_fingerprint(run: Path) -> None:
    """As runs were before it was kept."""
    roles = json.loads((run / "roles.json").read_text())
    del roles["fingerprint"]
    (run / "roles.json").write_text(json.dumps(roles))


@pytest.mark.parametrize("make_old", [lambda run: None, forget_fingerprint])
def test_other_facts_over_the_same_names_are_refused(
    run: Path, make_old: Callable[[Path], None]
) -> None:
    make_old(run)
    kb = tiny_knowledge_base()
    train, valid, test = (kb.split(name) for name in ("train", "valid", "test"))
    turned = {
        arity: Facts(facts.relation[::-1].copy(), facts.entities[::-1].copy())
        for arity, facts in train.items()
    }
    fewer = {arity: facts.take(slice(1, None)) for arity, facts in train.items()}
    others = f"{run} was trained on other facts than tiny has"
    assert (
        refusal(run, kb.with_splits(train=turned, valid=valid, test=test))
        == f"{others} (96 train facts); begin another run"
    )
    assert refusal(run, kb.with_splits(train=fewer, valid=valid, test=test)) == (
        f"{others} (96 train facts, found 94); begin another run"
    )
    assert refusal(run, kb.with_splits(train=train, valid=test, test=valid)).startswith(others)
    resume(run)


def test_facts_of_the_run_that_changed_since_it_began_are_refused(run: Path) -> None:
    facts = pl.read_parquet(run / "facts.parquet")
    facts.reverse().write_parquet(run / "facts.parquet")
    assert (
        refusal(run) == f"{run}: expected the names and facts that the run began with, found others"
    )
    assert main(["train", "--resume", "--out", str(run), "--quiet"]) == 1


def test_a_run_that_is_trained_and_has_no_checkpoint_keeps_its_weights(run: Path) -> None:
    shutil.rmtree(run / "checkpoint")
    before = (run / "weights.safetensors").read_bytes()
    assert (
        refusal(run) == f"{run} is trained and has no checkpoint to resume from; begin another run"
    )
    assert (run / "weights.safetensors").read_bytes() == before


def test_fewer_epochs_than_were_begun_are_refused_and_as_many_finish_the_run(run: Path) -> None:
    before = (run / "config.toml").read_bytes()
    with pytest.raises(RunError) as caught:
        getd.train(tiny_knowledge_base(), out=run, resume=True, epochs=1)
    expected = "expected training.epochs of 2 or more, as many as were begun"
    assert str(caught.value) == f"{run}: {expected}, found 1"
    assert (run / "config.toml").read_bytes() == before

    (run / "weights.safetensors").unlink()
    finished = getd.train(tiny_knowledge_base(), out=run, resume=True, epochs=2)
    assert len(finished.folder.read_history()) == 2


def test_an_epoch_that_is_under_way_has_begun(tmp_path: Path) -> None:
    batches = count()
    stop_in_second_epoch = Callbacks(should_stop=lambda: next(batches) == 5)  # an epoch has four
    with pytest.raises(Interrupted):
        getd.train(
            tiny_knowledge_base(),
            out=tmp_path / "run",
            config=CONFIG,
            callbacks=stop_in_second_epoch,
        )
    with pytest.raises(RunError, match=r"training\.epochs of 2 or more, .* found 1$"):
        getd.train(tiny_knowledge_base(), out=tmp_path / "run", resume=True, epochs=1)


def history(*lines: str) -> Callable[[Path], None]:
    return lambda run: (
        (run / "history.jsonl").write_text("".join(f"{line}\n" for line in lines)) and None
    )


def config(old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        text = (run / "config.toml").read_text()
        assert old in text
        (run / "config.toml").write_text(text.replace(old, new))

    return change


def tensor(name: str, make: Callable[[Any], torch.Tensor | None]) -> Callable[[Path], None]:
    """Another tensor of that name in the checkpoint, or none."""

    def change(run: Path) -> None:
        stored = load_file(run / STATE)
        with safe_open(run / STATE, framework="pt") as file:
            head = file.metadata()
        changed = make(stored.pop(name, None))
        save_file(
            stored if changed is None else {**stored, name: changed.contiguous()}, run / STATE, head
        )

    return change


def progress(**values: Any) -> Callable[[Path], None]:
    """Another progress in the head of the checkpoint."""

    def change(run: Path) -> None:
        with safe_open(run / STATE, framework="pt") as file:
            head = file.metadata()
        after = {**head, "progress": json.dumps({**json.loads(head["progress"]), **values})}
        save_file(load_file(run / STATE), run / STATE, after)

    return change


DAMAGE: dict[str, Callable[[Path], None]] = {
    "history.jsonl:1: expected JSON, found a broken file "
    "(Expecting value: line 1 column 1 (char 0))": history("x"),
    "history.jsonl:1: expected seconds, found none": history('{"epoch": 1, "loss": 1.0}'),
    "history.jsonl:1: expected a JSON object, found []": history("[]"),
    "history.jsonl:1: expected loss to be a finite number, found nan": history(
        '{"epoch": 1, "loss": NaN, "seconds": 0}'
    ),
    "history.jsonl:1: expected epoch 1, found epoch 2": history(
        '{"epoch": 2, "loss": 1, "seconds": 0}'
    ),
    "history.jsonl: expected the 2 epochs before the checkpoint, found 0": history(),
    "config.toml: expected training.batch_size = 32, "
    "as the checkpoint was written with, found 33": config("batch_size = 32", "batch_size = 33"),
    "config.toml: no setting training.epoch; did you mean 'epochs'?": config(
        "epochs = 2", "epochs = 2\nepoch = 3"
    ),
    "config.toml: expected a table [training], found a single value": config(
        "[training]", "[[training]]"
    ),
    f"{STATE}: expected entity.weight of shape [30, 4000000000], found [30, 4]": config(
        "entity_dim = 4", "entity_dim = 4000000000"
    ),
    f"{BROKEN} (progress: expected epoch to be a valid integer, found '3'){FIRST}": progress(
        epoch="3"
    ),
    f"{BROKEN} (it has an unknown part 'other'){FIRST}": tensor(
        "other/x", lambda _: torch.zeros(1)
    ),
    f"{STATE}: expected a place in 4 batches, found 0 facts in 9 batches{FIRST}": progress(
        batches_done=9
    ),
    f"{STATE}: expected entity.weight of shape [30, 4], found none": tensor(
        "model/entity.weight", lambda _: None
    ),
    f"{STATE}: expected best/entity.weight of float32, found float16{FIRST}": tensor(
        "best/entity.weight", lambda stored: stored.half()
    ),
    f"{STATE}: expected finite weights, found NaN or infinity{FIRST}": tensor(
        "average/log_product", lambda stored: stored * torch.nan
    ),
    f"{STATE}: expected optimizer/rows/0/mean of shape [30, 4], found [29, 4]{FIRST}": tensor(
        "optimizer/rows/0/mean", lambda stored: stored[1:]
    ),
    f"{STATE}: expected optimizer/x of shape none, found [1]{FIRST}": tensor(
        "optimizer/x", lambda _: torch.zeros(1)
    ),
    f"{STATE}: expected regime/cache-0 of entities that there are, found others{FIRST}": tensor(
        "regime/cache-0", lambda stored: stored + 30
    ),
    f"{STATE}: expected random/torch of shape [5056], found [5055]{FIRST}": tensor(
        "random/torch", lambda stored: stored[1:]
    ),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_damaged_file_is_named(run: Path, message: str) -> None:
    DAMAGE[message](run)
    assert refusal(run) == f"{run}/{message}"


def test_a_checkpoint_that_cannot_be_written_whole_leaves_the_one_before(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends the writing in the middle: a full disk, or a kill."""
    before = (run / STATE).read_bytes()

    def write_half(tensors: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(before[: len(before) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", write_half)
    with pytest.raises(KeyboardInterrupt):
        resume(run)
    assert (run / STATE).read_bytes() == before


def test_a_checkpoint_that_was_cut_off_is_named_with_what_to_do(run: Path) -> None:
    (run / STATE).write_bytes((run / STATE).read_bytes()[:1000])
    message = refusal(run)
    assert message.startswith(f"{run}/{BROKEN} (")
    assert message.endswith(FIRST)
    assert (
        len(
            getd.train(
                tiny_knowledge_base(), out=run, config=CONFIG, overwrite=True
            ).folder.read_history()
        )
        == 2
    )


def test_a_training_that_gets_more_epochs_fits_what_was_fitted_to_its_weights_again(
    tmp_path: Path,
) -> None:
    kb = KnowledgeBase.from_facts(
        [("r", f"a{i}", f"b{i % 5}", f"c{j}") for i in range(15) for j in range(6)]
    )
    run = getd.train(kb, out=tmp_path / "run", config=CONFIG, epochs=1, learning_rate=0.02).path
    getd.open_run(run).remember()
    before = {
        name: json.loads((run / name).read_text()) for name in ("memory.json", "calibration.json")
    }
    getd.train(kb, out=run, resume=True, epochs=20)
    after = {name: json.loads((run / name).read_text()) for name in before}
    assert all(after[name]["fitted_to"] != before[name]["fitted_to"] for name in before)
    assert getd.open_run(run).notices == ()
    assert len(RunFolder(run).read_history()) == 20


def test_the_command_that_resumes_is_quoted_for_the_shell(tmp_path: Path) -> None:
    out = tmp_path / "my run; $HOME"
    stop = Callbacks(should_stop=lambda: True)
    with pytest.raises(Interrupted) as caught:
        getd.train(tiny_knowledge_base(), out=out, config=CONFIG, callbacks=stop)
    words = shlex.split(str(caught.value))
    assert words[-1] == str(out)
