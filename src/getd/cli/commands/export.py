"""``getd export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from getd.cli.output import counting_progress, print_line, print_notices


def export(
    run: Path,
    /,
    *,
    out: Annotated[Path, Parameter(help="The folder to write.")],
    to: Annotated[
        Literal["parquet", "npz", "onnx"], Parameter(help="Vectors as tables, or scores as graphs.")
    ] = "parquet",
    overwrite: Annotated[bool, Parameter(help="Replace what is there.", negative="")] = False,
) -> None:
    """Take a run elsewhere: its vectors with their names (parquet, npz), or question to scores (onnx).

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.cli.opening import open_run

    opened = open_run(run)
    if to == "onnx" and opened.folder.has_memory():
        print_notices(
            [
                "the graphs are the model without its memory, so they score otherwise than getd predict"
            ]
        )
    with counting_progress("exporting") as progress:
        written = opened.export(out, to, overwrite, progress)
    for path in written:
        print_line(str(path))
