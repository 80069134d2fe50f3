"""How data is to be read."""

from __future__ import annotations

from typing import Annotated

from pydantic import NonNegativeInt, PositiveInt, StringConstraints

from getd.choices import FormatChoice
from getd.config import Settings


class DataSettings(Settings):
    """Settings of reading. One field, one meaning."""

    format: FormatChoice = "auto"
    arity: PositiveInt | None = None  # only facts with this many entities
    max_arity: PositiveInt | None = None  # only facts with at most this many
    one_arity: bool = (
        False  # refuse files whose facts differ in arity (from `arity`, or from the first fact)
    )
    escaped: bool = False  # plain text is written with the escapes \\ \t \n \r
    relation: Annotated[str, StringConstraints(min_length=1)] | None = (
        None  # the relation of tables that have no relation column; else the name of the file
    )
    seed: NonNegativeInt = (
        0  # of the split, where the data comes without one, and of generated data sets
    )
