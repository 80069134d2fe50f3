r"""Probabilities that mean what they say, fitted on validation.

A *probability* is that of an answer among all that may stand in its place: a softmax of scores over a temperature,

.. math:: p(c) = \operatorname{softmax}_c(\phi(c) / \tau), \qquad c \text{ not known}

with the :math:`\tau` of an arity under which first answers are the most reliable (:class:`Reliability`). The
*plausibility* of a fact is the mean of :math:`\log p` of its entities, each in its place. Its *confidence* is the
chance that it is true, as a function of the plausibility and of how well the entity that fits worst fits its role:
fitted on validation facts and on as many false ones, which are validation facts with one entity replaced, half of them
by any entity and half by one that the model itself finds likely there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from annotated_types import Ge, Le
from pydantic import Field, FiniteFloat, model_validator
from torch import Tensor

from getd.arrays import Floats
from getd.calibration.slot_fit import SlotFit
from getd.config import Settings
from getd.evaluation.protocol import known_for_choosing
from getd.evaluation.scoring import filtered_scores, filtered_scores_of_positions
from getd.facts.facts import Blocks, Facts, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

SAMPLE = 2000  # facts that are fitted on
SCORED, SCORED_SLOWLY = (
    2**28,
    2**24,
)  # candidates that are scored for that; by models that are no dot product
FEWEST = 100
FEW_FACTS, FEW_QUESTIONS = 50, 150  # of an arity: with fewer it is fitted together with the others
BINS = 15
ENOUGH = 1000  # facts for a curve of any shape; with fewer it is logistic
LEAST, MOST = 0.05, 20.0  # temperatures
Shape = Literal["logistic", "isotonic"]
Weight = Annotated[FiniteFloat, Ge(0)]


class Confidence(Settings):
    """The chance that a fact is true, by the evidence for it: logistic, or through points of a rising curve.

    The evidence is a weighted sum of the plausibility and the logarithm of the least role fit.
    """

    shape: Shape = "logistic"
    slope: Weight = 1.0  # of the plausibility
    fit_slope: Weight = 0.0  # of the role fit
    intercept: FiniteFloat = 0.0
    at: tuple[FiniteFloat, ...] = ()  # isotonic: evidence, ascending
    chance: tuple[Annotated[float, Ge(0), Le(1)], ...] = ()

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        rises = all(
            low <= high for values in (self.at, self.chance) for low, high in pairwise(values)
        )
        if self.shape == "isotonic" and not (
            self.at and len(self.at) == len(self.chance) and rises
        ):
            raise ValueError("expected a curve of as many chances as places, both of which ascend")
        return self

    def of(self, plausibility: Floats, fit: Floats) -> Floats:
        """The chance of each.

        >>> Confidence(slope=2.0, intercept=6.0).of(np.array([-3.0]), np.array([1.0]))
        array([0.5])
        """
        evidence = self.evidence(plausibility, fit)
        return (
            np.interp(evidence, self.at, self.chance)
            if self.shape == "isotonic"
            else _sigmoid(evidence)
        )

    def evidence(self, plausibility: Floats, fit: Floats) -> Floats:
        """What the chance rises with."""
        return self.slope * plausibility + self.fit_slope * log_fit(fit) + self.intercept


def log_fit(fit: Floats) -> Floats:
    """The logarithm of a role fit, which may be 0."""
    found: Floats = np.log(fit + 1e-3)
    return found


class Calibration(Settings):
    """What turns scores into probabilities and evidence into confidence; arities are keys, as text."""

    temperature: dict[str, Annotated[FiniteFloat, Ge(LEAST), Le(MOST)]] = Field(
        default_factory=dict
    )
    confidence: dict[str, Confidence] = Field(default_factory=dict)

    def temperature_of(self, arity: int) -> float:
        """1 where none was fitted."""
        return self.temperature.get(str(arity), 1.0)

    def evidence_of(self, arity: int, plausibility: Floats, fit: Floats) -> Floats:
        """What confidence rises with; the plausibility alone where none was fitted."""
        found = self.confidence.get(str(arity))
        return plausibility if found is None else found.evidence(plausibility, fit)

    def confidence_of(self, arity: int, plausibility: Floats, fit: Floats) -> Floats | None:
        """None where it was not fitted."""
        found = self.confidence.get(str(arity))
        return None if found is None else found.of(plausibility, fit)


@dataclass(frozen=True)
class Reliability:
    """How often the answer that is ranked first is right, beside its probability."""

    error: float  # expected calibration error: the mean distance of the two, over bins of equally many questions
    probability: Sequence[float]  # the mean of each bin
    right: Sequence[float]
    questions: int

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "error": self.error,
            "probability": list(self.probability),
            "right": list(self.right),
            "questions": self.questions,
        }


def calibrate(
    model: ScoringModel,
    kb: KnowledgeBase,
    sample: int | None = None,
    seed: int = 0,
    shape: Shape | None = None,
) -> Calibration:
    """Fit temperatures and confidences on validation; ``sample``: on so many facts of each arity at most.

    An arity of few facts is fitted together with all others. Test is not read.
    """
    known, generator = known_for_choosing(kb), torch.Generator().manual_seed(seed)
    blocks = calibration_facts(model, kb, sample, seed)
    roles = SlotFit(kb, [kb.split("train")])
    with model.scoring():
        temperature = _temperatures(model, blocks, known)
        evidence = {
            arity: _evidence(model, facts, known, roles, temperature[arity], generator)
            for arity, facts in blocks.items()
        }
    together = np.concatenate(list(evidence.values())) if evidence else np.zeros((0, 4))
    return Calibration(
        temperature={str(arity): value for arity, value in temperature.items()},
        confidence={
            str(arity): _confidence(found if len(blocks[arity]) >= FEW_FACTS else together, shape)
            for arity, found in evidence.items()
        },
    )


def calibration_facts(
    model: ScoringModel, kb: KnowledgeBase, sample: int | None = None, seed: int = 0
) -> dict[int, Facts]:
    """The facts of validation that a calibration is fitted on."""
    scored = SCORED if model.is_dot_product else SCORED_SLOWLY
    most = (
        max(FEWEST, min(SAMPLE, scored // (kb.n_entities * max(kb.arities))))
        if sample is None
        else sample
    )
    found: dict[int, Facts] = {}
    for arity, facts in kb.split("valid").items():
        found |= sample_facts({arity: facts}, most, seed)
    return found


def reliability(
    model: ScoringModel, blocks: Blocks, known: KnownAnswers, calibrations: Sequence[Calibration]
) -> list[Reliability]:
    """How reliable the first answers of all questions of some facts are, with each of some calibrations."""
    probability, right = [], []
    with model.scoring():
        for arity, facts in blocks.items():
            used = np.array([calibration.temperature_of(arity) for calibration in calibrations])
            said, found = _first_answers(model, facts, known, used)
            probability.append(said)
            right.append(found)
    is_right = np.concatenate(right)
    return [reliability_of(said, is_right) for said in np.concatenate(probability, axis=1)]


def reliability_of(probability: Floats, right: Any, bins: int = BINS) -> Reliability:
    """The same from the probability of each first answer and whether it is right.

    >>> reliability_of(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, False, True, True]), bins=2).error
    0.15
    """
    parts = [
        part for part in np.array_split(np.argsort(probability, kind="stable"), bins) if len(part)
    ]
    means = [(float(probability[part].mean()), float(right[part].mean())) for part in parts]
    off = [abs(said - seen) * len(part) for part, (said, seen) in zip(parts, means, strict=True)]
    said, seen = ([pair[side] for pair in means] for side in (0, 1))
    return Reliability(round(sum(off) / len(probability), 12), said, seen, len(probability))


def log_probabilities(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    temperature: float,
    but: int | None = None,
) -> Floats:
    """The log-probability of each entity of each fact in its place, ``(n, arity)``; 0 at the position ``but``."""
    found, entities = np.zeros(facts.entities.shape), torch.tensor(facts.entities)
    positions = [position for position in range(facts.arity) if position != but]
    with model.scoring():
        for rows, position, scores in filtered_scores_of_positions(
            model, facts, known, positions, temperature
        ):
            own = scores.gather(1, entities[rows, position, None])
            most = scores.amax(dim=1, keepdim=True)
            total = (
                scores.sub_(most).exp_().sum(dim=1, keepdim=True).log_()
            )  # logsumexp would take room of its own
            found[rows, position] = (own - most - total)[:, 0].numpy()
    return found


def corrupt(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    generator: torch.Generator,
    temperature: float | None = None,
) -> Facts:
    """Facts with one entity replaced by another that makes no known fact.

    Any entity, or, with a temperature, one drawn by its probability. A fact to whose place nothing else fits is left
    out.
    """
    place = torch.randint(facts.arity, (len(facts),), generator=generator).numpy()
    kept, made = [], []
    for position in range(facts.arity):
        here = facts.take(place == position)
        for rows, scores in filtered_scores(model, here, position, known):
            part = here.take(rows)
            scores.scatter_(1, torch.tensor(part.entities[:, position, None]), -torch.inf)
            weights = (
                torch.isfinite(scores).double()
                if temperature is None
                else _exponentials(scores / temperature)
            )
            some = weights.sum(dim=1) > 0
            drawn = torch.multinomial(weights[some], 1, generator=generator)[:, 0]
            entities = part.entities[some.numpy()].copy()
            entities[:, position] = drawn.numpy()
            kept.append(part.relation[some.numpy()])
            made.append(entities)
    return Facts(np.concatenate(kept), np.concatenate(made))


def area_under_curve(true: Floats, false: Floats) -> float:
    """The chance that a true fact has more than a false one, ties half.

    >>> area_under_curve(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(false)
    below = np.searchsorted(ordered, true, side="left") + np.searchsorted(
        ordered, true, side="right"
    )
    return float(below.mean() / (2 * len(false)))


def _temperatures(model: ScoringModel, blocks: Blocks, known: KnownAnswers) -> dict[int, float]:
    """One for each arity; those of few questions have the one that is best for all."""
    few = [arity for arity, facts in blocks.items() if facts.entities.size < FEW_QUESTIONS]
    enough = sum(facts.entities.size for facts in blocks.values()) >= FEW_QUESTIONS
    shared = _temperature(model, list(blocks.values()), known) if few and enough else 1.0
    return {
        arity: shared if arity in few else _temperature(model, [facts], known)
        for arity, facts in blocks.items()
    }


def _temperature(model: ScoringModel, parts: Sequence[Facts], known: KnownAnswers) -> float:
    """Under which first answers are the most reliable: the best of a few, then the best of some near it."""
    coarse = np.geomspace(LEAST, MOST, 13)
    best = int(np.argmin(_errors(model, parts, known, coarse)))
    ends = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    fine = np.geomspace(*ends, 13)
    return round(float(fine[np.argmin(_errors(model, parts, known, fine))]), 4)


def _errors(
    model: ScoringModel, parts: Sequence[Facts], known: KnownAnswers, temperatures: Floats
) -> list[float]:
    """The calibration error under each temperature."""
    said, right = zip(
        *(_first_answers(model, facts, known, temperatures) for facts in parts), strict=True
    )
    is_right = np.concatenate(right)
    return [
        reliability_of(probability, is_right).error for probability in np.concatenate(said, axis=1)
    ]


def _first_answers(
    model: ScoringModel, facts: Facts, known: KnownAnswers, temperatures: Floats
) -> tuple[Floats, Floats]:
    """The probability of the first answer of each question under each temperature ``(t, q)``; whether it is right."""
    said, right = [], []
    for position in range(facts.arity):
        answers = torch.tensor(facts.entities[:, position])
        for rows, scores in filtered_scores(model, facts, position, known):
            best = scores.max(dim=1)
            below = scores - best.values[:, None]
            said.append(
                torch.stack(
                    [torch.exp(below / t).sum(dim=1).reciprocal() for t in temperatures.tolist()]
                )
            )
            right.append(best.indices == answers[rows])
    return torch.cat(said, dim=1).double().numpy(), torch.cat(right).double().numpy()


def _exponentials(scores: Tensor) -> Tensor:
    """In proportion to their softmax; rows of minus infinity alone are 0."""
    return torch.exp(scores - scores.amax(dim=1, keepdim=True)).nan_to_num_(0.0)


def _evidence(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    roles: SlotFit,
    temperature: float,
    generator: torch.Generator,
) -> Floats:
    """For true facts and false ones: plausibility, logarithm of the role fit, whether true, weight."""
    false = [corrupt(model, facts, known, generator, drawn_by) for drawn_by in (None, temperature)]
    parts = []
    for some, is_true in ((facts, 1.0), *((some, 0.0) for some in false)):
        plausibility = log_probabilities(model, some, known, temperature).mean(axis=1)
        fit = roles.of(some, own=False).min(axis=1, initial=1.0)
        weight = (1.0 if is_true else 0.5) * len(facts) / max(len(some), 1)
        parts.append(
            np.column_stack(
                [plausibility, log_fit(fit), np.full((len(some), 2), [is_true, weight])]
            )
        )
    return np.concatenate(parts)


def _confidence(evidence: Floats, shape: Shape | None) -> Confidence:
    x, y, weights = evidence[:, :2], evidence[:, 2], evidence[:, 3]
    slope, fit_slope, intercept = _logistic(x, y, weights)
    shape = shape or ("isotonic" if y.sum() >= ENOUGH and _has_isotonic() else "logistic")
    if shape == "isotonic":
        at, chance = _isotonic(x @ np.array([slope, fit_slope]) + intercept, y, weights)
        return Confidence(
            shape=shape, slope=slope, fit_slope=fit_slope, intercept=intercept, at=at, chance=chance
        )
    return Confidence(slope=slope, fit_slope=fit_slope, intercept=intercept)


def _has_isotonic() -> bool:
    return find_spec("sklearn") is not None


def _isotonic(x: Floats, y: Floats, weight: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y, weight)
    return tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist())


def _logistic(x: Floats, y: Floats, weight: Floats) -> list[float]:
    """Slopes, none below 0, and the intercept; with a weak prior, so that they are finite whatever the data."""
    centre, spread = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    used = np.ones(x.shape[1], dtype=bool)
    while True:
        design = np.column_stack([(x - centre)[:, used] / spread[used], np.ones(len(x))])
        theta, prior = np.zeros(design.shape[1]), np.diag([*np.full(used.sum(), 1e-2), 1e-6])
        for _ in range(50):
            chance = _sigmoid(design @ theta)
            gradient = design.T @ (weight * (chance - y)) + prior @ theta
            curvature = (design.T * (weight * chance * (1 - chance))) @ design + prior
            step = np.linalg.solve(curvature, gradient)
            theta = theta - step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-9:
                break
        falling = theta[:-1] < 0
        if not falling.any():
            break
        used[np.flatnonzero(used)[falling]] = False  # more evidence never speaks against a fact
    slopes = np.zeros(x.shape[1])
    slopes[used] = theta[:-1] / spread[used]
    return [*slopes.tolist(), float(theta[-1] - slopes @ centre)]


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))
