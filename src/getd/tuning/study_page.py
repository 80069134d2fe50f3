"""A study as one HTML page that needs no other file: pictures and a table of all trials."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from getd.io.atomic import atomic_path
from getd.plots import studies
from getd.plots.style import html_figure
from getd.tuning.study import Study
from getd.tuning.trial import Trial, describe_states, short
from getd.visible import visible

PAGE = Path(__file__).with_name("study_page.html")


def write_page(study: Study, path: Path) -> Path:
    """Write the page of a study."""
    trials = study.trials()
    best = study.best()
    parts = [_summary(trials, best), *_pictures(study, trials, best)]
    parts.append(_table(trials, best, list(study.space)))

    title = escape(f"{study.config.model_name} on {visible(study.data)}")
    page = Template(PAGE.read_text(encoding="utf-8"))
    text = page.substitute(title=title, body="\n".join(parts))
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _summary(trials: Sequence[Trial], best: Trial | None) -> str:
    text = f"<p>{len(trials)} trials: {describe_states(trials) or 'none yet'}. "
    text += "Chosen on validation; test was not read.</p>"
    if best is not None:
        values = [f"{name} = {_text(value)}" for name, value in best.values.items()]
        text += f"<p><strong>Best: {best.mrr:.4f}</strong>, trial {best.number}: "
        text += f"{escape(', '.join(values))}</p>"
    return text


def _pictures(study: Study, trials: Sequence[Trial], best: Trial | None) -> list[str]:
    shown = [trial for trial in trials if studies.is_drawn(trial)]
    if not shown:
        return []

    caption = "Validation MRR of each trial (● trained to its end, × pruned), best so far."
    parts = [html_figure(studies.history_figure(shown), caption)]

    importances = study.importances()
    if importances:
        caption = "How much each setting matters for being among the best quarter."
        parts.append(html_figure(studies.importance_figure(importances), caption))

    space = study.space
    by_setting = studies.settings_figure(shown, list(space), space.logarithmic)
    parts.append(html_figure(by_setting, "Validation MRR by the value of each setting."))

    caption = "Validation MRR by epoch; the best trial is bold."
    parts.append(html_figure(studies.curves_figure(shown, best), caption))
    return parts


def _table(trials: Sequence[Trial], best: Trial | None, names: Sequence[str]) -> str:
    header = ["trial", "state", "MRR", "epochs", "minutes", *names]
    titles = [f"<th>{escape(name)}</th>" for name in header]
    lines = [f"<tr>{''.join(titles)}</tr>"]

    for trial in sorted(trials, key=lambda trial: -(trial.mrr or 0.0)):
        minutes = None if trial.seconds is None else trial.seconds / 60
        cells = [trial.number, trial.state, trial.mrr, max(trial.curve, default=None), minutes]
        cells += [trial.values.get(name) for name in names]

        kind = "best" if best is not None and trial.number == best.number else trial.state
        shown = [f"<td>{escape(_text(cell))}</td>" for cell in cells]
        lines.append(f'<tr class="{kind}">{"".join(shown)}</tr>')
    return "<table>" + "\n".join(lines) + "\n</table>"


def _text(value: Any) -> str:
    return "–" if value is None else visible(short(value))
