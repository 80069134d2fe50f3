"""Write files whole or not at all, even if the process is killed or the power fails.

New data is written in a workspace, a hidden folder next to its target, flushed to disk with
``fsync``, and renamed. The process that creates a workspace locks it, and the lock dies with the
process: the next process that writes in the same folder clears the workspaces without a lock.
"""

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
except ImportError:  # not on every system: without locks nothing is cleared
    fcntl = None  # type: ignore[assignment]

# A workspace is called .getd-….tmp.
PREFIX = ".getd-"
SUFFIX = ".tmp"

# In a workspace: what is being written, and the folder that it replaces.
NEW = "new"
OLD = "old"

TRIES = 10  # to create a workspace


@contextmanager
def atomic_path(target: Path, replace: bool = True) -> Iterator[Path]:
    """Yield a temporary path for a file or folder; it becomes ``target`` if the block succeeds.

    When the context ends, the target is on disk. If writing fails (no space, no permission), or the
    target exists and ``replace`` is off, that is a :class:`WriteError`: the target stays as it was
    and the temporary path is removed.
    """
    parent = target.parent
    exists_error = WriteError(f"{target} exists; choose another place or pass --overwrite")
    if not replace and target.exists():
        raise exists_error
    try:
        if parent.exists() and not parent.is_dir():
            raise NotADirectoryError(20, f"{parent} is not a folder")
        parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(parent)

        with _workspace(parent) as workspace:
            (workspace / NEW).mkdir()
            new = workspace / NEW / target.name
            yield new

            sync(new)
            _move(new, target, workspace, replace)
            sync_folder(parent)
    except OSError as error:
        # Another process may have created the target in the meantime.
        if not replace and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise exists_error from None
        raise WriteError(f"cannot write {target}: {error.strerror or error}") from None


def clear_abandoned(folder: Path) -> None:
    """Remove the workspaces of dead processes in a folder; restore replaced targets first."""
    if fcntl is None:
        return
    with suppress(OSError):
        for workspace in list(folder.glob(f"{PREFIX}*{SUFFIX}")):
            with suppress(OSError):
                _clear(workspace)


def is_workspace(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed or this process dies.

    True if that worked, False if another process holds the lock, None where locks do not work.
    """
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
    """Flush a file, or a folder with everything in it, to disk."""
    if path.is_dir():
        for child in path.iterdir():
            sync(child)
        sync_folder(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems need no flush and refuse it
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _workspace(folder: Path) -> Iterator[Path]:
    """Create a workspace, lock it, and remove it at the end."""
    path, descriptor = _new_workspace(folder)
    try:
        yield path
    finally:
        if _restore(path):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _new_workspace(folder: Path) -> tuple[Path, int]:
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, suffix=SUFFIX, dir=folder))

        # Until it is locked, another process may clear it as abandoned.
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            if try_lock(descriptor) is not False and path.exists():
                return path, descriptor
            os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, f"no temporary folder stays in {folder}")


def _clear(workspace: Path) -> None:
    """Remove a workspace if it belongs to this user and no process holds it."""
    descriptor = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid()
        if is_ours and try_lock(descriptor) and _restore(workspace):
            shutil.rmtree(workspace, ignore_errors=True)
    finally:
        os.close(descriptor)


def _restore(workspace: Path) -> bool:
    """Move a replaced target back if its successor never came; False if that fails."""
    if not (workspace / OLD).is_dir():
        return True

    for path in (workspace / OLD).iterdir():
        target = workspace.parent / path.name
        if not target.exists():
            with suppress(OSError):
                path.rename(target)
                continue
            return False
    return True


def _move(new: Path, target: Path, workspace: Path, replace: bool) -> None:
    """Give what was written its final name."""
    # Some libraries write files that only their owner can read.
    if new.is_file():
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)

    # A folder cannot be renamed onto a folder with files in it.
    if replace and target.is_dir() and not target.is_symlink():
        (workspace / OLD).mkdir()
        target.rename(workspace / OLD / target.name)
        new.rename(target)
    else:
        new.replace(target)
