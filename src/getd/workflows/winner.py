"""The winner of a search: chosen on validation, finished, and put where the run belongs."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.lock import clear_empty, owned
from getd.runs.opened import OpenedRun, open_run
from getd.training import start
from getd.workflows.candidates import DEFAULT, differences
from getd.workflows.choose_winner import Finalist, Winner, choose_winner
from getd.workflows.combine import combine
from getd.workflows.search_state import Candidate, SearchState, WorkFolder

COMBINED = "combined"  # the folder of a combination that won
RECORD = "budget.json"


class EndedSearch(Protocol):
    """A search that has ended."""

    seconds: float  # its budget

    @property
    def spent(self) -> float: ...
    def finished(self) -> list[Candidate]: ...
    def is_late(self) -> bool: ...


def write_winner(
    kb: KnowledgeBase,
    work: WorkFolder,
    state: SearchState,
    out: Path,
    search: EndedSearch,
    ask_test: bool,
) -> OpenedRun:
    """Choose the winner of a search, finish it, and make it the run.

    The state says which of these steps are done; a search that is resumed does not repeat them.
    """
    if state.published:
        published = open_run(out)
        work.remove()
        return published

    if state.winner_folder is None:
        run = _finish_winner(kb, work, state, search, ask_test)
    else:
        run = open_run(work.path / state.winner_folder)

    _publish(run.path, out)
    state.published = True
    work.write(state)
    work.remove()
    return OpenedRun(RunFolder(out), run.kb, run.model, run.calibration, run.notices)


def _finish_winner(
    kb: KnowledgeBase, work: WorkFolder, state: SearchState, search: EndedSearch, ask_test: bool
) -> OpenedRun:
    """Choose the winner, unless that was done before, and finish it in its folder."""
    finished = search.finished()
    if state.winner is None:
        state.winner = _choose(kb, work, finished, search)
        state.spent = search.spent
        work.write(state)

    run = _finish(kb, work, finished, state.winner, ask_test)
    run.folder.write_json(RECORD, _record(work, state, state.winner, search))
    state.spent = search.spent
    state.winner_folder = run.path.name
    work.write(state)
    return run


def _choose(
    kb: KnowledgeBase, work: WorkFolder, finished: list[Candidate], search: EndedSearch
) -> Winner:
    """Choose among all candidates that finished."""
    finalists = []
    for candidate in finished:
        opened = open_run(work.path / candidate.name, memory=False)
        learns_relations = opened.folder.read_config().learns_relations
        finalists.append(Finalist(candidate.name, opened.model, learns_relations))
    sample = finished[0].config().training.validation_sample
    return choose_winner(finalists, kb, sample, search.is_late)


def _finish(
    kb: KnowledgeBase,
    work: WorkFolder,
    finished: list[Candidate],
    winner: Winner,
    ask_test: bool,
) -> OpenedRun:
    """Fit what goes on top of the winner; test is read here, and only here."""
    by_name = {candidate.name: candidate for candidate in finished}
    if len(winner.members) > 1:
        memory = Config.parse(finished[0].given).memory.use
        paths = [work.path / name for name in winner.members]
        combined = work.path / COMBINED
        return combine(paths, combined, memory=memory, overwrite=True, ask_test=ask_test)

    # Its training is over: what is resumed is the end, with its memory.
    (name,) = winner.members
    folder = work.run(name)
    memory = Config.parse(by_name[name].given).memory.use
    folder.write_config({**folder.read_config(), "memory": {"use": memory}})
    config = by_name[name].config()
    return start.train(kb, config, folder.path, resume=True, ask_test=ask_test)


def _publish(winner: Path, out: Path) -> None:
    """Copy the winner to where the run belongs; a run that is there is replaced."""
    is_replaced = RunFolder(out).exists()
    with ExitStack() as stack:
        if is_replaced:
            stack.enter_context(owned(out))
        elif out.exists():
            clear_empty(out)
        with atomic_path(out, replace=is_replaced) as temporary:
            shutil.copytree(winner, temporary)


def _record(
    work: WorkFolder, state: SearchState, winner: Winner, search: EndedSearch
) -> dict[str, Any]:
    """Return what was tried and who won: ``budget.json``."""
    default = Config.parse(state.candidates[0].given)
    tried = []
    for candidate in state.candidates:
        if candidate.standing == "waiting":
            continue
        config = Config.parse(candidate.given)
        tried.append(
            {
                "name": candidate.name,
                "model": config.model_name,
                "settings": differences(config, default),
                "standing": candidate.standing,
                "reason": candidate.reason,
                "epochs": work.epochs_done(candidate.name),
                "planned_epochs": candidate.epochs,
                "seconds": round(candidate.seconds, 3),
                "valid_mrr": work.best_mrr(candidate.name),
            }
        )
    return {
        "minutes": search.seconds / 60,
        "seconds": round(search.spent, 3),
        "winner": list(winner.members),
        "valid_mrr": winner.valid_mrr,
        "reason": explain(winner),
        "candidates": tried,
        "comparisons": [comparison.as_dict() for comparison in winner.comparisons],
    }


def explain(winner: Winner) -> str:
    """Say in one sentence why a winner won."""
    if winner.members == (DEFAULT,):
        return "nothing else is certainly better than the default on validation"
    for comparison in winner.comparisons:
        if comparison.members == winner.members:
            others = " and ".join(comparison.compared_with)
            gain = f"{comparison.gain:.4f} ± {comparison.error:.4f}"
            return f"its gain over {others} on validation is certain: {gain}"
    raise AssertionError("a winner was compared")
