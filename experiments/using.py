"""How good runs are in use: probabilities, reasons, mistakes, new entities, missing facts.

    python -m experiments.using [PART…] [--runs FOLDER]

Trains what it needs (2 to 8 minutes a run, on one thread), and writes ``using.json`` and
``using.md``. Parts that are in ``using.json`` already are skipped unless they are named, and runs
that are in the folder already are opened. Everything is fitted on train and valid; test is read
only for the figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import torch

import getd
from getd.api import open_run
from getd.arrays import Floats
from getd.calibration.calibrate import Calibration, reliability
from getd.calibration.confidence import corrupt
from getd.evaluation.evaluate import baseline_models
from getd.evaluation.ranks import rank_facts
from getd.experiments.rows import find_row
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.io.atomic import atomic_path
from getd.io.environment import environment, machine_facts
from getd.models.base import ScoringModel
from getd.prediction.complete import CompletionRequest, complete
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.workflows.demo import DEMO_CONFIG

Fact = tuple[str, ...]
RESULTS = Path(__file__).parent / "using.json"
PAGE = RESULTS.with_suffix(".md")
ROW = "best/getd-jf17k-4"
N_WRONG = 200  # facts that are made wrong
N_LISTED = 400  # most suspicious facts in which they are looked for
N_NEW = 300  # entities held out of training
N_MISSING = 200  # most probable missing facts
SEED = 1
DRAWS = (1, 2, 3)  # seeds of new entities; the constants of `extend` were chosen with 0, 10 and 11


def area_under_curve(true: Floats, false: Floats) -> float:
    """Return the chance that a true fact has more than a false one, ties half.

    >>> area_under_curve(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(false)
    below = np.searchsorted(ordered, true, side="left")
    not_above = np.searchsorted(ordered, true, side="right")
    return float((below + not_above).mean() / (2 * len(false)))


def main() -> None:
    """Measure the parts that are missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.using", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--runs", type=Path, default=Path("runs/using"))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)

    for part, measure in PARTS.items():
        if part in options.parts or (not options.parts and part not in read()):
            write(part, measure(options.runs))
    write_page()


def calibration(data: str) -> Callable[[Path], dict[str, Any]]:
    """Measure the error of first answers, and how well confidence tells true facts from false."""

    def measure(runs: Path) -> dict[str, Any]:
        row = f"best/getd-{data.lower()}"
        run = trained(runs / data, getd.load(data), row)
        test = run.kb.split("test")
        known = run.predictor.known
        before, after = reliability(run.model, test, known, [Calibration(), run.calibration])

        ((arity, facts),) = test.items()
        temperatures = {"random": None, "likely": run.calibration.temperature_of(arity)}
        generator = torch.Generator().manual_seed(SEED)
        area = {}
        for kind, temperature in temperatures.items():
            with run.model.scoring():
                false_facts = corrupt(run.model, facts, known, generator, temperature)
            true = np.array(run.predictor.answerer.confidence(facts), dtype=float)
            false = np.array(run.predictor.answerer.confidence(false_facts), dtype=float)
            area[kind] = area_under_curve(true, false)

        return {
            "row": row,
            "error_before": before.error,
            "error_after": after.error,
            "questions": after.questions,
            "temperature": run.calibration.temperature,
            "auc_random": area["random"],
            "auc_likely": area["likely"],
        }

    return measure


def mistakes(runs: Path) -> dict[str, Any]:
    """Look for facts that were made wrong before training among the most suspicious ones."""
    kb = getd.load("JF17K-4")
    rng = np.random.default_rng(SEED)
    train = kb.split("train")[4]
    rows = rng.choice(len(train), N_WRONG, replace=False)
    wrong = with_mistakes(train.take(rows), kb, rng)
    kept = train.take(np.setdiff1d(np.arange(len(train)), rows))

    splits = {**kb.splits, "train": join({4: kept}, {4: wrong})}
    run = trained(runs / "mistakes", kb.with_splits(**splits), ROW)
    wrong_names = set(kb.decode(wrong))
    is_wrong = [rating.fact in wrong_names for rating in run.suspicious(N_LISTED)]
    return {
        "row": ROW,
        "replaced": len(wrong_names),
        "listed": N_LISTED,
        "facts": len(named_facts(run.kb)),
        "found": sum(is_wrong) / len(wrong_names),
        "found_in_200": sum(is_wrong[:200]) / len(wrong_names),
    }


def with_mistakes(facts: Facts, kb: KnowledgeBase, rng: np.random.Generator) -> Facts:
    """Replace one entity of each fact by any other that makes no known fact."""
    known = kb.known()
    entities = facts.entities.copy()
    rows = np.arange(len(facts))
    while len(rows):
        entities[rows] = facts.entities[rows]
        others = rng.integers(kb.n_entities, size=len(rows))
        entities[rows, rng.integers(facts.arity, size=len(rows))] = others
        rows = rows[known.contains(Facts(facts.relation[rows], entities[rows]))]
    return Facts(facts.relation, entities)


def reasons(runs: Path) -> dict[str, Any]:
    """Count right answers with a fact of the hidden rule among their three reasons."""
    run = trained(runs / "demo", getd.load("demo"), None)
    kb = run.kb
    follows = demo_rules(kb)
    is_explained = []
    for facts in kb.split("test").values():
        ranks = rank_facts(run.model, facts, run.predictor.known).rank
        for row, position in np.argwhere(ranks == 1).tolist():
            fact = facts.take(slice(row, row + 1))
            names = kb.decode(fact)[0]
            (explanation,) = run.predictor.explain_fact(fact, [position])
            is_explained.append(any(follows(names, reason.fact) for reason in explanation.facts))
    return {
        "config": "getd demo",
        "right_answers": len(is_explained),
        "with_a_fact_of_the_rule": float(np.mean(is_explained)),
    }


def demo_rules(kb: KnowledgeBase) -> Callable[[Fact, Fact], bool]:
    """Return whether a fact of the demo follows from another one; see docs/demo.md."""
    career: dict[str, frozenset[Fact]] = {}
    for relation, person, *rest in named_facts(kb):
        if relation in ("plays for", "coaches"):
            career[person] = career.get(person, frozenset()) | {tuple(rest)}

    def follows(fact: Fact, reason: Fact) -> bool:
        # From what the person, or another one of the same career, does.
        if fact[1] in career:
            return career.get(reason[1]) == career[fact[1]]
        # From other seasons of the same pair.
        if fact[0] == "fixture":
            return reason[0] == "fixture" and {*reason[1:3]} == {*fact[1:3]}
        # From who is born in the city, and who plays for the club.
        if fact[0] == "based in":
            return (reason[0] == "born in" and reason[2] == fact[2]) or fact[1] == reason[2]
        # A league: from the clubs that the club meets.
        return reason[0] in ("fixture", "transfer") and fact[1] in reason[1:]

    return follows


def new_entities(runs: Path) -> dict[str, Any]:
    """Teach a run entities that were held out of training: the mean over draws of entities."""
    draws = [new_entities_drawn(runs, seed) for seed in DRAWS]

    def means(key: str) -> dict[str, float]:
        return {name: float(np.mean([draw[key][name] for draw in draws])) for name in draws[0][key]}

    return {
        "row": ROW,
        "new_entities": N_NEW,
        "mrr": means("mrr"),
        "mrr_of_new_entities_alone": means("mrr_of_new_entities_alone"),
        "draws": {str(seed): draw for seed, draw in zip(DRAWS, draws, strict=True)},
    }


def new_entities_drawn(runs: Path, seed: int) -> dict[str, Any]:
    """Teach half of the facts of new entities, and rank the answers of the other half."""
    kb = getd.load("JF17K-4")
    rng = np.random.default_rng(seed)
    new = set(rng.choice(list(kb.entities), N_NEW, replace=False).tolist())

    # Facts without a new entity are trained on; those with one are split. A relation cannot be new.
    splits: dict[str, list[Fact]] = {}
    touched = []
    for split in kb.splits:
        facts = named_facts(kb, split)
        splits[split] = [fact for fact in facts if not new & {*fact[1:]}]
        touched += [fact for fact in facts if new & {*fact[1:]}]
    relations = {fact[0] for facts in splits.values() for fact in facts}
    touched = [fact for fact in touched if fact[0] in relations]
    order = rng.permutation(len(touched))
    taught = [touched[i] for i in order[0::2]]

    # A question has only entities that the run knows by then.
    seen = {name for facts in [*splits.values(), taught] for fact in facts for name in fact[1:]}
    held_out = [touched[i] for i in order[1::2]]
    questions = [fact for fact in held_out if {*fact[1:]} <= seen]

    with TemporaryDirectory() as folder:
        without_new = KnowledgeBase.from_facts(splits)
        before = trained(runs / f"without-{seed}", without_new, ROW, memory=True)
        path = Path(folder) / "new.txt"
        path.write_text("".join("\t".join(fact) + "\n" for fact in taught), encoding="utf-8")
        extended = before.extend(path, Path(folder) / "run")

        with_new = KnowledgeBase.from_facts({**splits, "train": [*splits["train"], *taught]})
        again = trained(runs / f"retrained-{seed}", with_new, ROW, memory=True)
        models = {
            "extend": (extended.model.bare, extended.kb),
            "extend, with memory": (extended.model, extended.kb),
        }
        for name, model in baseline_models(extended.kb).items():
            models[name] = (model, extended.kb)
        models["trained again"] = (again.model.bare, again.kb)
        models["trained again, with memory"] = (again.model, again.kb)
        mrrs = {name: mrr(*pair, questions, new) for name, pair in models.items()}

    return {
        "given": len(taught),
        "asked": len(questions),
        "mrr": {name: value for name, (value, _) in mrrs.items()},
        "mrr_of_new_entities_alone": {name: value for name, (_, value) in mrrs.items()},
    }


def mrr(
    model: ScoringModel, kb: KnowledgeBase, named: Sequence[Fact], new: set[str]
) -> tuple[float, float]:
    """Return the MRR of all questions of the facts, and of those whose answer is a new entity."""
    relation = kb.relations.ids([fact[0] for fact in named])
    entities = kb.entities.ids([name for fact in named for name in fact[1:]])
    facts = Facts(relation, entities.reshape(len(named), -1))

    blocks = [*kb.splits.values(), {facts.arity: facts}]
    known = KnownAnswers.build(blocks)
    reciprocal = 1 / rank_facts(model, facts, known).rank
    is_new = np.array([[name in new for name in fact[1:]] for fact in named])
    return float(reciprocal.mean()), float(reciprocal[is_new].mean())


def missing_facts(runs: Path) -> dict[str, Any]:
    """Count test facts among the most probable missing facts of a run that does not know them."""
    whole = getd.load("demo")
    kb = whole.with_splits(train=whole.split("train"), valid=whole.split("valid"))
    run = trained(runs / "demo-without-test", kb, None)
    test_facts = set(named_facts(whole, "test"))

    candidates = []
    with TemporaryDirectory() as folder:
        for relation in range(kb.n_relations):
            path = Path(folder) / f"{relation}.parquet"
            request = CompletionRequest("demo", relation, N_MISSING, 0.0)
            complete(run.predictor.answerer, request, path)
            for row in pl.read_parquet(path).rows():
                candidates.append((row[-2], tuple(row[:-2]) in test_facts))

    best = sorted(candidates, key=lambda candidate: -candidate[0])[:N_MISSING]
    right = [is_test for _, is_test in best]
    return {
        "config": "getd demo, without its test facts",
        "test_facts": len(test_facts),
        "top": N_MISSING,
        "precision": float(np.mean(right)),
        "precision_of_50": float(np.mean(right[:50])),
        "least_confidence": best[-1][0],
    }


def named_facts(kb: KnowledgeBase, *splits: str) -> list[Fact]:
    """Return the facts of splits with their names; of all splits if none is named."""
    facts = []
    for split in splits or kb.splits:
        for block in kb.split(split).values():
            facts += kb.decode(block)
    return facts


def trained(path: Path, kb: KnowledgeBase, row: str | None, memory: bool = False) -> Run:
    """Open the run of a folder; train it with the settings of a row, or of the demo, if needed."""
    if not RunFolder(path).is_finished():
        tables = DEMO_CONFIG if row is None else find_row(row).points[0].config.given
        config = {"model": tables["model"], "training": tables["training"]}
        getd.train(kb, out=path, config=config, overwrite=True)

    run = open_run(path)
    if memory and not run.folder.has_memory():
        run.remember()
    return run


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "calibration-jf17k-4": calibration("JF17K-4"),
    "calibration-wikipeople-4": calibration("WikiPeople-4"),
    "mistakes": mistakes,
    "reasons": reasons,
    "new-entities": new_entities,
    "missing-facts": missing_facts,
}


def read() -> dict[str, Any]:
    """Read the results so far, by part."""
    if not RESULTS.exists():
        return {}
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))["found"])


def write(part: str, result: dict[str, Any]) -> None:
    """Add the result of a part."""
    print(part, result)
    command = f"python -m experiments.using {part}"
    versions = environment()["versions"]
    results = read()
    results[part] = result | {"command": command, "seed": SEED, "versions": versions}

    content = {"machine": machine_facts(), "found": dict(sorted(results.items()))}
    with atomic_path(RESULTS) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_page() -> None:
    """Write the table of all figures."""
    results = read()
    lines = ["# What is done with a run: how good it is", ""]
    lines += ["Made by `python -m experiments.using`.", "", "| what | figure |", "|---|---|"]
    for part in PARTS:
        for name, value in _figures(results.get(part, {})):
            lines.append(f"| {part}: {name} | {value} |")

    with atomic_path(PAGE) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _figures(result: dict[str, Any]) -> list[tuple[str, str]]:
    figures = []
    for key, value in result.items():
        name = key.replace("_", " ")
        if isinstance(value, dict) and key != "versions":
            figures += [(f"{name}, {inner}", text) for inner, text in _figures(value)]
        elif isinstance(value, int | float) and key != "seed":
            figures.append((name, f"{value:,}" if isinstance(value, int) else f"{value:.3f}"))
    return figures


if __name__ == "__main__":
    main()
