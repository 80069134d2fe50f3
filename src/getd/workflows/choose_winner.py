"""Choose the best of trained models, or the best combination, on validation.

Combinations are fitted on one half of the validation facts and measured on the other, both ways.
A single model is preferred to a combination, and the default to any other, unless the gain is
certain: more than one standard error. Test is not read.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from getd.arrays import Floats
from getd.evaluation.protocol import Sample, known_for_choosing
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import count, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.ensemble import combine_members
from getd.workflows.member_weights import fit_members

MAX_FINALISTS = 5
MAX_MEMBERS = 3
CERTAIN = 1.0  # standard errors that something else must gain


@dataclass(frozen=True)
class Finalist:
    """A trained candidate."""

    name: str
    model: ScoringModel
    learns_relations: bool = False


@dataclass(frozen=True)
class Comparison:
    """A model or a combination, next to the best one before it."""

    members: tuple[str, ...]
    valid_mrr: float
    compared_with: tuple[str, ...]
    gain: float
    error: float  # standard error of the gain

    @property
    def is_certain(self) -> bool:
        return self.gain > CERTAIN * self.error

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"is_certain": self.is_certain}


@dataclass(frozen=True)
class Measured:
    """What models reach on all validation facts."""

    members: tuple[Finalist, ...]
    by_fact: Floats  # the sum of its reciprocal ranks
    questions: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def mrr(self) -> float:
        return float(self.by_fact.sum() / self.questions)

    def compare(self, other: "Measured") -> Comparison:
        gains = self.by_fact - other.by_fact
        gain = float(gains.sum() / self.questions)

        # Not centred: around its own mean, the gain of a single fact would have no error.
        error = float((gains**2).sum() ** 0.5 / self.questions)
        return Comparison(self.names, self.mrr, other.names, gain, error)


@dataclass(frozen=True)
class Winner:
    """The models to keep, and all comparisons that led to them."""

    members: tuple[str, ...]
    valid_mrr: float
    comparisons: tuple[Comparison, ...]


class Judge:
    """Measures models and combinations on the two halves of validation."""

    def __init__(self, kb: KnowledgeBase, sample: Sample) -> None:
        self.known: KnownAnswers = known_for_choosing(kb)
        blocks = sample_facts(kb.split("valid"), sample)
        self.halves: list[KnowledgeBase] = []
        for parity in (0, 1):
            half = {arity: facts.take(slice(parity, None, 2)) for arity, facts in blocks.items()}
            filled = {arity: facts for arity, facts in half.items() if len(facts)}
            self.halves.append(kb.with_splits(train=kb.split("train"), valid=filled))
        self.questions = sum(len(facts) * facts.arity for facts in blocks.values())

    @property
    def can_combine(self) -> bool:
        """Whether there is something to fit on and something to measure."""
        return all(count(half.split("valid")) for half in self.halves)

    def alone(self, finalist: Finalist) -> Measured:
        parts = [self._by_fact(finalist.model, half) for half in self.halves]
        return Measured((finalist,), np.concatenate(parts), self.questions)

    def together(self, members: Sequence[Finalist]) -> Measured:
        """Measure a combination on each half with the weights that the other one gives."""
        models = [member.model for member in members]
        learn_relations = [member.learns_relations for member in members]
        parts = []
        for half, other in zip(self.halves, reversed(self.halves), strict=True):
            fitted = fit_members(models, other, learn_relations)
            ensemble = combine_members(models, fitted.weights).eval()
            parts.append(self._by_fact(ensemble, half))
        return Measured(tuple(members), np.concatenate(parts), self.questions)

    def _by_fact(self, model: ScoringModel, half: KnowledgeBase) -> Floats:
        sums = [np.zeros(0)]
        for facts in half.split("valid").values():
            ranks = rank_facts(model, facts, self.known).rank
            sums.append((1 / ranks).sum(axis=1))
        return np.concatenate(sums)


def choose_winner(
    finalists: Sequence[Finalist],
    kb: KnowledgeBase,
    sample: Sample = None,
    is_late: Callable[[], bool] = lambda: False,
) -> Winner:
    """Choose among the default, which is the first, the others, and combinations of them.

    A combination grows by the model that gains most, for as long as that is certain. When
    ``is_late``, no further combination is tried.
    """
    judge = Judge(kb, sample)
    default, *others = [judge.alone(finalist) for finalist in finalists]
    others.sort(key=lambda measured: -measured.mrr)
    others = others[: MAX_FINALISTS - 1]
    comparisons = [other.compare(default) for other in others]
    best = default
    if comparisons and comparisons[0].is_certain:
        best = others[0]

    singles = [default, *others]
    while judge.can_combine and len(best.members) < MAX_MEMBERS:
        larger = []
        for single in singles:
            if single.names[0] in best.names or is_late():
                continue
            larger.append(judge.together([*best.members, *single.members]))
            comparisons.append(larger[-1].compare(best))
        if not larger:
            break

        leader = max(larger, key=lambda measured: measured.mrr)
        if not leader.compare(best).is_certain:
            break
        best = leader
    return Winner(best.names, best.mrr, tuple(comparisons))
