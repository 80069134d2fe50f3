"""Sums of powers of 2 in tiles of any size, against sums of plain numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from getd.evaluation import normaliser
from getd.evaluation.normaliser import log2_sums
from getd.io.deadline import DeadlineExceeded, deadline
from getd.models.base import Cells

ROWS, CANDIDATES, DIM = 7, 23, 3


def random_inputs(scale: float) -> tuple[Tensor, Tensor, list[Cells]]:
    generator = torch.Generator().manual_seed(0)
    queries = scale * torch.randn(ROWS, DIM, generator=generator)
    table = torch.randn(CANDIDATES, DIM, generator=generator)
    rows, columns = (torch.rand(ROWS, CANDIDATES, generator=generator) < 0.3).nonzero().unbind(1)
    left_out = Cells(rows, columns, torch.full((len(rows),), -torch.inf))
    rows, columns = (torch.rand(ROWS, CANDIDATES, generator=generator) < 0.3).nonzero().unbind(1)
    return queries, table, [left_out, Cells(rows, columns, torch.randn(len(rows)))]


def sums_by_loops(queries: Tensor, table: Tensor, cells: list[Cells]) -> list[float]:
    scores = (queries.double() @ table.double().T).tolist()
    for each in cells:
        for row, column, value in zip(*(part.tolist() for part in each), strict=True):
            scores[row][column] += value
    logs = []
    for row in scores:
        highest = max(row)
        logs.append(highest + math.log2(math.fsum(2 ** (score - highest) for score in row)))
    return logs


@pytest.mark.parametrize("scale", [1.0, 1000.0])  # the powers of large scores are infinite, or 0
@pytest.mark.parametrize(("tile", "min_rows"), [(1, 1), (10, 2), (50, 3), (2**20, 64)])
def test_sums_in_tiles_equal_sums_by_loops(
    tile: int, min_rows: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normaliser, "TILE", tile)
    monkeypatch.setattr(normaliser, "MIN_ROWS", min_rows)
    queries, table, cells = random_inputs(scale)
    expected = sums_by_loops(queries, table, cells)
    assert log2_sums(queries, table, cells).tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_row_that_is_no_number_has_no_sum_and_spoils_no_other() -> None:
    queries, table, cells = random_inputs(1.0)
    expected = sums_by_loops(queries, table, cells)
    queries[2] = torch.nan
    sums = log2_sums(queries, table, cells).tolist()
    assert math.isnan(sums[2])
    assert sums[3:] == pytest.approx(expected[3:], rel=1e-5)


def test_what_was_summed_in_inference_mode_can_be_summed_outside() -> None:
    queries, table, cells = random_inputs(1.0)
    with torch.inference_mode():
        inside = log2_sums(queries, table, cells).tolist()
    assert log2_sums(queries, table, cells).tolist() == inside


def test_sums_stop_at_the_deadline() -> None:
    with deadline(0.0), pytest.raises(DeadlineExceeded, match="too long"):
        log2_sums(torch.ones(1, 1), torch.ones(1, 1))
