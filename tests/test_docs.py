"""Every example in README and docs runs, and shows what the docs say it shows."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

import getd
from getd.cli.app import main
from getd.models import MODELS

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").rglob("README.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *EXAMPLES]
FOR_USERS = [page for page in PAGES if page.name != "extending.md"]  # which test_extending.py runs
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"(?:.*\\\n)*.*<<'END'\n(?:.*\n)*?END\n|(?:.*\\\n)*.*\n", re.MULTILINE
)  # with what it reads
PORT = "8765"  # of the examples that serve


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(block: str) -> list[str]:
    """Split a shell block into commands; a block with a ``$`` needs one shell for all of it."""
    return [block] if "$" in block else COMMAND.findall(block)


def arguments_of_getd(command: str) -> list[str] | None:
    """Return the arguments of a plain call of getd; None if the command needs a shell."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    is_plain = words[:1] == ["getd"] and not any(set(word) <= set("();<>|&") for word in words)
    return words[1:] if is_plain else None


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command; returns its exit code and all that it prints.

    A plain call of getd runs in this process.
    """
    arguments = arguments_of_getd(command)
    if arguments is None:
        return run_in_shell(command, folder)

    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = main(arguments)
    return code, output.buffer.getvalue().decode()  # type: ignore[attr-defined]


def run_in_shell(command: str, folder: Path) -> tuple[int, str]:
    """Run a command in a shell, with the commands of this interpreter first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=600)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a service that the example did not stop
        process.wait()
    assert "Traceback" not in output
    return process.returncode, output


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


@pytest.fixture
def own_models() -> Iterator[None]:
    """A model that an example registers is forgotten when the example ends."""
    with patch.dict(MODELS):
        yield


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for data in page.parent.glob("*.csv"):
        shutil.copy(data, tmp_path)

    names: dict[str, object] = {}
    for language, code in blocks(page):
        if language == "python":
            exec(compile(code, f"{page.name} example", "exec"), names)
        elif language == "sh" and "-m venv" not in code:  # setting up is what brought us here
            for command in commands(code.replace(PORT, free_port())):
                exit_code, output = run(command, tmp_path)
                assert exit_code == 0, f"{command}{output}"
        elif language == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
                exit_code, output = run(command, tmp_path)
                assert output == shown
                assert exit_code in (0, 1)
        else:
            assert language in ("sh", "toml", "text"), f"{page.name}: nobody runs {language}"


def public_names(code: str) -> Iterator[tuple[str, ...]]:
    """Yield what code takes from getd: ``getd.models.MODELS`` as ``("models", "MODELS")``."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package, *path = alias.name.split(".")
                if package == "getd" and path:
                    yield tuple(path)
        elif isinstance(node, ast.ImportFrom):
            package, *path = (node.module or "").split(".")
            if package == "getd":
                yield from ((*path, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute):
            *path, name = ast.unparse(node).split(".")
            if path[:1] == ["getd"]:
                yield (*path[1:], name)


def is_public(path: tuple[str, ...]) -> bool:
    """Whether each step of a path is in the ``__all__`` of the module that it is taken from."""
    value: object = getd
    for name in path:
        if isinstance(value, ModuleType) and name not in value.__all__:
            return False
        value = getattr(value, name)
    return True


def test_examples_use_public_names_alone() -> None:
    codes = [(path, path.read_text(encoding="utf-8")) for path in (ROOT / "examples").rglob("*.py")]
    for page in FOR_USERS:
        codes += [(page, code) for language, code in blocks(page) if language == "python"]
    assert {name for _, code in codes for name in public_names(code)} >= {("train",), ("load",)}

    private = []
    for path, code in codes:
        names = {name for name in public_names(code) if not is_public(name)}
        private += [f"{path.name}: getd.{'.'.join(name)}" for name in sorted(names)]
    assert private == []


def test_names_that_are_not_public_are_noticed() -> None:
    code = "import getd.api\nfrom getd.models import GETD, MODELS\ngetd.load(getd.run.Run)"
    names = list(public_names(code))
    assert {name for name in names if not is_public(name)} == {
        ("api",),
        ("models", "GETD"),
        ("run",),
        ("run", "Run"),
    }


def test_commands_of_a_block_are_run_one_by_one_and_in_a_shell_where_they_need_one() -> None:
    heredoc = "cat > a <<'END'\ngetd info b\nEND\n"
    block = f"getd info a.txt  # what it holds\n{heredoc}getd train 'a b' \\\n    --quiet\n"
    info, cat, train = commands(block)
    assert arguments_of_getd(info) == ["info", "a.txt"]
    assert arguments_of_getd(cat) is None
    assert arguments_of_getd(train) == ["train", "a b", "--quiet"]
    for command in (
        "getd info a | head -1",
        "getd info a > b",
        "getd info a; getd info b",
        "getd info a || true",
    ):
        assert arguments_of_getd(command) is None
    assert commands("getd serve run &\nkill $!\n") == ["getd serve run &\nkill $!\n"]


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_ci_finds_the_test_command_of_the_readme() -> None:
    commands = [
        line
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"python3 -m venv .* -m pytest", line)
    ]
    assert len(commands) == 1
