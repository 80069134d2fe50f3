"""A throwaway copy of the tree in which one mutation at a time is tried."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.source import Edit

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests")  # all else is linked: nothing writes there
QUIET = ("-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly")
FAILED, HANGS = 1, -1


@dataclass(frozen=True)
class Outcome:
    """What tests said of a mutation."""

    code: int  # pytest's, or HANGS
    output: str

    @property
    def passed(self) -> bool:
        """Whether nothing was noticed."""
        return self.code == 0

    @property
    def killer(self) -> str:
        """What noticed it."""
        if self.code == HANGS:
            return "a time limit"
        for line in self.output.splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                return line.split(" ", 1)[1].split(" - ")[0].strip()
        return f"pytest's exit code {self.code}"


class Slot:
    """One copy of the tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, edit: Edit | None, arguments: Sequence[str], seconds: float) -> Outcome:
        """Run pytest with an edit in place; what takes longer than that hangs."""
        with self._edited(edit):
            environment = os.environ | {
                "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root}",
                "OMP_NUM_THREADS": "1",
            }
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *QUIET, *arguments],
                cwd=self.root,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            try:
                output, _ = process.communicate(timeout=seconds)
                return Outcome(process.returncode, output)
            except subprocess.TimeoutExpired:
                return Outcome(HANGS, "")
            finally:
                _end(process)

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
                shutil.copytree(path, root / path.name, ignore=shutil.ignore_patterns("__pycache__", ".cache"))
            elif path.name != ".git":
                (root / path.name).symlink_to(path)
        yield Slot(root)


def _end(process: subprocess.Popen[str]) -> None:
    """A test run and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
