"""The state of a search is read as it was written, also by earlier versions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from getd.runs.config import Config
from getd.workflows.choose_winner import Comparison, Winner
from getd.workflows.search_state import Candidate, SearchState, WorkFolder, same_settings

CONFIG = Config.parse({"model": {"name": "n-cp"}})


def state() -> SearchState:
    return SearchState(given=dict(CONFIG.given), candidates=[Candidate.of("default", CONFIG)])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    work = WorkFolder(tmp_path / "run.candidates")
    written = state()
    comparison = Comparison(("a",), 0.5, ("default",), gain=0.1, error=0.01)
    written.winner = Winner(("a", "default"), 0.6, (comparison,))
    written.winner_folder = "combined"
    written.published = True
    written.field = ["a", "b"]
    work.write(written)
    assert work.read() == written


def test_a_search_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    """It has no winner, no field, and another word for the folder of the winner."""
    work = WorkFolder(tmp_path / "run.candidates")
    new = ("winner", "winner_folder", "published", "field")
    for placing in (None, "combined"):
        old = {key: value for key, value in state().model_dump().items() if key not in new}
        work.write(state())
        (work.path / "search.json").write_text(json.dumps({**old, "placing": placing}))
        expected = state()
        expected.winner_folder = placing
        assert work.read() == expected
        assert work.read().is_decided is (placing is not None)


def test_settings_given_from_python_are_those_of_the_state(tmp_path: Path) -> None:
    """JSON has lists where Python has tuples, and no numbers of NumPy."""
    given = {"model": {"name": "getd", "ring_ranks": (3, 3, 3)}}
    config = Config.parse(given, epochs=np.int64(3), decay=np.float32(0.5))
    work = WorkFolder(tmp_path / "run.candidates")
    work.write(SearchState(given=dict(config.given), candidates=[]))
    assert same_settings(config.given, work.read().given)
    other = Config.parse({"model": {"name": "getd", "ring_ranks": (3, 3, 4)}})
    assert not same_settings(other.given, work.read().given)
