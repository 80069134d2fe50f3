"""The log of the service: nothing in a request or an exception acts on the reader's terminal."""

import logging
from typing import Any

from getd.visible import visible


class VisibleFormatter(logging.Formatter):
    """Escapes control characters, line by line."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(visible(line) for line in super().format(record).split("\n"))


LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"visible": {"()": VisibleFormatter, "fmt": "%(levelname)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "visible"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "WARNING", "propagate": False}
        for name in ("getd", "uvicorn", "uvicorn.access")
    },
}
