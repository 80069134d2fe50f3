"""Notices about a training that did not go well."""

from collections.abc import Iterator, Mapping, Sequence

from getd.evaluation.evaluate import baseline_models, validation_mrr
from getd.evaluation.protocol import known_for_choosing
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.models.encoder import DeepSets, Encoder
from getd.runs.records import HistoryLine

SAMPLE = 500  # validation facts that the model and the baselines are compared on
MIN_MRR = 0.02  # a fall from less is not worth a notice


def training_notices(
    model: ScoringModel, kb: KnowledgeBase, history: Sequence[HistoryLine]
) -> Iterator[str]:
    """Say that validation fell, or that counting does better; each with what to try."""
    mrrs = {line.epoch: line.valid_mrr for line in history if line.valid_mrr is not None}
    fall = largest_fall(mrrs)
    if fall is not None:
        before, after = fall
        yield (
            f"validation MRR fell from {mrrs[before]:.3f} (epoch {before}) to "
            f"{mrrs[after]:.3f} (epoch {after}); the best weights were kept; "
            'try a smaller training.learning_rate, training.clip=1 or model.norm="rms"'
        )

    if "valid" not in kb.splits:
        return
    known = known_for_choosing(kb)

    def mrr(ranked: ScoringModel) -> float:
        return validation_mrr(ranked, kb.split("valid"), known, sample=SAMPLE)

    baselines = {name: mrr(baseline) for name, baseline in baseline_models(kb).items()}
    name, better = max(baselines.items(), key=lambda item: item[1])
    counting = f"that of counting ({name}: {better:.3f})"
    own = mrr(model)
    has_memory = model.memory_weights is not None
    alone = max(mrrs.values(), default=None)  # the history is that of the model alone
    if has_memory and alone is not None and alone < better / 2:
        yield (
            f"validation MRR {alone:.3f} of the model alone is below half of {counting}, and "
            f"{own:.3f} with its memory; try {_other_start(model.bare)}"
        )
    elif own < better:
        remember = "" if has_memory else "getd remember, "
        yield (
            f"validation MRR {own:.3f} is below {counting}; "
            f"try {remember}more training.epochs or getd tune"
        )


def _other_start(model: ScoringModel) -> str:
    """What to try where a model has learnt little."""
    smaller = "a smaller training.learning_rate"
    if isinstance(model, Encoder) and isinstance(model.network, DeepSets):
        return f"--set model.kind=attention or {smaller}"
    return smaller


def largest_fall(mrrs: Mapping[int, float]) -> tuple[int, int] | None:
    """The epoch of the best MRR so far and a later one with less than half: the worst such pair.

    >>> largest_fall({1: 0.5, 2: 0.2, 3: 0.6})
    (1, 2)
    """
    falls = []
    best = None
    for epoch, mrr in mrrs.items():
        if mrr > (MIN_MRR if best is None else mrrs[best]):
            best = epoch
        elif best is not None and mrr < mrrs[best] / 2:
            falls.append((best, epoch))
    return min(falls, key=lambda fall: mrrs[fall[1]] / mrrs[fall[0]], default=None)
