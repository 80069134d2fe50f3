"""A competition is fair and keeps its time, however it is stopped; its trainings are scripted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from getd.errors import GetdError, WriteError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.workflows import competition
from getd.workflows.competition import Search, SearchCallbacks, Standings
from getd.workflows.search_state import Candidate, SearchState, WorkFolder
from tests.tiny import tiny_knowledge_base

BATCHES = 4  # of an epoch
EPOCHS = 8
Curve = Sequence[float | None]  # the MRR after each epoch; patience ends with the last


class Script:
    """Trainings that follow curves: a batch takes a second, a validation two."""

    def __init__(self, **curves: Curve) -> None:
        self.curves = curves
        self.now = 0.0
        self.checkpoints: dict[str, int] = {}  # batches of the epoch under way
        self.trained: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.interrupt_at: tuple[str, int, int] | None = None  # candidate, epoch, batch
        self.is_interrupt_late = False  # it comes while a checkpoint is written
        self.epoch_seconds: set[float] = set()  # as noted after each training

    def __call__(self) -> float:
        return self.now

    def note(self, standings: Standings) -> None:
        self.epoch_seconds.add(standings.candidate.epoch_seconds)

    def train(
        self, kb: KnowledgeBase, config: Config, out: Path, callbacks: Callbacks, **options: Any
    ) -> None:
        """Take the place of :func:`getd.training.start.train`."""
        name = out.name
        self.trained.append(name)
        out.mkdir(parents=True, exist_ok=True)
        if name in self.failures:
            raise self.failures[name]

        curve = self.curves[name]
        done = len(RunFolder(out).read_history())
        callbacks.on_start(config.training.epochs)
        for epoch in range(done + 1, min(config.training.epochs, len(curve)) + 1):
            self._train_epoch(name, epoch, callbacks)
            append_epoch(out, epoch, curve[epoch - 1])
            callbacks.on_epoch(Epoch(epoch, 1.0, BATCHES, 1, 0.1, curve[epoch - 1]))

    def _train_epoch(self, name: str, epoch: int, callbacks: Callbacks) -> None:
        for batch in range(self.checkpoints.get(name, 0) + 1, BATCHES + 1):
            self.now += 1
            self.checkpoints[name] = batch
            callbacks.on_batch(epoch, batch, BATCHES)
            is_due = self.interrupt_at == (name, epoch, batch)
            if is_due and not self.is_interrupt_late:
                raise Interrupted(by_signal=True)
            if callbacks.should_stop():
                raise Interrupted(by_signal=is_due)
        self.now += 2
        self.checkpoints[name] = 0


def append_epoch(out: Path, epoch: int, mrr: float | None) -> None:
    line = {"epoch": epoch, "loss": 1.0, "seconds": float(BATCHES), "valid_mrr": mrr}
    RunFolder(out).append_history(line)


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkFolder:
    """A folder whose trainings are scripted by what :func:`compete` is given."""
    monkeypatch.setattr(competition.start, "train", None)
    return WorkFolder(tmp_path / "run.candidates")


def compete(
    kb: KnowledgeBase,
    work: WorkFolder,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float = 1e4,
    **training: Any,
) -> SearchState:
    """Begin a search among the curves of a script, or resume it."""
    monkeypatch.setattr(competition.start, "train", script.train)
    if not work.exists():
        tables = {"model": {"name": "n-cp"}, "training": {"epochs": EPOCHS, "seed": 0, **training}}
        config = Config.parse(tables)
        work.write(
            SearchState(given={}, candidates=[Candidate.of(name, config) for name in script.curves])
        )
    state = work.read()
    callbacks = SearchCallbacks(on_standings=script.note)
    Search(kb, work, state, seconds, callbacks, script).train()
    return state


def standings_of(state: SearchState) -> dict[str, str]:
    return {candidate.name: candidate.standing for candidate in state.candidates}


def rising(start: float) -> list[float]:
    return [start + epoch / 1000 for epoch in range(EPOCHS)]


def test_candidates_that_finished_early_stay_in_the_field_after_a_resume(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four end before the first rung and lead, so the other two stop there."""
    standings = []
    for interrupt_at in (None, ("c", 2, 2), ("d", 2, 2)):
        early = [0.8, 0.9]
        script = Script(default=rising(0.5), a=early, b=early, c=rising(0.2), d=rising(0.1))
        script.interrupt_at = interrupt_at
        work = WorkFolder(tmp_path / f"{interrupt_at}.candidates")
        if interrupt_at:
            with pytest.raises(Interrupted):
                compete(kb, work, script, monkeypatch)
            script.interrupt_at = None
        standings.append(standings_of(compete(kb, work, script, monkeypatch)))
    expected = {"default": "finished", "a": "finished", "b": "finished", "c": "stopped"}
    assert standings == [{**expected, "d": "stopped"}] * 3


@pytest.mark.parametrize("batch", range(1, BATCHES + 1))
@pytest.mark.parametrize("at", [("default", 1), ("default", 3), ("a", 1), ("a", 4)])
def test_an_epoch_takes_as_long_after_an_interrupt_within_it(
    kb: KnowledgeBase,
    work: WorkFolder,
    monkeypatch: pytest.MonkeyPatch,
    at: tuple[str, int],
    batch: int,
) -> None:
    script = Script(default=rising(0.5), a=rising(0.6), b=rising(0.1))
    script.interrupt_at = (*at, batch)
    with pytest.raises(Interrupted):
        compete(kb, work, script, monkeypatch)
    script.interrupt_at = None
    compete(kb, work, script, monkeypatch)

    # Too little of a first epoch is left to time it: at first it has the time of its history.
    is_unknown = at[1] == 1 and batch > BATCHES / 2
    assert script.epoch_seconds == {BATCHES + 2} | ({BATCHES} if is_unknown else set())


def test_epochs_that_a_killed_search_did_not_note_have_the_time_of_their_history(
    kb: KnowledgeBase, work: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(default=rising(0.5), a=rising(0.6))
    for name in script.curves:
        (work.path / name).mkdir(parents=True)
        append_epoch(work.path / name, 1, 0.5)
    state = compete(kb, work, script, monkeypatch)
    assert standings_of(state) == {"default": "finished", "a": "finished"}
    assert script.epoch_seconds == {BATCHES, BATCHES + 2}


@pytest.mark.parametrize("given", [EPOCHS, 2 * EPOCHS])
@pytest.mark.parametrize("spent", [0.0, 1e5])
def test_a_candidate_that_had_its_last_epoch_when_the_search_was_stopped_gets_no_more(
    kb: KnowledgeBase,
    work: WorkFolder,
    monkeypatch: pytest.MonkeyPatch,
    given: int,
    spent: float,
) -> None:
    script = Script(default=[*rising(0.5), *rising(0.6)])
    (work.path / "default").mkdir(parents=True)
    for epoch, mrr in enumerate(rising(0.5), start=1):
        append_epoch(work.path / "default", epoch, mrr)
    config = Config.parse({"model": {"name": "n-cp"}}, epochs=given, seed=0)
    default = Candidate.of("default", config)
    default.epochs = EPOCHS
    default.epoch_seconds = 6.0
    work.write(SearchState(given={}, candidates=[default], spent=spent))

    state = compete(kb, work, script, monkeypatch)
    assert standings_of(state) == {"default": "finished"}
    assert state.candidates[0].epochs == work.epochs_done("default") == EPOCHS


def test_a_field_that_is_not_validated_yet_is_not_halved_and_keeps_its_time(
    kb: KnowledgeBase, work: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [*[None] * (EPOCHS - 1), 0.5]
    script = Script(default=late, a=late, b=late, c=late, d=late)
    whole = EPOCHS * BATCHES + 2 * EPOCHS
    seconds = 3.6 * whole / competition.TRAINING_SHARE
    state = compete(kb, work, script, monkeypatch, seconds, validate_every=EPOCHS)
    reasons = {candidate.reason for candidate in state.candidates}
    assert not any(reason and "worse half" in reason for reason in reasons)
    assert list(standings_of(state).values()).count("finished") >= 3
    assert script.now <= competition.TRAINING_SHARE * seconds + BATCHES + 2


def test_a_field_is_halved_as_soon_as_all_of_it_are_validated(
    kb: KnowledgeBase, work: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def curve(mrr: float) -> Curve:
        return [None, None, mrr, *[None] * (EPOCHS - 4), mrr]

    script = Script(default=curve(0.5), a=curve(0.2), b=curve(0.6))
    state = compete(kb, work, script, monkeypatch, validate_every=3)
    assert standings_of(state) == {"default": "finished", "a": "stopped", "b": "finished"}
    assert state.candidates[1].reason == "in the worse half after 50% of its epochs"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (GetdError("the loss became nan"), "the loss became nan"),
        (MemoryError(), "out of memory"),
        (RuntimeError("cannot allocate memory\n  at alloc.cpp"), "cannot allocate memory"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_a_candidate_without_memory_fails_alone_and_says_so_in_one_line(
    kb: KnowledgeBase,
    work: WorkFolder,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: str,
) -> None:
    script = Script(default=rising(0.5), a=rising(0.6), b=rising(0.1))
    script.failures["a"] = error
    state = compete(kb, work, script, monkeypatch)
    assert standings_of(state) == {"default": "finished", "a": "failed", "b": "finished"}
    assert state.candidates[1].reason == reason


def test_a_full_disk_stops_the_search_and_no_candidate_fails_for_it(
    kb: KnowledgeBase, work: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(default=rising(0.5), a=rising(0.6))
    script.failures["a"] = WriteError("cannot write a: No space left on device")
    with pytest.raises(WriteError, match=r"^cannot write a: No space left on device$"):
        compete(kb, work, script, monkeypatch)
    del script.failures["a"]
    state = compete(kb, work, script, monkeypatch)
    assert standings_of(state) == {"default": "finished", "a": "finished"}


@pytest.mark.parametrize("at", [("default", 2, 1), ("a", 2, 1)])
def test_an_interrupt_while_a_training_stops_anyway_stops_the_search(
    kb: KnowledgeBase,
    work: WorkFolder,
    monkeypatch: pytest.MonkeyPatch,
    at: tuple[str, int, int],
) -> None:
    """The timer stops a training at this batch, and the signal comes before it has ended."""
    script = Script(default=rising(0.5), a=rising(0.6), b=rising(0.1))
    script.interrupt_at = at
    script.is_interrupt_late = True
    with pytest.raises(Interrupted):
        compete(kb, work, script, monkeypatch)
    assert script.trained[-1] == at[0]
