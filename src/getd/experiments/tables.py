"""The tables that need no training of their own: statistics, complexity, cost, claims."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from getd.config import Settings, build, read_toml
from getd.datasets.load import load
from getd.errors import RunError
from getd.evaluation.evaluate import evaluate_baselines, validation_mrr
from getd.experiments.claims import check_claims
from getd.experiments.result import (
    Claims,
    Complexity,
    Cost,
    DataStatistics,
    ModelComplexity,
    Result,
    Seconds,
    Statistics,
)
from getd.experiments.result_index import ResultIndex
from getd.experiments.rows import PACKAGE
from getd.facts.facts import count
from getd.models.registry import MODELS, count_parameters
from getd.runs.config import Config
from getd.training.start import train

REPEATS = 3  # of what is timed; the best counts


class Published(Settings):
    """``published.toml``: figures that belong to no row."""

    statistics: dict[str, tuple[int, ...]]
    fully_expressive: dict[str, bool]
    cost: Seconds
    best: dict[str, dict[str, float]]  # MRR by data set, by what was trained on


@cache
def published() -> Published:
    """Read what the paper, and others since, published next to the rows."""
    return build(Published, read_toml(PACKAGE / "published.toml"), "published")


def measure_table(name: str, results: ResultIndex) -> Result:
    if name == "statistics":
        return Statistics(rows={data: _statistics(data) for data in published().statistics})
    if name == "complexity":
        return Complexity(rows=_complexity("WikiPeople-4"))
    if name == "cost":
        return _cost(results)
    return Claims(claims=check_claims(results))


def _statistics(data: str) -> DataStatistics:
    kb = load(data)
    n_facts = [count(kb.split(split)) for split in ("train", "valid", "test")]
    measured = evaluate_baselines(kb)
    return DataStatistics(
        counts=(kb.n_entities, kb.n_relations, *n_facts),
        published=published().statistics[data],
        baselines={name: metrics.mrr for name, metrics in measured.items()},
        chance=measured["lookup"].mrr_at_chance,
    )


def _complexity(data: str) -> dict[str, ModelComplexity]:
    """Return the parameters at the paper's sizes of a 4-ary data set, by formula and counted."""
    kb = load(data)
    counted = count_parameters(kb.n_entities, kb.n_relations, kb.arities)
    rows = {}
    for name, entry in MODELS.items():
        if not entry.model.binary_only:
            rows[name] = ModelComplexity(
                formula=entry.model.parameters_formula,
                counted=counted[name],
                fully_expressive=entry.fully_expressive,
                published=published().fully_expressive.get(name),
            )
    return rows


def _cost(results: ResultIndex) -> Cost:
    """Time GETD on WikiPeople-3: an epoch and a ranking now, a training as measured before."""
    trained = results.find("paper/getd-wikipeople-3")
    if not trained:
        raise RunError("cost needs the row paper/getd-wikipeople-3; reproduce that first")
    training = trained[0]
    kb = load("WikiPeople-3")
    known = kb.known()

    with TemporaryDirectory() as folder:
        config = Config.parse(training.config, epochs=REPEATS)
        run = train(kb, config, Path(folder) / "run", ask_test=False)
        epochs = [line.seconds for line in run.folder.read_history()]

        rankings = []
        for _ in range(REPEATS):
            start = perf_counter()
            validation_mrr(run.model.bare, kb.split("test"), known)
            rankings.append(perf_counter() - start)

    return Cost(
        measured=Seconds(
            epoch_seconds=round(min(epochs), 2),
            total_seconds=training.seconds,
            inference_seconds=round(min(rankings), 2),
        ),
        config=training.config,
        epochs=training.epochs or 0,
        published=published().cost,
    )
