"""Run the command line: ``python -m getd``."""

from getd.cli.entry import run

run()
