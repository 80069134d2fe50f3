"""The console script. It imports little before it handles interrupts."""

import os
import sys


def run() -> None:
    """Run the command line and exit with its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the process that started this one
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        else:
            stream.reconfigure(errors="backslashreplace")

    try:
        from getd.cli.app import main

        code = main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
