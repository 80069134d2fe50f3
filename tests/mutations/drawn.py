"""Mutations drawn at random: operators, constants, arguments, statements and conditions of all code
of the package.

A mutation has an id that follows from what the code says and from the function it stands in, and a
draw takes those whose ids come first when they are shuffled by a seed. So code that is changed
elsewhere, or moved, changes no draw.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.map import enclosing, functions
from tests.mutations.source import Edit

KINDS = ("operator", "constant", "argument", "statement", "condition")
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
}
SKIPPED = (
    ast.Raise,
    ast.Assert,
    ast.JoinedStr,
)  # what is told to users, and what type checkers need


@dataclass(frozen=True)
class Drawn:
    """A mutation that was drawn."""

    id: str
    kind: str
    function: str
    was: str  # the statement
    becomes: str
    edit: Edit
    lines: tuple[int, int]  # of the statement, from 1


def draw(sources: dict[Path, str], number: int, seed: int) -> list[Drawn]:
    """So many mutations, as many of each kind as of any other."""
    every = every_candidate(sources)
    chosen: list[Drawn] = []
    for place, kind in enumerate(KINDS):
        share = number // len(KINDS) + (place < number % len(KINDS))
        of_kind = {mutation.id: mutation for mutation in every if mutation.kind == kind}
        chosen += sorted(of_kind.values(), key=lambda mutation: _digest(f"{seed} {mutation.id}"))[
            :share
        ]
    return chosen


def every_candidate(sources: dict[Path, str]) -> list[Drawn]:
    """Every mutation of some files."""
    return [mutation for path, source in sources.items() for mutation in candidates(path, source)]


def candidates(path: Path, source: str) -> Iterator[Drawn]:
    """Every mutation of a file."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    pieces = functions(source)
    seen: dict[str, int] = {}
    for kind, statement, start, stop, text in finder.found:
        first, last = statement.lineno, _header_end(statement)
        header = finder.offset(first, 0), finder.offset(last + 1, 0)
        was = source[header[0] : header[1]]
        becomes = source[header[0] : start] + text + source[stop : header[1]]
        function = enclosing(pieces, first).name
        said = f"{function} {kind} {_plain(was)} {_plain(becomes)}"
        seen[said] = seen.get(said, 0) + 1
        name = _digest(f"{said} {seen[said]}")[:8]
        yield Drawn(
            name,
            kind,
            function,
            _plain(was),
            _plain(becomes),
            Edit(path, start, stop, text),
            (first, last),
        )


class _Finder(ast.NodeVisitor):
    """Walks a file and notes what can be changed: kind, statement, start, stop, new text."""

    def __init__(self, source: str) -> None:
        self.found: list[tuple[str, ast.stmt, int, int, str]] = []
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._statement: ast.stmt | None = None

    def offset(self, line: int, column: int) -> int:
        """Where a place of the tree is in the text; columns of the tree count bytes."""
        if line > len(self._lines):
            return len(self._source)
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, SKIPPED) or _is_annotation_only(node):
            return
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        method = getattr(self, f"_in_{type(node).__name__}", None)
        if method is not None and self._statement is not None:
            method(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)
        self._statement = outer

    def _note(
        self, kind: str, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, text: str
    ) -> None:
        start, stop = self._span(first)[0], self._span(last)[1]
        self._add(kind, start, stop, text)

    def _add(self, kind: str, start: int, stop: int, text: str) -> None:
        assert self._statement is not None
        self.found.append((kind, self._statement, start, stop, text))

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(
            node.end_lineno, node.end_col_offset
        )

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self._span(node)
        return self._source[start:stop]

    def _between(self, left: ast.expr, right: ast.expr, token: str) -> tuple[int, int] | None:
        """Where an operator stands between two operands."""
        start, stop = self._span(left)[1], self._span(right)[0]
        match = re.search(re.escape(token).replace(r"\ ", r"\s+"), self._source[start:stop])
        return (start + match.start(), start + match.end()) if match else None

    def _in_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operation, right in zip(node.ops, node.comparators, strict=True):
            place = self._between(left, right, _SYMBOLS[type(operation)])
            if place:
                self._add("operator", *place, COMPARISONS[type(operation)])
            left = right

    def _in_BinOp(self, node: ast.BinOp) -> None:
        becomes = ARITHMETIC.get(type(node.op))
        if becomes is None or _is_text(node.left) or _is_text(node.right):
            return
        place = self._between(node.left, node.right, _SYMBOLS[type(node.op)])
        if place:
            self._add("operator", *place, becomes)

    def _in_BoolOp(self, node: ast.BoolOp) -> None:
        symbol, becomes = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            place = self._between(left, right, symbol)
            if place:
                self._add("operator", *place, becomes)

    def _in_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._note("constant", node, node, str(not value))
        elif isinstance(value, int):
            self._note("constant", node, node, str(value + 1))
        elif isinstance(value, float):
            self._note("constant", node, node, repr(value * 2 if value else 1.0))

    def _in_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg:
                start, stop = self._span(keyword)
                after = re.match(r"\s*,\s*", self._source[stop:])
                before = re.search(r",\s*$", self._source[:start])
                if after:
                    self._add("argument", start, stop + after.end(), "")
                else:
                    self._add("argument", before.start() if before else start, stop, "")
        for first, second in zip(node.args, node.args[1:], strict=False):
            swapped = not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred)
            if swapped and self._text(first) != self._text(second):
                middle = self._source[self._span(first)[1] : self._span(second)[0]]
                self._note(
                    "argument", first, second, self._text(second) + middle + self._text(first)
                )

    def _in_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._note("statement", node, node, "pass")

    def _in_AugAssign(self, node: ast.AugAssign) -> None:
        self._note("statement", node, node, "pass")

    def _in_If(self, node: ast.If) -> None:
        self._negate(node.test)

    def _in_While(self, node: ast.While) -> None:
        self._negate(node.test)

    def _in_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)

    def _in_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)

    def _negate(self, test: ast.expr) -> None:
        self._note("condition", test, test, f"(not ({self._text(test)}))")


_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_annotation_only(node: ast.AST) -> bool:
    """What is said to tools alone: ``__all__``, type aliases, annotations without a value."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if (
        not isinstance(node, ast.Assign)
        or len(node.targets) != 1
        or not isinstance(node.targets[0], ast.Name)
    ):
        return False
    is_alias = isinstance(node.value, ast.Subscript) and node.targets[0].id.istitle()
    return node.targets[0].id == "__all__" or is_alias


def _header_end(statement: ast.stmt) -> int:
    """The last line of a statement, of a compound one that of what stands before its body."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    return max(statement.lineno, body[0].lineno - 1) if body else last


def _plain(text: str) -> str:
    """Code on one line, whatever its line breaks."""
    text = re.sub(r"\s+", " ", re.sub(r"  #.*", "", text)).strip()
    return re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
