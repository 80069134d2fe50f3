"""A pytest plugin that runs the tests of a list in its order: ``-p tests.mutations.select``,
MUTATIONS_TESTS set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = "MUTATIONS_TESTS"  # a file with one test a line


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not on the list, and sort the rest as it is; a name stands for all of its
    cases.
    """
    wanted = Path(os.environ[FILE]).read_text(encoding="utf-8").split("\n")
    place = {name: number for number, name in enumerate(wanted)}

    def of(item: pytest.Item) -> int | None:
        return place.get(item.nodeid, place.get(item.nodeid.split("[")[0]))

    items[:] = sorted(
        (item for item in items if of(item) is not None), key=lambda item: of(item) or 0
    )
