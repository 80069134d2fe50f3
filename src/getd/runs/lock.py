"""One process at a time writes in a run folder; readers never wait.

The lock is advisory: ``flock`` on the file ``.lock`` in the folder, which says who holds it. It
dies with its process, however that ends, so a file that was left behind means nothing. On file
systems without locks nothing is locked.
"""

import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from getd.errors import RunInUse, WriteError
from getd.io.atomic import clear_abandoned, is_workspace, try_lock

LOCK = ".lock"
MAX_SHOWN = 60  # letters of a host or a command in a message

# The thread of this process that holds a lock, by the device and the inode of the lock's file.
_holders: dict[tuple[int, int], int] = {}


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own a run folder for writing; its owner may own it again.

    What dead processes left in the folder is cleared. Raises :class:`RunInUse` if another process,
    or another thread of this one, owns it.
    """
    if _holders.get(_identity(folder / LOCK), 0) == threading.get_ident():
        yield
        return

    descriptor = _acquire(folder)
    key = _key(os.fstat(descriptor))
    _holders[key] = threading.get_ident()
    try:
        for part in (folder, folder / "checkpoint"):
            clear_abandoned(part)
        yield
    finally:
        if _identity(folder / LOCK) == key:  # the folder was not replaced by another
            with suppress(OSError):
                (folder / LOCK).unlink()
        del _holders[key]
        os.close(descriptor)


def is_left_over(name: str) -> bool:
    """Whether a file of a folder is a lock or a temporary folder: no content."""
    return name == LOCK or is_workspace(name)


def clear_empty(folder: Path) -> None:
    """Remove a folder that holds nothing but what a dead process left."""
    with owned(folder):
        pass
    with suppress(OSError):
        folder.rmdir()


def _acquire(folder: Path) -> int:
    """Lock a folder; returns the open file of the lock."""
    path = folder / LOCK
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise WriteError(f"cannot write {folder}: {error.strerror}") from None

        if try_lock(descriptor) is False:
            owner = _read_owner(descriptor)
            os.close(descriptor)
            raise RunInUse(
                f"{folder} is in use: {owner}; wait until it is done, or choose another folder"
            )

        if _identity(path) == _key(os.fstat(descriptor)):
            _write_owner(descriptor, folder)
            return descriptor
        os.close(descriptor)  # its owner has removed the file in the meantime: try again


def _write_owner(descriptor: int, folder: Path) -> None:
    owner = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": time.time(),
        "command": _command(),
    }
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise WriteError(f"cannot write {folder}: {error.strerror}") from None


def _read_owner(descriptor: int) -> str:
    """Say who holds a lock."""
    try:
        owner: dict[str, Any] = json.loads(os.pread(descriptor, 4096, 0))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner["since"]))
        process = int(owner["process"])
        host = str(owner["host"])[:MAX_SHOWN]
        command = str(owner["command"])[:MAX_SHOWN]
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return "another process is writing in it"
    return f"process {process} on {host} ({command}) has been writing in it since {since}"


def _command() -> str:
    """Name the program of this process, without arguments: they may hold secrets."""
    program = Path(sys.argv[0] if sys.argv else "")
    if program.name == "getd" or program.parts[-2:] == ("getd", "__main__.py"):
        return " ".join(["getd", *sys.argv[1:2]])
    return program.name if program.name not in ("", "-c") else "python"


def _identity(path: Path) -> tuple[int, int]:
    """Identify a file by its device and inode; (-1, -1) if there is none."""
    try:
        return _key(path.stat())
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return (-1, -1)


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
