"""A pytest plugin that records which lines every test runs: ``-p tests.mutations.record`` with
MUTATIONS_RECORD set.

What a fixture of a module or of the session runs is recorded once, and counted for all tests that
use it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FILE = "MUTATIONS_RECORD"  # where the record goes


class Recorder:
    """Switches the context of the measurement as tests and fixtures come and go."""

    def __init__(self, package: Path) -> None:
        import coverage  # needed here alone

        self.measured = coverage.Coverage(data_file=None, include=[f"{package}/*"])
        self.tests: dict[str, dict[str, Any]] = {}
        self._contexts: list[str] = []

    def enter(self, context: str) -> None:
        """Count what follows for a test or a fixture."""
        self._contexts.append(context)
        self.measured.switch_context(context)

    def leave(self) -> None:
        """Count what follows for what was there before."""
        self._contexts.pop()
        self.measured.switch_context(self._contexts[-1] if self._contexts else "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        names = getattr(item, "fixturenames", [])
        self.tests[item.nodeid] = {"seconds": 0.0, "passed": True, "fixtures": list(names)}
        self.enter(item.nodeid)
        start = time.process_time()  # of the processor: other work on the machine does not count
        try:
            return (yield)
        finally:
            self.tests[item.nodeid]["seconds"] = time.process_time() - start
            self.leave()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self.enter(f"fixture {fixturedef.baseid} {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.leave()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid]["passed"] &= report.passed

    def pytest_sessionfinish(self) -> None:
        self.measured.stop()
        data = self.measured.get_data()
        lines: dict[str, dict[str, list[str]]] = {}
        for path in sorted(data.measured_files()):
            found = data.contexts_by_lineno(path)
            lines[path] = {
                str(line): [context for context in contexts if context]
                for line, contexts in found.items()
            }
        Path(os.environ[FILE]).write_text(json.dumps({"tests": self.tests, "lines": lines}))


def pytest_configure(config: pytest.Config) -> None:
    """Start to record before the package is imported."""
    recorder = Recorder(config.rootpath / "src" / "getd")
    recorder.measured.start()
    config.pluginmanager.register(recorder, "mutations-recorder")
