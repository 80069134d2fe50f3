"""How data is read."""

from typing import Annotated

from pydantic import NonNegativeInt, PositiveInt, StringConstraints

from getd.choices import FormatChoice
from getd.config import Settings


class DataSettings(Settings):
    """Settings of reading: the keyword arguments of :func:`getd.load`, and flags of commands."""

    format: FormatChoice = "auto"
    arity: PositiveInt | None = None  # only facts with this many entities
    max_arity: PositiveInt | None = None  # only facts with at most this many
    one_arity: bool = False  # refuse files with facts of another arity than `arity` or the first
    escaped: bool = False  # plain text is written with the escapes \\ \t \n \r
    # the relation of tables that have no relation column; None: the name of the file
    relation: Annotated[str, StringConstraints(min_length=1)] | None = None
    seed: NonNegativeInt = 0  # of the split, where the data has none, and of generated data sets
