"""Spend a time budget: candidates compete on validation, and the best or their combination is kept.

::

    default → to its end ─┐
    round: measure → 1/4 of the epochs → better half → 1/2 → better half → end, until time is up
                          └→ choose on halves of validation → memory, calibration → test, once

The candidates are runs in a folder next to the run. Everything that a search decides is written
there first, so a search can be stopped at any time and resumed.
"""

import math
import shlex
import time
from pathlib import Path

from getd.errors import ConfigError, FactError, RunError
from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.runs.opened import OpenedRun
from getd.training.callbacks import Interrupted
from getd.training.start import check_facts
from getd.workflows.candidates import candidates
from getd.workflows.competition import Search, SearchCallbacks
from getd.workflows.search_state import (
    Candidate,
    SearchState,
    WorkFolder,
    begun_run,
    same_settings,
)
from getd.workflows.timer import Clock
from getd.workflows.winner import write_winner


def search(
    kb: KnowledgeBase,
    config: Config,
    out: Path,
    minutes: float,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: SearchCallbacks | None = None,
    ask_test: bool = True,
    clock: Clock = time.monotonic,
) -> OpenedRun:
    """Spend some minutes on a knowledge base and leave a run; see :func:`getd.api.train`."""
    check_budget(kb, config, minutes)
    work = WorkFolder.of(out)
    _prepare(kb, config, work, out, resume, overwrite)

    try:
        with owned(work.path):
            state = work.read()
            current = Search(kb, work, state, 60 * minutes, callbacks or SearchCallbacks(), clock)
            if not state.is_decided:
                current.train()
            return write_winner(kb, work, state, out, current, ask_test)
    except KeyboardInterrupt:
        again = f"getd train --resume --budget {minutes:g} --out {shlex.quote(str(out))}"
        raise Interrupted(f"resume with: {again}") from None


def check_budget(kb: KnowledgeBase, config: Config, minutes: float) -> None:
    """Refuse a budget that cannot be spent."""
    if not (0 < minutes < math.inf):
        raise ConfigError(f"expected a budget of more than 0 minutes, found {minutes:g}")
    if config.preset != "auto":
        raise ConfigError(
            f"a budget is spent on choosing settings, and the preset {config.preset} chooses none; "
            "leave one of them out"
        )
    kb.require("train")
    if not count(kb.splits.get("valid", {})):
        needed = "a budget is spent on comparing candidates on them"
        raise FactError(f"{kb.name} has no validation facts, and {needed}")


def _prepare(
    kb: KnowledgeBase, config: Config, work: WorkFolder, out: Path, resume: bool, overwrite: bool
) -> None:
    """Begin a search in a folder, or check that the one in it can be resumed."""
    run = RunFolder(out)
    if not run.exists() and not run.is_free():
        raise RunError(f"{out} is there and is no run; choose another folder")
    if not work.exists() and not work.is_free():
        raise RunError(f"{work.path} is there and is no search; choose another folder for the run")

    if work.exists() and resume:
        state = work.read()
        if not same_settings(config.given, state.given):
            raise ConfigError(
                f"{out} was begun with other settings; leave them out, or pass --overwrite"
            )
        if run.exists() and not (state.replaces or state.winner_folder):
            raise RunError(f"{out} holds a run already; pass --overwrite to replace it")
        begun = begun_run(out)
        if begun.exists():
            check_facts(kb, begun)
        return

    if run.exists() and not overwrite:
        raise RunError(f"{out} holds a run already; pass --overwrite to replace it")
    if work.exists():
        if not overwrite:
            hint = "pass --resume to continue it or --overwrite to begin again"
            raise RunError(f"{work.path} holds a search already; {hint}")
        with owned(work.path):
            work.remove()

    listed = [Candidate.of(name, each) for name, each in candidates(config, kb).items()]
    given = dict(config.given)
    work.write(SearchState(given=given, candidates=listed, replaces=run.exists()))
