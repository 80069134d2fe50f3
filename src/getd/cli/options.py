"""Arguments and flags that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.choices import FormatChoice, Precision, ReadFormat

DATA_HELP = "Folder with train, valid and test files, a single file, or the name of a data set"


def flag(text: str, alias: str | None = None) -> Parameter:
    """Return a yes-or-no flag without a ``--no-`` form."""
    return Parameter(help=text, alias=alias, negative="", show_default=False)


Data = Annotated[str, Parameter(help=f"{DATA_HELP} (see getd datasets).")]
OptionalData = Annotated[str | None, Parameter(help=f"{DATA_HELP}. Default: data of the config.")]
RunPath = Annotated[Path, Parameter(help="Run folder, as written by getd train.")]
FactFile = Annotated[Path, Parameter(help="File of facts in any supported format.")]

Model = Annotated[
    str | None,
    Parameter(help="Model name (see getd models). Default: encoder for train, getd for tune."),
]
ConfigFile = Annotated[
    Path | None, Parameter(help="TOML file with [model] and [training], and optionally data.")
]
Assignments = Annotated[
    list[str] | None,
    Parameter(
        help="Setting as section.key=value, such as training.epochs=20. Repeatable.", negative=""
    ),
]
Overwrite = Annotated[bool, flag("Replace existing output.")]
ScorePrecision = Annotated[
    Precision,
    Parameter(
        help="Precision of scores. bf16 rounds them, which saves time on some machines; auto is "
        "bf16 for large tables on such machines, and fp32 otherwise."
    ),
]
Quiet = Annotated[bool, flag("Do not show progress.")]
Json = Annotated[bool, flag("Print one JSON object and nothing else.")]
Format = Annotated[FormatChoice, Parameter(help="File format. auto detects it from the content.")]


def read_format(choice: FormatChoice) -> ReadFormat | None:
    """Return the format that was named; None: detect it."""
    return None if choice == "auto" else choice


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """The keyword arguments of :func:`getd.load`: flags of every command that takes DATA."""

    format: Format = "auto"
    arity: Annotated[int | None, Parameter(help="Keep only facts with this many entities.")] = None
    max_arity: Annotated[
        int | None, Parameter(help="Keep only facts with at most this many entities.")
    ] = None
    one_arity: Annotated[
        bool,
        flag("Reject files with mixed arities. Expected: --arity, or the arity of the first fact."),
    ] = False
    escaped: Annotated[bool, flag(r"Read \\ \t \n \r in plain text as escapes.")] = False
    relation: Annotated[
        str | None,
        Parameter(help="Relation of tables without a relation column. Default: the file name."),
    ] = None
    seed: Annotated[
        int,
        Parameter("--split-seed", help="Random seed of the 8:1:1 split and of generated data."),
    ] = 0
