"""Collects the bad lines of a file into one error."""

from pathlib import Path

from getd.errors import FactError, FactFileError
from getd.visible import MAX_LINE, shorten

MAX_KEPT = 100_000  # bad lines whose messages are kept; the others are only counted
MAX_SHOWN = 10  # bad lines that the error shows


class Problems:
    """Collects what is wrong with a file, so that one error can report all of its bad lines.

    >>> problems = Problems("train.txt")
    >>> problems.add(7, "expected 3 entities, found 2")
    >>> problems.add(2, "expected a relation, found only 'award'")
    >>> problems.check()
    Traceback (most recent call last):
    getd.errors.FactFileError: train.txt:2: expected a relation, found only 'award' (2 bad lines)
    train.txt:7: expected 3 entities, found 2
    """

    def __init__(self, path: Path | str, location: str = ":{}") -> None:
        self.path = path
        self.count = 0
        self._location = location  # how a message names a line
        self._messages: dict[int, str | FactError] = {}  # by line

    def add(self, line: int, message: str | FactError) -> None:
        """Record a bad line and its first problem; an error gets its text only if it is shown."""
        if line not in self._messages:
            self.count += 1
        if len(self._messages) < MAX_KEPT:
            kept = shorten(message, 4 * MAX_LINE) if isinstance(message, str) else message
            self._messages.setdefault(line, kept)

    def check(self) -> None:
        """Raise if there is any problem: the first bad line with the count, and up to nine more."""
        if self.count:
            lines = sorted(self._messages)[:MAX_SHOWN]
            shown = [(self._location.format(line), str(self._messages[line])) for line in lines]
            raise FactFileError(self.path, shown, self.count)
