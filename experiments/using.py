"""How good what is done with a run is: probabilities, reasons, mistakes found, new entities, missing facts.

    python -m experiments.using [PART…] [--runs FOLDER]

Trains what it needs (2 to 8 minutes a run, on one thread), and writes ``using.json`` and ``using.md``. Parts that are
in ``using.json`` already are left alone unless they are named, and runs that are in the folder already are opened.
Everything is fitted on train and valid; test is read for the figures alone.
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
FOUND = Path(__file__).parent / "using.json"
PAGE = FOUND.with_suffix(".md")
REPLACED, LISTED = 200, 400  # facts made wrong, and how many of the most suspicious are looked at
NEW = 300  # entities held out of training
SEED = 1
DRAWS = (
    1,
    2,
    3,
)  # of new entities; the constants of `extend` were chosen with others: 0, 10 and 11
TOP = 200  # missing facts


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
    """Measure what was not measured yet, then make the page anew."""
    parser = argparse.ArgumentParser(prog="python -m experiments.using", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--runs", type=Path, default=Path("runs/using"))
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    for part, measure in PARTS.items():
        if part in chosen.parts or (not chosen.parts and part not in read()):
            keep(part, measure(chosen.runs))
    write_page()


def calibration(data: str) -> Callable[[Path], dict[str, Any]]:
    """Error of the first answers of test before and after, and how well confidence tells true from false."""

    def measure(runs: Path) -> dict[str, Any]:
        row = f"best/getd-{data.lower()}"
        run = trained(runs / data, getd.load(data), row)
        test, known = run.kb.split("test"), run.known
        before, after = reliability(run.model, test, known, [Calibration(), run.calibration])
        generator, area = torch.Generator().manual_seed(SEED), {}
        ((arity, facts),) = test.items()
        for kind, temperature in (
            ("random", None),
            ("likely", run.calibration.temperature_of(arity)),
        ):
            with run.model.scoring():
                false = corrupt(run.model, facts, known, generator, temperature)
            chances = [
                np.array(run.predictor.answerer.confidence(some), dtype=float)
                for some in (facts, false)
            ]
            area[kind] = area_under_curve(*chances)
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
    """Facts with one entity replaced at random before training, among the most suspicious."""
    kb, rng = getd.load("JF17K-4"), np.random.default_rng(SEED)
    train = kb.split("train")[4]
    rows = rng.choice(len(train), REPLACED, replace=False)
    wrong = with_mistakes(train.take(rows), kb, rng)
    kept = train.take(np.setdiff1d(np.arange(len(train)), rows))
    run = trained(
        runs / "mistakes",
        kb.with_splits(**{**kb.splits, "train": join({4: kept}, {4: wrong})}),
        "best/getd-jf17k-4",
    )
    made = set(kb.decode(wrong))
    found = [rating.fact in made for rating in run.suspicious(LISTED)]
    facts = sum(len(block) for blocks in run.kb.splits.values() for block in blocks.values())
    return {
        "row": "best/getd-jf17k-4",
        "replaced": len(made),
        "listed": LISTED,
        "facts": facts,
        "found": sum(found) / len(made),
        "found_in_200": sum(found[:200]) / len(made),
    }


def with_mistakes(facts: Facts, kb: KnowledgeBase, rng: np.random.Generator) -> Facts:
    """Each fact with one entity replaced by any other that makes no known fact."""
    known, entities, wrong = kb.known(), facts.entities.copy(), np.arange(len(facts))
    while len(wrong):
        entities[wrong] = facts.entities[wrong]
        entities[wrong, rng.integers(facts.arity, size=len(wrong))] = rng.integers(
            kb.n_entities, size=len(wrong)
        )
        wrong = wrong[known.contains(Facts(facts.relation[wrong], entities[wrong]))]
    return Facts(facts.relation, entities)


def reasons(runs: Path) -> dict[str, Any]:
    """How often a fact that the hidden rule rests on is among the three reasons of a right answer."""
    run = trained(runs / "demo", getd.load("demo"), None)
    kb, found = run.kb, []
    follows = demo_rules(kb)
    for arity, facts in kb.split("test").items():
        ranks = rank_facts(run.model, facts, run.known).rank
        for row, position in np.argwhere(ranks == 1).tolist():
            fact = facts.take(slice(row, row + 1))
            (why,) = run.predictor.explain_fact(fact, [position])
            found.append(any(follows(kb.decode(fact)[0], reason.fact) for reason in why.facts))
            assert arity == fact.arity
    return {
        "config": "getd demo",
        "right_answers": len(found),
        "with_a_fact_of_the_rule": float(np.mean(found)),
    }


def demo_rules(kb: KnowledgeBase) -> Callable[[Fact, Fact], bool]:
    """Whether a fact of the demo is one of those that another follows from; see docs/demo.md."""
    career: dict[str, frozenset[Fact]] = {}
    for relation, person, *rest in named_facts(kb):
        if relation in ("plays for", "coaches"):
            career[person] = career.get(person, frozenset()) | {tuple(rest)}

    def follows(fact: Fact, reason: Fact) -> bool:
        if fact[1] in career:  # from what the person, or another of the same career, does
            return career.get(reason[1]) == career[fact[1]]
        if fact[0] == "fixture":  # from other seasons of the same pair
            return reason[0] == "fixture" and {*reason[1:3]} == {*fact[1:3]}
        if fact[0] == "based in":  # from who is born in the city, and who plays for the club
            return (reason[0] == "born in" and reason[2] == fact[2]) or fact[1] == reason[2]
        return (
            reason[0] in ("fixture", "transfer") and fact[1] in reason[1:]
        )  # a league: from whom the club meets

    return follows


def new_entities(runs: Path) -> dict[str, Any]:
    """Entities held out of training, taught half of their facts, and asked for the other half: the mean of draws."""
    draws = [new_entities_drawn(runs, seed) for seed in DRAWS]

    def means(key: str) -> dict[str, float]:
        return {name: float(np.mean([draw[key][name] for draw in draws])) for name in draws[0][key]}

    return {
        "row": "best/getd-jf17k-4",
        "new_entities": NEW,
        "mrr": means("mrr"),
        "mrr_of_new_entities_alone": means("mrr_of_new_entities_alone"),
        "draws": {str(seed): draw for seed, draw in zip(DRAWS, draws, strict=True)},
    }


def new_entities_drawn(runs: Path, seed: int) -> dict[str, Any]:
    """The same for one draw of the entities."""
    kb, rng = getd.load("JF17K-4"), np.random.default_rng(seed)
    held = set(rng.choice(list(kb.entities), NEW, replace=False).tolist())
    every = {split: named_facts(kb, split) for split in kb.splits}
    splits = {
        split: [fact for fact in facts if not held & {*fact[1:]}] for split, facts in every.items()
    }
    left = {fact[0] for facts in splits.values() for fact in facts}  # a relation cannot be new
    touched = [
        fact for facts in every.values() for fact in facts if held & {*fact[1:]} and fact[0] in left
    ]
    order = rng.permutation(len(touched))
    given, rest = ([touched[i] for i in part] for part in (order[0::2], order[1::2]))
    seen = {name for facts in [*splits.values(), given] for fact in facts for name in fact[1:]}
    asked = [fact for fact in rest if {*fact[1:]} <= seen]
    with TemporaryDirectory() as folder:
        before = trained(
            runs / f"without-{seed}",
            KnowledgeBase.from_facts(splits),
            "best/getd-jf17k-4",
            memory=True,
        )
        (Path(folder) / "new.txt").write_text(
            "".join("\t".join(fact) + "\n" for fact in given), encoding="utf-8"
        )
        after = before.extend(Path(folder) / "new.txt", Path(folder) / "run")
        retrained = trained(
            runs / f"retrained-{seed}",
            KnowledgeBase.from_facts({**splits, "train": [*splits["train"], *given]}),
            "best/getd-jf17k-4",
            memory=True,
        )
        models = {"extend": after.model.bare, "extend, with memory": after.model}
        found = {name: mrr(model, after.kb, asked, held) for name, model in models.items()}
        found |= {
            name: mrr(model, after.kb, asked, held)
            for name, model in baseline_models(after.kb).items()
        }
        models = {
            "trained again": retrained.model.bare,
            "trained again, with memory": retrained.model,
        }
        found |= {name: mrr(model, retrained.kb, asked, held) for name, model in models.items()}
    return {
        "given": len(given),
        "asked": len(asked),
        "mrr": {name: value[0] for name, value in found.items()},
        "mrr_of_new_entities_alone": {name: value[1] for name, value in found.items()},
    }


def mrr(
    model: ScoringModel, kb: KnowledgeBase, asked: Sequence[Fact], held: set[str]
) -> tuple[float, float]:
    """Of all questions of the facts, and of those whose answer is one of the held-out entities."""
    facts = Facts(
        kb.relations.ids([fact[0] for fact in asked]),
        kb.entities.ids([name for fact in asked for name in fact[1:]]).reshape(len(asked), -1),
    )
    known = KnownAnswers.build(
        [*kb.splits.values(), {facts.arity: facts}], kb.n_relations, kb.n_entities
    )
    reciprocal = 1 / rank_facts(model, facts, known).rank
    new = np.array([[name in held for name in fact[1:]] for fact in asked])
    return float(reciprocal.mean()), float(reciprocal[new].mean())


def missing_facts(runs: Path) -> dict[str, Any]:
    """How many of the most probable missing facts of the demo are test facts, which the run does not know of."""
    whole = getd.load("demo")
    kb = whole.with_splits(train=whole.split("train"), valid=whole.split("valid"))
    run = trained(runs / "demo-without-test", kb, None)
    held, tables = set(named_facts(whole, "test")), []
    with TemporaryDirectory() as folder:
        for number in range(kb.n_relations):
            out = Path(folder) / f"{number}.parquet"
            complete(run.predictor.answerer, CompletionRequest("demo", number, TOP, 0.0), out)
            names = pl.read_parquet(out).rows()
            tables += [(row[-2], tuple(row[:-2]) in held) for row in names]
    best = sorted(tables, key=lambda item: -item[0])[:TOP]
    right = [is_held for _, is_held in best]
    return {
        "config": "getd demo, without its test facts",
        "test_facts": len(held),
        "top": TOP,
        "precision": float(np.mean(right)),
        "precision_of_50": float(np.mean(right[:50])),
        "least_confidence": best[-1][0],
    }


def named_facts(kb: KnowledgeBase, *splits: str) -> list[Fact]:
    """The facts of some splits, all where none is named, with their names."""
    return [
        fact
        for split in splits or kb.splits
        for block in kb.split(split).values()
        for fact in kb.decode(block)
    ]


def trained(path: Path, kb: KnowledgeBase, row: str | None, memory: bool = False) -> Run:
    """A run with the settings of a row, those of the demo where none is named; one that is there is opened."""
    if not RunFolder(path).is_finished():
        tables = DEMO_CONFIG if row is None else find_row(row).tables
        config = {key: tables[key] for key in ("model", "training")}
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
    """What was found so far."""
    found: dict[str, Any] = (
        json.loads(FOUND.read_text(encoding="utf-8"))["found"] if FOUND.exists() else {}
    )
    return found


def keep(part: str, result: dict[str, Any]) -> None:
    """Write one more result down."""
    print(part, result)
    versions = environment()["versions"]
    result = result | {
        "command": f"python -m experiments.using {part}",
        "seed": SEED,
        "versions": versions,
    }
    with atomic_path(FOUND) as temporary:
        values = {
            "machine": machine_facts(),
            "found": dict(sorted((read() | {part: result}).items())),
        }
        temporary.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def write_page() -> None:
    """The figures, for people."""
    found = read()
    lines = [
        "# What is done with a run: how good it is",
        "",
        "Made by `python -m experiments.using`.",
        "",
    ]
    lines += ["| what | figure |", "|---|---|"]
    for part in PARTS:
        for name, value in _figures(found.get(part, {})):
            lines.append(f"| {part}: {name} | {value} |")
    with atomic_path(PAGE) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _figures(result: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, value in result.items():
        told = name.replace("_", " ")
        if isinstance(value, dict) and name != "versions":
            found += [(f"{told}, {inner}", text) for inner, text in _figures(value)]
        elif isinstance(value, int | float) and name != "seed":
            found.append((told, f"{value:,}" if isinstance(value, int) else f"{value:.3f}"))
    return found


if __name__ == "__main__":
    main()
