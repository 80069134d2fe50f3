"""Everything this package raises on purpose.

Each message is one sentence that a user can act on, on one line of bounded length that is safe to
show in a terminal. ``exit_code`` is what the command line returns.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from getd.visible import MAX_LINE, message_line, shorten, visible

MAX_COMPARED = 2000  # names that are compared letter by letter, for speed
MAX_TYPED = 100  # letters of a name: a longer one was not typed by hand


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

    ``problems`` holds ``(location, message)`` of the first bad lines, ``count`` the number of all;
    a message alone is about the whole file.

    >>> print(FactFileError(Path("train.txt"), [(":2", "expected 3 entities, found 2")], 1))
    train.txt:2: expected 3 entities, found 2 (1 bad line)
    """

    def __init__(
        self, path: Path | str, problems: str | Sequence[tuple[str, str]], count: int | None = None
    ) -> None:
        self.path = path
        self.problems = [("", problems)] if isinstance(problems, str) else list(problems)
        self.count = count

        # The first line carries the count.
        ending = f" ({count} bad line{'s' * (count != 1)})" if count is not None else ""
        lines = []
        for location, message in self.problems:
            lines.append(_problem_line(path, location, message, ending))
            ending = ""
        Exception.__init__(self, "\n".join(lines))


class FactError(GetdError):
    """Facts given from Python cannot be understood."""


class UnknownName(FactError):
    """A name that is not in the data; the nearest name is searched only if the message is shown."""

    def __init__(self, message: str, hint: Callable[[], str]) -> None:
        super().__init__(message)
        self._message = message
        self._hint = hint

    def __str__(self) -> str:
        return message_line(f"{self._message}{self._hint()}")


class DataNotFound(GetdError):
    """No data set of that name or path."""


class DownloadError(GetdError):
    """A data set could not be fetched, or is not what was published."""


class WriteError(GetdError):
    """A file could not be written; nothing was left behind."""


class RunError(GetdError):
    """A run folder is missing, broken, or exists already."""


class RunInUse(RunError):
    """Another process is writing in a run folder."""


class ShapeError(GetdError):
    """Tensors or sizes that cannot fit together."""


class NonFiniteScores(GetdError):
    """A model produced NaN or infinity."""


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library panicked: each has its own PanicException, no :class:`Exception`."""
    return type(error).__name__ == "PanicException"


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint for a mistyped name, ready to be added to a message; empty if no name is near.

    >>> nearest("learning_rat", ["learning_rate", "decay"])
    "; did you mean 'learning_rate'?"
    >>> nearest("colour", ["learning_rate", "decay"])
    ''
    """
    name = str(name)  # from Python, it may be anything
    if len(name) > MAX_TYPED:
        return ""

    # Of very many names, compare only those that begin most like this one.
    if len(names) > MAX_COMPARED:
        ordered = sorted(names)
        start = bisect_left(ordered, name) - MAX_COMPARED // 2
        start = max(0, min(start, len(ordered) - MAX_COMPARED))
        names = ordered[start : start + MAX_COMPARED]

    folded = {option.lower(): option for option in reversed(names) if len(option) <= MAX_TYPED}
    close = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def check_choice(key: str, value: str, choices: Sequence[str]) -> None:
    """Reject a value that is not one of the choices of a setting."""
    if value not in choices:
        expected = f"{key}: expected one of {', '.join(choices)}"
        raise ConfigError(f"{expected}, found {value!r}{nearest(value, choices)}")


def _problem_line(path: Path | str, location: str, message: str, ending: str) -> str:
    """One line about a file; if it is too long, the message is shortened first, then the path."""
    shown_path = visible(str(path))
    budget = MAX_LINE - len(f"{location}: {ending}")
    message = message_line(message, max(budget - len(shown_path), budget // 2))
    return f"{shorten(shown_path, budget - len(message))}{location}: {message}{ending}"
