"""The page of all results, made from their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from getd.experiments.figures import draw, picture_name, trials_of
from getd.experiments.results import read_results
from getd.experiments.rows import Row, all_rows, points
from getd.experiments.tables import published
from getd.facts.files import atomic_path
from getd.tuning.pictures import MARKS
from getd.tuning.trial import counts

Results = Sequence[Mapping[str, Any]]
N_ARY = ("WikiPeople-3", "WikiPeople-4", "JF17K-3", "JF17K-4")
BINARY = ("WN18", "FB15k")
NAMES = {
    "rae": "RAE", "nalp": "NaLP", "n-cp": "n-CP", "n-tucker": "n-TuckER", "getd": "GETD", "transe": "TransE",
    "distmult": "DistMult", "conve": "ConvE", "complex": "ComplEx", "simple": "SimplE", "tucker": "TuckER",
}  # fmt: skip
HITS = ("mrr", "hits_at_10", "hits_at_3", "hits_at_1")


def write_page(into: Path) -> Path:
    """``README.md`` and the pictures, from all results that are there."""
    results, rows = read_results(into), all_rows()
    by_row: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_row.setdefault(result["row"], []).append(result)
    parts = [
        "# Results",
        ABOUT,
        "## N-ary data sets, the paper's sizes",
        *(_models(data, "paper", by_row) for data in N_ARY),
        "## Our best GETD",
        _best(by_row),
        "## Binary data sets",
        *(_models(data, "best", by_row) for data in BINARY),
        *_tables(by_row),
        "## Figures",
        *(_figure(row, results, into) for row in rows.values() if row.kind == "figure"),
        "## Studies",
        *(_study(row, results, into) for row in rows.values() if row.kind == "study" and row.name in by_row),
        _studies([row for row in rows.values() if row.kind == "study" and row.name not in by_row]),
        "## Every result",
        _everything(rows, by_row),
    ]
    with atomic_path(into / "README.md") as temporary:
        temporary.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return into / "README.md"


ABOUT = """Made by `getd reproduce`; every number is a file in `results/`, with its settings, seed, protocol,
versions and machine. One command measures a row again: `getd reproduce ROW`. Unless said otherwise: one
model, trained on train alone, the epoch chosen on validation, filtered ranks over all positions of test,
ties shared. "Published" is Liu, Yao and Li (2020). What was tried to get there:
[docs/tuning.md](../docs/tuning.md)."""


def _models(data: str, folder: str, by_row: Mapping[str, Results]) -> str:
    lines: list[list[object]] = []
    floors: Mapping[str, float] = {}
    names = {f"{model}-{data.lower()}": name for model, name in NAMES.items()}
    names[f"getd-{data.lower()}-rank-25"] = "GETD, rank 25"
    names[f"getd-{data.lower()}-released"] = "GETD, as released"
    for stem, name in names.items():
        row = f"{folder}/{stem}"
        if row in all_rows():
            wanted, found = all_rows()[row].tables.get("published", {}), by_row.get(row, [])
            cells = [_pair(_mean(found, key), wanted.get(key)) for key in HITS]
            lines.append([name, *cells, len(found) or "", _sample(found)])
            whole = [result for result in found if result["protocol"]["sample"] is None]
            floors = floors or (whole[0]["floors"] if whole else {})
    lines += [[f"floor: {name}", f"{mrr:.3f}", "", "", "", "", "all"] for name, mrr in floors.items()]
    return f"**{data}**\n\n" + _table(
        ["ours / published", "MRR", "Hits@10", "Hits@3", "Hits@1", "seeds", "asked"], lines
    )


def _best(by_row: Mapping[str, Results]) -> str:
    lines = []
    for added in (
        trained + valid for valid in ("", "+valid") for trained in ("", "+memory", "+ensemble", "+memory+ensemble")
    ):
        rows = [f"best/getd-{data.lower()}{added}" for data in N_ARY]
        lines.append([f"GETD{added.replace('+', ' + ')}", *(_spread(by_row.get(row, [])) for row in rows)])
    for label, key in (
        ("best published, train only", "best_train_only"),
        ("best published, train and valid", "best_train_and_valid"),
    ):
        lines.append([label, *(f"{published()[key][data]:.3f}" for data in N_ARY)])
    note = "Test MRR, mean and deviation over seeds. `valid`: trained again on train and valid, for as many epochs as "
    note += "were best on valid."
    return f"{note}\n\n" + _table(["", *N_ARY], lines)


def _tables(by_row: Mapping[str, Results]) -> list[str]:
    parts = []
    for result in by_row.get("statistics", []):
        head = ["data set", "entities", "relations", "train", "valid", "test", "as published", "frequency", "lookup"]
        lines = [
            [
                data,
                *found["found"],
                found["found"] == found["published"],
                *(f"{v:.3f}" for v in found["floors"].values()),
            ]
            for data, found in result["rows"].items()
        ]
        parts += ["## Data sets", "The last two columns are the test MRR of our floors.", _table(head, lines)]
    for result in by_row.get("complexity", []):
        lines = [
            [f"`{name}`", f"`{found['formula']}`", found["counted"], found["fully_expressive"], found["published"]]
            for name, found in result["rows"].items()
        ]
        head = ["model", "parameters", "on WikiPeople-4", "fully expressive", "says the paper"]
        parts += ["## Complexity", _table(head, lines)]
    for result in by_row.get("cost", []):
        keys = {"epoch_seconds": "an epoch", "total_seconds": "a training", "inference_seconds": "ranking test"}
        lines = [[name, result["found"][key], result["published"][key]] for key, name in keys.items()]
        note = f"The training ended by itself after {result['epochs']} epochs, perhaps with other work beside it; the "
        note += "other two are the best of three."
        parts += ["## Cost on WikiPeople-3, seconds", note, _table(["", "ours, CPU", "published, Titan XP"], lines)]
    for result in by_row.get("claims", []):
        lines = [[claim["claim"], f"**{claim['verdict']}**", claim["figures"]] for claim in result["claims"]]
        parts += ["## What the paper says", _table(["claim", "", "figures here"], lines)]
    return parts


def _figure(row: Row, results: Results, into: Path) -> str:
    pictures = draw(row, results, into)
    if not pictures:
        return f"### {row.told.about}\n\nNot run; `getd reproduce {row.name}` would take {_minutes(row)}."
    mine = [result for result in results if result["row"] == row.name]
    seeds = ", ".join(str(seed) for seed in sorted({result["seed"] for result in mine}))
    minutes = sum(result["seconds"] for result in mine) / 60
    caption = f"{len(mine)} trainings, seed {seeds}, {minutes:.0f} minutes; the mean where there are several seeds. "
    caption += f"Settings: `rows/{row.name}.toml`; again: `getd reproduce {row.name}`."
    return f"### {row.told.about}\n\n{_picture(row)}\n\n{caption}"


def _picture(row: Row) -> str:
    name = picture_name(row)
    return f"![{name}](figures/{name}.svg)"


def _study(row: Row, results: Results, into: Path) -> str:
    """A study that was done."""
    draw(row, results, into)
    (result,) = (result for result in results if result["row"] == row.name)
    trials = trials_of(result)
    best = next(trial for trial in trials if trial.number == result["best"])
    states = ", ".join(f"{number} {state}" for state, number in counts(trials).items() if number)
    values = ", ".join(f"{name} {_short(value)}" for name, value in best.values.items())
    text = f"{states}; {result['seconds'] / 60:.0f} minutes. Best on validation: trial {best.number}, "
    text += f"MRR **{best.mrr:.4f}**, with {values}."
    first = next((each for each in trials if each.values == trials[0].values and each.state in MARKS), None)
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
            valid = ", ".join(f"{result['valid_mrr']:.4f}" for result in found if result.get("valid_mrr"))
            minutes = ", ".join(f"{result['seconds'] / 60:.0f}" for result in found)
            seeds = ", ".join(str(result["seed"]) for result in found)
            lines.append([f"`{name}`", seeds, measured or f"not run; {_minutes(row)}", valid, minutes])
    return _table(["row", "seeds", "test MRR", "validation MRR", "minutes"], lines)


def _minutes(row: Row) -> str:
    if row.told.minutes is None:
        return "a time that is not known"
    trainings = f" for each of {len(points(row, [0]))} trainings" if row.kind == "figure" else ""
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
