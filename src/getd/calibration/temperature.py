"""Temperatures: what to divide scores by, so that first answers are as often right as they say."""

import numpy as np

from getd.calibration.reliability import reliability_under
from getd.facts.facts import Blocks
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

MIN_TEMPERATURE = 0.05
MAX_TEMPERATURE = 20.0
GRID_POINTS = 13
MIN_QUESTIONS = 150  # of an arity; with fewer it has the temperature of all arities together


def fit_temperatures(model: ScoringModel, blocks: Blocks, known: KnownAnswers) -> dict[int, float]:
    """Fit a temperature for each arity; arities of few questions share one fitted on all facts."""
    few = [arity for arity, facts in blocks.items() if facts.entities.size < MIN_QUESTIONS]
    enough = sum(facts.entities.size for facts in blocks.values()) >= MIN_QUESTIONS
    shared = fit_temperature(model, blocks, known) if few and enough else 1.0

    temperatures = {}
    for arity, facts in blocks.items():
        own = arity not in few
        temperatures[arity] = fit_temperature(model, {arity: facts}, known) if own else shared
    return temperatures


def fit_temperature(model: ScoringModel, blocks: Blocks, known: KnownAnswers) -> float:
    """Find the temperature of the least calibration error, on a coarse grid, then on a fine one."""
    low = MIN_TEMPERATURE
    high = MAX_TEMPERATURE
    for _ in range(2):
        grid = np.geomspace(low, high, GRID_POINTS)
        measured = reliability_under(model, blocks, known, dict.fromkeys(blocks, grid))
        best = int(np.argmin([reliability.error for reliability in measured]))
        low = grid[max(best - 1, 0)]
        high = grid[min(best + 1, GRID_POINTS - 1)]
    return round(float(grid[best]), 4)
