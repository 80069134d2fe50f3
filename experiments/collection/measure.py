"""Train on a data set with nothing but defaults, and compare with counting."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import getd
from experiments.collection.kinds import REAL, load_data
from experiments.collection.results import Measurement, Result
from experiments.collection.verdicts import Comparison, compare, largest_fall
from getd.arrays import Floats, Ids
from getd.evaluation.evaluate import baseline_models
from getd.evaluation.protocol import filter_splits
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.environment import commit_of, machine_facts
from getd.models.base import ScoringModel


@dataclass(frozen=True)
class Task:
    """A training to be measured."""

    label: str
    split: str  # whose questions are ranked: test or valid
    data: str
    seed: int  # of a kind: its data; of a real data set: its training
    threads: int | None = None  # None: as torch chooses


def measure(task: Task) -> Result:
    """Measure a training; an error is a result too."""
    if task.threads:
        torch.set_num_threads(task.threads)

    outcome: dict[str, Any] = {}
    try:
        outcome["measured"] = train_and_compare(task)
    except Exception as error:  # whatever a user would see
        outcome["error"] = f"{type(error).__name__}: {error}"
    return Result(
        label=task.label,
        split=task.split,
        data=task.data,
        seed=task.seed,
        commit=commit_of(),
        machine=machine_facts("getd", "torch"),
        **outcome,
    )


def train_and_compare(task: Task) -> Measurement:
    """Train, and rank the answers of a split with the model and with the baselines.

    If validation is compared, test is not read.
    """
    kb = load_data(task.data, task.seed)
    given: dict[str, Any] = {"seed": task.seed} if task.data in REAL else {}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        cpu_start = time.process_time()
        run = getd.train(kb, out=Path(folder) / "run", ask_test=task.split == "test", **given)
        seconds = time.perf_counter() - start
        cpu_seconds = time.process_time() - cpu_start

        history = run.folder.read_history()
        settings = run.folder.read_config()
        total, arities = compare_ranks(run.opened.model, kb, task.split)

    curve = [(line.epoch, line.valid_mrr) for line in history if line.valid_mrr is not None]
    return Measurement(
        facts={split: count(blocks) for split, blocks in kb.splits.items()},
        entities=kb.n_entities,
        relations=kb.n_relations,
        total=total,
        arities=arities,
        best_valid_mrr=max(mrr for _, mrr in curve),
        epochs=len(history),
        fall=largest_fall(curve),
        seconds=round(seconds, 1),
        cpu_seconds=round(cpu_seconds, 1),
        settings={key: settings[key] for key in ("model", "training", "memory")},
    )


def compare_ranks(
    model: ScoringModel, kb: KnowledgeBase, split: str
) -> tuple[Comparison, dict[str, Comparison]]:
    """Compare a model with the baselines on all questions of a split, and for each arity."""
    known = kb.known(*filter_splits(kb, split))
    baselines = baseline_models(kb)
    ranks: list[Floats] = []
    baseline_ranks: dict[str, list[Floats]] = {name: [] for name in baselines}
    facts: list[Ids] = []
    arities = {}

    n_facts = 0
    for arity, block in kb.split(split).items():
        ranks.append(rank_facts(model, block, known).rank.ravel())
        for name, baseline in baselines.items():
            baseline_ranks[name].append(rank_facts(baseline, block, known).rank.ravel())
        facts.append(np.repeat(n_facts + np.arange(len(block)), arity))
        n_facts += len(block)

        of_arity = {name: parts[-1] for name, parts in baseline_ranks.items()}
        arities[str(arity)] = compare(ranks[-1], of_arity, facts[-1])

    of_all = {name: np.concatenate(parts) for name, parts in baseline_ranks.items()}
    return compare(np.concatenate(ranks), of_all, np.concatenate(facts)), arities
