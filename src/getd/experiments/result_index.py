"""Results by row, as pages, pictures and the checks of claims look them up."""

from collections.abc import Iterable
from statistics import mean
from typing import TypeVar

from getd.experiments.result import Measurement, Measurements, Result, Statistics

R = TypeVar("R", bound=Result)
MeansByX = dict[float, float]  # over seeds, by what the x-axis of a figure shows


class NotMeasured(Exception):
    """What a claim needs was not measured."""


class ResultIndex:
    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._rows: dict[str, Measurements] = {}
        self._tables = []
        for result in results:
            if isinstance(result, Measurement):
                self._rows.setdefault(result.row, []).append(result)
            else:
                self._tables.append(result)

    def find(self, row: str) -> Measurements:
        """Return the measurements of a row; empty: there is none yet."""
        return self._rows.get(row, [])

    def require(self, row: str) -> Measurements:
        """Return the measurements of a row; :class:`NotMeasured` if there is none."""
        if row not in self._rows:
            raise NotMeasured(f"needs {row}")
        return self._rows[row]

    def find_table(self, kind: type[R]) -> R | None:
        """Return the table of this kind; None: it is not made yet."""
        return next((table for table in self._tables if isinstance(table, kind)), None)

    def require_table(self, kind: type[R]) -> R:
        """Return the table of this kind; :class:`NotMeasured` if it is not made yet."""
        table = self.find_table(kind)
        if table is None:
            raise NotMeasured(f"needs {kind.__name__.lower()}")
        return table

    def metric(self, row: str, key: str = "mrr") -> float:
        """Return a metric, the mean over seeds."""
        return float(mean(result.metrics[key] for result in self.require(row)))

    def paper_metric(self, model: str, data: str, key: str = "mrr") -> float:
        """Return a metric of a model at the paper's settings."""
        return self.metric(f"paper/{model}-{data}", key)

    def curve(self, row: str, series: str, key: str) -> list[float]:
        """Return a curve by epoch, of the first seed."""
        return list(getattr(self.series(row, series)[0].curves, key))

    def line(self, row: str, series: str) -> list[float]:
        """Return the MRR along the x-axis of a figure: a trend needs two points or more."""
        values = list(self.points(row, series).values())
        if len(values) < 2:
            raise NotMeasured(f"needs {row}, {series} at more than one point")
        return values

    def points(self, row: str, series: str) -> MeansByX:
        """Return the MRR, the mean over seeds, by x."""
        return mean_by_x(self.series(row, series), "mrr")

    def point(self, row: str, series: str, x: float) -> float:
        """Return the MRR of one point of a figure."""
        points = self.points(row, series)
        if x not in points:
            raise NotMeasured(f"needs {row}, {series} at {x:g}")
        return points[x]

    def parameters(self, row: str, series: str, x: float | None = None) -> int:
        """Return how many numbers the model of a point learns."""
        for result in self.series(row, series):
            if x is None or result.x == x:
                return result.parameters
        raise NotMeasured(f"needs {row}, {series} at {x:g}")

    def chance(self, data: str) -> float | None:
        """Return the MRR of random order on the test split of a data set, if it is known."""
        statistics = self.find_table(Statistics)
        if statistics is None or data not in statistics.rows:
            return None
        return statistics.rows[data].chance

    def series(self, row: str, series: str) -> Measurements:
        results = [result for result in self.require(row) if result.series == series]
        if not results:
            raise NotMeasured(f"needs {row}, {series}")
        return results


def mean_by_x(results: Iterable[Measurement], key: str) -> MeansByX:
    """Return the mean of what results have under a key for each x, sorted by x."""
    values: dict[float, list[float]] = {}
    for result in results:
        if result.x is not None:
            values.setdefault(result.x, []).append(getattr(result, key))
    return {x: mean(values[x]) for x in sorted(values)}
