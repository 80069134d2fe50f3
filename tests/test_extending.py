"""The diffs of docs/extending.md apply to the code, and what they add works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(text) if found == language]


@pytest.mark.parametrize("section", SECTIONS)
def test_an_extension_is_a_diff_of_at_most_two_files(section: str) -> None:
    (diff,) = blocks(SECTIONS[section], "diff")
    assert len(re.findall(r"^\+\+\+ b/src/getd/", diff, re.MULTILINE)) == 2
    assert len(re.findall(r"^\+\+\+ ", diff, re.MULTILINE)) == 2


def test_the_diffs_apply_one_after_the_other_and_their_examples_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for diff in blocks(PAGE, "diff"):
        run(["git", "apply", "--whitespace=error-all", "-"], tmp_path, diff)

    # The examples are one program: later ones use names of earlier ones.
    code = "\n".join(blocks(PAGE, "python"))
    run([sys.executable, "-W", "error", "-c", code], tmp_path, "")


def run(command: list[str], folder: Path, text: str) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(folder / "src"),
        "PYTHONUTF8": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
