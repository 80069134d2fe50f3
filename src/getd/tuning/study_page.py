"""A study as one HTML page that needs nothing else: history, importance, every setting, every curve, every trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from getd.io.atomic import atomic_path
from getd.plots.studies import MARKS, bars, curves, history, slices
from getd.tuning.study import Study
from getd.tuning.trial import Trial, counts
from getd.visible import visible

STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; background: white; border-radius: .4rem; }
figcaption { font-size: .9rem; opacity: .8; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
tr.best { font-weight: bold; } tr.pruned, tr.lost, tr.running { opacity: .6; }
"""


def write_page(study: Study, path: Path) -> Path:
    """Write the page of a study."""
    trials, best = study.trials(), study.best()
    shown = [trial for trial in trials if trial.mrr is not None and trial.state in MARKS]
    data, model = visible(study.note("data")), study.note("config")["model"]["name"]
    parts = [f"<h1>{escape(model)} on {escape(data)}</h1>", _summary(trials, best)]
    if shown:
        parts.append(
            _picture(
                _alone(history, shown),
                "Validation MRR of each trial (● trained to its end, × pruned), best so far.",
            )
        )
        importances = study.importances()
        if importances:
            parts.append(
                _picture(
                    _alone(bars, importances),
                    "How much each setting matters for being among the best quarter.",
                )
            )
        parts.append(
            _picture(slices(shown, study.space), "Validation MRR by the value of each setting.")
        )
        parts.append(
            _picture(
                _alone(curves, shown, best), "Validation MRR by epoch; the best trial is bold."
            )
        )
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


def _alone(draw: Callable[..., None], *told: Any) -> Figure:
    """A picture of one drawing."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    draw(figure.subplots(), *told)
    return figure


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
        text += (
            f"<p><strong>Best: {best.mrr:.4f}</strong>, trial {best.number}: {escape(values)}</p>"
        )
    return text


def _table(trials: Sequence[Trial], best: Trial | None, names: Sequence[str]) -> str:
    head = "".join(
        f"<th>{escape(name)}</th>"
        for name in ["trial", "state", "MRR", "epochs", "minutes", *names]
    )
    rows = []
    for trial in sorted(trials, key=lambda trial: -(trial.mrr or 0.0)):
        minutes = trial.about.get("seconds")
        cells = [
            trial.number,
            trial.state,
            trial.mrr,
            max(trial.curve, default=None),
            minutes and minutes / 60,
        ]
        cells += [trial.values.get(name) for name in names]
        kind = "best" if best is not None and trial.number == best.number else trial.state
        rows.append(
            f'<tr class="{kind}">{"".join(f"<td>{escape(_text(cell))}</td>" for cell in cells)}</tr>'
        )
    return f"<table><tr>{head}</tr>\n" + "\n".join(rows) + "\n</table>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
