"""The bad lines of a file make one error."""

from __future__ import annotations

import pytest

from getd.errors import FactFileError
from getd.io.problems import Problems


def test_all_bad_lines_count_and_the_first_100_000_that_are_met_keep_their_messages() -> None:
    problems = Problems("facts.txt")
    for line in range(100_001, 0, -1):
        problems.add(line, f"problem {line}")

    with pytest.raises(FactFileError) as caught:
        problems.check()
    first, *others = str(caught.value).split("\n")
    assert first == "facts.txt:2: problem 2 (100001 bad lines)"
    assert others == [f"facts.txt:{line}: problem {line}" for line in range(3, 12)]
