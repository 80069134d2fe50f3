"""Mutations to results: which test notices each, if any."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutations import select
from tests.mutations.drawn import draw
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


def _listed(name: str, values: Mapping[str, str], sources: dict[Path, str]) -> Mutation:
    change = f"`{_one_line(values['from'])}` → `{_one_line(values['to'])}`"
    try:
        found = edit(values["from"], values["to"], sources, values.get("beside", ""))
    except MutationError as error:
        return Mutation(name, "", change, values["why"], None, problem=values.get("gone", str(error)))
    source = sources[found.path]
    lines = found.line(source), source.count("\n", 0, found.stop) + 1
    where = _where(found.path, enclosing(functions(source), lines[0]).name)
    return Mutation(name, where, change, values["why"], found, lines, values.get("equivalent", ""))


def drawn(number: int, seed: int) -> list[Mutation]:
    """Those that a seed draws."""
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
        for each in draw(read_sources(PACKAGE), number, seed)
    ]


class Laboratory:
    """Tries mutations, some side by side."""

    def __init__(self, tests: TestMap | None, killers: Mapping[str, str], limit: float) -> None:
        self._tests, self._killers, self._limit = tests, killers, limit

    def results(
        self, mutations: Sequence[Mutation], jobs: int, tell: Callable[[Result], None] = lambda result: None
    ) -> list[Result]:
        """The result of each, in order; ``tell`` is called as they come."""
        slots: SimpleQueue[Slot] = SimpleQueue()
        with ExitStack() as stack:
            for _ in range(jobs):
                slots.put(stack.enter_context(slot()))

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

    def result(self, mutation: Mutation, copy: Slot) -> Result:
        """What becomes of a mutation in a copy of the tree."""
        if mutation.edit is None:
            is_gone = not mutation.problem.startswith("expected")
            return Result(mutation, "gone" if is_gone else "lost", mutation.problem)
        for tests, seconds in self._stages(mutation):
            outcome = _run(copy, mutation.edit, tests, 10 * seconds + PATIENCE)
            if not outcome.passed:
                return Result(mutation, "killed", outcome.killer)
        if mutation.equivalent:
            return Result(mutation, "equivalent", mutation.equivalent)
        return Result(mutation, "survived", "")

    def _stages(self, mutation: Mutation) -> Iterator[tuple[list[str], float]]:
        """Tests to run, one list after the other: what noticed it before, what is quick, the rest within the limit."""
        before = self._killers.get(mutation.id, "")
        if "::" in before:
            yield [before], self._limit
        assert mutation.edit is not None
        if self._tests is None:
            yield _neighbours(mutation.edit.path), self._limit
            return
        source = mutation.edit.path.read_text(encoding="utf-8")
        quick: list[str] = []
        slow: list[str] = []
        total = 0.0
        for test, seconds in self._tests.tests(mutation.edit.path, source, *mutation.lines):
            total += seconds
            if total <= FIRST or not quick:
                quick.append(test)
            elif total <= self._limit:
                slow.append(test)
        for tests in (quick, slow):
            if tests:
                yield tests, self._limit


def _run(copy: Slot, change: Edit, tests: Sequence[str], seconds: float) -> Outcome:
    names = copy.root / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    chosen = ["-p", "tests.mutations.select"] if any("::" in test for test in tests) else []
    return copy.run(change, [*chosen, *files], seconds, **{select.FILE: str(names)})


def _neighbours(path: Path) -> list[str]:
    """Without a map: the tests that stand where the code stands."""
    folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    near = [ROOT / "tests" / folder, ROOT / "tests" / f"test_{folder}.py"]
    return [str(place.relative_to(ROOT)) for place in near if place.exists()] or ["tests/cli"]


def _where(path: Path, function: str) -> str:
    place = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    return place if function == MODULE else f"{place}.{function}"


def _shown(was: str, becomes: str) -> str:
    """Two statements, without most of what they share."""
    start = next((i for i, (a, b) in enumerate(zip(was, becomes, strict=False)) if a != b), 0)
    stop = next((i for i, (a, b) in enumerate(zip(was[::-1], becomes[::-1], strict=False)) if a != b), 0)
    stop = min(stop, len(was) - start, len(becomes) - start)
    first, last = max(start - 30, 0), max(stop - 30, 0)
    ends = ["…" if first else "", "…" if last else ""]
    return " → ".join(f"`{ends[0]}{text[first : len(text) - last]}{ends[1]}`" for text in (was, becomes))


def _one_line(text: str) -> str:
    return " ".join(text.split())
