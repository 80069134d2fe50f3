"""Which tests run which code: made once by a run of the whole suite, and good for code that has
moved since.

Tests are kept by function, and by line within a function. A function that is found again, whatever
its file, word for word as it was, is known by line; one that has changed is known as a whole, by
its name.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutations import record
from tests.mutations.slot import ROOT, Slot, slot

CACHE = Path(__file__).parent / ".cache"  # ignored by git
MODULE = "<module>"
ELSEWHERE = [  # tests whose work is done by other processes: what runs there is not recorded
    *(
        "--ignore=tests/test_docs.py",
        "--ignore=tests/test_benchmarks.py",
        "--ignore=tests/serving/test_page.py",
    ),
    *("-k", "not kill and not interrupt_leaves and not two_processes and not many_may_begin"),
]


@dataclass(frozen=True)
class Function:
    """A piece of a file: a function, or what stands outside of all of them."""

    name: str  # dotted
    first: int  # lines, from 1
    last: int
    digest: str  # of what it says


class TestMap:
    """Tests with their times, and the tests of every function."""

    __test__ = False

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self.seconds: list[tuple[str, float]] = [
            (name, seconds) for name, seconds in stored["tests"]
        ]
        self._by_digest: dict[str, dict[str, int]] = stored[
            "functions"
        ]  # line within it -> bits of tests
        self._by_name: dict[str, int] = {}
        self._by_file: dict[str, int] = {}
        for file, name, digest in stored["names"]:
            bits = _union(self._by_digest[digest].values())
            self._by_name[name] = self._by_name.get(name, 0) | bits
            self._by_file[file] = self._by_file.get(file, 0) | bits

    def tests(self, path: Path, source: str, first: int, last: int) -> list[tuple[str, float]]:
        """The tests that run any of these lines, or all of their function where none is known to;
        the fastest first.
        """
        function = enclosing(functions(source), first)
        bits = 0
        if function.name != MODULE:
            lines = self._by_digest.get(function.digest, {})
            wanted = range(first - function.first, last - function.first + 1)
            bits = _union(bits for line, bits in lines.items() if int(line) in wanted)
            bits = bits or _union(lines.values()) or self._by_name.get(function.name, 0)
        bits = bits or self._by_file.get(path.name, 0)
        chosen = [test for number, test in enumerate(self.seconds) if bits >> number & 1]
        return sorted(chosen, key=lambda test: test[1])

    def new(self, file: str) -> list[str]:
        """The tests of a file that were written after the map was made."""
        written = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), re.M)
        known = {name.split("[")[0] for name, _ in self.seconds}
        return [name for name in (f"{file}::{each}" for each in written) if name not in known]


def functions(source: str) -> list[Function]:
    """The functions of a file, the inner ones after those that they stand in; first of all the file
    as a whole.
    """
    found = [Function(MODULE, 1, source.count("\n") + 1, _digest(source))]
    lines = source.splitlines()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    first = min(
                        [child.lineno, *(decorator.lineno for decorator in child.decorator_list)]
                    )
                    last = child.end_lineno or first
                    text = "\n".join(line.strip() for line in lines[first - 1 : last])
                    found.append(Function(name, first, last, _digest(text)))
                visit(child, f"{name}.")
            else:
                visit(child, prefix)

    visit(ast.parse(source), "")
    return found


def enclosing(found: Iterable[Function], line: int) -> Function:
    """The innermost function that a line stands in."""
    return [function for function in found if function.first <= line <= function.last][-1]


def read_map() -> TestMap | None:
    """The map that was made last."""
    path = CACHE / "map.json.gz"
    return TestMap(json.loads(gzip.decompress(path.read_bytes()))) if path.exists() else None


def make_map(files: Sequence[str] = ()) -> TestMap:
    """Run the suite in a copy of the tree, and keep what it tells; of some files of tests alone,
    what they tell is added to what is kept.
    """
    CACHE.mkdir(exist_ok=True)
    path = CACHE / "map.json.gz"
    with slot() as copy:
        recorded = _record(copy, files)
        stored = _stored(recorded, copy.root / "src" / "getd")
    if files and path.exists():
        stored = _joined(json.loads(gzip.decompress(path.read_bytes())), stored)
    path.write_bytes(gzip.compress(json.dumps(stored).encode()))
    return TestMap(stored)


def _joined(before: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """What two runs tell, where tests of the second may be those of the first again."""
    tests = dict(before["tests"]) | dict(added["tests"])
    number = {name: place for place, name in enumerate(tests)}
    bit = [1 << number[name] for name, _ in added["tests"]]

    functions = {digest: dict(lines) for digest, lines in before["functions"].items()}
    for digest, lines in added["functions"].items():
        known = functions.setdefault(digest, {})
        for line, bits in lines.items():
            new = _union(each for place, each in enumerate(bit) if bits >> place & 1)
            known[line] = known.get(line, 0) | new

    names = dict.fromkeys(map(tuple, [*before["names"], *added["names"]]))
    return {"tests": list(tests.items()), "functions": functions, "names": list(names)}


def _record(copy: Slot, files: Sequence[str]) -> dict[str, Any]:
    target = copy.root / "record.json"
    os.environ[record.FILE] = str(target)
    try:
        output = copy.run_apart(
            ["--maxfail=100000", "-p", "tests.mutations.record", *ELSEWHERE, *files]
        )
    finally:
        del os.environ[record.FILE]
    (CACHE / "map.log").write_text(output)
    if not target.exists():
        raise SystemExit(f"the run that makes the map failed:\n{output[-2000:]}")
    recorded: dict[str, Any] = json.loads(target.read_text())
    return recorded


def _stored(recorded: Mapping[str, Any], package: Path) -> dict[str, Any]:
    """What was recorded, by function; without tests that did not pass."""
    tests = {name: test for name, test in recorded["tests"].items() if test["passed"]}
    number = {name: place for place, name in enumerate(tests)}
    users: dict[str, int] = {}
    for name, test in tests.items():
        for fixture in test["fixtures"]:
            users[fixture] = users.get(fixture, 0) | 1 << number[name]

    by_digest: dict[str, dict[str, int]] = {}
    names = []
    for path, lines in recorded["lines"].items():
        source = Path(path).read_text(encoding="utf-8")
        pieces = functions(source)
        for line, contexts in lines.items():
            piece = enclosing(pieces, int(line))
            bits = _union(_bits(context, number, users, tests) for context in contexts)
            offsets = by_digest.setdefault(piece.digest, {})
            offset = str(int(line) - piece.first)
            offsets[offset] = offsets.get(offset, 0) | bits
        names += [
            (Path(path).name, piece.name, piece.digest)
            for piece in pieces
            if piece.digest in by_digest
        ]
    return {
        "tests": [(name, test["seconds"]) for name, test in tests.items()],
        "functions": by_digest,
        "names": names,
    }


def _bits(
    context: str, number: Mapping[str, int], users: Mapping[str, int], tests: Mapping[str, Any]
) -> int:
    """The tests that a context stands for: one, or all that use a fixture and stand where it is
    known.
    """
    if not context.startswith("fixture "):
        return 1 << number[context] if context in number else 0
    _, base, fixture = context.split(" ", 2)
    within = _union(1 << number[name] for name in tests if name.startswith(base))
    return users.get(fixture, 0) & within


def _union(bits: Iterable[int]) -> int:
    total = 0
    for each in bits:
        total |= each
    return total


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
