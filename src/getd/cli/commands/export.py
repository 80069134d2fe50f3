"""``getd export``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.choices import ExportFormat
from getd.cli.inputs import open_run
from getd.cli.options import Overwrite, RunPath
from getd.cli.output import print_line, print_notices
from getd.cli.progress import counting_progress


def export(
    run: RunPath,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder to write.")],
    to: Annotated[
        ExportFormat,
        Parameter(help="Embeddings as tables (parquet, npz) or scores as graphs (onnx)."),
    ] = "parquet",
    overwrite: Overwrite = False,
) -> None:
    """Export embeddings with their names, or the scoring function as ONNX."""
    opened = open_run(run)
    with counting_progress("exporting") as progress:
        written = opened.export(out, to, overwrite, progress)
    if to == "onnx" and opened.folder.has_memory():
        print_notices(
            ["the graphs leave the memory out, so their scores differ from those of getd predict"]
        )
    for path in written:
        print_line(str(path))
