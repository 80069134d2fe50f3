"""What a search keeps on disk next to its run, so that it can be resumed."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python

from getd.config import with_values
from getd.errors import RunError
from getd.io.atomic import atomic_path
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.lock import is_left_over
from getd.runs.records import parse_record
from getd.workflows.choose_winner import Winner
from getd.workflows.halving import Cost, epochs_to

SUFFIX = ".candidates"  # of the folder next to the run
STATE = "search.json"

# waiting: not begun. measured: its first epoch is done. running: in the field of this round.
Standing = Literal["waiting", "measured", "running", "stopped", "finished", "failed"]


class Candidate(BaseModel):
    """A candidate, and how far it is."""

    model_config = ConfigDict(extra="forbid")

    name: str
    given: dict[str, Any]  # its config
    epochs: int  # that its schedule is planned for
    standing: Standing = "waiting"
    seconds: float = 0.0  # spent on it
    epoch_seconds: float = 0.0  # of one epoch, as last measured
    startup: float = 0.0  # seconds each time that it is resumed
    reason: str | None = None  # why it stopped or failed

    @classmethod
    def of(cls, name: str, config: Config) -> "Candidate":
        return cls(name=name, given=dict(config.given), epochs=config.training.epochs)

    def config(self) -> Config:
        """Return its settings; the memory is left for the winner."""
        values = {"training.epochs": self.epochs, "memory.use": False}
        return Config.parse(with_values(self.given, values))

    def is_validated_by(self, share: float) -> bool:
        """Whether its settings ask for a validation up to a share of its epochs."""
        return epochs_to(share, self.epochs) >= self.config().training.validate_every

    def cost(self, epochs_done: int = 0) -> Cost:
        return Cost((self.epochs - epochs_done) * self.epoch_seconds, self.startup)


class SearchState(BaseModel):
    """``search.json``: everything that a search needs to be resumed.

    What an earlier version did not write has a default, and ``placing`` was its word for the folder
    of the winner.
    """

    model_config = ConfigDict(extra="forbid")

    given: dict[str, Any]  # the settings that the user gave
    candidates: list[Candidate]
    replaces: bool = False  # the run that is there
    spent: float = 0.0  # seconds

    # Of the round under way.
    field: list[str] = []  # the candidates that began it, by name
    rung: int = 0

    # The steps at the end, in their order. None is repeated, so test is read for one winner alone.
    winner: Winner | None = None  # chosen on validation
    winner_folder: str | None = Field(  # the folder that becomes the run: it is finished
        default=None, validation_alias=AliasChoices("winner_folder", "placing")
    )
    published: bool = False  # the run is in its folder, and this one is only removed

    @property
    def is_decided(self) -> bool:
        """Whether the winner is chosen."""
        return self.winner is not None or self.winner_folder is not None


@dataclass(frozen=True)
class WorkFolder:
    """The folder of a search: a run for each candidate, and the state."""

    path: Path

    @classmethod
    def of(cls, out: Path) -> "WorkFolder":
        return cls(out.with_name(out.name + SUFFIX))

    def exists(self) -> bool:
        return (self.path / STATE).exists()

    def is_free(self) -> bool:
        if not self.path.is_dir():
            return not self.path.exists()
        return all(is_left_over(child.name) for child in self.path.iterdir())

    def run(self, name: str) -> RunFolder:
        return RunFolder(self.path / name)

    def epochs_done(self, name: str) -> int:
        return len(self.run(name).read_history())

    def best_mrr(self, name: str, epoch: int | None = None) -> float | None:
        """Return the best MRR on validation up to an epoch; None: it was not measured."""
        lines = self.run(name).read_history()[:epoch]
        mrrs = [line.valid_mrr for line in lines if line.valid_mrr is not None]
        return max(mrrs, default=None)

    def epoch_seconds(self, name: str) -> float:
        """Return what the last epoch took according to the history; 0 if there was none."""
        history = self.run(name).read_history()
        return history[-1].seconds if history else 0.0

    def read(self) -> SearchState:
        path = self.path / STATE
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise RunError(f"{path}: expected UTF-8, found another encoding") from None
        return parse_record(SearchState, text, path)

    def write(self, state: SearchState) -> None:
        text = json.dumps(_as_json(state), indent=2, ensure_ascii=False)
        with atomic_path(self.path / STATE) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def remove(self) -> None:
        """Remove the folder; the state goes last, so that what is left can be recognised."""
        if not self.path.exists():
            return
        for child in self.path.iterdir():
            if child.is_dir():
                shutil.rmtree(child)
        shutil.rmtree(self.path)


def begun_run(out: Path) -> RunFolder:
    """Return a run that has the facts of a folder: the run, or a candidate of its search."""
    work = WorkFolder.of(out)
    if not work.exists():
        return RunFolder(out)
    state = work.read()
    if state.published:
        return RunFolder(out)

    runs = [work.run(candidate.name) for candidate in state.candidates]
    return next((run for run in runs if run.exists()), runs[0])


def same_settings(given: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether settings that are given again are those that a search began with.

    They are compared as JSON has them: a tuple is a list.
    """
    for section in ("model", "training", "memory"):
        values = _as_json(given.get(section) or {})
        before = stored.get(section, {})
        if any(key not in before or before[key] != values[key] for key in values):
            return False
    return True


def _as_json(value: object) -> Any:
    """Return a value as JSON has it; the numbers of NumPy are numbers."""
    return to_jsonable_python(value, fallback=np.generic.item)
