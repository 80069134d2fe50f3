r"""Calibration: probabilities and confidences that mean what they say, fitted on validation.

A *probability* is that of an answer among all candidates: a softmax of scores over a temperature,

.. math:: p(c) = \operatorname{softmax}_c(\phi(c) / \tau), \qquad c \text{ not known}

with the :math:`\tau` of an arity that makes first answers most reliable
(:class:`~getd.calibration.reliability.Reliability`). The *plausibility* of a fact is the mean of
:math:`\log p` of its entities, each at its position. The *confidence* in a fact is the chance that
it is true, a function of its plausibility and of how well its worst entity fits its slot. It is
fitted on validation facts and on false ones (:mod:`~getd.calibration.confidence`).
"""

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
import torch
from annotated_types import Ge, Le
from pydantic import Field, FiniteFloat

from getd.arrays import Floats
from getd.calibration.confidence import Confidence, fit_confidence, gather_evidence, join_evidence
from getd.calibration.reliability import Reliability, reliability_under
from getd.calibration.slot_fit import SlotFit
from getd.calibration.temperature import MAX_TEMPERATURE, MIN_TEMPERATURE, fit_temperatures
from getd.config import Settings
from getd.evaluation.protocol import Sample, known_for_choosing
from getd.evaluation.record import FittedFile
from getd.facts.facts import Blocks, Facts, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

Temperatures = dict[str, Annotated[FiniteFloat, Ge(MIN_TEMPERATURE), Le(MAX_TEMPERATURE)]]
MIN_FACTS = 100  # of each arity to fit on, where there are as many
MAX_FACTS = 2000
MAX_SCORES = 2**28  # candidates scored to fit an arity
MAX_SLOW_SCORES = 2**24  # the same for models that are no dot product
MIN_FACTS_ALONE = 50  # of an arity; with fewer its confidence is fitted with all other arities


class Calibration(Settings):
    """What turns scores into probabilities and evidence into confidence; keys are arities."""

    temperature: Temperatures = Field(default_factory=dict)
    confidence: dict[str, Confidence] = Field(default_factory=dict)

    def temperature_of(self, arity: int) -> float:
        """Return the temperature of an arity; 1 where none was fitted."""
        return self.temperature.get(str(arity), 1.0)

    def evidence_of(self, arity: int, plausibility: Floats, fit: Floats) -> Floats:
        """Return what confidence rises with; the plausibility alone where none was fitted."""
        confidence = self.confidence.get(str(arity))
        return plausibility if confidence is None else confidence.evidence(plausibility, fit)

    def confidence_of(self, arity: int, plausibility: Floats, fit: Floats) -> Floats | None:
        """Return the confidence in facts; None where none was fitted."""
        confidence = self.confidence.get(str(arity))
        return None if confidence is None else confidence.of(plausibility, fit)


def calibrate(model: ScoringModel, kb: KnowledgeBase, sample: Sample = None) -> Calibration:
    """Fit temperatures and confidences on validation; test is not read.

    ``sample`` is the number of facts of each arity to fit on, at most.
    """
    known = known_for_choosing(kb)
    blocks = calibration_facts(model, kb, sample)
    temperatures = fit_temperatures(model, blocks, known)

    slots = SlotFit(kb, [kb.split("train")])
    generator = torch.Generator().manual_seed(0)
    evidence = {}
    for arity, facts in blocks.items():
        temperature = temperatures[arity]
        evidence[arity] = gather_evidence(model, facts, known, slots, temperature, generator)

    confidence = {}
    for arity, facts in blocks.items():
        alone = len(facts) >= MIN_FACTS_ALONE
        fitted_on = evidence[arity] if alone else join_evidence(evidence.values())
        confidence[str(arity)] = fit_confidence(fitted_on)
    return Calibration(
        temperature={str(arity): value for arity, value in temperatures.items()},
        confidence=confidence,
    )


def calibration_facts(model: ScoringModel, kb: KnowledgeBase, sample: Sample) -> dict[int, Facts]:
    """Return the facts of validation that a calibration is fitted on."""
    if sample is None:
        budget = MAX_SCORES if model.is_dot_product else MAX_SLOW_SCORES
        sample = min(MAX_FACTS, budget // (kb.n_entities * max(kb.arities)))
        sample = max(MIN_FACTS, sample)

    blocks: dict[int, Facts] = {}
    for arity, facts in kb.split("valid").items():
        blocks |= sample_facts({arity: facts}, sample)
    return blocks


def reliability(
    model: ScoringModel, blocks: Blocks, known: KnownAnswers, calibrations: Sequence[Calibration]
) -> list[Reliability]:
    """Measure how reliable the first answers to questions of facts are, with each calibration."""
    temperatures = {}
    for arity in blocks:
        of_arity = [calibration.temperature_of(arity) for calibration in calibrations]
        temperatures[arity] = np.array(of_arity)
    return reliability_under(model, blocks, known, temperatures)


class MeasuredReliability(Settings):
    """How reliable first answers are on validation, before calibration and after it."""

    before: Reliability
    after: Reliability
    sample: Sample = None  # facts of each arity, at most; None: as many as usual


class CalibrationFile(FittedFile):
    """``calibration.json``: a calibration, its reliability, and the model that it belongs to."""

    expected = "a calibration, found another thing"

    temperature: Temperatures
    confidence: dict[str, Confidence]
    valid: MeasuredReliability | None = None
    fitted_to: str | None = None  # the fingerprint of a model; None: from before it was kept

    @classmethod
    def fit(cls, model: ScoringModel, kb: KnowledgeBase, sample: Sample, fitted_to: str) -> Self:
        """Fit a calibration, and measure on the same facts what it gains."""
        fitted = calibrate(model, kb, sample)
        blocks = calibration_facts(model, kb, sample)
        calibrations = [Calibration(), fitted]
        before, after = reliability(model, blocks, known_for_choosing(kb), calibrations)

        return cls(
            temperature=fitted.temperature,
            confidence=fitted.confidence,
            valid=MeasuredReliability(before=before, after=after, sample=sample),
            fitted_to=fitted_to,
        )

    @property
    def calibration(self) -> Calibration:
        return Calibration(temperature=self.temperature, confidence=self.confidence)
