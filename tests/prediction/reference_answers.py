"""Answers to a question the slow way: one candidate after the other, in plain numbers."""

from __future__ import annotations

import math

import torch

from getd.facts.facts import Facts
from getd.prediction.answer import Answerer
from tests.prediction.named_facts import every_fact
from tests.reference import known_answers

Fact = tuple[str, ...]


def slow_answers(
    answerer: Answerer, question: Fact, position: int, include_known: bool
) -> dict[str, tuple[float, float, float | None, bool]]:
    """The score, the probability and the confidence of every candidate, and whether it is known."""
    facts = every_fact(answerer.kb)
    scores = _scores(answerer, question, position)
    known = known_answers(facts, question, position + 1)
    ranked = [name for name in scores if include_known or name not in known]

    temperature = answerer.calibration.temperature_of(len(question) - 1)
    total = math.fsum(math.exp(scores[name] / temperature) for name in ranked)
    answers = {}
    for name in ranked:
        fact = (*question[: position + 1], name, *question[position + 2 :])
        probability = math.exp(scores[name] / temperature) / total
        confidence = None
        if answerer.calibration.confidence:
            confidence = _confidence(answerer, facts, fact, name in known)
        answers[name] = (scores[name], probability, confidence, name in known)
    return answers


def _confidence(answerer: Answerer, facts: list[Fact], fact: Fact, is_known: bool) -> float:
    kb = answerer.kb
    arity = len(fact) - 1
    logs = [_log_probability(answerer, facts, fact, position) for position in range(arity)]
    ids = Facts(kb.relations.ids(fact[:1]), kb.entities.ids(fact[1:])[None])
    fit = answerer.slot_fit.of(ids, own=is_known).min(axis=1)
    plausibility = 0 * fit + math.fsum(logs) / arity
    confidence = answerer.calibration.confidence_of(arity, plausibility, fit)
    assert confidence is not None
    return float(confidence[0])


def _log_probability(answerer: Answerer, facts: list[Fact], fact: Fact, position: int) -> float:
    """Of the entity at a position, among all that are not other known answers."""
    others = set(known_answers(facts, fact, position + 1)) - {fact[position + 1]}
    temperature = answerer.calibration.temperature_of(len(fact) - 1)
    scores = _scores(answerer, fact, position)
    rivals = [score / temperature for name, score in scores.items() if name not in others]
    return scores[fact[position + 1]] / temperature - math.log(math.fsum(map(math.exp, rivals)))


def _scores(answerer: Answerer, question: Fact, position: int) -> dict[str, float]:
    """The score of every candidate; the entity at the open position is not read."""
    kb = answerer.kb
    names = list(question[1:])
    names[position] = kb.entities[0]
    relation = torch.tensor(kb.relations.ids(question[:1]))
    entities = torch.tensor(kb.entities.ids(names))[None]
    with torch.no_grad():
        scores = answerer.model.score_candidates(relation, entities, position)[0]
    return dict(zip(kb.entities, scores.tolist(), strict=True))
