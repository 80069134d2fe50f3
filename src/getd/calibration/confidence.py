"""Confidence: the chance that a whole fact is true, fitted on true facts and on false ones."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import torch
from annotated_types import Ge, Le
from pydantic import FiniteFloat, model_validator

from getd.arrays import Floats
from getd.calibration.slot_fit import SlotFit
from getd.config import Settings
from getd.evaluation.scoring import filtered_scores, log_probabilities
from getd.facts.facts import Facts, join
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

ISOTONIC_FACTS = 1000  # true facts for a curve of any shape; with fewer it is logistic
NEWTON_STEPS = 50
Weight = Annotated[FiniteFloat, Ge(0)]


class Confidence(Settings):
    """The chance that a fact is true: a logistic function of the evidence, or a rising curve.

    The evidence is a weighted sum of the plausibility and the logarithm of the least slot fit.
    """

    shape: Literal["logistic", "isotonic"] = "logistic"
    slope: Weight = 1.0  # of the plausibility
    fit_slope: Weight = 0.0  # of the slot fit
    intercept: FiniteFloat = 0.0
    at: tuple[FiniteFloat, ...] = ()  # isotonic: evidence, ascending
    chance: tuple[Annotated[float, Ge(0), Le(1)], ...] = ()

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        pairs = [*pairwise(self.at), *pairwise(self.chance)]
        rises = all(low <= high for low, high in pairs)
        is_curve = self.at and len(self.at) == len(self.chance) and rises
        if self.shape == "isotonic" and not is_curve:
            raise ValueError("expected a curve of as many chances as places, both of which ascend")
        return self

    def of(self, plausibility: Floats, fit: Floats) -> Floats:
        """Return the chance of each fact.

        >>> Confidence(slope=2.0, intercept=6.0).of(np.array([-3.0]), np.array([1.0]))
        array([0.5])
        """
        evidence = self.evidence(plausibility, fit)
        if self.shape == "isotonic":
            return np.interp(evidence, self.at, self.chance)
        return _sigmoid(evidence)

    def evidence(self, plausibility: Floats, fit: Floats) -> Floats:
        """Return what the chance rises with."""
        return self.slope * plausibility + self.fit_slope * log_fit(fit) + self.intercept


def log_fit(fit: Floats) -> Floats:
    """Return the logarithm of a slot fit, which may be 0."""
    logarithm: Floats = np.log(fit + 1e-3)
    return logarithm


class Evidence(NamedTuple):
    """What speaks for true facts and for false ones."""

    features: Floats  # (n, 2): plausibility, and the logarithm of the least slot fit
    is_true: Floats  # (n,): 1 or 0
    weight: Floats  # (n,): true facts weigh as much as false ones together


def join_evidence(parts: Iterable[Evidence]) -> Evidence:
    return Evidence(*map(np.concatenate, zip(*parts, strict=True)))


def gather_evidence(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    slots: SlotFit,
    temperature: float,
    generator: torch.Generator,
) -> Evidence:
    """Gather the evidence for true facts and for twice as many false ones.

    A false fact has one entity replaced: in half of them by any entity, in the other half by one
    that the model itself finds likely.
    """
    random = corrupt(model, facts, known, generator)
    likely = corrupt(model, facts, known, generator, temperature)

    parts = []
    for block, is_true in ((facts, 1.0), (random, 0.0), (likely, 0.0)):
        plausibility = log_probabilities(model, block, known, temperature).mean(axis=1)
        fit = slots.of(block, own=False).min(axis=1, initial=1.0)
        weight = (1.0 if is_true else 0.5) * len(facts) / max(len(block), 1)
        features = np.column_stack([plausibility, log_fit(fit)])
        truth = np.full_like(plausibility, is_true)
        parts.append(Evidence(features, truth, np.full_like(truth, weight)))
    return join_evidence(parts)


def corrupt(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    generator: torch.Generator,
    temperature: float | None = None,
) -> Facts:
    """Replace one entity of each fact by another that makes no known fact.

    The other is any entity or, with a temperature, one drawn by its probability. A fact is left
    out if no other entity fits.
    """
    position_of = torch.randint(facts.arity, (len(facts),), generator=generator).numpy()
    corrupted = []
    for position in range(facts.arity):
        chosen = facts.take(position_of == position)
        for batch in filtered_scores(model, chosen, [position], known):
            scores = batch.scores.scatter_(1, batch.answers[:, None], -torch.inf)
            if temperature is None:
                weights = torch.isfinite(scores).double()
            else:  # in proportion to the softmax; a row of minus infinity alone becomes 0
                scores = scores / temperature
                highest = scores.amax(dim=1, keepdim=True)
                weights = torch.exp(scores - highest).nan_to_num_(0.0)

            fits = weights.sum(dim=1) > 0
            drawn = torch.multinomial(weights[fits], 1, generator=generator)[:, 0]
            kept = batch.facts.take(fits.numpy())
            entities = kept.entities.copy()
            entities[:, position] = drawn.numpy()
            corrupted.append({facts.arity: Facts(kept.relation, entities)})
    return join(*corrupted)[facts.arity]


def fit_confidence(evidence: Evidence) -> Confidence:
    """Fit a confidence; its shape depends on the number of facts."""
    slope, fit_slope, intercept = _fit_logistic(evidence)
    confidence = Confidence(slope=slope, fit_slope=fit_slope, intercept=intercept)
    if evidence.is_true.sum() < ISOTONIC_FACTS:
        return confidence

    x = evidence.features @ np.array([slope, fit_slope]) + intercept
    curve = fit_rising_curve(x, evidence.is_true, evidence.weight)
    at, chance = (tuple(values.tolist()) for values in curve)
    return confidence.model_copy(update={"shape": "isotonic", "at": at, "chance": chance})


def fit_rising_curve(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Fit the curve that never falls and is nearest to points, by weighted squares.

    Neighbours that fall are pooled until none is left. Returns the points between which the curve
    is straight, with its heights there.

    >>> fit_rising_curve(np.arange(4.0), np.array([0.0, 1.0, 0.0, 0.5]), np.ones(4))
    (array([0., 1., 3.]), array([0. , 0.5, 0.5]))
    """
    at, index = np.unique(x, return_inverse=True)
    masses = np.bincount(index, weight)
    heights = np.bincount(index, weight * y) / masses

    pools: list[tuple[float, float, int]] = []  # height, mass, number of points
    for height, mass in zip(heights.tolist(), masses.tolist(), strict=True):
        size = 1
        while pools and pools[-1][0] >= height:
            other_height, other_mass, other_size = pools.pop()
            total = mass + other_mass
            height = (height * mass + other_height * other_mass) / total
            mass = total
            size += other_size
        pools.append((height, mass, size))

    curve = np.repeat([height for height, _, _ in pools], [size for _, _, size in pools])
    is_end = np.ones_like(curve, dtype=bool)
    rises = np.diff(curve) > 0
    is_end[1:-1] = rises[:-1] | rises[1:]
    return at[is_end], curve[is_end]


def _fit_logistic(evidence: Evidence) -> list[float]:
    """Fit two slopes, none below 0, and an intercept."""
    x = evidence.features
    centre = x.mean(axis=0)
    spread = x.std(axis=0)
    spread[spread == 0] = 1.0

    # More evidence never speaks against a fact: a feature whose slope falls is dropped.
    used = np.ones_like(spread, dtype=bool)
    while True:
        scaled = (x - centre)[:, used] / spread[used]
        theta = _newton(scaled, evidence.is_true, evidence.weight)
        falling = theta[:-1] < 0
        if not falling.any():
            break
        used[np.flatnonzero(used)[falling]] = False

    slopes = np.zeros_like(spread)
    slopes[used] = theta[:-1] / spread[used]
    return [*slopes.tolist(), float(theta[-1] - slopes @ centre)]


def _newton(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Fit slopes and intercept by Newton steps of bounded length.

    A weak prior keeps them finite, whatever the data.
    """
    design = np.column_stack([x, np.ones(len(x))])
    prior = np.diag([*np.full(x.shape[1], 1e-2), 1e-6])
    theta = np.zeros(design.shape[1])

    for _ in range(NEWTON_STEPS):
        chance = _sigmoid(design @ theta)
        gradient = design.T @ (weight * (chance - y)) + prior @ theta
        curvature = (design.T * (weight * chance * (1 - chance))) @ design + prior
        step = np.linalg.solve(curvature, gradient)
        length = float(np.abs(step).max())
        theta = theta - step / max(1.0, length)
        if length < 1e-9:
            break
    return theta


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))
