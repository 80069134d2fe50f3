"""Questions to answers, many at once: one matrix product for all that open the same position."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import polars as pl
import torch
from torch import Tensor

from getd.arrays import Bools, Floats
from getd.calibration.calibrate import Calibration
from getd.calibration.slot_fit import SlotFit
from getd.evaluation.rank_scores import check_finite
from getd.evaluation.scoring import log_probabilities
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.io.deadline import check_deadline
from getd.models.base import ScoringModel
from getd.prediction.question import Labels, Question, Slot, fill_positions
from getd.visible import visible

Progress = Callable[[int, int], None]  # called with the amount done and the total
SCORE_BUDGET = 2**23  # scores held at a time: 64 MB in float64
TABLE_STYLE: dict[str, Any] = {  # every row, in full
    "tbl_rows": -1,
    "fmt_str_lengths": 200,
    "tbl_hide_dataframe_shape": True,
    "tbl_hide_column_data_types": True,
}


@dataclass(frozen=True)
class Answer:
    """What fills the open slots of a question."""

    names: Labels  # an entity for each open position, in order; or a relation's label
    score: float  # raw; if several positions are open: the plausibility of the whole fact
    probability: float | None  # a share among the ranked candidates; None: several are open
    confidence: float | None  # the chance that the fact is true; None: not calibrated
    known: bool  # whether the data has this fact already

    @property
    def name(self) -> str:
        """The names in one text."""
        return ", ".join(self.names)


class Answers(list[Answer]):
    """The answers of a question, best first: a list that shows itself as a table."""

    def __repr__(self) -> str:
        with pl.Config(**TABLE_STYLE):
            return str(self._table())

    def _repr_html_(self) -> str:
        with pl.Config(**TABLE_STYLE):
            return self._table()._repr_html_()

    def _table(self) -> pl.DataFrame:
        """Return the names and all that any answer has."""
        columns: dict[str, list[object]] = {"answer": [visible(answer.name) for answer in self]}
        for name in ("probability", "confidence", "score", "known"):
            values = [getattr(answer, name) for answer in self]
            if any(value is not None for value in values):
                columns[name] = values
        return pl.DataFrame(columns)


Confidences = Sequence[float | None]  # the chances that facts are true; None: not calibrated
Measured = tuple[int, Floats] | None  # a position and its log-probabilities, if they are at hand


@dataclass(frozen=True, eq=False)
class FactEvidence:
    """What speaks for facts."""

    plausibility: Floats  # mean log-probability of the entities, each at its position
    fit: Floats  # slot fit of the entity that fits worst
    known: Bools  # whether the data has the fact
    confidence: Confidences
    total: Floats  # what confidence rises with


@dataclass(frozen=True)
class Answerer:
    """A model with all that it takes to answer."""

    model: ScoringModel
    kb: KnowledgeBase
    known: KnownAnswers
    calibration: Calibration
    slot_fit: SlotFit

    def answer(
        self, questions: Sequence[Question], top: int, include_known: bool = False
    ) -> list[list[Answer]]:
        """Return the best answers of each question with one open slot."""
        answers: list[list[Answer]] = [[] for _ in questions]
        with self.model.scoring():
            for numbers, facts, position in self._batches(questions):
                check_deadline()
                for row, answer in self._answer_batch(facts, position, top, include_known):
                    answers[numbers[row]].append(answer)
        return answers

    def _batches(self, questions: Sequence[Question]) -> Iterator[tuple[list[int], Facts, Slot]]:
        """Yield questions that are scored together: their numbers, their facts, their open slot."""
        groups: dict[tuple[int, Slot], list[int]] = {}
        for number, question in enumerate(questions):
            groups.setdefault((question.fact.arity, question.position), []).append(number)

        for (arity, position), group in groups.items():
            n_candidates = self.kb.n_relations if position is None else self.kb.n_entities
            batch_rows = max(1, SCORE_BUDGET // n_candidates)
            for start in range(0, len(group), batch_rows):
                numbers = group[start : start + batch_rows]
                facts = join(*({arity: questions[number].fact} for number in numbers))
                yield numbers, facts[arity], position

    def _answer_batch(
        self, facts: Facts, position: Slot, top: int, include_known: bool
    ) -> Iterator[tuple[int, Answer]]:
        """Yield ``(row, answer)``, the best answers of each row first."""
        scores = self._scores(facts, position)
        if not include_known:
            self._leave_out_known(scores, facts, position)

        # Probabilities are a softmax over the candidates that are ranked; relations have no
        # temperature. The normaliser is minus infinity where every candidate is known.
        temperature = 1.0 if position is None else self.calibration.temperature_of(facts.arity)
        log_normaliser = (scores / temperature).logsumexp(dim=1)
        check_finite(log_normaliser.clamp(min=0))

        rows, candidates = best_columns(scores, top)
        best_scores = scores[rows, candidates]
        log_probability = best_scores / temperature - log_normaliser[rows]

        ids = candidates.numpy()
        filled = facts.take(rows.numpy())
        confidences: Confidences = [None] * len(rows)
        if position is None:
            vocabulary = self.kb.relations
            filled = Facts(ids, filled.entities)
        else:
            # The log-probability of the answer is at hand, unless known answers were ranked too.
            vocabulary = self.kb.entities
            filled = fill_positions(filled, position, ids)
            measured = None if include_known else (position, log_probability.numpy())
            confidences = self.confidence(filled, measured)

        columns = (
            rows.tolist(),
            vocabulary.decode(ids),
            best_scores.tolist(),
            log_probability.exp().tolist(),
            confidences,
            self.known.contains(filled).tolist(),
        )
        for row, name, *numbers in zip(*columns, strict=True):
            yield row, Answer((name,), *numbers)

    def fill_best(self, facts: Facts, position: int, top: int) -> Facts:
        """Fill a position with its best candidates that are not known, ``top`` for each fact."""
        batch_rows = max(1, SCORE_BUDGET // self.kb.n_entities)
        parts = []
        for start in range(0, len(facts), batch_rows):
            check_deadline()
            batch = facts.take(slice(start, start + batch_rows))
            with self.model.scoring():
                scores = self._scores(batch, position)
            check_finite(scores)
            self._leave_out_known(scores, batch, position)

            rows, candidates = best_columns(scores, top)
            repeated = batch.take(rows.numpy())
            parts.append({facts.arity: fill_positions(repeated, position, candidates.numpy())})
        return join(*parts)[facts.arity]

    def _scores(self, facts: Facts, position: Slot) -> Tensor:
        """Score all entities at a position; None: all relations, others at minus infinity."""
        relation, entities = facts.to_tensors()
        if position is not None:
            return self.model.score_candidates(relation, entities, position).double()

        # Relations of another arity cannot hold.
        scores = self.model.score_relations(entities).double()
        arities = torch.tensor([signature.arity for signature in self.kb.signatures])
        scores[:, arities != facts.arity] = -inf
        return scores

    def _leave_out_known(self, scores: Tensor, facts: Facts, position: Slot) -> None:
        """Set the scores of all known answers to minus infinity."""
        known = self.known.lookup(facts.relation, facts.entities, position)
        scores[torch.tensor(known.rows), torch.tensor(known.values)] = -inf

    def confidence(self, facts: Facts, measured: Measured = None) -> Confidences:
        """Return the chance that each fact is true; None: the run is not calibrated for it."""
        if not len(facts) or str(facts.arity) not in self.calibration.confidence:
            return [None] * len(facts)
        return self.evidence(facts, measured).confidence

    def evidence(self, facts: Facts, measured: Measured = None) -> FactEvidence:
        """Gather all that speaks for each fact."""
        temperature = self.calibration.temperature_of(facts.arity)
        but = None if measured is None else measured[0]
        log_probability = log_probabilities(self.model, facts, self.known, temperature, but)
        if measured is not None:
            log_probability[:, measured[0]] = measured[1]

        plausibility: Floats = log_probability.mean(axis=1)
        known = self.known.contains(facts)
        fit = self.slot_fit.of(facts, own=known).min(axis=1, initial=1.0)

        confidence = self.calibration.confidence_of(facts.arity, plausibility, fit)
        chances = [None] * len(facts) if confidence is None else confidence.tolist()
        total = self.calibration.evidence_of(facts.arity, plausibility, fit)
        return FactEvidence(plausibility, fit, known, chances, total)


def best_columns(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Return the best columns of each row as pairs of row and column.

    Rows ascend; the best column of a row comes first, of equal ones the earlier. Columns of minus
    infinity are left out.

    >>> best_columns(torch.tensor([[1.0, 3.0, -torch.inf, 3.0, 1.0]]), 3)
    (tensor([0, 0, 0]), tensor([1, 3, 0]))
    """
    if top < 1 or not len(scores):
        nothing = torch.zeros(0, dtype=torch.int64)
        return nothing, nothing

    # Everything that reaches the last place: few more than ``top``, except for ties.
    threshold = scores.topk(min(top, scores.shape[1])).values[:, -1:]
    is_good = (scores >= threshold) & (scores > -inf)
    rows, columns = is_good.nonzero(as_tuple=True)

    order = scores[rows, columns].argsort(descending=True, stable=True)
    order = order[rows[order].argsort(stable=True)]
    rows = rows[order]
    columns = columns[order]

    starts = torch.searchsorted(rows, torch.arange(len(scores)))
    kept = torch.arange(len(rows)) - starts[rows] < top
    return rows[kept], columns[kept]
