"""The page of all results, made from their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from getd.config import read_toml
from getd.experiments.pictures import draw, picture_name
from getd.experiments.result import (
    Claims,
    Complexity,
    Cost,
    Measurement,
    Statistics,
    StudyMeasurement,
    chosen_by,
    read_results,
)
from getd.experiments.result_index import ResultIndex
from getd.experiments.rows import Row, RowKind, all_rows
from getd.experiments.table_checks import METRICS, N_ARY, SECONDS
from getd.experiments.tables import BestPublished, published
from getd.io.atomic import atomic_path
from getd.models.registry import MODELS
from getd.plots.studies import is_drawn
from getd.tuning.trial import counts

N_ARY_SETS = tuple(N_ARY.values())
BINARY_SETS = ("WN18", "FB15k")
MODEL_ORDER = (  # that of the paper
    *("rae", "nalp", "n-cp", "n-tucker", "getd"),
    *("transe", "distmult", "conve", "complex", "simple", "tucker"),
)
HIGH_CHANCE = 0.05  # an MRR of random order that a reader should know of


def write_page(folder: Path) -> Path:
    """Write ``README.md`` and the pictures of all results in a folder."""
    results = ResultIndex(read_results(folder))
    for row in _rows_of("figure") + _rows_of("study"):
        draw(row, results, folder)

    path = folder / "README.md"
    with atomic_path(path) as temporary:
        temporary.write_text(page_text(results), encoding="utf-8")
    return path


def page_text(results: ResultIndex) -> str:
    """Return the page of these results."""
    texts = _texts()
    parts = ["# Results", texts["about"], "## N-ary data sets", texts["n_ary_sizes"]]
    parts += [_models(data, "paper", results) for data in N_ARY_SETS]
    parts += ["## Our best GETD", texts["best"], _best(results), _sources()]
    parts += ["## Binary data sets", texts["binary_sizes"]]
    parts += [_models(data, "best", results) for data in BINARY_SETS]
    parts += [*_statistics(results), *_complexity(results), *_cost(results), *_claims(results)]

    parts.append("## Figures")
    parts += [_figure(row, results) for row in _rows_of("figure")]
    parts.append("## Studies")
    parts += [_study(row, results) for row in _rows_of("study")]
    parts.append(_missing_studies(results))
    parts += ["## Every result", _everything(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def _texts() -> dict[str, str]:
    """Read the prose of the page."""
    return read_toml(Path(str(files("getd.experiments") / "page_texts.toml")))


def _rows_of(kind: RowKind) -> list[Row]:
    return [row for row in all_rows().values() if row.kind == kind]


def _models(data: str, folder: str, results: ResultIndex) -> str:
    """Return the table of a data set: every model next to what was published."""
    names = {f"{model}-{data.lower()}": MODELS[model].title for model in MODEL_ORDER}
    names[f"getd-{data.lower()}-rank-25"] = "GETD, rank 25"
    names[f"getd-{data.lower()}-released"] = "GETD, as released"

    lines: list[list[object]] = []
    baselines: dict[str, float] = {}
    for stem, name in names.items():
        row = all_rows().get(f"{folder}/{stem}")
        if row is None:
            continue
        measured = results.find(row.name)
        cells = [_pair(measured, key, row.published.get(key)) for key in METRICS]
        samples = {result.protocol.sample for result in measured}
        shown = ", ".join("all" if size is None else f"{size:,} facts" for size in samples)
        lines.append([name, *cells, len(measured) or "", shown])

        whole = [result for result in measured if result.protocol.sample is None]
        if whole and not baselines:
            baselines = whole[0].baselines

    for name, mrr in baselines.items():
        lines.append([f"baseline: {name}", f"{mrr:.3f}", "", "", "", "", "all"])
    chance = results.chance(data)
    if chance is not None:
        lines.append(["random order", _small(chance), "", "", "", "", "all"])
    header = ["ours / published", *METRICS.values(), "seeds", "asked"]
    return f"**{data}**\n\n{_table(header, lines)}"


def _best(results: ResultIndex) -> str:
    """Return the table of derived rows, and of the best that others published."""
    lines = []
    for valid in ("", "+valid"):
        for trained in ("", "+memory", "+ensemble", "+memory+ensemble"):
            added = trained + valid
            rows = [f"best/getd-{data.lower()}{added}" for data in N_ARY_SETS]
            cells = [_spread(results.find(row)) for row in rows]
            lines.append([f"GETD{added.replace('+', ' + ')}", *cells])

    for title, best in _best_published().items():
        lines.append(
            [f"best published, {title}", *(f"{best[data].mrr:.3f}" for data in N_ARY_SETS)]
        )
    return _table(["", *N_ARY_SETS], lines)


def _sources() -> str:
    """Say who published what is best."""
    sentences = []
    for title, best in _best_published().items():
        by_source: dict[str, list[str]] = {}
        for data in N_ARY_SETS:
            by_source.setdefault(best[data].source, []).append(data)
        listed = "; ".join(f"{source} ({', '.join(names)})" for source, names in by_source.items())
        sentences.append(f"Best published, {title}: {listed}.")
    return " ".join(sentences)


def _best_published() -> dict[str, dict[str, BestPublished]]:
    figures = published()
    return {"train only": figures.best_train_only, "train and valid": figures.best_train_and_valid}


def _statistics(results: ResultIndex) -> list[str]:
    statistics = results.find_table(Statistics)
    if statistics is None:
        return []
    lines = []
    for data, row in statistics.rows.items():
        mrrs = [f"{mrr:.3f}" for mrr in row.baselines.values()]
        chance = "" if row.chance is None else _small(row.chance)
        lines.append([data, *row.counts, row.counts == row.published, *mrrs, chance])

    header = ["data set", "entities", "relations", "train", "valid", "test", "as published"]
    header += ["frequency", "lookup", "random order"]
    note = "The last three columns are the test MRR of our baselines"
    note += " and of candidates in random order."
    return ["## Data sets", note, _table(header, lines)]


def _complexity(results: ResultIndex) -> list[str]:
    complexity = results.find_table(Complexity)
    if complexity is None:
        return []
    lines: list[list[object]] = []
    for name, row in complexity.rows.items():
        counted = [row.counted, row.fully_expressive, row.published]
        lines.append([f"`{name}`", f"`{row.formula}`", *counted])
    header = ["model", "parameters", "on WikiPeople-4", "fully expressive", "says the paper"]
    return ["## Complexity", _table(header, lines)]


def _cost(results: ResultIndex) -> list[str]:
    cost = results.find_table(Cost)
    if cost is None:
        return []
    measured = cost.measured.model_dump()
    reported = cost.published.model_dump()
    lines = [[name, measured[key], reported[key]] for key, name in SECONDS.items()]
    note = f"The training ended by itself after {cost.epochs} epochs,"
    note += " perhaps with other work beside it; the other two are the best of three."
    table = _table(["", "ours, CPU", "published, Titan XP"], lines)
    return ["## Cost on WikiPeople-3, seconds", note, table]


def _claims(results: ResultIndex) -> list[str]:
    table = results.find_table(Claims)
    if table is None:
        return []
    lines = []
    for claim in table.claims:
        lines.append([claim.claim, claim.rule, f"**{claim.verdict}**", claim.figures])
    header = ["claim", "shown if", "", "figures here"]
    return ["## What the paper says", _texts()["claims"], _table(header, lines)]


def _figure(row: Row, results: ResultIndex) -> str:
    title = f"### {row.info.about}"
    measured = results.find(row.name)
    if not measured:
        return f"{title}\n\nNot run; `getd reproduce {row.name}` would take {_minutes(row)}."

    seeds = ", ".join(str(seed) for seed in sorted({result.seed for result in measured}))
    minutes = sum(result.seconds for result in measured) / 60
    caption = f"{len(measured)} trainings, seed {seeds}, {minutes:.0f} minutes; "
    caption += "the mean where there are several seeds. "
    caption += f"Settings: `rows/{row.name}.toml`; again: `getd reproduce {row.name}`."
    chance = results.chance(row.data)
    if chance is not None and chance > HIGH_CHANCE:
        caption += f" Candidates in random order have an MRR of {chance:.3f}."
    if row.info.curves:
        caption += " Test stands in the place of validation,"
        caption += " and what the files call their best epoch was chosen on it."
    return f"{title}\n\n{_picture(row)}\n\n{caption}"


def _picture(row: Row) -> str:
    name = picture_name(row)
    return f"![{name}](figures/{name}.svg)"


def _study(row: Row, results: ResultIndex) -> str:
    """Describe a study that was run; empty: it was not."""
    studies = [each for each in results.find(row.name) if isinstance(each, StudyMeasurement)]
    if not studies:
        return ""
    (study,) = studies
    trials = study.trials
    best = next(trial for trial in trials if trial.number == study.best)

    states = ", ".join(f"{number} {state}" for state, number in counts(trials).items() if number)
    values = ", ".join(f"{name} {_short(value)}" for name, value in best.values.items())
    text = f"{states}; {study.seconds / 60:.0f} minutes. "
    text += f"Best on validation: trial {best.number}, MRR **{best.mrr:.4f}**, with {values}."

    # Trial 0 has the settings of the row; it may be lost and tried again under another number.
    same = [trial for trial in trials if trial.values == trials[0].values and is_drawn(trial)]
    if same:
        first = same[0]
        text += f" Trial {first.number}, {_short(first.mrr)}, has the settings that it began with."
    return f"### {row.info.about}\n\n{text}\n\n{_picture(row)}\n\n`getd reproduce {row.name}`"


def _missing_studies(results: ResultIndex) -> str:
    missing = [row for row in _rows_of("study") if not results.find(row.name)]
    lines = [[f"`{row.name}`", row.study.trials, f"not run; {_minutes(row)}"] for row in missing]
    return _table(["study", "trials", ""], lines) if lines else ""


def _everything(results: ResultIndex) -> str:
    lines = []
    for row in all_rows().values():
        if row.kind not in ("training", "derived"):
            continue
        measured = results.find(row.name)
        seeds = ", ".join(str(result.seed) for result in measured)
        mrrs = ", ".join(f"{result.mrr:.4f}" for result in measured)
        valid_mrrs = [result.valid_mrr for result in measured if result.valid_mrr]
        valid = ", ".join(f"{mrr:.4f}" for mrr in valid_mrrs)
        minutes = ", ".join(f"{result.seconds / 60:.0f}" for result in measured)
        chosen = ", ".join(sorted({chosen_by(result) for result in measured}))
        shown = mrrs or f"not run; {_minutes(row)}"
        lines.append([f"`{row.name}`", seeds, shown, valid, minutes, chosen])

    header = ["row", "seeds", "test MRR", "validation MRR", "minutes", "epoch chosen on"]
    return _table(header, lines)


def _minutes(row: Row) -> str:
    if row.info.minutes is None:
        return "a time that is not known"
    text = f"about {row.info.minutes} minutes"
    n_trainings = len(row.points)
    if row.kind == "figure" and n_trainings > 1:
        text += f" for each of {n_trainings} trainings"
    return text


def _spread(results: Sequence[Measurement]) -> str:
    values = [result.mrr for result in results]
    if not values:
        return "–"
    deviation = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"**{mean(values):.3f}**{deviation}"


def _pair(results: Sequence[Measurement], key: str, reported: float | None) -> str:
    ours = f"{mean(result.metrics[key] for result in results):.3f}" if results else "–"
    return ours if reported is None else f"{ours} / {reported:.3f}"


def _small(value: float) -> str:
    """Write three digits, or more where those would all be 0."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
