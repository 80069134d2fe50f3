"""A result says which code measured it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from getd.io.environment import commit_of, let_waiting_threads_sleep

GIT = (
    "git",
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.org",
    "-c",
    "commit.gpgsign=false",
)


def git(folder: Path, *command: str) -> str:
    done = subprocess.run([*GIT, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a checkout of its own."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return folder


def test_the_commit_is_that_of_the_checkout(package: Path) -> None:
    commit = git(package, "rev-parse", "HEAD")
    assert commit_of(package) == commit
    (package.parents[1] / "notes.txt").write_text("not of the package")
    assert commit_of(package) == commit


def test_changed_files_of_the_package_are_marked(package: Path) -> None:
    (package / "__init__.py").write_text("1")
    assert commit_of(package) == f"{git(package, 'rev-parse', 'HEAD')}-changed"


def test_a_package_that_is_not_under_git_has_no_commit(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = package.parents[1] / ".venv" / "package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert commit_of(installed) is None  # though it lies inside a checkout
    monkeypatch.setenv("PATH", "")
    assert commit_of(package) is None  # and where there is no git nothing is known


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "1000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, None),
    ],
)
def test_waiting_threads_sleep_unless_variables_say_otherwise(
    given: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(given))
    let_waiting_threads_sleep()
    assert os.environ.get("GOMP_SPINCOUNT") == expected


def test_serving_says_so_before_torch_is_imported() -> None:
    code = (
        "import sys, getd.cli.app, getd.api as api\n"
        "api.let_waiting_threads_sleep = lambda: sys.exit('torch' in sys.modules)\n"
        "api.serve('nowhere')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
