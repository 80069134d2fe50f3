"""``python -m getd``."""

from getd.cli.entry import run

run()
