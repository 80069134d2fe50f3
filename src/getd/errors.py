"""Everything this package raises on purpose.

GetdError
 ├─ ConfigError         a setting or the command line is unknown, mistyped or out of range
 ├─ FactFileError       a file of facts cannot be read, and why, line by line
 ├─ FactError           facts given from Python cannot be understood
 ├─ DataNotFound        no data set of that name or path
 ├─ DownloadError       a data set could not be fetched, or is not what was published
 ├─ WriteError          a file could not be written; nothing was left behind
 ├─ RunError            a run folder is missing, broken, or stands in the way
 │   └─ RunInUse        another process is writing in it
 ├─ ShapeError          tensors or sizes that cannot fit together
 └─ NonFiniteScores     a model produced NaN or infinity

Each message is one sentence a user can act on. ``exit_code`` is what the command line returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path


class GetdError(Exception):
    """The root: catch it to catch everything that is not a bug."""

    exit_code = 1


class ConfigError(GetdError):
    """A setting or the command line is unknown, mistyped or out of range."""

    exit_code = 2


class FactFileError(GetdError):
    """A file of facts cannot be read.

    ``problems`` holds ``(place, message)`` of the first bad lines, ``count`` how many there are in all.

    >>> print(FactFileError(Path("train.txt"), [(":2", "expected 3 entities, found 2")], 1))
    train.txt:2: expected 3 entities, found 2 (1 bad line)
    """

    def __init__(self, path: Path | str, problems: Sequence[tuple[str, str]], count: int | None = None) -> None:
        self.path, self.problems, self.count = path, list(problems), count
        lines = [f"{path}{place}: {message}" for place, message in problems]
        if count is not None:
            lines[0] += f" ({count} bad line{'s' * (count != 1)})"
        super().__init__("\n".join(lines))


class FactError(GetdError):
    """Facts given from Python cannot be understood."""


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


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint for a mistyped name, ready to be added to a message; empty where nothing is near.

    >>> nearest("learning_rat", ["learning_rate", "decay"])
    "; did you mean 'learning_rate'?"
    >>> nearest("colour", ["learning_rate", "decay"])
    ''
    """
    folded = {option.lower(): option for option in reversed(names)}
    close = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
