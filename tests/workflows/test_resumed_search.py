"""A search that was stopped at any point ends with the run that it would have left."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import getd as package
from getd.errors import RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.training import loop
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.workflows import budget as workflow
from getd.workflows import winner as ending
from getd.workflows.competition import SearchCallbacks
from getd.workflows.search_state import WorkFolder
from tests.tiny import tiny_knowledge_base
from tests.workflows.world import BATCHES, SMALL, World, record_of, search

SHORT = 0.7  # minutes: the default, and a little of the others


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_other_facts_are_refused_even_if_all_trainings_are_over(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(ending, "_publish", stop)
        with pytest.raises(Interrupted):
            search(kb, out, SHORT, World())

    fewer = {arity: facts.take(slice(1, None)) for arity, facts in kb.split("train").items()}
    splits = {split: kb.split(split) for split in ("valid", "test")}
    other = kb.with_splits(train=fewer, **splits)
    with pytest.raises(RunError) as caught:
        search(other, out, SHORT, World(), resume=True)
    first = tmp_path / "run.candidates" / "default"
    facts = "other facts than tiny has (96 train facts, found 94)"
    assert str(caught.value) == f"{first} was trained on {facts}; begin another run"
    assert not out.exists()
    search(kb, out, SHORT, World(), resume=True)


@pytest.mark.parametrize("lost", ["report.json", "weights.safetensors", ""])
def test_a_run_that_is_published_stays_as_it_is(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The search was stopped while it removed its own copy of the run."""
    out = tmp_path / "run"

    def remove_a_part(work: WorkFolder) -> None:
        for run in work.path.glob("*/"):
            if lost:
                (run / lost).unlink(missing_ok=True)
            else:
                shutil.rmtree(run)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "remove", remove_a_part)
        with pytest.raises(Interrupted):
            search(kb, out, SHORT, World())
    before = contents(out)
    assert {"report.json", "weights.safetensors"} <= set(before)

    run = package.train(None, out=out, resume=True, budget=SHORT)
    assert run.path == out
    assert before.items() <= contents(out).items()  # pictures are drawn at the end
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_winner_stays_the_winner_once_test_may_have_been_read(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more time, another candidate might be chosen, and would read test as well."""
    out = tmp_path / "run"
    finish = ending._finish

    def finish_and_stop(*arguments: Any) -> None:
        finish(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ending, "_finish", finish_and_stop)
        with pytest.raises(Interrupted):
            search(kb, out, SHORT, World())
    state = WorkFolder.of(out).read()
    assert state.winner is not None

    world = World()
    monkeypatch.setattr(ending, "choose_winner", stop)
    search(kb, out, 10 * SHORT, world, resume=True)
    assert world.begun == []
    record = record_of(out)
    assert tuple(record["winner"]) == state.winner.members
    assert len(record["comparisons"]) == len(state.winner.comparisons)
    assert RunFolder(out).read_report()


class Signals(World):
    """Sends an interrupt in the last validation of a candidate."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def on_training(self, name: str, epoch: int) -> Callbacks:
        shown = super().on_training(name, epoch)

        def on_epoch(epoch: Epoch) -> None:
            shown.on_epoch(epoch)
            if name == self.name and epoch.epoch == 8:
                signal.raise_signal(signal.SIGINT)

        return Callbacks(shown.on_batch, on_epoch)


def test_an_interrupt_in_the_last_validation_of_a_candidate_stops_the_search(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    world = Signals("default")
    with pytest.raises(Interrupted):
        search(kb, tmp_path / "run", 10.0, world)
    assert {name for name, _ in world.begun} == {"default"}

    resumed = World()
    search(kb, tmp_path / "run", SHORT, resumed, resume=True)
    assert resumed.batches["default"] == 0
    assert len(RunFolder(tmp_path / "run").read_history()) == 8


def test_an_interrupt_while_a_checkpoint_is_written_stops_the_search(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training stops at the end of an epoch, for the others to have their turn."""
    world = World()
    save = loop.save_checkpoint

    def interrupted_save(*arguments: Any) -> None:
        save(*arguments)
        if world.batches["averaged"] == BATCHES + 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loop, "save_checkpoint", interrupted_save)
    with pytest.raises(Interrupted):
        search(kb, tmp_path / "run", 10.0, world)
    assert world.begun[-1][0] == "averaged"


def test_a_callback_that_stops_a_training_stops_the_search(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    world = World()
    callbacks = SearchCallbacks(lambda name, epoch: Callbacks(should_stop=lambda: True))
    config = Config.parse(SMALL)
    with pytest.raises(Interrupted, match=r"^resume with: getd train --resume --budget 0\.7 --out"):
        workflow.search(kb, config, tmp_path / "run", SHORT, callbacks=callbacks, clock=world)
    work = WorkFolder.of(tmp_path / "run")
    assert work.epochs_done("default") == 0
    search(kb, tmp_path / "run", SHORT, world, resume=True)
