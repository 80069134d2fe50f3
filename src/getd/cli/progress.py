"""Progress on standard error: bars on a terminal, plain lines or nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from getd.cli.output import PlainConsole, print_message
from getd.visible import visible

if TYPE_CHECKING:
    from getd import Callbacks
    from getd.training.callbacks import Epoch
    from getd.tuning.trial import Trial
    from getd.workflows.competition import SearchCallbacks, Standings


def progress_bars(quiet: bool, *columns: ProgressColumn) -> Progress:
    """Return bars with a description and further columns; only a terminal shows them."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(columns or (TaskProgressColumn(), TimeRemainingColumn())),
        console=PlainConsole(stderr=True),
        disable=quiet or not sys.stderr.isatty(),
    )


@contextmanager
def counting_progress(
    description: str, quiet: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """Show how much of a whole is done."""
    with progress_bars(quiet) as bars:
        task = bars.add_task(description, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def download_progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show a bar per file, or a line per file if there is no terminal."""
    with progress_bars(False, DownloadColumn(), TransferSpeedColumn()) as bars:
        tasks: dict[str, TaskID] = {}

        def report(url: str, done: int, total: int | None) -> None:
            if url not in tasks:
                name = "/".join(url.rsplit("/", 2)[1:])
                tasks[url] = bars.add_task(visible(name), total=total)
                if bars.disable:
                    print_message(f"downloading {url}")
            bars.update(tasks[url], completed=done)

        yield report


@dataclass
class EpochBar:
    """The bar of one training: its epochs, and the numbers of the last one."""

    bars: Progress
    task: TaskID
    name: str = ""
    epochs: int = 0
    last_epoch: str = ""

    def on_start(self, epochs: int) -> None:
        self.epochs = epochs

    def on_batch(self, epoch: int, done: int, total: int) -> None:
        self.bars.update(
            self.task,
            description=f"{self.name}epoch {epoch} of {self.epochs}{self.last_epoch}",
            completed=(epoch - 1) * total + done,
            total=self.epochs * total,
        )

    def on_epoch(self, epoch: Epoch) -> None:
        """Keep the numbers of an epoch, to show them during the next one."""
        valid = "" if epoch.valid_mrr is None else f"  valid MRR {epoch.valid_mrr:.4f}"
        speed = f"{epoch.facts / epoch.seconds:,.0f} facts/s"
        self.last_epoch = f"  loss {epoch.loss:.4f}{valid}  {speed}"

    def callbacks(self) -> Callbacks:
        from getd import Callbacks

        return Callbacks(self.on_batch, self.on_epoch, on_start=self.on_start)


@contextmanager
def training_progress(quiet: bool) -> Iterator[Callbacks]:
    """Show the epochs of a training: a bar, or a line per epoch if there is no terminal."""
    with progress_bars(quiet) as bars:
        bar = EpochBar(bars, bars.add_task("", total=None))

        def on_epoch(epoch: Epoch) -> None:
            bar.on_epoch(epoch)
            if bars.disable and not quiet:
                print_message(f"epoch {epoch.epoch}{bar.last_epoch}")

        def on_choice(choice: str) -> None:
            if not quiet:
                print_message(choice)

        yield replace(bar.callbacks(), on_epoch=on_epoch, on_choice=on_choice)


def _four_digits(mrr: float | None) -> str:
    return "–" if mrr is None else f"{mrr:.4f}"


class TuningBars:
    """Two bars for a study: its trials, and the epochs of the current one."""

    def __init__(self, bars: Progress, trials: int, quiet: bool) -> None:
        self.bars = bars
        self.trials = trials
        self.quiet = quiet
        self.trial_task = bars.add_task(f"0 of {trials} trials", total=trials)
        self.epoch_task = bars.add_task("", total=None)

    def on_trial(self, trial: Trial, best: Trial | None, finished: int) -> None:
        top = f"best {best.mrr:.4f} (trial {best.number})" if best else "none finished yet"
        description = f"{finished} of {self.trials} trials, {top}"
        self.bars.update(self.trial_task, description=description, completed=finished)
        if self.quiet or not self.bars.disable:
            return

        mrr = _four_digits(trial.mrr)
        reason = f": {trial.about['reason']}" if "reason" in trial.about else ""
        epochs = f"{len(trial.curve)} epochs{reason}"
        result = f"trial {trial.number}  {trial.state}  valid MRR {mrr}  {epochs}"
        print_message(f"{result}; {top}, {finished} of {self.trials}")

    def trial_callbacks(self, number: int, epochs: int) -> Callbacks:
        return EpochBar(self.bars, self.epoch_task, f"trial {number}, ", epochs).callbacks()

    def training_callbacks(self) -> Callbacks:
        """Return the callbacks of the training with the best settings."""
        return EpochBar(self.bars, self.epoch_task, "best settings, ").callbacks()


@contextmanager
def tuning_progress(quiet: bool, trials: int) -> Iterator[TuningBars]:
    """Show the trials of a study: two bars, or a line per trial if there is no terminal."""
    with progress_bars(quiet) as bars:
        yield TuningBars(bars, trials, quiet)


class SearchBars:
    """Two bars for a search: its time, and the epochs of the current candidate."""

    def __init__(self, bars: Progress, minutes: float, quiet: bool) -> None:
        self.bars = bars
        self.minutes = minutes
        self.quiet = quiet
        self.time_task = bars.add_task(f"0.0 of {minutes:g} minutes", total=60 * minutes)
        self.epoch_task = bars.add_task("", total=None)

    def on_training(self, name: str, epoch: int) -> Callbacks:
        return EpochBar(self.bars, self.epoch_task, f"{name}, ").callbacks()

    def on_standings(self, standings: Standings) -> None:
        spent = f"{standings.seconds / 60:.1f} of {self.minutes:g} minutes"
        best = f"best {_four_digits(standings.leader_mrr)} ({standings.leader})"
        self.bars.update(
            self.time_task, description=f"{spent}, {best}", completed=standings.seconds
        )
        if self.quiet or not self.bars.disable:
            return

        candidate = standings.candidate
        mrr = _four_digits(standings.valid_mrr)
        epochs = f"{standings.epochs_done} of {candidate.epochs} epochs"
        reason = f", {candidate.standing}: {candidate.reason}" if candidate.reason else ""
        print_message(f"{candidate.name}  {epochs}  valid MRR {mrr}{reason}; {best}, {spent}")

    def on_choice(self, names: list[str]) -> None:
        if not self.quiet:
            print_message(f"choosing among {', '.join(names)}, alone and combined")


@contextmanager
def search_progress(quiet: bool, minutes: float | None) -> Iterator[SearchCallbacks | None]:
    """Show a search: two bars, or a line per candidate and rung; nothing without a budget."""
    if minutes is None:
        yield None
        return

    from getd.workflows.competition import SearchCallbacks

    with progress_bars(quiet) as bars:
        shown = SearchBars(bars, minutes, quiet)
        yield SearchCallbacks(shown.on_training, shown.on_standings, shown.on_choice)
