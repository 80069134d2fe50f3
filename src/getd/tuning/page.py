"""A study as one HTML page that needs nothing else: history, importance, every setting, every curve, every trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from getd.facts.files import atomic_path
from getd.tuning.space import Range, Space
from getd.tuning.study import Study, Trial, counts

STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; background: white; border-radius: .4rem; }
figcaption { font-size: .9rem; opacity: .8; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
tr.best { font-weight: bold; } tr.pruned, tr.lost, tr.running { opacity: .6; }
"""
MARKS = {"complete": "o", "pruned": "x"}


def write_page(study: Study, path: Path) -> Path:
    """Write the page of a study."""
    trials, best = study.trials(), study.best()
    shown = [trial for trial in trials if trial.mrr is not None and trial.state in MARKS]
    data, model = study.note("data"), study.note("config")["model"]["name"]
    parts = [f"<h1>{escape(model)} on {escape(data)}</h1>", _summary(trials, best)]
    if shown:
        parts.append(
            _picture(history(shown), "Validation MRR of each trial (● trained to its end, × pruned), best so far.")
        )
        importances = study.importances()
        if importances:
            parts.append(_picture(bars(importances), "How much each setting matters for being among the best quarter."))
        parts.append(_picture(slices(shown, study.space), "Validation MRR by the value of each setting."))
        parts.append(_picture(curves(shown, best), "Validation MRR by epoch; the best trial is bold."))
    parts.append(_table(trials, best, list(study.space)))
    text = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(model)} on {escape(data)}</title>\n'
    text += (
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</html>\n"
    )
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def history(trials: Sequence[Trial]) -> Figure:
    """Trials in their order, and the best so far."""
    figure, axis = _figure("trial", "validation MRR")
    for state, mark in MARKS.items():
        some = [trial for trial in trials if trial.state == state]
        axis.scatter([t.number for t in some], _mrrs(some), marker=mark, color="black", s=20, label=state)
    best, line = 0.0, []
    for trial in trials:
        best = max(best, trial.mrr or 0.0) if trial.state == "complete" else best
        line.append(best)
    begun = [(t.number, value) for t, value in zip(trials, line, strict=True) if value]
    if begun:
        axis.step(*zip(*begun, strict=True), where="post", color="tab:orange", label="best so far")
    axis.legend()
    return figure


def bars(importances: Mapping[str, float]) -> Figure:
    """Settings, the most important on top."""
    figure, axis = _figure("importance", "")
    ordered = sorted(importances.items(), key=lambda item: item[1])
    axis.barh([name for name, _ in ordered], [value for _, value in ordered], color="tab:blue")
    return figure


def slices(trials: Sequence[Trial], space: Space) -> Figure:
    """The MRR against each setting alone."""
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure = Figure(figsize=(3.3 * columns, 2.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for (name, dimension), axis in zip(space.items(), axes, strict=False):
        for state, mark in MARKS.items():
            some = [trial for trial in trials if trial.state == state and name in trial.values]
            axis.scatter([_place(t.values[name]) for t in some], _mrrs(some), marker=mark, color="black", s=14)
        if isinstance(dimension, Range) and dimension.log:
            axis.set_xscale("log")
        axis.set_xlabel(name)
    for axis in axes[len(space) :]:
        axis.set_visible(False)
    return figure


def curves(trials: Sequence[Trial], best: Trial | None) -> Figure:
    """The validation curve of every trial."""
    figure, axis = _figure("epoch", "validation MRR")
    for trial in trials:
        is_best = best is not None and trial.number == best.number
        style: dict[str, Any] = (
            {"color": "tab:orange", "linewidth": 2.5, "zorder": 3} if is_best else {"color": "gray", "linewidth": 0.7}
        )
        axis.plot(list(trial.curve), list(trial.curve.values()), **style)
    return figure


def _figure(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    return figure, axis


def _picture(figure: Figure, caption: str) -> str:
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{escape(caption)}</figcaption></figure>"


def _summary(trials: Sequence[Trial], best: Trial | None) -> str:
    states = ", ".join(f"{number} {state}" for state, number in counts(trials).items() if number)
    text = f"<p>{len(trials)} trials: {states or 'none yet'}. Chosen on validation; test was not read.</p>"
    if best is not None:
        values = ", ".join(f"{name} = {_text(value)}" for name, value in best.values.items())
        text += f"<p><strong>Best: {best.mrr:.4f}</strong>, trial {best.number}: {escape(values)}</p>"
    return text


def _table(trials: Sequence[Trial], best: Trial | None, names: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ["trial", "state", "MRR", "epochs", "minutes", *names])
    rows = []
    for trial in sorted(trials, key=lambda trial: -(trial.mrr or 0.0)):
        minutes = trial.about.get("seconds")
        cells = [trial.number, trial.state, trial.mrr, max(trial.curve, default=None), minutes and minutes / 60]
        cells += [trial.values.get(name) for name in names]
        kind = "best" if best is not None and trial.number == best.number else trial.state
        rows.append(f'<tr class="{kind}">{"".join(f"<td>{escape(_text(cell))}</td>" for cell in cells)}</tr>')
    return f"<table><tr>{head}</tr>\n" + "\n".join(rows) + "\n</table>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _place(value: Any) -> float | str:
    return str(value) if isinstance(value, bool | str) else float(value)


def _mrrs(trials: Sequence[Trial]) -> list[float]:
    return [trial.mrr or 0.0 for trial in trials]
