"""Who works on a trial, and whether that process is still alive."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SIGN_SECONDS = 20.0  # between two signs of life
LOST_SECONDS = 600.0  # without a sign of life, after which a worker on another machine is lost


def worker() -> dict[str, Any]:
    """Return a sign of life of this process, as the storage keeps it."""
    return {"host": socket.gethostname(), "process": os.getpid(), "seen": time.time()}


def is_gone(sign: Mapping[str, Any] | None, since: float = 0.0) -> bool:
    """Whether a worker has died, judged by its last sign of life.

    On this machine its process is looked up; elsewhere it is gone after a long silence. ``since``
    is when a trial without any sign of life was started.
    """
    if sign is None:
        return time.time() - since > LOST_SECONDS
    if sign["host"] != socket.gethostname():
        return bool(time.time() - sign["seen"] > LOST_SECONDS)

    process = sign["process"]
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False

    # A dead process whose parent has not collected its exit code still has a number.
    try:
        status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return status[:1] == ["Z"]
