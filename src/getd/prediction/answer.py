"""Questions to answers, many at once: one matrix product for all that open the same position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Bools, Floats, Ids
from getd.calibration.calibrate import Calibration
from getd.calibration.slot_fit import SlotFit
from getd.evaluation.rank_scores import check_finite
from getd.evaluation.scoring import log_probabilities
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.io.deadline import check_deadline
from getd.models.base import ScoringModel
from getd.prediction.question import Question

ROOM = 2**23  # scores held at a time


@dataclass(frozen=True)
class Answer:
    """What fills the open slots of a question."""

    names: tuple[str, ...]  # an entity for each open position, in order; or a relation's label
    score: float  # raw; of several open positions: the plausibility of the whole fact
    probability: (
        float | None
    )  # among all candidates that are ranked, which have 1 together; None: several are open
    confidence: (
        float | None
    )  # the chance that the fact is true; None where the run was not calibrated
    known: bool  # whether the data has this fact already

    @property
    def name(self) -> str:
        """The names in one text."""
        return ", ".join(self.names)


@dataclass(frozen=True)
class Answerer:
    """A model with all that it takes to answer."""

    model: ScoringModel
    kb: KnowledgeBase
    known: KnownAnswers
    calibration: Calibration
    roles: SlotFit

    def answer(
        self,
        questions: Sequence[Question],
        top: int,
        include_known: bool = False,
        confidence: bool = True,
    ) -> list[list[Answer]]:
        """The best answers of each question with one open slot."""
        found: list[list[Answer]] = [[] for _ in questions]
        groups: dict[tuple[int, int | None], list[int]] = {}
        for number, question in enumerate(questions):
            groups.setdefault((question.fact.arity, question.position), []).append(number)
        with self.model.scoring():
            for (_, position), numbers in groups.items():
                rows = max(
                    1, ROOM // (self.kb.n_relations if position is None else self.kb.n_entities)
                )
                for start in range(0, len(numbers), rows):
                    check_deadline()
                    some = numbers[start : start + rows]
                    facts = _stack([questions[number].fact for number in some])
                    answers = self._answer(facts, position, top, include_known, confidence)
                    for number, answer in answers:
                        found[some[number]].append(answer)
        return found

    def _answer(
        self, facts: Facts, position: int | None, top: int, include_known: bool, confidence: bool
    ) -> Iterator[tuple[int, Answer]]:
        """The row of each answer and the answer, best first in each row."""
        scores, ranked, is_known = self._scores(facts, position, include_known)
        temperature = 1.0 if position is None else self.calibration.temperature_of(facts.arity)
        log_total = torch.logsumexp(ranked / temperature, dim=1)
        check_finite(log_total.clamp(min=0))  # minus infinity: all are known
        rows, columns = best_columns(ranked, top)
        log_probability = ranked[rows, columns] / temperature - log_total[rows]
        probability = torch.exp(log_probability).tolist()
        names = self.kb.relations if position is None else self.kb.entities
        chances: Sequence[float | None] = [None] * len(rows)
        if confidence and position is not None:
            made = _filled(facts.take(rows.numpy()), [position], columns.numpy()[:, None])
            chances = self.confidence(
                made, None if include_known else (position, log_probability.numpy())
            )
        raw, marks = scores[rows, columns].tolist(), is_known[rows, columns].tolist()
        labels = names.decode(columns.numpy())
        for row, label, score, share, chance, mark in zip(
            rows.tolist(), labels, raw, probability, chances, marks, strict=True
        ):
            yield row, Answer((label,), score, share, chance, mark)

    def ranked_scores(self, facts: Facts, position: int) -> Tensor:
        """The scores of all candidates at a position, known answers at minus infinity."""
        with self.model.scoring():
            scores, ranked, _ = self._scores(facts, position, include_known=False)
            check_finite(scores)
            return ranked

    def _scores(
        self, facts: Facts, position: int | None, include_known: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Raw scores, scores with minus infinity for what is not ranked, and what is known."""
        relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
        if position is None:
            scores = self.model.score_relations(entities)
        else:
            scores = self.model.score_candidates(relation, entities, position)
        ranked, is_known = scores.double(), torch.zeros(scores.shape, dtype=torch.bool)
        known = self.known.lookup(facts.relation, facts.entities, position)
        is_known[torch.tensor(known.rows), torch.tensor(known.values)] = True
        if position is None:  # a relation of another arity cannot hold here
            fits = torch.tensor(
                [signature.arity == facts.arity for signature in self.kb.signatures]
            )
            ranked[:, ~fits] = -torch.inf
        if not include_known:
            ranked.masked_fill_(is_known, -torch.inf)
        return scores, ranked, is_known

    def confidence(
        self, facts: Facts, asked: tuple[int, Floats] | None = None
    ) -> Sequence[float | None]:
        """The chance that each fact is true; ``None`` where the run was not calibrated for their arity.

        ``asked``: a position of which the log-probabilities are known already.
        """
        if not len(facts) or str(facts.arity) not in self.calibration.confidence:
            return [None] * len(facts)
        return self.evidence(facts, asked).confidence

    def evidence(self, facts: Facts, asked: tuple[int, Floats] | None = None) -> Evidence:
        """All that speaks for each fact."""
        plausibility, known = self.plausibility(facts, asked), self.known.contains(facts)
        fit = self.roles.of(facts, own=known).min(axis=1, initial=1.0)
        found = self.calibration.confidence_of(facts.arity, plausibility, fit)
        chances: Sequence[float | None] = [None] * len(facts) if found is None else found.tolist()
        total = self.calibration.evidence_of(facts.arity, plausibility, fit)
        return Evidence(plausibility, fit, known, chances, total)

    def plausibility(self, facts: Facts, asked: tuple[int, Floats] | None = None) -> Floats:
        """The mean log-probability of the entities of each fact."""
        temperature, but = (
            self.calibration.temperature_of(facts.arity),
            None if asked is None else asked[0],
        )
        found = log_probabilities(self.model, facts, self.known, temperature, but)
        if asked is not None:
            found[:, asked[0]] = asked[1]
        mean: Floats = found.mean(axis=1)
        return mean


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for facts."""

    plausibility: Floats  # mean log-probability of the entities, each in its place
    fit: Floats  # role fit of the entity that fits worst
    known: Bools  # whether the data has the fact
    confidence: Sequence[
        float | None
    ]  # the chance that it is true; None where the run was not calibrated
    total: Floats  # what confidence rises with


def best_columns(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Rows, ascending, and columns of the best of each row, best first, of equal ones the earlier first.

    Those of minus infinity never.

    >>> best_columns(torch.tensor([[1.0, 3.0, -torch.inf, 3.0, 1.0]]), 3)
    (tensor([0, 0, 0]), tensor([1, 3, 0]))
    """
    if top < 1 or not len(scores):
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    least = torch.topk(scores, min(top, scores.shape[1]), dim=1).values[:, -1:]
    rows, columns = torch.nonzero(
        (scores >= least) & (scores > -torch.inf), as_tuple=True
    )  # few, but for ties
    order = torch.argsort(scores[rows, columns], descending=True, stable=True)
    order = order[torch.argsort(rows[order], stable=True)]
    rows, columns = rows[order], columns[order]
    starts = torch.searchsorted(rows, torch.arange(len(scores)))
    kept = torch.arange(len(rows)) - starts[rows] < top
    return rows[kept], columns[kept]


def _stack(facts: Sequence[Facts]) -> Facts:
    return Facts(
        np.concatenate([f.relation for f in facts]), np.concatenate([f.entities for f in facts])
    )


def _filled(facts: Facts, positions: Sequence[int], values: Ids) -> Facts:
    """The facts with these entities ``(n, positions)`` at these positions."""
    entities = facts.entities.copy()
    entities[:, list(positions)] = values
    return Facts(facts.relation, entities)
