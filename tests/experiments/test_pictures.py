"""Pictures are made of the results of a row, and the page and tables name what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from getd.errors import RunError
from getd.experiments.pictures import _points, _references, draw
from getd.experiments.result import Measurement, parse_result
from getd.experiments.result_index import ResultIndex
from getd.experiments.results_page import _models
from getd.experiments.rows import Point, Row, RowInfo
from getd.experiments.tables import measure_table

NAME = "figures/size"
ROW = Row(
    NAME,
    "figure",
    RowInfo(x="size", parameters=True, reference="best/a"),
    (Point(NAME, series="GETD"), Point(NAME, series="n-CP")),
)


def result(series: str, x: float, mrr: float, parameters: int) -> Measurement:
    metrics = {"mrr": mrr}
    return Measurement(row=NAME, series=series, x=x, metrics=metrics, parameters=parameters)


RESULTS = [
    result("GETD", 2, 0.25, 20),
    result("GETD", 2, 0.75, 20),
    result("GETD", 1, 0.125, 10),
    result("n-CP", 1, 0.5, 5),
]
REFERENCE = [parse_result({"row": "best/a", "metrics": {"mrr": mrr}}) for mrr in (0.5, 0.75)]


def test_points_are_the_means_over_seeds_of_each_series() -> None:
    getd = _points("GETD", RESULTS)
    assert (getd.mrr, getd.parameters) == ({1: 0.125, 2: 0.5}, {1: 10, 2: 20})
    cp = _points("n-CP", RESULTS)
    assert (cp.mrr, cp.parameters) == ({1: 0.5}, {1: 5})
    assert _points("RAE", RESULTS).mrr == {}


def test_the_reference_is_the_mean_over_the_seeds_of_a_row() -> None:
    assert _references("best/a", ResultIndex(REFERENCE)) == {"a": 0.625}
    assert _references("best/a", ResultIndex(RESULTS)) == {}
    assert _references("", ResultIndex(RESULTS)) == {}


def test_pictures_are_written_in_two_forms_and_none_without_results(tmp_path: Path) -> None:
    draw(ROW, ResultIndex(), tmp_path)
    assert not (tmp_path / "figures").exists()
    draw(ROW, ResultIndex(RESULTS + REFERENCE), tmp_path)
    written = sorted((tmp_path / "figures").iterdir())
    assert [path.name for path in written] == ["size.png", "size.svg"]
    assert all(path.stat().st_size > 1000 for path in written)

    first = [path.read_bytes() for path in written]
    draw(ROW, ResultIndex(RESULTS + REFERENCE), tmp_path)
    assert [path.read_bytes() for path in written] == first


def test_the_page_has_a_line_for_every_model_measured_or_not() -> None:
    shown = _models("JF17K-4", "paper", ResultIndex())
    models = ("GETD", "n-TuckER", "n-CP", "RAE", "NaLP")
    assert [name for name in models if f"| {name} |" not in shown] == []


def test_costs_need_the_training_that_they_are_of() -> None:
    message = r"^cost needs the row paper/getd-wikipeople-3; reproduce that first$"
    with pytest.raises(RunError, match=message):
        measure_table("cost", ResultIndex())
