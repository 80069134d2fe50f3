"""Everything this package raises on purpose.

GetdError
 ├─ ConfigError         a setting or the command line is unknown, mistyped or out of range
 ├─ FactFileError       a file of facts cannot be read, and why, line by line
 ├─ FactError           facts given from Python cannot be understood
 │   └─ UnknownName     a name that the data has not
 ├─ DataNotFound        no data set of that name or path
 ├─ DownloadError       a data set could not be fetched, or is not what was published
 ├─ WriteError          a file could not be written; nothing was left behind
 ├─ RunError            a run folder is missing, broken, or stands in the way
 │   └─ RunInUse        another process is writing in it
 ├─ ShapeError          tensors or sizes that cannot fit together
 └─ NonFiniteScores     a model produced NaN or infinity

Each message is one sentence a user can act on, on one line of bounded length that a terminal can show as it is.
``exit_code`` is what the command line returns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from getd.visible import MAX_LINE, message_line, shorten, visible

MANY = 2000  # names that are compared letter by letter
LONG = 100  # letters of a name: what is longer was not mistyped


class GetdError(Exception):
    """The root: catch it to catch everything that is not a bug."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message_line(message))


class ConfigError(GetdError):
    """A setting or the command line is unknown, mistyped or out of range."""

    exit_code = 2


class FactFileError(GetdError):
    """A file of facts cannot be read.

    ``problems`` holds ``(place, message)`` of the first bad lines, ``count`` how many there are in all.

    >>> print(FactFileError(Path("train.txt"), [(":2", "expected 3 entities, found 2")], 1))
    train.txt:2: expected 3 entities, found 2 (1 bad line)
    """

    def __init__(
        self, path: Path | str, problems: Sequence[tuple[str, str]], count: int | None = None
    ) -> None:
        self.path, self.problems, self.count = path, list(problems), count
        endings = [""] * len(problems)
        if count is not None:
            endings[0] = f" ({count} bad line{'s' * (count != 1)})"
        lines = [
            _problem_line(path, place, message, ending)
            for (place, message), ending in zip(problems, endings, strict=True)
        ]
        Exception.__init__(self, "\n".join(lines))


class FactError(GetdError):
    """Facts given from Python cannot be understood."""


class UnknownName(FactError):
    """A name that the data has not; the nearest is looked for only where the message is shown."""

    def __init__(self, message: str, hint: Callable[[], str]) -> None:
        super().__init__(message)
        self._message, self._hint = message, hint

    def __str__(self) -> str:
        return message_line(f"{self._message}{self._hint()}")


class DataNotFound(GetdError):
    """No data set of that name or path."""


class DownloadError(GetdError):
    """A data set could not be fetched, or is not what was published."""


class WriteError(GetdError):
    """A file could not be written; nothing was left behind."""


class RunError(GetdError):
    """A run folder is missing, broken, or stands in the way."""


class RunInUse(RunError):
    """Another process is writing in a run folder."""


class ShapeError(GetdError):
    """Tensors or sizes that cannot fit together."""


class NonFiniteScores(GetdError):
    """A model produced NaN or infinity."""


def is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust gave up: its PanicException is no :class:`Exception`, and each has its own."""
    return type(error).__name__ == "PanicException"


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint for a mistyped name, ready to be added to a message; empty where nothing is near.

    >>> nearest("learning_rat", ["learning_rate", "decay"])
    "; did you mean 'learning_rate'?"
    >>> nearest("colour", ["learning_rate", "decay"])
    ''

    Of many names those that begin most like it are compared, and long names never, so that it takes no time.
    """
    if len(name) > LONG:
        return ""
    folded = {
        option.lower(): option for option in reversed(_around(name, names)) if len(option) <= LONG
    }
    close = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def _around(name: str, names: Sequence[str]) -> Sequence[str]:
    """The names, or of too many those that begin most like this one."""
    if len(names) <= MANY:
        return names
    ordered = sorted(names)
    start = bisect_left(ordered, name) - MANY // 2
    start = max(0, min(start, len(ordered) - MANY))
    return ordered[start : start + MANY]


def _problem_line(path: Path | str, place: str, message: str, ending: str) -> str:
    """One line about a file; where it is too long, the message is shortened first, then the path."""
    where = visible(str(path))
    room = MAX_LINE - len(f"{place}: {ending}")
    message = message_line(message, max(room - len(where), room // 2))
    return f"{shorten(where, room - len(message))}{place}: {message}{ending}"
