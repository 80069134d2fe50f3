"""The command line: parses, calls one function, prints what it returns; an expected error becomes one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError

from getd import __version__
from getd.cli.commands.calibrate import calibrate
from getd.cli.commands.complete import complete
from getd.cli.commands.convert import convert
from getd.cli.commands.datasets import datasets
from getd.cli.commands.demo import demo
from getd.cli.commands.evaluate import evaluate
from getd.cli.commands.export import export
from getd.cli.commands.extend import extend
from getd.cli.commands.info import info
from getd.cli.commands.models import models
from getd.cli.commands.predict import predict
from getd.cli.commands.remember import remember
from getd.cli.commands.reproduce import reproduce
from getd.cli.commands.score import score
from getd.cli.commands.serve import serve
from getd.cli.commands.train import train
from getd.cli.commands.tune import tune
from getd.errors import GetdError, is_panic
from getd.visible import message_line

app = App(
    name="getd",
    version=f"getd {__version__}",
    help="Complete n-ary knowledge bases: learn from known facts, fill the holes in unknown ones.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)
COMMANDS = (
    *(demo, info, datasets, models, convert, train, tune, remember, calibrate, evaluate),
    *(predict, score, complete, extend, serve, export, reproduce),
)
for command in COMMANDS:
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 2 the command line or a setting is wrong, 1 anything else."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code(
        lambda: app(given, exit_on_error=False, print_error=False, result_action="return_value")
    )


def exit_code(command: Callable[[], object]) -> int:
    """Run a command whose arguments are parsed already; what goes wrong becomes its line and its exit code."""
    try:
        command()
        sys.stdout.flush()
        return 0
    except CycloptsError as error:
        return _fail(_one_line(str(error)), 2)
    except GetdError as error:
        return _fail(error, error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone: `getd info … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return _fail(f"interrupted{f'; {interrupt}' if str(interrupt) else ''}", 130)
    except OSError as error:  # no permission, no space, a name too long
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 1)
    except BaseException as error:
        if not is_panic(error):
            raise
        return _fail(f"a library failed on this data: {error}", 1)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:1].lower()}{line[1:]}"


def _fail(message: str | GetdError, code: int) -> int:
    """An error of ours is fit to be shown as it is, ten lines of a file and all; anything else becomes one line."""
    print(message if isinstance(message, GetdError) else message_line(message), file=sys.stderr)
    return code
