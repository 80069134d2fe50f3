"""Mutations to results: which test notices each, if any."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutations import select
from tests.mutations.drawn import Drawn, draw, every_candidate
from tests.mutations.map import MODULE, TestMap, enclosing, functions
from tests.mutations.slot import ROOT, Outcome, Slot, slot
from tests.mutations.source import Edit, MutationError, edit, read_sources

PACKAGE = ROOT / "src" / "getd"
FOLDER = Path(__file__).parent
FIRST = 5.0  # seconds of tests that are tried first
PATIENCE = 120.0  # seconds that a run may take, beyond ten times what its tests took before


@dataclass(frozen=True)
class Mutation:
    """A wrong line of code."""

    id: str
    where: str  # function
    change: str
    why: str  # it matters, or a kind
    edit: Edit | None  # None: it does not fit the code any more
    lines: tuple[int, int] = (0, 0)
    equivalent: str = ""  # why no test can notice it
    problem: str = ""  # why it does not fit


@dataclass(frozen=True)
class Result:
    """What became of a mutation."""

    mutation: Mutation
    verdict: str  # killed, survived, equivalent, gone, lost
    about: str  # by which test, or why


def listed() -> list[Mutation]:
    """Those of the list, found in the code as it is."""
    sources = read_sources(PACKAGE)
    table = tomllib.loads((FOLDER / "listed.toml").read_text(encoding="utf-8"))
    return [_listed(name, values, sources) for name, values in table.items()]


def _listed(name: str, values: Mapping[str, Any], sources: dict[Path, str]) -> Mutation:
    problem = ""
    for form in (values, *values.get("or", ())):
        change = f"`{_one_line(form['from'])}` → `{_one_line(form['to'])}`"
        try:
            found = edit(form["from"], form["to"], sources, values.get("beside", ""))
            break
        except MutationError as error:
            problem = problem or str(error)
    else:
        return Mutation(name, "", change, values["why"], None, problem=values.get("gone", problem))
    source = sources[found.path]
    lines = found.line(source), source.count("\n", 0, found.stop) + 1
    where = _where(found.path, enclosing(functions(source), lines[0]).name)
    return Mutation(name, where, change, values["why"], found, lines, values.get("equivalent", ""))


def drawn(number: int, seed: int, since: str | None = None) -> list[Mutation]:
    """Those that a seed draws, from the files that changed since a commit or from all."""
    sources = read_sources(PACKAGE)
    if since is not None:
        changed = _changed_since(since)
        sources = {path: source for path, source in sources.items() if path in changed}
    return _described(draw(sources, number, seed))


def chosen(ids: Sequence[str]) -> list[Mutation]:
    """Those with these ids, listed or to be drawn by any seed."""
    every = every_candidate(read_sources(PACKAGE))
    mutations = [
        *(mutation for mutation in listed() if mutation.id in ids),
        *_described([each for each in every if each.id in ids]),
    ]
    missing = set(ids) - {mutation.id for mutation in mutations}
    if missing:
        raise SystemExit(f"no mutation of the code as it is: {', '.join(sorted(missing))}")
    return mutations


def _described(mutations: Sequence[Drawn]) -> list[Mutation]:
    table = tomllib.loads((FOLDER / "equivalents.toml").read_text(encoding="utf-8"))
    return [
        Mutation(
            each.id,
            _where(each.edit.path, each.function),
            _shown(each.was, each.becomes),
            each.kind,
            each.edit,
            each.lines,
            table.get(each.id, {}).get("why", ""),
        )
        for each in mutations
    ]


def _changed_since(commit: str) -> set[Path]:
    command = ["git", "diff", "--name-only", commit]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {ROOT / name for name in names.splitlines()}


class Laboratory:
    """Tries mutations, some side by side."""

    def __init__(self, tests: TestMap | None, killers: Mapping[str, str], limit: float) -> None:
        self._tests, self._killers, self._limit = tests, killers, limit
        self._green: set[str] = set()  # tests that are known to pass without any change
        self._red: set[str] = set()  # tests that fail without any change

    def results(
        self,
        mutations: Sequence[Mutation],
        jobs: int,
        tell: Callable[[Result], None] = lambda result: None,
    ) -> list[Result]:
        """The result of each, in order; ``tell`` is called as they come."""
        slots: SimpleQueue[Slot] = SimpleQueue()
        with ExitStack() as stack:
            for _ in range(jobs):
                slots.put(stack.enter_context(slot()))
            self._confirm(mutations, slots)

            def work(mutation: Mutation) -> Result:
                copy = slots.get()
                try:
                    return self.result(mutation, copy)
                finally:
                    slots.put(copy)

            pool = stack.enter_context(ThreadPoolExecutor(jobs))
            coming = [pool.submit(work, mutation) for mutation in mutations]
            for done in as_completed(coming):
                tell(done.result())
            return [done.result() for done in coming]

    def _confirm(self, mutations: Sequence[Mutation], slots: SimpleQueue[Slot]) -> None:
        """See that the tests that noticed something before pass without any change."""
        tests = {self._before(mutation) for mutation in mutations} - {""}
        if not tests:
            return
        copy = slots.get()
        outcome = _run(copy, None, sorted(tests), 3600.0, set(), "--maxfail=100000")
        slots.put(copy)
        if outcome.code in (0, 1):
            self._red |= set(outcome.failed)
            self._green |= tests - self._red

    def _before(self, mutation: Mutation) -> str:
        """The test that noticed a mutation the last time, if it is still there."""
        killer = self._killers.get(mutation.id, "")
        return killer if "::" in killer and (ROOT / killer.split("::")[0]).is_file() else ""

    def result(self, mutation: Mutation, copy: Slot) -> Result:
        """What becomes of a mutation in a copy of the tree."""
        if mutation.edit is None:
            is_gone = not mutation.problem.startswith("expected")
            return Result(mutation, "gone" if is_gone else "lost", mutation.problem)
        for tests, seconds in self._stages(mutation):
            killer = self._killer(copy, mutation.edit, tests, 10 * seconds + PATIENCE)
            if killer:
                return Result(mutation, "killed", killer)
        if mutation.equivalent:
            return Result(mutation, "equivalent", mutation.equivalent)
        return Result(mutation, "survived", "")

    def _killer(self, copy: Slot, change: Edit, tests: Sequence[str], seconds: float) -> str:
        """The test that notices a change, if any does; one that fails without the change too
        notices nothing.
        """
        while True:
            outcome = _run(copy, change, tests, seconds, self._red)
            if outcome.passed:
                return ""

            # What takes too long without the change as well notices nothing.
            if outcome.hangs and _run(copy, None, tests, seconds, self._red).hangs:
                return ""
            killer = outcome.killer
            if "::" not in killer or killer in self._green:
                return killer
            if _run(copy, None, [killer], seconds, set()).passed:
                self._green.add(killer)
            else:
                self._red.add(killer)

    def _stages(self, mutation: Mutation) -> Iterator[tuple[list[str], float]]:
        """Tests to run, one list after the other: what noticed it before, what is quick and what
        the map does not know in the nearest file, the rest within the limit.
        """
        assert mutation.edit is not None
        path = mutation.edit.path
        before = self._before(mutation)
        if before:
            yield [before], self._limit
        source = path.read_text(encoding="utf-8")
        known = self._tests.tests(path, source, *mutation.lines) if self._tests else []
        if not known:
            yield from ((files, self._limit) for files in neighbours(path, source))
            return

        # Many files of tests have fixtures that take longer than their tests: few files come first.
        files = dict.fromkeys(test.split("::")[0] for test, _ in known)
        first = nearest_file(path, list(files))
        quick = _within([test for test in known if test[0].split("::")[0] == first], FIRST)
        assert self._tests is not None
        yield [*quick, *self._tests.new(first)], FIRST
        slow = [test for test in _within(known, self._limit) if test not in quick]
        if slow:
            yield slow, self._limit


def _within(tests: Sequence[tuple[str, float]], limit: float) -> list[str]:
    """The fastest tests that take so many seconds together, but one at least."""
    totals = accumulate(seconds for _, seconds in tests)
    return [
        test
        for number, ((test, _), total) in enumerate(zip(tests, totals, strict=True))
        if total <= limit or not number
    ]


def _run(
    copy: Slot,
    change: Edit | None,
    tests: Sequence[str],
    seconds: float,
    without: set[str],
    *options: str,
) -> Outcome:
    names = copy.root / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    chosen = ["-p", "tests.mutations.select"] if any("::" in test for test in tests) else []
    chosen += [f"--deselect={name}" for name in sorted(without)]
    return copy.run(change, [*chosen, *options, *files], seconds, **{select.FILE: str(names)})


def neighbours(path: Path, source: str) -> list[list[str]]:
    """Where nothing is recorded: the files of tests that import the code, then those that stand
    where it stands.
    """
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    module = ".".join(["getd", *parts])
    files = {
        each: each.read_text(encoding="utf-8")
        for each in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    direct = [each for each, text in files.items() if re.search(rf"\b{re.escape(module)}\b", text)]
    others = [each for each in files if each not in direct and _is_beside(each, path)]
    stages = [[path, *direct] if ">>>" in source else direct, others]
    return [[str(each.relative_to(ROOT)) for each in stage] for stage in stages if stage]


def nearest_file(path: Path, files: Sequence[str]) -> str:
    """The file of tests that is most about a file of code: by its name, by what it imports, by its
    room.
    """
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    module = re.compile(rf"\b{re.escape('.'.join(['getd', *parts]))}\b")

    def nearness(file: str) -> tuple[bool, int, bool]:
        test = ROOT / file
        mentions = len(module.findall(test.read_text(encoding="utf-8")))
        return test.stem == f"test_{parts[-1]}", mentions, _is_beside(test, path)

    return max(files, key=nearness)


def _is_beside(test: Path, path: Path) -> bool:
    """Whether a file of tests is of the room that a file of code stands in."""
    room = path.relative_to(PACKAGE).with_suffix("").parts[0]
    return ROOT / "tests" / room in test.parents or test == ROOT / "tests" / f"test_{room}.py"


def _where(path: Path, function: str) -> str:
    place = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    return place if function == MODULE else f"{place}.{function}"


def _shown(was: str, becomes: str) -> str:
    """Two statements, without most of what they share."""
    start = next((i for i, (a, b) in enumerate(zip(was, becomes, strict=False)) if a != b), 0)
    stop = next(
        (i for i, (a, b) in enumerate(zip(was[::-1], becomes[::-1], strict=False)) if a != b), 0
    )
    stop = min(stop, len(was) - start, len(becomes) - start)
    first, last = max(start - 30, 0), max(stop - 30, 0)
    ends = ["…" if first else "", "…" if last else ""]
    return " → ".join(
        f"`{ends[0]}{text[first : len(text) - last]}{ends[1]}`" for text in (was, becomes)
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
