"""A ring with an open mode has the environments of the whole ring, whatever fills it."""

from __future__ import annotations

import pytest
from torch.testing import assert_close

from getd.algebra import open_ring
from getd.algebra.open_ring import OpenRing
from getd.algebra.ring import ring_environments
from tests.algebra.reference_algebra import random_ring, random_tensor, random_vectors
from tests.algebra.test_ring import RINGS


@pytest.mark.parametrize("filled", [1, 5, 128])
@pytest.mark.parametrize(("sizes", "ranks"), RINGS)
def test_what_fills_a_ring_has_the_environments_of_the_whole_ring(
    sizes: tuple[int, ...],
    ranks: tuple[int, ...],
    filled: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_ring, "FILLED", filled)
    cores = random_ring(sizes, ranks)
    vectors = random_vectors(sizes, batch=3)
    for mode, size in enumerate(sizes):
        others = [j for j in range(len(sizes)) if j != mode]
        opened = OpenRing(cores, [None if j == mode else v for j, v in enumerate(vectors)], mode)
        (environment,) = ring_environments(cores, vectors, [mode])
        assert_close(opened.environment, environment)

        fillings = random_tensor(3, 2, size, seed=mode)
        environments = opened.fill(fillings, others)
        for index, filling in enumerate(fillings.unbind(1)):
            whole = [filling if j == mode else vector for j, vector in enumerate(vectors)]
            expected = ring_environments(cores, whole, others)
            for j, (got, wanted) in enumerate(zip(environments, expected, strict=True)):
                assert_close(got[:, index], wanted, msg=f"mode {others[j]} with {mode} open")
