"""Files written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from getd.errors import WriteError


@contextmanager
def atomic_path(target: Path, replace: bool = True) -> Iterator[Path]:
    """A temporary path to write a file or folder at; it becomes ``target`` when the block ends well.

    Whatever goes wrong, the target stays as it was and the temporary path is removed.

    Raises
    ------
    WriteError
        If writing fails (no space, no permission), or the target exists and ``replace`` is off.
    """
    if not replace and target.exists():
        raise WriteError(f"{target} exists; choose another place or pass --overwrite")
    try:
        if target.parent.exists() and not target.parent.is_dir():
            raise NotADirectoryError(20, f"{target.parent} is not a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from None
    try:
        yield room / target.name
        _move(room / target.name, target, room)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _move(new: Path, target: Path, room: Path) -> None:
    if new.is_file():  # some libraries write files that only their owner can read
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)
    if target.is_dir() and not target.is_symlink():  # a folder cannot be renamed onto a full one
        target.rename(room / "old")
        try:
            new.rename(target)
        except OSError:
            (room / "old").rename(target)
            raise
    else:
        new.replace(target)
