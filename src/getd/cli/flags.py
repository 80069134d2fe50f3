"""Flags that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

Format = Annotated[
    Literal["auto", "tsv", "csv", "parquet", "jsonl", "hyper-csv", "wikipeople"],
    Parameter(help="The form of the files; auto recognises it from their content."),
]
Arity = Annotated[int | None, Parameter(help="Only facts with this many entities.")]
MaxArity = Annotated[int | None, Parameter(help="Only facts with at most this many entities.")]
OneArity = Annotated[
    bool, Parameter(help="Refuse files whose facts differ in arity: from --arity, or from the first fact.", negative="")
]
Escaped = Annotated[bool, Parameter(help=r"Plain text is written with the escapes \\ \t \n \r.", negative="")]
Relation = Annotated[
    str | None, Parameter(help="The relation of tables without a relation column (else the file's name).")
]
Seed = Annotated[int, Parameter(help="Of the 8:1:1 split, where the data comes without one, and of generated data.")]
Json = Annotated[bool, Parameter(help="Print one JSON object and nothing else.", negative="")]
