"""What was measured, as the checks of claims ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NotMeasured(Exception):
    """What a claim needs was not measured."""

    reason: str


class Findings:
    """Results by row."""

    def __init__(self, results: Results) -> None:
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        for result in results:
            self._rows.setdefault(result["row"], []).append(result)

    def results(self, row: str) -> list[Mapping[str, Any]]:
        """All results of a row, of which there must be one."""
        if row not in self._rows:
            raise NotMeasured(f"needs {row}")
        return self._rows[row]

    def metric(self, row: str, key: str = "mrr") -> float:
        """A metric, the mean over seeds."""
        return float(mean(result["metrics"][key] for result in self.results(row)))

    def sample(self, row: str) -> str:
        """In words, how many facts a row was measured on; empty where it was all of test."""
        sizes = {
            result["protocol"]["sample"] for result in self.results(row) if "protocol" in result
        }
        drawn = [size for size in sizes if size is not None]
        return f" on {min(drawn):,} facts" if drawn else ""

    def curve(self, row: str, series: str, key: str) -> list[float]:
        """A curve by epoch, of the first seed."""
        return list(self._series(row, series)[0]["curves"][key])

    def line(self, row: str, series: str) -> list[float]:
        """The MRR along the axis of a figure: of two points at least, for one shows no trend."""
        values = list(self.points(row, series).values())
        if len(values) < 2:
            raise NotMeasured(f"needs {row}, {series} at more than one point")
        return values

    def points(self, row: str, series: str) -> dict[float, float]:
        """The MRR, the mean over seeds, by what the axis of a figure shows."""
        values: dict[float, list[float]] = {}
        for result in self._series(row, series):
            values.setdefault(result["x"], []).append(result["metrics"]["mrr"])
        return {x: mean(mrrs) for x, mrrs in sorted(values.items())}

    def point(self, row: str, series: str, x: float) -> float:
        """The MRR of one point of a figure."""
        points = self.points(row, series)
        if x not in points:
            raise NotMeasured(f"needs {row}, {series} at {x:g}")
        return points[x]

    def parameters(self, row: str, series: str, x: float | None = None) -> int:
        """How many numbers the model of a point learns."""
        for result in self._series(row, series):
            if x is None or result["x"] == x:
                return int(result["parameters"])
        raise NotMeasured(f"needs {row}, {series} at {x:g}")

    def by_shape(
        self, rows: Sequence[str], shapes: Mapping[int, Sequence[int]]
    ) -> dict[int, float]:
        """The MRR by order, of those rings alone that have exactly the shapes that are given."""
        values: dict[int, list[float]] = {}
        for result in (result for row in rows for result in self._rows.get(row, [])):
            model, order = result["config"]["model"], int(result["x"])
            shape = model.get("ring_shape") or [model["entity_dim"]] * order
            if list(shapes.get(order, [])) == list(shape):
                values.setdefault(order, []).append(result["metrics"]["mrr"])
        return {order: mean(mrrs) for order, mrrs in sorted(values.items())}

    def chance(self, data: str) -> float | None:
        """The MRR of random order on the test split of a data set, where the statistics hold it."""
        for result in self._rows.get("statistics", []):
            chance = result["rows"].get(data, {}).get("chance")
            return None if chance is None else float(chance)
        return None

    def _series(self, row: str, series: str) -> list[Mapping[str, Any]]:
        found = [result for result in self.results(row) if result["series"] == series]
        if not found:
            raise NotMeasured(f"needs {row}, {series}")
        return found
