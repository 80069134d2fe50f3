"""A study as one HTML page that needs no other file: pictures and a table of all trials."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from getd.io.atomic import atomic_path
from getd.plots import studies
from getd.plots.style import html_figure
from getd.tuning.study import Study
from getd.tuning.trial import Trial, Trials, best_trial, describe_states, short
from getd.visible import visible

PAGE = Path(__file__).with_name("study_page.html")


def write_page(study: Study, path: Path) -> Path:
    trials = study.trials()
    best = best_trial(trials)
    parts = [_summary(trials, best), *_pictures(study, trials, best)]
    parts.append(_table(trials, best, list(study.space)))

    title = escape(f"{study.config.model_name} on {visible(study.data)}")
    page = Template(PAGE.read_text(encoding="utf-8"))
    text = page.substitute(title=title, body="\n".join(parts))
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _summary(trials: Trials, best: Trial | None) -> str:
    text = f"<p>{len(trials)} trials: {describe_states(trials) or 'none yet'}. "
    text += "Chosen on validation; test was not read.</p>"
    if best is not None:
        values = [f"{name} = {_text(value)}" for name, value in best.values.items()]
        text += f"<p><strong>Best: {best.mrr:.4f}</strong>, trial {best.number}: "
        text += f"{escape(', '.join(values))}</p>"
    return text


def _pictures(study: Study, trials: Trials, best: Trial | None) -> list[str]:
    shown = [trial for trial in trials if studies.is_drawn(trial)]
    if not shown:
        return []

    caption = "Validation MRR of each trial (● trained to its end, × pruned), best so far."
    pictures = {caption: studies.history_figure(shown)}
    importances = study.importances()
    if importances:
        caption = "How much each setting matters for being among the best quarter."
        pictures[caption] = studies.importance_figure(importances)

    by_setting = studies.settings_figure(shown, list(study.space), study.space.logarithmic)
    pictures["Validation MRR by the value of each setting."] = by_setting
    by_epoch = studies.curves_figure(shown, best)
    pictures["Validation MRR by epoch; the best trial is bold."] = by_epoch
    return [html_figure(figure, caption) for caption, figure in pictures.items()]


def _table(trials: Trials, best: Trial | None, names: Sequence[str]) -> str:
    header = ["trial", "state", "MRR", "epochs", "minutes", *names]
    lines = [f"<tr>{_cells('th', header)}</tr>"]
    for trial in sorted(trials, key=lambda trial: -(trial.mrr or 0.0)):
        minutes = trial.seconds and trial.seconds / 60
        cells = [trial.number, trial.state, trial.mrr, max(trial.curve, default=None), minutes]
        cells += map(trial.values.get, names)

        kind = "best" if trial == best else trial.state
        lines.append(f'<tr class="{kind}">{_cells("td", cells)}</tr>')
    return "<table>" + "\n".join(lines) + "\n</table>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{escape(_text(value))}</{tag}>" for value in values)


def _text(value: object) -> str:
    return "–" if value is None else visible(short(value))
