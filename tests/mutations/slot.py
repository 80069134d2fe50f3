"""A throwaway copy of the tree in which one mutation at a time is tried.

Tests run in processes that are forked from one that has imported all that does not change: most
mutations are noticed in less time than it takes to import torch.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.mutations.source import Edit

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests")  # all else is linked: nothing writes there
QUIET = ("-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly")
IMPORTED = ["pytest", "torch", "polars", "pydantic", "cyclopts", "rich.table", "opt_einsum"]
HANGS = -1


@dataclass(frozen=True)
class Outcome:
    """What tests said of a mutation."""

    code: int  # pytest's, or HANGS
    output: str

    @property
    def passed(self) -> bool:
        """Whether nothing was noticed; 5: no test was there to run."""
        return self.code in (0, 5)

    @property
    def hangs(self) -> bool:
        """Whether it took too long."""
        return self.code == HANGS

    @property
    def killer(self) -> str:
        """What noticed it."""
        if self.hangs:
            return "a time limit"
        return next(iter(self.failed), f"pytest, which ended with {self.code}")

    @property
    def failed(self) -> list[str]:
        """The tests, or files of tests, that failed; lines of a log begin with ``ERROR`` too."""
        return re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", self.output, re.MULTILINE)


class Slot:
    """One copy of the tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(
        self, edit: Edit | None, arguments: Sequence[str], seconds: float, **environment: str
    ) -> Outcome:
        """Run pytest with an edit in place; what takes longer than that hangs."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTED)
        os.environ["OMP_NUM_THREADS"] = "1"
        output = self.root / "output.txt"
        with self._edited(edit):
            process = context.Process(
                target=_pytest, args=(self.root, [*QUIET, *arguments], output, environment)
            )
            process.start()
            process.join(seconds)
            hangs = process.is_alive()
            _end(process)
        return Outcome(
            HANGS if hangs else process.exitcode or 0, output.read_text(errors="replace")
        )

    def run_apart(self, arguments: Sequence[str]) -> str:
        """Run pytest in an interpreter that has imported nothing yet; what it says."""
        paths = f"{self.root / 'src'}{os.pathsep}{self.root}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *QUIET, *arguments],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    @contextmanager
    def _edited(self, edit: Edit | None) -> Iterator[None]:
        if edit is None:
            yield
            return
        path = self.root / edit.path.relative_to(ROOT)
        before = path.read_text(encoding="utf-8")
        self._write(path, edit.apply(before))
        try:
            yield
        finally:
            self._write(path, before)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """A file and no byte code of what it said before."""
        path.write_text(text, encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()


@contextmanager
def slot() -> Iterator[Slot]:
    """A copy of the working tree that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        root = Path(folder)
        for path in ROOT.iterdir():
            if path.name in COPIED:
                shutil.copytree(
                    path, root / path.name, ignore=shutil.ignore_patterns("__pycache__", ".cache")
                )
            elif path.name != ".git":
                (root / path.name).symlink_to(path)
        yield Slot(root)


def _pytest(root: Path, arguments: list[str], output: Path, environment: dict[str, str]) -> None:
    """What a forked process does: it knows the copy alone, and not the tree that it was started
    from.
    """
    os.setsid()
    sys.dont_write_bytecode = False  # the next run finds what this one has compiled
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(root)
    kept = [path for path in sys.path if path and Path(path).resolve() not in (ROOT, ROOT / "src")]
    sys.path[:] = [str(root / "src"), str(root), *kept]
    os.environ.update(environment, PYTHONPATH=os.pathsep.join(sys.path[:2]))
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]

    import pytest

    code = int(pytest.main(arguments))
    sys.stdout.flush()
    os._exit(code)


def _end(process: BaseProcess) -> None:
    """A test run and all that it has started."""
    assert process.pid is not None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
