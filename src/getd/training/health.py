"""Notices about a training that did not go well."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from getd.evaluation.evaluate import baseline_models, validation_mrr
from getd.evaluation.protocol import known_for_choosing
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.runs.records import HistoryLine

SAMPLE = 500  # validation facts that the model and the baselines are compared on
MIN_MRR = 0.02  # a fall from less is not worth a notice


class Validation(NamedTuple):
    """A validation during training."""

    epoch: int
    mrr: float


def training_notices(
    model: ScoringModel, kb: KnowledgeBase, history: Sequence[HistoryLine]
) -> Iterator[str]:
    """Say that validation fell, or that counting does better; each with what to try."""
    pairs = [(line.epoch, line.valid_mrr) for line in history]
    fall = largest_fall([Validation(epoch, mrr) for epoch, mrr in pairs if mrr is not None])
    if fall is not None:
        before, after = fall
        yield (
            f"validation MRR fell from {before.mrr:.3f} (epoch {before.epoch}) to "
            f"{after.mrr:.3f} (epoch {after.epoch}); the best weights were kept; "
            'try a smaller training.learning_rate, training.clip=1 or model.norm="rms"'
        )

    if "valid" not in kb.splits:
        return
    known = known_for_choosing(kb)

    def mrr(ranked: ScoringModel) -> float:
        return validation_mrr(ranked, kb.split("valid"), known, sample=SAMPLE)

    baselines = {name: mrr(baseline) for name, baseline in baseline_models(kb).items()}
    name, better = max(baselines.items(), key=lambda item: item[1])
    own = mrr(model)
    if own < better:
        counting = f"that of counting ({name}: {better:.3f})"
        yield (
            f"validation MRR {own:.3f} is below {counting}; "
            "try getd remember, more training.epochs or getd tune"
        )


def largest_fall(validations: Sequence[Validation]) -> tuple[Validation, Validation] | None:
    """The best validation so far and a later one with less than half its MRR: the worst such pair.

    >>> before, after = largest_fall([Validation(1, 0.5), Validation(2, 0.2), Validation(3, 0.6)])
    >>> before.epoch, after.epoch
    (1, 2)
    """
    falls = []
    best = None
    for validation in validations:
        if validation.mrr > (best.mrr if best else MIN_MRR):
            best = validation
        elif best and validation.mrr < best.mrr / 2:
            falls.append((best, validation))
    return min(falls, key=lambda fall: fall[1].mrr / fall[0].mrr, default=None)
