r"""The weights of a memory next to a model, fitted on validation.

For each arity and position they maximise the likelihood of the answers among the candidates,

.. math::
    \sum_q \log \operatorname{softmax}_c \bigl(T \phi(c) + \theta^\top x(c)\bigr)_{c_q}
    - \lambda |\theta - \theta_0|^2

with the features :math:`x` of the memory. :math:`\theta_0` is what the training facts alone say
about the weights (:mod:`~getd.memory.prior`), times a number that, like the scale :math:`T` of the
model, is fitted to all positions together. This is concave in :math:`\theta`; :math:`T` is the best
of a few scales. The likeliest weights need not rank best: from there :math:`\theta` may move to
where reciprocal ranks are highest, with a sigmoid in place of "is above".

How much of this a position takes is decided on facts that it was not fitted on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from getd.algebra.convex import Bowl, minimise
from getd.evaluation.protocol import Sample, known_for_choosing
from getd.facts.facts import Facts, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.prior import learn_prior, start_weights
from getd.memory.questions import SCALES, Questions, maximise_smoothly, soft_step
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.models.base import ScoringModel

PRIOR = 3.0  # λ of the weights of a position
SCALE_PRIOR = 4.0  # of the logarithm of a scale (and a tenth), around where it begins
BLEND_PRIOR = 1.0  # of the scale of the prior weights, around 1
SAMPLE = 2000  # validation facts of an arity that weights are fitted on
LEAST_SAMPLE = 200  # of long facts, which have many sources
MOST_FEATURES = 100_000_000  # of all questions of an arity, with CANDIDATES each
CANDIDATES = 350  # that a memory knows for a question, at most in practice
CERTAIN = 1.5  # standard errors that another way must gain by
BLEND = 1  # the number of the usual way, unless all positions together gain by another


class LossAtScale(Protocol):
    """A loss of weights; ``scale`` is an index of SCALES."""

    def __call__(self, theta: Tensor, scale: int) -> Bowl: ...


class Fit(NamedTuple):
    theta: Tensor
    scale: float  # T


@dataclass(frozen=True)
class Slot:
    """A position: its questions, if it has any, and the weights that training facts give it."""

    questions: Questions | None
    prior: Tensor
    sources: Sequence[str]


def fit_weights(
    model: ScoringModel, memory: Memory, kb: KnowledgeBase, sample: Sample = None
) -> dict[str, MemoryWeights]:
    """Fit the weights for each arity and position, ``"4-0"``; test is not read.

    Positions without validation facts follow the blend of the others.
    """
    priors = learn_prior(memory, kb.split("train"), kb.known("train"))
    known = known_for_choosing(kb)
    blocks = facts_to_fit(memory, kb, sample)

    slots = {}
    for arity in kb.arities:
        for position in range(arity):
            name = f"{arity}-{position}"
            prior = priors.get(name, start_weights(memory, arity, position))
            questions = None
            if arity in blocks:
                questions = Questions.score(model, memory, blocks[arity], position, known)
            slots[name] = Slot(questions, prior, memory.sources(arity, position))

    fits = choose_fits(slots)
    return {name: _weights(fits[name], slot.sources) for name, slot in slots.items()}


def facts_to_fit(memory: Memory, kb: KnowledgeBase, sample: Sample = None) -> dict[int, Facts]:
    """Draw the validation facts that weights are fitted on: ``sample``, and some of each arity.

    The features of all positions are held together, and long facts have many sources.
    """
    blocks: dict[int, Facts] = {}
    for arity, facts in sample_facts(kb.split("valid"), sample).items():
        features = arity * CANDIDATES * 2 * len(memory.sources(arity, 0))
        most = min(SAMPLE, max(LEAST_SAMPLE, MOST_FEATURES // features))
        blocks |= sample_facts({arity: facts}, most)
    return blocks


def choose_fits(slots: Mapping[str, Slot]) -> dict[str, Fit]:
    """Choose a fit for each position.

    Each way to fit is tried on one half of the questions and measured on the other. Another way
    than the blend is taken where all positions together certainly gain by it, and another one than
    that where a position does.
    """
    questions_of = {}
    for name, slot in slots.items():
        if slot.questions is not None:
            questions_of[name] = slot.questions

    measured: dict[str, list[Tensor]] = {
        name: [] for name in questions_of
    }  # reciprocal ranks: (ways, b)
    for is_fitted in (0, 1):
        halves = {}
        others = {}
        for name, questions in questions_of.items():
            mask = torch.arange(len(questions.rest)) % 2 == is_fitted
            halves[name] = replace(slots[name], questions=questions.take(mask))
            others[name] = questions.take(~mask)
        for name, ways in _all_fits(halves).items():
            ranks = [others[name].reciprocal_ranks(*fit) for fit in ways]
            measured[name].append(torch.stack(ranks))

    fits = {}
    ranks_of = {name: torch.cat(parts, dim=1) for name, parts in measured.items()}
    usual = _way(torch.cat(list(ranks_of.values()), dim=1), BLEND) if ranks_of else BLEND
    for name, ways in _all_fits(slots).items():
        fits[name] = ways[_way(ranks_of[name], usual) if name in questions_of else BLEND]
    return fits


def _way(ranks: Tensor, usual: int) -> int:
    """Return the best way by reciprocal ranks ``(ways, b)``, if it is certainly a better one."""
    gain = ranks - ranks[usual]
    total = gain.sum(dim=1)

    # The error if there were no gain: a single question is never enough.
    error = gain.square().sum(dim=1).sqrt()
    total[total <= CERTAIN * error] = 0.0
    best = int(total.argmax())
    return best if total[best] > 0 else usual


def _all_fits(slots: Mapping[str, Slot]) -> dict[str, list[Fit]]:
    """Fit in every way at each position."""
    blended = []
    for slot in slots.values():
        if slot.questions is not None:
            blended.append(slot.questions.blended(slot.prior))
    share, scale = _blend(blended)

    fits = {}
    for name, slot in slots.items():
        fits[name] = ways_to_fit(slot.questions, Fit(share * slot.prior, scale))
    return fits


def _blend(blended: Sequence[Questions]) -> Fit:
    """Fit one scale of the model and one of the prior weights to the questions of all positions."""
    one = torch.ones(1, dtype=torch.float64)
    if not blended:
        return Fit(one, 1.0)

    def loss(theta: Tensor, scale: int) -> Bowl:
        first, *others = blended
        total = first.loss(theta, scale)
        for questions in others:
            total = total.plus(questions.loss(theta, scale))
        return total

    theta, scale = _likeliest(loss, one, BLEND_PRIOR)
    return Fit(theta.clamp(min=0.0), scale)


def ways_to_fit(questions: Questions | None, blend: Fit) -> list[Fit]:
    """Fit in several ways.

    These are the model alone, the blend of all positions, the likeliest weights around it and
    around none, and from each of them the weights near by that rank best. Without questions all
    but the first are the blend.
    """
    nothing = torch.zeros_like(blend.theta)
    fits = [Fit(nothing, 1.0), blend]
    if questions is None or not len(questions.rows):
        return [*fits, *[blend] * 4]

    deviation = questions.features.std(dim=0, correction=0)
    deviation[deviation == 0] = 1.0
    scaled = questions._replace(features=questions.features / deviation)
    for centre in (blend.theta * deviation, nothing):
        likely = _likeliest(scaled.loss, centre, PRIOR, blend.scale)
        ranked = _best_ranked(scaled, likely)
        fits += [Fit(fit.theta / deviation, fit.scale) for fit in (likely, ranked)]
    return fits


def _likeliest(loss: LossAtScale, centre: Tensor, prior: float, scale: float = 1.0) -> Fit:
    """Minimise a loss of weights and the number of a scale, beginning with a scale.

    It is convex in both, so scales are tried upwards and downwards for as long as it falls.
    """
    first = SCALES.index(scale)
    theta, least = minimise(partial(loss, scale=first), centre, centre, prior)
    begin = log(scale + 0.1)
    best = Fit(theta, scale)

    for direction in (1, -1):
        number = first + direction
        while 0 <= number < len(SCALES):
            theta, value = minimise(partial(loss, scale=number), best.theta, centre, prior)
            value += SCALE_PRIOR * (log(SCALES[number] + 0.1) - begin) ** 2
            if value >= least:
                break
            least = value
            best = Fit(theta, SCALES[number])
            number += direction

        # It falls on one side of where it began, at most.
        if best.scale != scale:
            break
    return best


def _best_ranked(questions: Questions, likely: Fit) -> Fit:
    def gain(theta: Tensor) -> Tensor:
        return questions.reciprocal_ranks(theta, likely.scale, soft_step).sum()

    return Fit(maximise_smoothly(gain, likely.theta, PRIOR), likely.scale)


def _weights(fit: Fit, sources: Sequence[str]) -> MemoryWeights:
    """Return a fit by the names of sources; a model alone has none."""
    if not fit.theta.any():
        return MemoryWeights(scale=fit.scale)
    pairs = fit.theta.view(-1, 2).tolist()
    by_name = {}
    for name, (share, log_share) in zip(sources, pairs, strict=True):
        by_name[name] = SourceWeights(share=share, log_share=log_share)
    return MemoryWeights(scale=fit.scale, sources=by_name)
