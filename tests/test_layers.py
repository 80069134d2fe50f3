"""The rooms of the package: who knows whom, who imports what, and which words they use."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import getd
from getd.run import Run

LAYERS = [
    {"visible", "arrays", "choices"},
    {"errors"},
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
SOURCES = sorted(ROOT.rglob("*.py"))
COMMAND_FILES = sorted((ROOT / "cli" / "commands").glob("[!_]*.py"))
ONE_FILE_EACH = ("zstandard", "platformdirs")  # libraries that only one file imports
ONE_ROOM_EACH = {  # libraries that only one room imports
    "matplotlib": "plots",
    "optuna": "tuning",
    "sqlalchemy": "tuning",
    "fastapi": "serving",
    "starlette": "serving",
    "uvicorn": "serving",
    "prometheus_client": "serving",
    "torch.distributed": "parallel",
    "torch.multiprocessing": "parallel",
    "cyclopts": "cli",
    "rich": "cli",
}

# Names that do not say what a variable holds.
FORBIDDEN = {
    *("found", "told", "asked", "place", "places", "room", "here", "alike", "some", "so_many"),
    *("made", "given_up", "anew", "beside", "wanted"),
}
NAMING = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs

# The public functions that each command calls. Two: a flag chooses between them, or adds one.
CALLS = {
    "calibrate": {"Run.calibrate"},
    "combine": {"combine"},
    "complete": {"Run.complete"},
    "convert": {"convert"},
    "datasets": {"datasets"},
    "demo": {"demo"},
    "evaluate": {"Run.evaluate"},
    "export": {"Run.export"},
    "extend": {"Run.extend"},
    "info": {"describe"},
    "models": {"models"},
    "predict": {"Run.answer", "Run.explain_answer"},
    "rate": {"Run.rate", "Run.suspicious"},
    "remember": {"Run.remember"},
    "reproduce": {"reproduce", "list_rows"},
    "serve": {"serve"},
    "train": {"train"},
    "tune": {"tune"},
}
OPENING = {"load", "open_run", "Run.open", "Run.question", "Run.read_questions"}  # of arguments


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield every module that code imports or imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_part_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def test_no_room_imports_a_room_beside_or_above_it() -> None:
    wrong = set()
    for path in SOURCES:
        room = room_of(path)
        for module in imports(tree_of(path)):
            if module == "getd" or not is_part_of(module, "getd"):
                continue
            other = module.split(".")[1]
            other = other if other in LEVEL else "__init__"  # a public name
            if other != room != "__init__" and LEVEL[other] >= LEVEL[room]:
                wrong.add(f"{path.relative_to(ROOT)} imports getd.{other}")
    assert wrong == set()


@pytest.mark.parametrize("library", ONE_FILE_EACH)
def test_a_library_at_the_edge_is_imported_in_one_file(library: str) -> None:
    importing = [
        path
        for path in SOURCES
        if any(is_part_of(module, library) for module in imports(tree_of(path)))
    ]
    assert len(importing) == 1


@pytest.mark.parametrize("library", ONE_ROOM_EACH)
def test_a_heavy_library_is_imported_in_one_room(library: str) -> None:
    rooms = set()
    for path in SOURCES:
        if any(is_part_of(module, library) for module in imports(tree_of(path))):
            rooms.add(room_of(path))
    assert rooms <= {ONE_ROOM_EACH[library]}


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the variables, parameters, functions and classes that code names, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, NAMING) and node.name:
            yield node.name, node.lineno


def vague_names(path: Path) -> list[str]:
    location = path.relative_to(ROOT)
    return [
        f"{location}:{line}: {name}"
        for name, line in bound_names(tree_of(path))
        if name.lower().strip("_") in FORBIDDEN
    ]


def test_a_name_says_what_it_holds() -> None:
    assert [line for path in SOURCES for line in vague_names(path)] == []


def test_every_public_name_is_there() -> None:
    assert all(getattr(getd, name) is not None for name in getd.__all__)
    assert set(getd.__all__) <= set(dir(getd))


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'getd' has no attribute 'trian'$"):
        getd.trian  # noqa: B018


def is_for_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@pytest.mark.parametrize("path", COMMAND_FILES, ids=lambda path: path.stem)
def test_a_command_knows_the_public_functions_alone(path: Path) -> None:
    allowed = ("getd.cli", "getd.api", "getd.run", "getd.errors", "getd.choices")
    allowed += ("getd.prediction.records",)  # the JSON form that all interfaces share
    tree = tree_of(path)
    modules = {
        module
        for node in tree.body
        if not is_for_type_checking(node)
        for module in imports(node)
        if is_part_of(module, "getd") and module != "getd"
    }
    assert [m for m in modules if not any(is_part_of(m, package) for package in allowed)] == []


def public_calls(tree: ast.AST) -> Iterator[str]:
    """Yield the functions of ``getd.api`` and the methods of ``Run`` that code calls."""
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "getd.api":
            functions |= {alias.asname or alias.name: alias.name for alias in node.names}

    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in functions:
            yield functions[node.func.id]
        elif isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func.value) == "api":
                yield node.func.attr
            elif callable(getattr(Run, node.func.attr, None)):
                yield f"Run.{node.func.attr}"


def test_a_command_calls_one_public_function() -> None:
    calls = {path.stem: set(public_calls(tree_of(path))) - OPENING for path in COMMAND_FILES}
    assert calls == CALLS
    assert sorted(name for name in calls if len(calls[name]) > 1) == [
        "predict",
        "rate",
        "reproduce",
    ]


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
    printing = set()
    for path in SOURCES:
        calls = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
        if any(ast.unparse(call.func) == "print" for call in calls):
            printing.add(room_of(path))
    assert printing == {"cli"}
