"""Tables, notices and progress for people; JSON for programs.

Everything a command prints goes through here: what comes from files is made visible (:mod:`getd.visible`), and no name
is taken for markup.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from getd.visible import message_line, shorten, visible, visible_json

if TYPE_CHECKING:
    from getd.training.callbacks import Callbacks
    from getd.tuning.study import TuningCallbacks


_LONGEST = 1000  # characters in a cell


class PlainConsole(Console):
    """No name is taken for markup, and a reader that has gone is for us to deal with."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output; wide enough that nothing is cut where it is not a terminal."""
    return PlainConsole() if sys.stdout.isatty() else PlainConsole(width=160)


def print_json(value: Any) -> None:
    """One JSON object on standard output; escaped is what would act on a terminal, or has no letter in its encoding."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    print(visible_json(json.dumps(value, ensure_ascii=not is_utf8, allow_nan=False)))


def print_line(text: str) -> None:
    """One line on standard output."""
    print(visible(text), flush=True)


def print_message(text: str) -> None:
    """One line of bounded length on standard error."""
    print(message_line(text), file=sys.stderr, flush=True)


def print_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1
) -> None:
    """A table; the first ``left`` columns are text, the others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(header):
        table.add_column(
            visible(name), justify="left" if place < left else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    out = console()
    out.print(visible(title), style="bold", soft_wrap=True)
    out.print(table)
    out.print()


def cell(value: object) -> str:
    """A value as it stands in a table: numbers with thousands, shares with four digits, nothing as a dash.

    A text is made visible, and a very long one is shortened; JSON has it whole.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 0.00005 else f"{value:.1e}"
    return shorten(visible(shorten(str(value), 4 * _LONGEST)), _LONGEST)


def print_notices(notices: Iterable[str]) -> None:
    """What a user should know, on standard error."""
    for notice in notices:
        print_message(f"note: {notice}")


@contextmanager
def counting_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """How much of a whole is done: a bar on a terminal, nothing elsewhere; on standard error."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=PlainConsole(stderr=True), disable=not sys.stderr.isatty()
    ) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def training_progress(quiet: bool, epochs: int) -> Iterator[Callbacks]:
    """Epoch, loss, validation MRR, speed and time left: a live bar on a terminal, a line per epoch elsewhere."""
    from getd.training.callbacks import Callbacks, Epoch

    is_live = sys.stderr.isatty() and not quiet
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=PlainConsole(stderr=True), disable=not is_live) as bars:
        task = bars.add_task(f"epoch 1 of {epochs}", total=None)
        last = ""

        def on_batch(epoch: int, done: int, total: int) -> None:
            description = f"epoch {epoch} of {epochs}{last}"
            bars.update(
                task,
                description=description,
                completed=(epoch - 1) * total + done,
                total=epochs * total,
            )

        def on_epoch(epoch: Epoch) -> None:
            nonlocal last
            valid = "" if epoch.valid_mrr is None else f"  valid MRR {epoch.valid_mrr:.4f}"
            last = f"  loss {epoch.loss:.4f}{valid}  {epoch.facts / epoch.seconds:,.0f} facts/s"
            if not quiet and not is_live:
                print_message(f"epoch {epoch.epoch}{last}")

        yield Callbacks(on_batch, on_epoch)


@contextmanager
def tuning_progress(quiet: bool, trials: int) -> Iterator[tuple[TuningCallbacks, Callbacks]]:
    """Trials, the best so far, and where the one under way is: live bars on a terminal, else a line per trial."""
    from getd.training.callbacks import Callbacks, Epoch
    from getd.tuning.study import TuningCallbacks
    from getd.tuning.trial import Trial

    is_live = sys.stderr.isatty() and not quiet
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=PlainConsole(stderr=True), disable=not is_live) as bars:
        of_trials = bars.add_task(f"0 of {trials} trials", total=trials)
        of_epochs = bars.add_task("", total=None)

        def training(what: str, epochs: int | None) -> Callbacks:
            last = ""

            def on_batch(epoch: int, done: int, total: int) -> None:
                whole = None if epochs is None else epochs * total
                bars.update(
                    of_epochs,
                    description=f"{what}, epoch {epoch}{last}",
                    completed=(epoch - 1) * total + done,
                    total=whole,
                )

            def on_epoch(epoch: Epoch) -> None:
                nonlocal last
                last = "" if epoch.valid_mrr is None else f"  valid MRR {epoch.valid_mrr:.4f}"

            return Callbacks(on_batch, on_epoch)

        def on_trial(trial: Trial, best: Trial | None, finished: int) -> None:
            top = f"best {best.mrr:.4f} (trial {best.number})" if best else "none finished yet"
            bars.update(
                of_trials, description=f"{finished} of {trials} trials, {top}", completed=finished
            )
            if not quiet and not is_live:
                mrr = "–" if trial.mrr is None else f"{trial.mrr:.4f}"
                reason = f": {trial.about['reason']}" if "reason" in trial.about else ""
                line = f"trial {trial.number}  {trial.state}  valid MRR {mrr}  {len(trial.curve)} epochs{reason}; {top}"
                print_message(f"{line}, {finished} of {trials}")

        yield (
            TuningCallbacks(on_trial, lambda number, epochs: training(f"trial {number}", epochs)),
            training("training the best settings", None),
        )


@contextmanager
def download_progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar per file on a terminal, a line per file elsewhere; on standard error."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(
        *columns, console=PlainConsole(stderr=True), disable=not sys.stderr.isatty()
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(url: str, done: int, total: int | None) -> None:
            if url not in tasks:
                tasks[url] = bars.add_task(visible("/".join(url.rsplit("/", 2)[1:])), total=total)
                if bars.disable:
                    print_message(f"downloading {url}")
            bars.update(tasks[url], completed=done)

        yield report
