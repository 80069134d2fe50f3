"""Where a study is kept: a SQLite file, a journal file, or a database server."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError

from getd.errors import ConfigError

WAITS = (0.2, 0.5, 1.0, 2.0, 4.0)  # seconds between attempts to open a study
LOCK_SECONDS = 120  # how long SQLite waits for another process
COLLISIONS = (SQLAlchemyError, optuna.exceptions.StorageInternalError)
T = TypeVar("T")


def open_storage(storage: str) -> BaseStorage:
    """Open a database by its address, or a file: ``.db`` is SQLite, ``.journal`` a journal."""
    if "://" in storage:
        return _open_server(storage)

    path = Path(storage)
    if path.suffix not in (".db", ".journal"):
        raise ConfigError(f"expected a study FILE.db (SQLite) or FILE.journal, found {storage!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".journal":
        return JournalStorage(JournalFileBackend(str(path)))

    content = path.read_bytes()[:16] if path.exists() else b""
    if content and not content.startswith(b"SQLite format 3"):
        raise ConfigError(f"{path}: expected a SQLite file, found another")
    try:
        options = {"connect_args": {"timeout": LOCK_SECONDS}}
        return RDBStorage(f"sqlite:///{path}", engine_kwargs=options)
    except (OperationalError, IntegrityError):  # another process is making the tables
        raise
    except DatabaseError as error:
        raise ConfigError(f"{path}: expected a study, found a broken file ({error.orig})") from None


def retry(work: Callable[[], T]) -> T:
    """Try again where processes that make the tables of one file at the same moment collide."""
    for wait in WAITS:
        with suppress(*COLLISIONS):
            return work()
        time.sleep(wait * random.uniform(0.5, 1.5))
    try:
        return work()
    except COLLISIONS as error:
        raise ConfigError(f"the study cannot be opened: {str(error).splitlines()[0]}") from None


def _open_server(address: str) -> BaseStorage:
    kind = address.split(":")[0]
    try:
        return RDBStorage(address)
    except ImportError:
        raise ConfigError(f"no driver for {kind}: pip install 'getd[distributed]'") from None
    except (SQLAlchemyError, ValueError) as error:
        reason = str(error).splitlines()[0]  # not the address, which may hold a password
        raise ConfigError(f"the {kind} storage cannot be opened: {reason}") from None
