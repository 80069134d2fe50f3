"""Studies: shared, killed, gone on with; chosen on validation alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from getd.cli.app import main
from getd.errors import ConfigError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.training.callbacks import Callbacks, Interrupted
from getd.tuning.space import read_space
from getd.tuning.study import Study, TuningCallbacks
from getd.tuning.study_page import write_page
from getd.tuning.trial import Trial, best_trial
from getd.tuning.tune import StudyResult, tune
from getd.tuning.worker import is_gone, worker
from tests.tiny import tiny_knowledge_base
from tests.training.killing import CONTEXT

LONG = 900  # seconds after which a process hangs, however much else the machine has to do
SMALL_CONFIG = {
    "model": {"name": "n-cp", "entity_dim": 4},
    "training": {"epochs": 3, "batch_size": 64, "threads": 1},
}


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


@pytest.fixture
def search(kb: KnowledgeBase, tmp_path: Path) -> Callable[..., StudyResult]:
    def search(
        trials: int, study: str = "study.db", given: KnowledgeBase = kb, **more: Any
    ) -> StudyResult:
        more = {"config": SMALL_CONFIG, "out": tmp_path / "run"} | more
        return tune(given, study=tmp_path / study, trials=trials, **more)

    return search


def tried(result: StudyResult) -> list[tuple[dict[str, Any], float | None]]:
    return [(dict(trial.values), trial.mrr) for trial in result.study.trials()]


@pytest.mark.parametrize("study", ["study.db", "study.journal"])
def test_the_best_trial_is_trained_again_and_test_is_not_asked(
    search: Callable[..., StudyResult], study: str
) -> None:
    result = search(4, study)
    trials = result.study.trials()
    assert [trial.state for trial in trials] == ["complete"] * 4
    assert result.best.mrr == max(trial.mrr for trial in trials)
    assert all(trial.mrr == max(trial.curve.values()) for trial in trials)
    assert (
        len(
            {
                trial.values["model.entity_dropout"] - trial.values["model.query_dropout"]
                for trial in trials
            }
        )
        == 4
    )
    defaults = Config.parse(SMALL_CONFIG).tables()
    assert trials[0].values == {
        name: defaults[name.split(".")[0]][name.split(".")[1]]
        for name in read_space("paper", Config.parse(SMALL_CONFIG))
    }
    assert result.run is not None
    config = result.run.folder.read_config()
    assert {
        name: config[name.split(".")[0]][name.split(".")[1]] for name in result.best.values
    } == result.best.values
    assert not (result.run.path / "report.json").exists()
    assert result.run.evaluate("test").mrr > 0


def test_a_study_that_goes_on_tries_what_it_would_have_tried(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    search(2)
    second = search(5)
    whole = search(5, "other.db", out=tmp_path / "other")
    assert tried(second) == tried(whole)
    for trial in whole.study.trials():
        if trial.state == "complete":
            assert trial.about["best_epoch"] == max(trial.curve, key=trial.curve.__getitem__)
    again = search(5)
    assert tried(again) == tried(whole)
    assert (again.run.path, again.best.number) == (second.run.path, second.best.number)


def test_what_stands_in_test_plays_no_part(
    search: Callable[..., StudyResult], kb: KnowledgeBase, tmp_path: Path
) -> None:
    other = kb.with_splits(train=kb.split("train"), valid=kb.split("valid"), test=kb.split("train"))
    assert tried(search(2)) == tried(search(2, "other.db", other, out=tmp_path / "other"))


def test_settings_that_lead_nowhere_are_pruned(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    (tmp_path / "space.toml").write_text("[training.learning_rate]\nchoices = [1e38, 0.01]")
    result = search(5, space=str(tmp_path / "space.toml"))
    states = {
        trial.values["training.learning_rate"]: trial.state for trial in result.study.trials()
    }
    assert states == {1e38: "pruned", 0.01: "complete"}
    reasons = {trial.about["reason"] for trial in result.study.trials() if trial.state == "pruned"}
    assert all("learning_rate" in reason for reason in reasons)


def test_nothing_but_pruned_trials_is_an_error(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    (tmp_path / "space.toml").write_text("[training.learning_rate]\nchoices = [1e38]")
    with pytest.raises(RunError, match="every trial of this study was pruned or lost"):
        search(1, space=str(tmp_path / "space.toml"))


@pytest.mark.parametrize("pruning", ["median", "hyperband"])
def test_poor_trials_end_early(
    search: Callable[..., StudyResult], tmp_path: Path, pruning: str
) -> None:
    (tmp_path / "space.toml").write_text("[training.learning_rate]\nchoices = [0.02, 1e-6]")
    config = SMALL_CONFIG | {"training": SMALL_CONFIG["training"] | {"epochs": 9}}
    result = search(
        12, "s.journal", space=str(tmp_path / "space.toml"), config=config, pruning=pruning
    )
    trials = result.study.trials()
    assert result.best.values["training.learning_rate"] == 0.02
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert pruned
    assert all(len(trial.curve) < 9 for trial in pruned)


def test_an_interrupted_trial_is_tried_again(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    stop = TuningCallbacks(
        training=lambda number, epochs: Callbacks(should_stop=lambda: number == 1)
    )
    with pytest.raises(Interrupted, match="resume with the same command"):
        search(3, callbacks=stop)
    result = search(3)
    states = [trial.state for trial in result.study.trials()]
    assert states == ["complete", "lost", "complete", "complete"]
    assert result.study.trials()[1].values == result.study.trials()[2].values


def test_another_space_or_model_is_another_study(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    search(1)
    with pytest.raises(ConfigError, match="was begun with another space; name another study"):
        search(2, space="wide")
    with pytest.raises(ConfigError, match="was begun with another config; name another study"):
        search(2, config={**SMALL_CONFIG, "training": {**SMALL_CONFIG["training"], "epochs": 4}})


def test_a_run_that_is_not_of_the_study_stays(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match="is there and not of this study"):
        search(1)
    assert (tmp_path / "run" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ("study.txt", "expected a study FILE.db"),
        ("broken.db", "expected a SQLite file, found another"),
        ("torn.db", "expected a study, found a broken file"),
    ],
)
def test_files_that_are_no_study(
    search: Callable[..., StudyResult], tmp_path: Path, study: str, message: str
) -> None:
    (tmp_path / "broken.db").write_text("award\tJordan\tBulls\n")
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"\7" * 5000)
    with pytest.raises(ConfigError, match=message):
        search(1, study)


def test_a_trial_that_another_process_gave_up_is_tried_again(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    """As after a long sleep of the machine: its worker wakes up, and was taken for dead."""
    begun = search(1, pruning="none").study

    def callbacks(number: int, epochs: int) -> Callbacks:
        return Callbacks(
            on_epoch=lambda epoch: begun._lose(number) if (number, epoch.epoch) == (1, 2) else None
        )

    search(3, pruning="none", callbacks=TuningCallbacks(training=callbacks))
    trials = begun.trials()
    assert [trial.state for trial in trials] == ["complete", "lost", "complete", "complete"]
    assert trials[2].values == trials[1].values


def test_two_processes_share_a_study_and_a_kill_loses_one_trial(tmp_path: Path) -> None:
    settings = ["model.entity_dim=25", "training.epochs=10", "training.threads=1"]
    arguments = ["tune", "demo", "--model", "n-cp", "--trials", "3", "--quiet", "--json"]
    arguments += ["--study", str(tmp_path / "s.db"), "--out", str(tmp_path / "run")]
    arguments += ["--pruning", "none"]
    arguments += [part for setting in settings for part in ("--set", setting)]
    outputs = [tmp_path / "first.json", tmp_path / "second.json"]
    started = [CONTEXT.Process(target=command, args=(arguments, output)) for output in outputs]
    try:
        for process in started:
            process.start()
        first, second = started
        study = wait_for_study(tmp_path / "s.db", first)
        first.kill()
        second.join(LONG)
    finally:
        end(started)
    assert (first.exitcode, second.exitcode) == (-signal.SIGKILL, 0)
    result = json.loads(outputs[1].read_text(encoding="utf-8"))
    assert result["trials"] == {"complete": 3, "pruned": 0, "running": 0, "lost": 1}
    trials = study.trials()
    lost = next(trial for trial in trials if trial.state == "lost")
    assert lost.values in [trial.values for trial in trials if trial.state == "complete"]
    assert RunFolder(tmp_path / "run").is_finished()


def command(arguments: list[str], output: Path) -> None:
    """Run a command of getd in a process of its own; what it prints goes to a file."""
    with output.open("w", encoding="utf-8") as file, redirect_stdout(file):
        code = main(arguments)
    sys.exit(code)


def wait_for_study(path: Path, process: BaseProcess) -> Study:
    """The study, as soon as this process has finished a trial and is at another."""
    model = {"name": "n-cp", "entity_dim": 25}
    config = Config.parse({"model": model, "training": {"epochs": 10, "threads": 1}})
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        assert process.exitcode is None, "it ended before it had begun a trial"
        if path.exists() and path.stat().st_size > 0:
            study = Study(
                str(path), "demo-n-cp", "demo", config, read_space("paper", config), "none", 0
            )
            running = [
                t for t in study._study.get_trials(deepcopy=False) if t.state.name == "RUNNING"
            ]
            own = [
                t for t in running if t.user_attrs.get("worker", {}).get("process") == process.pid
            ]
            if any(t.intermediate_values for t in own):
                return study
        time.sleep(0.05)
    raise AssertionError("no trial began")


def end(processes: Sequence[BaseProcess]) -> None:
    """Whatever happened, none of them is left running."""
    for process in processes:
        process.kill()
        process.join()


def test_many_may_begin_a_study_at_the_same_moment(tmp_path: Path) -> None:
    """Each says that it is ready, and waits for the others."""
    ready = CONTEXT.Barrier(4)
    started = [
        CONTEXT.Process(target=begin_study, args=(tmp_path / "s.db", ready)) for _ in range(4)
    ]
    try:
        for process in started:
            process.start()
        for process in started:
            process.join(LONG)
        assert [process.exitcode for process in started] == [0] * 4
    finally:
        end(started)


def begin_study(path: Path, ready: Barrier) -> None:
    config = Config.parse({}, "n-cp")
    space = read_space("paper", config)
    ready.wait(LONG)
    Study(str(path), "s", "demo", config, space, "none", 0)


def test_a_worker_is_gone_when_its_process_is() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert not is_gone(worker())
    assert is_gone(worker() | {"process": done.pid})
    assert not is_gone(worker() | {"host": "elsewhere"})
    assert is_gone(worker() | {"host": "elsewhere", "seen": time.time() - 3600})


def test_the_page_needs_nothing_else(search: Callable[..., StudyResult], tmp_path: Path) -> None:
    result = search(6)
    text = write_page(result.study, tmp_path / "study.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert "<script" not in text
    assert 'src="' not in text
    assert f"Best: {result.best.mrr:.4f}" in text
    assert text.count("<tr class=") == 6


def test_a_page_before_anything_has_finished(kb: KnowledgeBase, tmp_path: Path) -> None:
    study = Study(
        str(tmp_path / "s.db"),
        "s",
        "demo",
        Config.parse(SMALL_CONFIG),
        read_space("paper", Config.parse(SMALL_CONFIG)),
        "median",
        0,
    )
    assert "none yet" in write_page(study, tmp_path / "study.html").read_text(encoding="utf-8")
    assert best_trial(study.trials()) is None


def test_a_page_of_nothing_but_a_lost_trial(
    search: Callable[..., StudyResult], tmp_path: Path
) -> None:
    epochs: list[int] = []
    callbacks = Callbacks(
        on_epoch=lambda epoch: epochs.append(epoch.epoch), should_stop=lambda: len(epochs) == 2
    )
    with pytest.raises(Interrupted):
        search(1, callbacks=TuningCallbacks(training=lambda number, epochs: callbacks))
    study = Study(
        str(tmp_path / "study.db"),
        "tiny-n-cp",
        "tiny",
        Config.parse(SMALL_CONFIG | {"data": "tiny"}),
        read_space("paper", Config.parse(SMALL_CONFIG)),
        "median",
        0,
    )
    assert "1 lost" in write_page(study, tmp_path / "study.html").read_text(encoding="utf-8")


def test_trials_are_told_of_as_they_end(search: Callable[..., StudyResult]) -> None:
    calls: list[tuple[int, int, int]] = []

    def on_trial(trial: Trial, best: Trial | None, finished: int) -> None:
        assert best is not None
        calls.append((trial.number, best.number, finished))

    result = search(3, callbacks=TuningCallbacks(on_trial))
    assert [(number, finished) for number, _, finished in calls] == [(0, 1), (1, 2), (2, 3)]
    assert calls[-1][1] == result.best.number


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (
            "nosuch://user:secret@host/base",
            "the nosuch storage cannot be opened: Can't load plugin",
        ),
        (
            "sqlite:///no/such/folder/x.db",
            "the sqlite storage cannot be opened: (sqlite3.OperationalError) unable",
        ),
    ],
)
def test_a_storage_that_cannot_be_opened(
    search: Callable[..., StudyResult], storage: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        search(1, storage=storage)
    assert str(error.value).startswith(message)
    assert "secret" not in str(error.value)
