"""What a command line names, opened: data, run folders and configs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from getd.choices import Preset
from getd.cli.options import Reading
from getd.cli.output import print_notices
from getd.cli.progress import download_progress
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd import Config, KnowledgeBase, Run


def load_data(data: str, reading: Reading) -> KnowledgeBase:
    """Load a knowledge base and print its notices; downloads show their progress."""
    from getd.api import load

    with download_progress() as progress:
        kb = load(data, progress=progress, **asdict(reading))
    print_notices(kb.notices)
    return kb


def open_run(path: Path, memory: bool = True) -> Run:
    """Open a run folder and print its notices."""
    from getd.api import open_run

    run = open_run(path, memory)
    print_notices(run.notices)
    return run


def read_config(
    path: Path | None,
    assignments: list[str] | None,
    model: str | None,
    data: str | None,
    seed: int | None = None,
    preset: Preset | None = None,
) -> Config:
    """Parse a config file with the flags that take precedence over it.

    ``data`` becomes part of the config, so that the run's own ``config.toml`` can be trained from.
    """
    from getd import Config
    from getd.config import override, read_toml

    tables = override(read_toml(path) if path else {}, assignments or [])
    if seed is not None:
        tables = override(tables, [f"training.seed={seed}"])
    if preset:
        tables["preset"] = preset
    if data:
        tables["data"] = data
    elif not isinstance(tables.get("data", ""), str):
        expected = "expected data to be a path or the name of a data set"
        raise ConfigError(f"{expected}, found {tables['data']!r}")
    return Config.parse(tables, model)
