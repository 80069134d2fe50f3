"""How easy the package is to read: density, paragraphs, names and sizes, next to their bars.

    python -m benchmarks.house [FOLDER]

A *code line* is a line that is neither blank, nor part of a docstring, nor a comment of its own.
The bars come from code that reads well (httpx, optuna, opt_einsum), and ``tests/test_house.py``
checks them.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.harness import ROOT, Figure, Result
from benchmarks.report import show

PACKAGE = ROOT / "src" / "getd"
LONG_BODY = 10  # lines from which on a function needs paragraphs
MAX_BODY = 60  # lines of a function
MAX_FILE = 350  # lines
FORBIDDEN_NAMES = {  # they say that a thing was obtained, not what it is
    *("found", "told", "asked", "made", "wanted", "given_up", "some", "so_many", "alike", "anew"),
    *("place", "places", "room", "here", "beside"),
    *("ROOM", "AT_ONCE", "HELD", "LEAST", "MOST", "ENOUGH", "SMALL"),
}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function: where it is, the lines of its body, and whether they form paragraphs."""

    location: str
    n_lines: int  # without the docstring
    has_paragraphs: bool  # a blank line or a comment of its own inside


@dataclass(frozen=True)
class Source:
    """A file of code."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """All lines."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def code_lines(self) -> list[str]:
        """The lines without blank lines, docstrings and comments of their own."""
        left_out = set(self._comment_lines())
        for node in self.nodes:
            docstring = _docstring(node)
            if docstring is not None:
                left_out.update(_line_numbers(docstring))

        numbered = enumerate(self.lines, start=1)
        return [line for number, line in numbered if line.strip() and number not in left_out]

    def _comment_lines(self) -> Iterator[int]:
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            is_own_line = token.line.lstrip().startswith("#")
            if token.type == tokenize.COMMENT and is_own_line:
                yield token.start[0]

    def count_expressions(self) -> int:
        """Count the expressions, nested ones included: ``a + f(b)`` has five."""
        return sum(isinstance(node, ast.expr) for node in self.nodes)

    def count_packed_assignments(self) -> int:
        """Count assignments of several values at once, ``a, b = x, y``."""
        assignments = [node for node in self.nodes if isinstance(node, ast.Assign)]
        pairs = [(node.targets[0], node.value) for node in assignments]
        return sum(isinstance(a, ast.Tuple) and isinstance(b, ast.Tuple) for a, b in pairs)

    def forbidden_names(self) -> list[str]:
        """List where a variable, a parameter, a function or a class has a forbidden name."""
        locations = []
        for node in self.nodes:
            name = _bound_name(node)
            if name in FORBIDDEN_NAMES:
                locations.append(f"{self.name}:{getattr(node, 'lineno', 0)}: {name}")
        return locations

    def functions(self) -> list[Function]:
        """List all functions and methods."""
        nodes = [node for node in self.nodes if isinstance(node, FunctionNode)]
        return [self._function(node) for node in nodes]

    def _function(self, node: FunctionNode) -> Function:
        location = f"{self.name}:{node.lineno}: {node.name}"
        body = node.body[1:] if _docstring(node) is not None else node.body
        if not body:
            return Function(location, 0, has_paragraphs=False)

        # Blank lines around nested functions are a matter of style, and do not count.
        start = body[0].lineno
        end = body[-1].end_lineno or start
        inner: set[int] = set()
        for child in ast.walk(node):
            if isinstance(child, FunctionNode | ast.ClassDef) and child is not node:
                inner.update(range(child.lineno - 2, (child.end_lineno or 0) + 2))

        numbers = [number for number in range(start, end + 1) if number not in inner]
        texts = [self.lines[number - 1].strip() for number in numbers]
        has_paragraphs = any(not text or text.startswith("#") for text in texts)
        return Function(location, end - start + 1, has_paragraphs)


def _docstring(node: ast.AST) -> ast.Expr | None:
    if not isinstance(node, ast.Module | ast.ClassDef | FunctionNode) or not node.body:
        return None
    first = node.body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return None
    return first if isinstance(first.value.value, str) else None


def _line_numbers(node: ast.Expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.ClassDef | FunctionNode):
        return node.name
    return None


def read_sources(folder: Path = PACKAGE) -> list[Source]:
    """Read all Python files below a folder."""
    sources = []
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(folder))
        sources.append(Source(name, path.read_text(encoding="utf-8")))
    return sources


def quantile(values: Sequence[int], share: float) -> int:
    """Return the value at a share of the sorted values.

    >>> quantile([5, 1, 3], 0.5)
    3
    """
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


def measure(sources: Sequence[Source]) -> list[Figure]:
    """Measure files of code; each figure has its bar."""
    code_lines = [line for source in sources for line in source.code_lines]
    hundreds = len(code_lines) / 100
    expressions = sum(source.count_expressions() for source in sources)
    packed = sum(source.count_packed_assignments() for source in sources)
    forbidden = sum(len(source.forbidden_names()) for source in sources)

    functions = [function for source in sources for function in source.functions()]
    bodies = [function.n_lines for function in functions]
    long_bodies = [function for function in functions if function.n_lines >= LONG_BODY]
    with_paragraphs = sum(function.has_paragraphs for function in long_bodies)
    share = 100 * with_paragraphs / max(len(long_bodies), 1)

    sizes = [len(source.lines) for source in sources]
    width = quantile([len(line.rstrip()) for line in code_lines], 0.9)
    paragraphs = f"functions of {LONG_BODY} lines or more with paragraphs"
    return [
        Figure("expressions per code line", round(expressions / len(code_lines), 2), "", 4.8),
        Figure("90 % of code lines have at most", width, "characters", 88),
        Figure("packed assignments per 100 code lines", round(packed / hundreds, 2), "", 0.5),
        Figure(paragraphs, round(share, 1), "%", 65, at_least=True),
        Figure("forbidden names", forbidden, "", 0),
        Figure("body of a function, median", median(bodies), "lines", 8),
        Figure("body of a function, 90 % have at most", quantile(bodies, 0.9), "lines", 28),
        Figure("body of a function, longest", max(bodies), "lines", MAX_BODY),
        Figure("longest file", max(sizes), "lines", MAX_FILE),
        Figure("all files", sum(sizes), "lines", 28_000),
    ]


def exceptions(sources: Sequence[Source]) -> list[str]:
    """List every forbidden name, every function and every file that is too long."""
    messages = []
    for source in sources:
        messages += source.forbidden_names()
        if len(source.lines) > MAX_FILE:
            messages.append(f"{source.name}: {len(source.lines)} lines")
        for function in source.functions():
            if function.n_lines > MAX_BODY:
                messages.append(f"{function.location}: {function.n_lines} lines")
    return messages


def main() -> int:
    """Print the table and the exceptions; the exit code is 1 if a bar does not hold."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    sources = read_sources(folder)
    result = Result("house", measure(sources), plots=[], details={}, packages=())
    show(result, Console())
    for message in exceptions(sources):
        print(message)
    return int(not result.holds)


if __name__ == "__main__":
    sys.exit(main())
