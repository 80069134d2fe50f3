"""Names and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.arrays import Ids
from getd.errors import MAX_COMPARED, FactError, UnknownName, nearest
from getd.facts.escape import escape_expr, unescape_expr
from getd.facts.named import text_series
from getd.io.atomic import atomic_path
from getd.io.lines import BOM, read_blocks


class Vocabulary(Sequence[str]):
    """Distinct names in sorted order (by code point); a name's number is its place.

    >>> names = Vocabulary(["Jordan", "Bulls", "Jordan"])
    >>> list(names), names.id("Jordan"), names.ids(["Jordan", "Bulls"]).tolist()
    (['Bulls', 'Jordan'], 1, [1, 0])
    """

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str] | pl.Series) -> None:
        series = names if isinstance(names, pl.Series) else text_series("name", list(names))
        self._names = series.cast(pl.String).alias("name").unique().sort().rechunk()

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        found = self._names[item]
        return found.to_list() if isinstance(found, pl.Series) else str(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.to_list())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._names.equals(other._names)

    def __hash__(self) -> int:
        return hash((len(self), self._names[0] if len(self) else None))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} names)"

    @property
    def names(self) -> pl.Series:
        """All names, a text column."""
        return self._names

    def id(self, name: str) -> int:
        """The number of a name; an unknown one is refused with the nearest."""
        found = self._find(name)
        if found is None:
            raise UnknownName(f"unknown name {name!r}", lambda: self.hint(name))
        return found

    def hint(self, name: str) -> str:
        """The nearest name, ready to be added to a message; of many names, the nearest that begins alike."""
        place = int(self._names.search_sorted(name))
        start = max(0, min(place - MAX_COMPARED // 2, len(self) - MAX_COMPARED))
        return nearest(name, self._names[start : start + MAX_COMPARED].to_list())

    def ids(self, names: Iterable[str] | pl.Series) -> Ids:
        """The numbers of many names at once."""
        series = names if isinstance(names, pl.Series) else text_series("name", list(names))
        asked = series.cast(pl.String).alias("name").to_frame()
        numbered = pl.DataFrame([self._names, pl.Series("id", np.arange(len(self)))])
        ids = asked.join(numbered, on="name", how="left", maintain_order="left")["id"]
        if ids.has_nulls():
            self.id(asked.filter(ids.is_null())["name"][0])
        found: Ids = ids.to_numpy()
        return found

    def decode(self, ids: npt.ArrayLike) -> list[str]:
        """The names of many numbers."""
        return self._names.gather(np.asarray(ids, dtype=np.int64)).to_list()

    def save(self, path: Path) -> None:
        """Write one name a line, escaped, whole or not at all."""
        with atomic_path(path) as temporary:
            write_lines(
                temporary, self._names.to_frame().select(escape_expr(pl.col("name"))).to_series()
            )

    @classmethod
    def open(cls, path: Path) -> Vocabulary:
        """Read what :meth:`save` wrote; names that are not in order are refused, as their numbers would change."""
        try:
            text = b"".join(read_blocks(path)).removeprefix(BOM).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FactError(
                f"{path}: expected UTF-8, found another byte at offset {error.start}"
            ) from None
        lines = pl.Series("name", text.split("\n")[:-1], dtype=pl.String)
        names = lines.to_frame().select(unescape_expr(pl.col("name"))).to_series()
        found = cls(names)
        if not found.names.equals(names):
            raise FactError(f"{path}: expected distinct names in ascending order, found others")
        return found

    def _find(self, name: str) -> int | None:
        place = int(self._names.search_sorted(name))
        return place if place < len(self) and self._names[place] == name else None


def write_lines(path: Path, lines: pl.Series) -> None:
    """Write text lines as they are; a byte order mark goes first where the text begins with that very character."""
    with path.open("wb") as file:
        if len(lines) and lines[0].startswith(BOM.decode()):
            file.write(BOM)
        lines.to_frame("line").write_csv(file, include_header=False, quote_style="never")
