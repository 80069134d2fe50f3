"""Flags that several commands share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from getd.choices import FormatChoice, ReadFormat

Form = Annotated[
    FormatChoice,
    Parameter(help="The form of the files; auto recognises it from their content."),
]
Json = Annotated[bool, Parameter(help="Print one JSON object and nothing else.", negative="")]


def chosen(form: Form) -> ReadFormat | None:
    """The form that was named, if any."""
    return None if form == "auto" else form


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How data is read: the flags of every command that takes DATA."""

    format: Form = "auto"
    arity: Annotated[int | None, Parameter(help="Only facts with this many entities.")] = None
    max_arity: Annotated[
        int | None, Parameter(help="Only facts with at most this many entities.")
    ] = None
    one_arity: Annotated[
        bool,
        Parameter(
            help="Refuse files whose facts differ in arity: from --arity, or from the first fact.",
            negative="",
        ),
    ] = False
    escaped: Annotated[
        bool, Parameter(help=r"Plain text is written with the escapes \\ \t \n \r.", negative="")
    ] = False
    relation: Annotated[
        str | None,
        Parameter(help="The relation of tables without a relation column (else the file's name)."),
    ] = None
    split_seed: Annotated[int, Parameter(help="Of the 8:1:1 split, and of generated data.")] = 0

    def settings(self) -> dict[str, Any]:
        """As keyword arguments of :func:`getd.load`."""
        values = asdict(self)
        return {("seed" if key == "split_seed" else key): value for key, value in values.items()}
