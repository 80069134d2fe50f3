"""``python -m getd``."""

from getd.cli.main import run

run()
