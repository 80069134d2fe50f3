"""Every example in README and docs runs, and shows what the docs say it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").rglob("README.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *EXAMPLES]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run(command: str, folder: Path) -> str:
    """What a shell prints, on both streams, with our interpreter's commands first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout
    return done.stdout if done.returncode in (0, 1) else f"exit code {done.returncode}: {done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for data in page.parent.glob("*.csv"):
        shutil.copy(data, tmp_path)
    names: dict[str, object] = {}
    for language, code in blocks(page):
        if language == "python":
            exec(compile(code, f"{page.name} example", "exec"), names)
        elif language == "sh" and "-m venv" not in code:  # setting up is what brought us here
            assert run(f"set -e\n{code}\necho done", tmp_path).splitlines()[-1] == "done"
        elif language == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
                assert run(command, tmp_path) == shown
        else:
            assert language in ("sh", "toml", "text"), f"{page.name}: nobody runs {language}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_ci_finds_the_test_command_of_the_readme() -> None:
    commands = [
        line
        for line in (ROOT / "README.md").read_text().splitlines()
        if re.match(r"python3 -m venv .* -m pytest", line)
    ]
    assert len(commands) == 1
