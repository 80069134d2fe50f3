"""The rooms of the package know only the rooms below them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import getd

LAYERS = [
    {"visible", "arrays", "choices"},
    {"errors", "choices", "arrays"},
    {"io"},
    {"config"},
    {"algebra", "facts"},
    {"formats"},
    {"datasets", "profile"},
    {"models"},
    {"evaluation"},
    {"calibration", "memory"},
    {"runs"},
    {"parallel"},
    {"training", "prediction"},
    {"plots"},
    {"tuning"},
    {"workflows"},
    {"experiments", "serving"},
    {"run"},
    {"api"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
ROOT = Path(getd.__file__).parent
ONE_FILE_EACH = ("zstandard", "platformdirs")  # libraries that only one file imports
SOURCES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> list[str]:
    """Every module a file imports from."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.append(node.module or "")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def test_no_room_imports_a_room_beside_or_above_it() -> None:
    wrong = []
    for path in SOURCES:
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for module in imports(path):
            if module.split(".")[0] == "getd":
                other = (module + ".__init__").split(".")[1]
                if other != room and LEVEL[other] >= LEVEL[room]:
                    wrong.append(f"{path.relative_to(ROOT)} imports getd.{other}")
    assert [line for line in wrong if not line.startswith("__init__.py")] == []


@pytest.mark.parametrize("library", ONE_FILE_EACH)
def test_a_library_at_the_edge_is_imported_in_one_file(library: str) -> None:
    assert (
        len(
            [
                path
                for path in SOURCES
                if library in {module.split(".")[0] for module in imports(path)}
            ]
        )
        == 1
    )


def test_every_public_name_is_there() -> None:
    assert all(getattr(getd, name) is not None for name in getd.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'getd' has no attribute 'trian'$"):
        getd.trian  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["info", "--help"], []])
def test_help_imports_neither_torch_nor_polars(arguments: list[str]) -> None:
    code = (
        "import sys; from getd.cli.app import main; code = main(sys.argv[1:]);"
        "heavy = sorted({'torch', 'polars', 'pydantic', 'numpy'} & set(sys.modules));"
        "assert not heavy, heavy; sys.exit(code)"
    )
    command = [sys.executable, "-X", "utf8", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_the_command_line_prints() -> None:
    printing = [
        path
        for path in SOURCES
        if "cli" not in path.parts
        and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    ]
    assert printing == []
