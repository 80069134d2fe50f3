"""The command line: each command calls one public function and prints what it returns."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from cyclopts import App, CycloptsError, Group

from getd import __version__
from getd.errors import GetdError, is_panic
from getd.visible import lower_first, message_line

# Each is a file in commands/ with a function of the same name.
COMMANDS = {
    "Data": ("info", "convert", "datasets"),
    "Train": ("demo", "train", "tune", "combine", "models", "reproduce"),
    "Use": ("evaluate", "predict", "rate", "complete", "extend", "remember", "calibrate"),
    "Share": ("export", "serve"),
}
OLD_NAMES = {"score": "rate"}  # of commands; they still work, and help does not list them

app = App(
    name="getd",
    version=f"getd {__version__}",
    help="Complete n-ary knowledge bases: learn from known facts, predict missing ones.",
    help_format="plaintext",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
    group_commands=Group("Options", sort_key=len(COMMANDS)),
)


def add_command(command: str, **options: Any) -> None:
    """Add a command; its help is the docstring, a line per paragraph, which the terminal wraps."""
    function = getattr(import_module(f"getd.cli.commands.{command}"), command)
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(function, help=text, **options)


for order, (title, commands) in enumerate(COMMANDS.items()):
    group = Group(title, sort_key=order)
    for index, command in enumerate(commands):
        add_command(command, group=group, sort_key=index)
for name, command in OLD_NAMES.items():
    add_command(command, name=name, show=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 is success, 2 a wrong command line or setting, 1 any other error that is not a bug.
    """
    return exit_code(lambda: app(arguments))


def exit_code(command: Callable[[], object]) -> int:
    """Run a command whose arguments are parsed; an expected error becomes one line."""
    try:
        command()
        sys.stdout.flush()
        return 0
    except CycloptsError as error:
        return _fail(lower_first(" ".join(str(error).split())), 2)
    except GetdError as error:
        print(error, file=sys.stderr)  # up to ten lines, each fit for a terminal
        return error.exit_code
    except BrokenPipeError:  # the reader of our output closed it: `getd info … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return _fail(f"interrupted{f'; {interrupt}' if str(interrupt) else ''}", 130)
    except OSError as error:  # no permission, no space, a name that is too long
        path = f"{error.filename}: " if error.filename else ""
        return _fail(f"{path}{error.strerror or error}", 1)
    except BaseException as error:
        if not is_panic(error):
            raise
        return _fail(f"a library failed on this data: {error}", 1)


def _fail(message: str, code: int) -> int:
    print(message_line(message), file=sys.stderr)
    return code
