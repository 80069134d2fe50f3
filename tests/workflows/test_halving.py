"""Halving takes no longer than was reckoned, whoever goes on."""

from __future__ import annotations

import random

import pytest

from getd.workflows.halving import SHARES, Cost, better_half, seconds_of_field


@pytest.mark.parametrize("halved", [(), (0.5,), SHARES])
@pytest.mark.parametrize("number", range(1, 9))
def test_a_field_takes_no_longer_than_reckoned(number: int, halved: tuple[float, ...]) -> None:
    rng = random.Random(number)
    for _ in range(20):
        field = {f"{i}": Cost(rng.uniform(1, 9), rng.uniform(0, 1)) for i in range(number)}
        running = list(field)
        seconds = 0.0
        before = 0.0
        for share in SHARES:
            for name in running:
                seconds += field[name].training * (share - before) + field[name].startup
            if share in halved:
                running = better_half({name: rng.random() for name in running})
            before = share
        assert seconds <= seconds_of_field(list(field.values()), halved) + 1e-9


def test_the_better_half_has_the_higher_mrrs() -> None:
    mrrs = {"a": 0.1, "b": 0.4, "c": float("-inf"), "d": 0.2, "e": 0.3}
    assert better_half(mrrs) == ["b", "d", "e"]
    assert better_half({"a": 0.1}) == ["a"]
    assert better_half({}) == []
