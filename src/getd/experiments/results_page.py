"""The page of all results, made from their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from getd.experiments.findings import Findings
from getd.experiments.result import chosen_by, read_results
from getd.experiments.rows import Row, all_rows, points
from getd.experiments.tables import published
from getd.io.atomic import atomic_path
from getd.models.registry import MODELS
from getd.plots.figures import draw, picture_name, trials_of
from getd.plots.studies import MARKS
from getd.tuning.trial import counts

Results = Sequence[Mapping[str, Any]]
N_ARY = ("WikiPeople-3", "WikiPeople-4", "JF17K-3", "JF17K-4")
BINARY = ("WN18", "FB15k")
IN_TABLES = (  # the order of the paper
    *("rae", "nalp", "n-cp", "n-tucker", "getd"),
    *("transe", "distmult", "conve", "complex", "simple", "tucker"),
)
NOTEWORTHY = 0.05  # an MRR of random order that a reader should know of
HITS = ("mrr", "hits_at_10", "hits_at_3", "hits_at_1")


def write_page(into: Path) -> Path:
    """``README.md`` and the pictures, from all results that are there."""
    results = read_results(into)
    for row in all_rows().values():
        if row.kind in ("figure", "study"):
            draw(row, results, into)
    with atomic_path(into / "README.md") as temporary:
        temporary.write_text(page_text(results), encoding="utf-8")
    return into / "README.md"


def page_text(results: Results) -> str:
    """The page of these results."""
    rows = all_rows()
    by_row: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_row.setdefault(result["row"], []).append(result)
    parts = [
        "# Results",
        ABOUT,
        "## N-ary data sets",
        N_ARY_SIZES,
        *(_models(data, "paper", by_row) for data in N_ARY),
        "## Our best GETD",
        _best(by_row),
        "## Binary data sets",
        BINARY_SIZES,
        *(_models(data, "best", by_row) for data in BINARY),
        *_tables(by_row),
        "## Figures",
        *(_figure(row, results) for row in rows.values() if row.kind == "figure"),
        "## Studies",
        *(
            _study(row, results)
            for row in rows.values()
            if row.kind == "study" and row.name in by_row
        ),
        _studies([row for row in rows.values() if row.kind == "study" and row.name not in by_row]),
        "## Every result",
        _everything(rows, by_row),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


ABOUT = """Made by `getd reproduce`; every number is a file in `results/`, with its settings, seed, protocol,
versions and machine, and the commit where it was kept. One command measures a row again: `getd reproduce ROW`.
Unless said otherwise: one model, trained on train alone, the epoch chosen on validation, filtered ranks over all
positions of test, ties shared. "Published" is Liu, Yao and Li (2020). What was tried to get there, and which figures
of test were seen on the way: [docs/tuning.md](../docs/tuning.md).

Ranks of test leave out the answers known from all splits. Ranks of validation, by which epochs, settings and memories
are chosen, leave out those of train and valid. Results that say "all splits in the filter" in the
[last table](#every-result) were measured before: their ranks of validation left out the answers of test as well, their
batch norms were evaluated with moving averages, and only scores equal to the last bit were ties."""
N_ARY_SIZES = """GETD, n-TuckER and n-CP have the paper's sizes: 50 dimensions and ranks 50 for three entities, 25
dimensions and ranks 40 (the released setting; 25 in the text, a row of its own) for four. NaLP has not: 200 units in
place of the released 1,000 and 1,200, and no batch norm."""
BINARY_SIZES = """Not at the paper's sizes (GETD: 200 dimensions for entities and relations, ranks 50; TuckER 200). On
WN18 GETD has 100 and 30 dimensions and ranks 20, on FB15k 200, 100 and 30; TuckER has 100 dimensions, ConvE 16 channels
in place of 32. The paper's binary setting has been run nowhere here."""


def _models(data: str, folder: str, by_row: Mapping[str, Results]) -> str:
    lines: list[list[object]] = []
    baselines: Mapping[str, float] = {}
    names = {f"{model}-{data.lower()}": MODELS[model].title for model in IN_TABLES}
    names[f"getd-{data.lower()}-rank-25"] = "GETD, rank 25"
    names[f"getd-{data.lower()}-released"] = "GETD, as released"
    for stem, name in names.items():
        row = f"{folder}/{stem}"
        if row in all_rows():
            wanted, found = all_rows()[row].tables.get("published", {}), by_row.get(row, [])
            cells = [_pair(_mean(found, key), wanted.get(key)) for key in HITS]
            lines.append([name, *cells, len(found) or "", _sample(found)])
            whole = [result for result in found if result["protocol"]["sample"] is None]
            baselines = baselines or (whole[0]["baselines"] if whole else {})
    lines += [
        [f"baseline: {name}", f"{mrr:.3f}", "", "", "", "", "all"]
        for name, mrr in baselines.items()
    ]
    chance = Findings(by_row.get("statistics", [])).chance(data)
    lines += [] if chance is None else [["random order", _small(chance), "", "", "", "", "all"]]
    return f"**{data}**\n\n" + _table(
        ["ours / published", "MRR", "Hits@10", "Hits@3", "Hits@1", "seeds", "asked"], lines
    )


def _best(by_row: Mapping[str, Results]) -> str:
    lines = []
    for added in (
        trained + valid
        for valid in ("", "+valid")
        for trained in ("", "+memory", "+ensemble", "+memory+ensemble")
    ):
        rows = [f"best/getd-{data.lower()}{added}" for data in N_ARY]
        lines.append(
            [f"GETD{added.replace('+', ' + ')}", *(_spread(by_row.get(row, [])) for row in rows)]
        )
    for label, key in (
        ("best published, train only", "best_train_only"),
        ("best published, train and valid", "best_train_and_valid"),
    ):
        lines.append([label, *(f"{published()[key][data]['mrr']:.3f}" for data in N_ARY)])
    return f"{BEST}\n\n{_table(['', *N_ARY], lines)}\n\n{_sources()}"


BEST = """Test MRR, mean and deviation over seeds. `memory`: what stood beside the given entities in training facts
counts too; its 22 to 68 weights are fitted on the labels of validation, so that such a row has learnt from more labels
than one without. `ensemble`: the scores of three seeds averaged. `valid`: trained again on train and valid, for as many
epochs as were best on valid."""


def _sources() -> str:
    """Who published what is best."""
    texts = []
    for title, key in (
        ("train only", "best_train_only"),
        ("train and valid", "best_train_and_valid"),
    ):
        by_source: dict[str, list[str]] = {}
        for data in N_ARY:
            by_source.setdefault(published()[key][data]["source"], []).append(data)
        listed = "; ".join(f"{source} ({', '.join(names)})" for source, names in by_source.items())
        texts.append(f"Best published, {title}: {listed}.")
    return " ".join(texts)


def _tables(by_row: Mapping[str, Results]) -> list[str]:
    parts = []
    for result in by_row.get("statistics", []):
        head = ["data set", "entities", "relations", "train", "valid", "test", "as published"]
        head += ["frequency", "lookup", "random order"]
        lines = [
            [
                data,
                *found["found"],
                found["found"] == found["published"],
                *(f"{v:.3f}" for v in found["baselines"].values()),
                _small(found["chance"]) if "chance" in found else "",
            ]
            for data, found in result["rows"].items()
        ]
        note = "The last three columns are the test MRR of our baselines and of candidates in random order."
        parts += ["## Data sets", note, _table(head, lines)]
    for result in by_row.get("complexity", []):
        lines = [
            [
                f"`{name}`",
                f"`{found['formula']}`",
                found["counted"],
                found["fully_expressive"],
                found["published"],
            ]
            for name, found in result["rows"].items()
        ]
        head = ["model", "parameters", "on WikiPeople-4", "fully expressive", "says the paper"]
        parts += ["## Complexity", _table(head, lines)]
    for result in by_row.get("cost", []):
        keys = {
            "epoch_seconds": "an epoch",
            "total_seconds": "a training",
            "inference_seconds": "ranking test",
        }
        lines = [
            [name, result["found"][key], result["published"][key]] for key, name in keys.items()
        ]
        note = f"The training ended by itself after {result['epochs']} epochs, perhaps with other work beside it; the "
        note += "other two are the best of three."
        parts += [
            "## Cost on WikiPeople-3, seconds",
            note,
            _table(["", "ours, CPU", "published, Titan XP"], lines),
        ]
    for result in by_row.get("claims", []):
        lines = [
            [claim["claim"], claim.get("rule", ""), f"**{claim['verdict']}**", claim["figures"]]
            for claim in result["claims"]
        ]
        parts += [
            "## What the paper says",
            CLAIMS,
            _table(["claim", "shown if", "", "figures here"], lines),
        ]
    return parts


CLAIMS = """Each claim of the paper's prose, the rule by which it counts as shown, and what the bare figures say; most
are of one seed, and NaLP's on the 3-ary sets of 1,000 test facts."""


def _figure(row: Row, results: Results) -> str:
    mine = [result for result in results if result["row"] == row.name]
    if not mine:
        return f"### {row.told.about}\n\nNot run; `getd reproduce {row.name}` would take {_minutes(row)}."
    seeds = ", ".join(str(seed) for seed in sorted({result["seed"] for result in mine}))
    minutes = sum(result["seconds"] for result in mine) / 60
    caption = f"{len(mine)} trainings, seed {seeds}, {minutes:.0f} minutes; the mean where there are several seeds. "
    caption += f"Settings: `rows/{row.name}.toml`; again: `getd reproduce {row.name}`."
    chance = Findings(results).chance(row.tables["data"])
    if chance is not None and chance > NOTEWORTHY:
        caption += f" Candidates in random order have an MRR of {chance:.3f}."
    if row.told.curves:
        caption += " Test stands in the place of validation, and what the files call their best epoch was chosen on it."
    return f"### {row.told.about}\n\n{_picture(row)}\n\n{caption}"


def _picture(row: Row) -> str:
    name = picture_name(row)
    return f"![{name}](figures/{name}.svg)"


def _study(row: Row, results: Results) -> str:
    """A study that was done."""
    (result,) = (result for result in results if result["row"] == row.name)
    trials = trials_of(result)
    best = next(trial for trial in trials if trial.number == result["best"])
    states = ", ".join(f"{number} {state}" for state, number in counts(trials).items() if number)
    values = ", ".join(f"{name} {_short(value)}" for name, value in best.values.items())
    text = (
        f"{states}; {result['seconds'] / 60:.0f} minutes. Best on validation: trial {best.number}, "
    )
    text += f"MRR **{best.mrr:.4f}**, with {values}."
    first = next(
        (each for each in trials if each.values == trials[0].values and each.state in MARKS), None
    )
    if first is not None:  # trial 0 may be lost, and tried again
        text += f" Trial {first.number}, {_short(first.mrr)}, has the settings that it began with."
    return f"### {row.told.about}\n\n{text}\n\n{_picture(row)}\n\n`getd reproduce {row.name}`"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _studies(rows: Sequence[Row]) -> str:
    """Those that were not."""
    lines = [[f"`{row.name}`", row.study.trials, f"not run; {_minutes(row)}"] for row in rows]
    return _table(["study", "trials", ""], lines) if lines else ""


def _everything(rows: Mapping[str, Row], by_row: Mapping[str, Results]) -> str:
    lines = []
    for name, row in rows.items():
        found = by_row.get(name, [])
        if row.kind in ("training", "derived"):
            measured = ", ".join(f"{result['metrics']['mrr']:.4f}" for result in found)
            valid = ", ".join(
                f"{result['valid_mrr']:.4f}" for result in found if result.get("valid_mrr")
            )
            minutes = ", ".join(f"{result['seconds'] / 60:.0f}" for result in found)
            seeds = ", ".join(str(result["seed"]) for result in found)
            chosen = ", ".join(sorted({chosen_by(result) for result in found}))
            lines.append(
                [
                    f"`{name}`",
                    seeds,
                    measured or f"not run; {_minutes(row)}",
                    valid,
                    minutes,
                    chosen,
                ]
            )
    return _table(
        ["row", "seeds", "test MRR", "validation MRR", "minutes", "epoch chosen on"], lines
    )


def _minutes(row: Row) -> str:
    if row.told.minutes is None:
        return "a time that is not known"
    number = len(points(row, [0]))
    trainings = f" for each of {number} trainings" if row.kind == "figure" and number > 1 else ""
    return f"about {row.told.minutes} minutes{trainings}"


def _mean(results: Results, key: str) -> float | None:
    return mean(result["metrics"][key] for result in results) if results else None


def _spread(results: Results) -> str:
    values = [result["metrics"]["mrr"] for result in results]
    if not values:
        return "–"
    return f"**{mean(values):.3f}**" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def _sample(results: Results) -> str:
    sizes = {result["protocol"]["sample"] for result in results}
    return ", ".join("all" if size is None else f"{size:,} facts" for size in sizes)


def _small(value: float) -> str:
    """Three digits, or more where those would all be 0."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def _pair(ours: float | None, theirs: float | None) -> str:
    first = "–" if ours is None else f"{ours:.3f}"
    return f"{first} / {theirs:.3f}" if theirs is not None else first


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
