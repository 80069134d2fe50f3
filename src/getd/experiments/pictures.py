"""From results to the pictures of figures and studies."""

from pathlib import Path

from getd.experiments.result import Curves, Measurements, StudyMeasurement
from getd.experiments.result_index import ResultIndex, mean_by_x
from getd.experiments.rows import Row
from getd.plots.figures import PointSeries, curves_figure, points_figure
from getd.plots.studies import is_drawn, overview_figure
from getd.plots.style import save_figure


def draw(row: Row, results: ResultIndex, folder: Path) -> None:
    """Draw a figure or a study as SVG and PNG; nothing where nothing is measured yet."""
    measured = results.find(row.name)
    if not measured:
        return

    first = measured[0]
    labels = list(dict.fromkeys(point.series for point in row.points))
    if isinstance(first, StudyMeasurement):
        shown = [trial for trial in first.trials if is_drawn(trial)]
        figure = overview_figure(shown, first.importances)
    elif row.info.curves:
        figure = curves_figure({label: _curves(label, measured) for label in labels})
    else:
        series = [_points(label, measured) for label in labels]
        with_parameters = len(series) > 1 and row.info.parameters
        references = _references(row.info.reference, results)
        figure = points_figure(series, row.info.x, with_parameters, references)
    save_figure(figure, folder / "figures", picture_name(row))


def picture_name(row: Row) -> str:
    """Return the name of the files: that of the row, for a study after ``tuning-``."""
    folder, name = row.name.split("/")
    return f"{folder}-{name}" if row.kind == "study" else name


def _curves(label: str, measured: Measurements) -> list[Curves]:
    return [result.curves for result in measured if result.series == label and result.curves]


def _points(label: str, measured: Measurements) -> PointSeries:
    results = [result for result in measured if result.series == label]
    return PointSeries(label, mean_by_x(results, "mrr"), mean_by_x(results, "parameters"))


def _references(row: str, results: ResultIndex) -> dict[str, float]:
    """Return the MRR of another row, the mean over its seeds; empty: it is not measured."""
    return {row.split("/")[1]: results.metric(row)} if results.find(row) else {}
