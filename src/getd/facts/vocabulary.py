"""Names and their numbers."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.arrays import Ids
from getd.errors import MAX_COMPARED, FactError, UnknownName, nearest
from getd.facts.escape import escape_names, unescape_names
from getd.facts.named import text_series
from getd.io.atomic import atomic_path
from getd.io.lines import BOM, read_blocks

MIN_GATHERED = 500  # names: polars takes as long to gather fewer


class Vocabulary(Sequence[str]):
    """Distinct names, sorted by code point; the id of a name is its index.

    >>> names = Vocabulary(["Jordan", "Bulls", "Jordan"])
    >>> list(names), names.id("Jordan"), names.ids(["Jordan", "Bulls"]).tolist()
    (['Bulls', 'Jordan'], 1, [1, 0])
    """

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str] | pl.Series) -> None:
        self._names = _to_series(names).unique().sort().rechunk()

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        name = self._names[item]
        return name.to_list() if isinstance(name, pl.Series) else str(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.to_list())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._names.equals(other._names)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} names)"

    @property
    def names(self) -> pl.Series:
        """All names, a text column."""
        return self._names

    def id(self, name: str) -> int:
        """The id of a name; an unknown name is refused, with the nearest one as a hint."""
        index = self.find(name)
        if index is None:
            raise UnknownName(f"unknown name {name!r}", lambda: self.hint(name))
        return index

    def hint(self, name: str) -> str:
        """The nearest name, as a hint for a message; of many, among those that begin like it."""
        index = bisect_left(self._names, name)
        start = max(0, min(index - MAX_COMPARED // 2, len(self) - MAX_COMPARED))
        return nearest(name, self._names[start : start + MAX_COMPARED].to_list())

    def ids(self, names: Iterable[str] | pl.Series) -> Ids:
        """The ids of many names at once."""
        queries = _to_series(names).to_frame()
        numbered = self._names.to_frame().with_row_index("id")
        ids = queries.join(numbered, on="name", how="left", maintain_order="left")["id"]
        if ids.has_nulls():
            self.id(queries.filter(ids.is_null())["name"][0])
        return ids.cast(pl.Int64).to_numpy()

    def decode(self, ids: npt.ArrayLike) -> list[str]:
        """The names of many ids."""
        index = np.asarray(ids, dtype=np.int64)
        if index.size < MIN_GATHERED:
            return [self._names[number] for number in index.tolist()]
        return self._names.gather(index).to_list()

    def save(self, path: Path) -> None:
        """Write one name a line, escaped, whole or not at all."""
        with atomic_path(path) as temporary:
            write_lines(temporary, escape_names(self._names))

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote; refuse names out of order, as their ids would change."""
        try:
            text = b"".join(read_blocks(path)).removeprefix(BOM).decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"expected UTF-8, found another byte at offset {error.start}"
            raise FactError(f"{path}: {message}") from None

        lines = pl.Series("name", text.split("\n")[:-1], dtype=pl.String)
        names = unescape_names(lines)
        vocabulary = cls(names)
        if not vocabulary.names.equals(names):
            raise FactError(f"{path}: expected distinct names in ascending order, found others")
        return vocabulary

    def find(self, name: str) -> int | None:
        """The id of a name; None if it is unknown."""
        index = bisect_left(self._names, name)
        return index if index < len(self) and self._names[index] == name else None


def write_lines(path: Path, lines: pl.Series) -> None:
    """Write lines of text as they are.

    A text that begins with U+FEFF gets a byte order mark before it, because readers drop one.
    """
    with path.open("wb") as file:
        if len(lines) and lines[0].startswith(BOM.decode()):
            file.write(BOM)
        lines.to_frame("line").write_csv(file, include_header=False, quote_style="never")


def _to_series(names: Iterable[str] | pl.Series) -> pl.Series:
    """A text column of the name ``name``."""
    series = names if isinstance(names, pl.Series) else text_series("name", list(names))
    return series.cast(pl.String).alias("name")
