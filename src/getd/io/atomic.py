"""Files written whole or not at all, also when the process is killed or the power fails.

What is new is written in a workspace beside its target, a hidden folder, brought to the disk with ``fsync``, and
renamed. A workspace is locked by the process that made it, and the lock dies with the process: whoever next writes in
the same folder clears the workspaces that nobody holds.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from getd.errors import WriteError

try:
    import fcntl
except ImportError:  # not on every system: nothing is locked there, and nothing cleared
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".getd-", ".tmp"  # of workspaces
NEW, OLD = (
    "new",
    "old",
)  # in a workspace: what is being written, and the folder that it takes the name of
TRIES = 10


@contextmanager
def atomic_path(target: Path, replace: bool = True) -> Iterator[Path]:
    """A temporary path to write a file or folder at; it becomes ``target`` when the block ends well.

    Whatever goes wrong, the target stays as it was and the temporary path is removed. Once the block has ended, the
    target is on the disk.

    Raises
    ------
    WriteError
        If writing fails (no space, no permission), or the target exists and ``replace`` is off.
    """
    if not replace and target.exists():
        raise _exists(target)
    try:
        if target.parent.exists() and not target.parent.is_dir():
            raise NotADirectoryError(20, f"{target.parent} is not a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(target.parent)
        with _workspace(target.parent) as workspace:
            (workspace / NEW).mkdir()
            new = workspace / NEW / target.name
            yield new
            sync(new)
            _move(new, target, workspace, replace)
            sync_folder(target.parent)
    except OSError as error:
        if not replace and error.errno in (
            errno.ENOTEMPTY,
            errno.EEXIST,
        ):  # it came while ours was being written
            raise _exists(target) from None
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from None


def clear_abandoned(folder: Path) -> None:
    """Remove the workspaces that dead processes left in a folder; a target that was taken away is put back first."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        workspaces = [Path(entry) for entry in entries if is_workspace(entry.name)]
        for workspace in workspaces:
            with suppress(OSError):
                _clear(workspace)


def is_workspace(name: str) -> bool:
    """Whether a name is that of a temporary folder of ours."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed or this process dies: whether that worked, None where locks do not."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def sync(path: Path) -> None:
    """Bring a file, or a folder with all that is in it, to the disk."""
    if path.is_dir():
        for child in path.iterdir():
            sync(child)
        sync_folder(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that does it by itself
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _workspace(folder: Path) -> Iterator[Path]:
    """A temporary folder that this process holds; it is removed at the end."""
    path, descriptor = _new_workspace(folder)
    try:
        yield path
    finally:
        if not _put_back(path):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _new_workspace(folder: Path) -> tuple[Path, int]:
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=folder))
        with suppress(
            FileNotFoundError
        ):  # another process took it for abandoned before it was locked
            descriptor = os.open(path, os.O_RDONLY)
            if try_lock(descriptor) is not False and path.exists():
                return path, descriptor
            os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, f"no temporary folder stays in {folder}")


def _clear(workspace: Path) -> None:
    """Remove a workspace, if it is ours and nobody holds it."""
    descriptor = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid()
        if is_ours and try_lock(descriptor) and not _put_back(workspace):
            shutil.rmtree(workspace, ignore_errors=True)
    finally:
        os.close(descriptor)


def _put_back(workspace: Path) -> bool:
    """Give a target that was taken away its name again; whether one is left that cannot be put back."""
    if not (workspace / OLD).is_dir():
        return False
    for path in (workspace / OLD).iterdir():
        target = workspace.parent / path.name
        if not target.exists():
            with suppress(OSError):
                path.rename(target)
                continue
            return True
    return False


def _move(new: Path, target: Path, workspace: Path, replace: bool) -> None:
    if new.is_file():  # some libraries write files that only their owner can read
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)
    if (
        replace and target.is_dir() and not target.is_symlink()
    ):  # a folder cannot be renamed onto a full one
        (workspace / OLD).mkdir()
        target.rename(workspace / OLD / target.name)
        new.rename(target)
    else:
        new.replace(target)


def _exists(target: Path) -> WriteError:
    return WriteError(f"{target} exists; choose another place or pass --overwrite")
