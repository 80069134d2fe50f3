"""The page of all results, made from their files."""

from contextlib import suppress
from pathlib import Path
from statistics import mean, stdev

from getd.config import read_toml
from getd.experiments.pictures import draw, picture_name
from getd.experiments.result import (
    Claims,
    Complexity,
    Cost,
    Measurements,
    Statistics,
    StudyMeasurement,
    Values,
    chosen_by,
    read_results,
)
from getd.experiments.result_index import NotMeasured, ResultIndex
from getd.experiments.rows import DERIVED, DERIVED_OF_ONE, PACKAGE, Row, RowKind, all_rows
from getd.experiments.table_checks import METRICS, N_ARY
from getd.experiments.tables import published
from getd.experiments.text import listed, markdown_table, small
from getd.io.atomic import atomic_path
from getd.models.registry import MODELS
from getd.plots.studies import is_drawn
from getd.tuning.trial import describe_states, short

TEXTS = read_toml(PACKAGE / "page_texts.toml")
N_ARY_SETS = tuple(N_ARY.values())
BINARY_SETS = ("WN18", "FB15k")
MODEL_ORDER = (  # that of the paper
    *("rae", "nalp", "n-cp", "n-tucker", "getd"),
    *("transe", "distmult", "conve", "complex", "simple", "tucker"),
)
BEST = (  # titles, the beginnings of the names of rows, and what they add
    ("GETD", "best/getd-", DERIVED),
    ("Encoder", "best/encoder-", DERIVED_OF_ONE),
    ("Encoder and GETD", "combined/", DERIVED_OF_ONE),
)
HIGH_CHANCE = 0.05  # an MRR of random order that a reader should know of
Lines = list[list[object]]  # of a table


def write_page(folder: Path) -> Path:
    """Write ``README.md`` and the pictures of all results in a folder."""
    results = ResultIndex(read_results(folder))
    for row in _rows_of("figure", "study"):
        draw(row, results, folder)
    path = folder / "README.md"
    with atomic_path(path) as temporary:
        temporary.write_text(page_text(results), encoding="utf-8")
    return path


def page_text(results: ResultIndex) -> str:
    parts = ["# Results", TEXTS["about"], "## N-ary data sets", TEXTS["n_ary_sizes"]]
    parts += [_models(data, "paper", results) for data in N_ARY_SETS]
    parts += ["## Our best", TEXTS["best"], _best(results), TEXTS["best_published"]]
    parts += ["## Binary data sets", TEXTS["binary_sizes"]]
    parts += [_models(data, "best", results) for data in BINARY_SETS]
    for table in (_statistics, _complexity, _cost, _claims):
        with suppress(NotMeasured):
            parts.append(table(results))

    parts += ["## Figures", *(_figure(row, results) for row in _rows_of("figure"))]
    parts += ["## Studies", *(_study(row, results) for row in _rows_of("study"))]
    parts += [_missing_studies(results), "## Every result", _everything(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows_of(*kinds: RowKind) -> list[Row]:
    return [row for row in all_rows().values() if row.kind in kinds]


def _section(title: str, *parts: str) -> str:
    return "\n\n".join([title, *parts])


def _models(data: str, folder: str, results: ResultIndex) -> str:
    """Return the table of a data set: every model next to what was published."""
    lower = data.lower()
    names = {f"{model}-{lower}": MODELS[model].title for model in MODEL_ORDER}
    names[f"getd-{lower}-rank-25"] = "GETD, rank 25"
    names[f"getd-{lower}-released"] = "GETD, as released"

    lines: Lines = []
    baselines: Values = {}
    for stem, name in names.items():
        row = all_rows().get(f"{folder}/{stem}")
        if row is None:
            continue
        measured = results.find(row.name)
        cells = [_pair(measured, key, row.published.get(key)) for key in METRICS]
        samples = {result.protocol.sample for result in measured}
        shown = ["all" if size is None else f"{size:,} facts" for size in samples]
        lines.append([name, *cells, len(measured) or "", ", ".join(shown)])

        for result in measured:
            if result.protocol.sample is None:
                baselines = baselines or result.baselines

    after_mrr = ["", "", "", "", "all"]
    for name, mrr in baselines.items():
        lines.append([f"baseline: {name}", f"{mrr:.3f}", *after_mrr])
    chance = results.chance(data)
    if chance is not None:
        lines.append(["random order", small(chance), *after_mrr])
    header = f"ours / published | {' | '.join(METRICS.values())} | seeds | asked"
    return _section(f"**{data}**", markdown_table(header, lines))


def _best(results: ResultIndex) -> str:
    """Return the table of our best rows, and of the best that others published."""
    lines = []
    for title, prefix, additions in BEST:
        for added in ("", *additions):
            measured = [results.find(f"{prefix}{data}{added}") for data in N_ARY]
            if any(measured):
                lines.append([title + added.replace("+", " + "), *map(_spread, measured)])
    for title, best in published().best.items():
        mrrs = [f"{best[data]:.3f}" for data in N_ARY_SETS]
        lines.append([f"best published, {title}", *mrrs])
    return markdown_table(f" | {' | '.join(N_ARY_SETS)}", lines)


def _statistics(results: ResultIndex) -> str:
    statistics = results.require_table(Statistics)
    lines = []
    for data, row in statistics.rows.items():
        mrrs = [f"{mrr:.3f}" for mrr in row.baselines.values()]
        chance = "" if row.chance is None else small(row.chance)
        lines.append([data, *row.counts, row.counts == row.published, *mrrs, chance])

    header = "data set | entities | relations | train | valid | test | as published"
    header += " | frequency | lookup | random order"
    return _section("## Data sets", TEXTS["data_sets"], markdown_table(header, lines))


def _complexity(results: ResultIndex) -> str:
    complexity = results.require_table(Complexity)
    lines = [
        [f"`{name}`", f"`{row.formula}`", row.counted, row.fully_expressive, row.published]
        for name, row in complexity.rows.items()
    ]
    header = "model | parameters | on WikiPeople-4 | fully expressive | says the paper"
    return _section("## Complexity", markdown_table(header, lines))


def _cost(results: ResultIndex) -> str:
    cost = results.require_table(Cost)
    ours = cost.measured
    theirs = cost.published

    lines = [
        ["an epoch", ours.epoch_seconds, theirs.epoch_seconds],
        ["a training", ours.total_seconds, theirs.total_seconds],
        ["ranking test", ours.inference_seconds, theirs.inference_seconds],
    ]
    note = TEXTS["cost"].format(epochs=cost.epochs)
    table = markdown_table(" | ours, CPU | published, Titan XP", lines)
    return _section("## Cost on WikiPeople-3, seconds", note, table)


def _claims(results: ResultIndex) -> str:
    table = results.require_table(Claims)
    lines = []
    for claim in table.claims:
        lines.append([claim.claim, claim.rule, f"**{claim.verdict}**", claim.figures])
    shown = markdown_table("claim | shown if |  | figures here", lines)
    return _section("## What the paper says", TEXTS["claims"], shown)


def _figure(row: Row, results: ResultIndex) -> str:
    title = f"### {row.info.about}"
    measured = results.find(row.name)
    if not measured:
        text = TEXTS["missing_figure"].format(row=row.name, minutes=_minutes(row))
        return _section(title, text)

    caption = TEXTS["figure"].format(
        trainings=len(measured),
        seeds=listed("{}", sorted({result.seed for result in measured})),
        minutes=sum(result.seconds for result in measured) / 60,
        row=row.name,
    )
    chance = results.chance(row.data) or 0.0
    if chance > HIGH_CHANCE:
        caption += TEXTS["high_chance"].format(chance)
    if row.info.curves:
        caption += TEXTS["curves"]
    return _section(title, _picture(row), caption)


def _picture(row: Row) -> str:
    name = picture_name(row)
    return f"![{name}](figures/{name}.svg)"


def _study(row: Row, results: ResultIndex) -> str:
    """Describe a study that was run; empty: it was not."""
    study = next(iter(results.find(row.name)), None)
    if not isinstance(study, StudyMeasurement):
        return ""
    trials = study.trials
    best = next(trial for trial in trials if trial.number == study.best)
    text = TEXTS["study"].format(
        states=describe_states(trials),
        minutes=study.seconds / 60,
        best=best,
        values=listed("{} {}", best.values, map(short, best.values.values())),
    )

    # Trial 0 has the settings of the row; it may be lost and tried again under another number.
    for trial in trials:
        if trial.values == trials[0].values and is_drawn(trial):
            text += TEXTS["first_trial"].format(trial.number, trial.mrr)
            break
    return _section(f"### {row.info.about}", text, _picture(row), f"`getd reproduce {row.name}`")


def _missing_studies(results: ResultIndex) -> str:
    missing = [row for row in _rows_of("study") if not results.find(row.name)]
    lines = []
    for row in missing:
        status = f"not run; {_minutes(row)}"
        lines.append([f"`{row.name}`", row.study.trials, status])
    return markdown_table("study | trials | ", lines) if lines else ""


def _everything(results: ResultIndex) -> str:
    lines = []
    for row in _rows_of("training", "combined", "derived"):
        measured = results.find(row.name)
        mrrs = listed("{0.mrr:.4f}", measured)
        line = [
            f"`{row.name}`",
            listed("{0.seed}", measured),
            mrrs or f"not run; {_minutes(row)}",
            listed("{0.valid_mrr:.4f}", [result for result in measured if result.valid_mrr]),
            listed("{:.0f}", [result.seconds / 60 for result in measured]),
            ", ".join(sorted(set(map(chosen_by, measured)))),
        ]
        lines.append(line)

    header = "row | seeds | test MRR | validation MRR | minutes | epoch chosen on"
    return markdown_table(header, lines)


def _minutes(row: Row) -> str:
    if row.info.minutes is None:
        return "a time that is not known"
    text = f"about {row.info.minutes} minutes"
    n_trainings = len(row.points)
    if row.kind == "figure" and n_trainings > 1:
        text += f" for each of {n_trainings} trainings"
    return text


def _spread(results: Measurements) -> str:
    if not results:
        return "–"
    mrrs = [result.mrr for result in results]
    text = f"**{mean(mrrs):.3f}**"
    return text if len(mrrs) == 1 else f"{text} ± {stdev(mrrs):.3f}"


def _pair(results: Measurements, key: str, reported: float | None) -> str:
    ours = f"{mean(result.metrics[key] for result in results):.3f}" if results else "–"
    return ours if reported is None else f"{ours} / {reported:.3f}"
