"""What a person should hear of a training that did not go well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from getd.evaluation.evaluate import baseline_models, validation_mrr
from getd.evaluation.protocol import known_for_choosing
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel

SAMPLE = 500  # validation facts that the model and the baselines are compared on
NOTABLE = 0.02  # an MRR below it has nothing to lose


def training_notices(
    model: ScoringModel, kb: KnowledgeBase, history: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """That validation fell, or that counting does better; each with what to try."""
    fall = largest_fall([line for line in history if line.get("valid_mrr") is not None])
    if fall is not None:
        before, after = fall
        yield (
            f"validation MRR fell from {before['valid_mrr']:.3f} (epoch {before['epoch']}) to "
            f"{after['valid_mrr']:.3f} (epoch {after['epoch']}); the best weights were kept; "
            'try a smaller training.learning_rate, training.clip=1 or model.norm="rms"'
        )

    if "valid" in kb.splits:
        yield from _below_baseline(model, kb)


def largest_fall(
    lines: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The best epoch and a later one, of those with less than half its MRR the worst; None where there is none.

    >>> lines = [{"epoch": 1, "valid_mrr": 0.5}, {"epoch": 2, "valid_mrr": 0.2}, {"epoch": 3, "valid_mrr": 0.6}]
    >>> [line["epoch"] for line in largest_fall(lines)]
    [1, 2]
    """
    falls = []
    best: Mapping[str, Any] = {"valid_mrr": NOTABLE}
    for line in lines:
        if line["valid_mrr"] > best["valid_mrr"]:
            best = line
        elif "epoch" in best and line["valid_mrr"] < best["valid_mrr"] / 2:
            falls.append((best, line))
    return min(falls, key=lambda fall: fall[1]["valid_mrr"] / fall[0]["valid_mrr"], default=None)


def _below_baseline(model: ScoringModel, kb: KnowledgeBase) -> Iterator[str]:
    known = known_for_choosing(kb)

    def mrr(ranked: ScoringModel) -> float:
        return validation_mrr(ranked, kb.split("valid"), known, sample=SAMPLE)

    baselines = {name: mrr(baseline) for name, baseline in baseline_models(kb).items()}
    better = max(baselines, key=lambda name: baselines[name])
    own = mrr(model)
    if own < baselines[better]:
        yield (
            f"validation MRR {own:.3f} is below that of counting ({better}: {baselines[better]:.3f}); "
            "try getd remember, more training.epochs or getd tune"
        )
