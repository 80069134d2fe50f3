"""Questions to answers, many at once: one matrix product for all that open the same position."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf, log
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor

from getd.arrays import Bools, Floats
from getd.calibration.calibrate import Calibration
from getd.calibration.slot_fit import SlotFit
from getd.errors import ConfigError
from getd.evaluation.precision import Settled, dot_product_of, multiply, rounded
from getd.evaluation.rank_scores import check_finite
from getd.evaluation.scoring import log_probabilities
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.facts.row_index import RowIndex
from getd.io.deadline import check_deadline
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.prediction.best_columns import best_columns
from getd.prediction.question import Labels, Question, Slot, fill_positions
from getd.visible import visible

Fill = Callable[[Tensor], Tensor]  # candidates of questions to queries of what they make
Progress = Callable[[int, int], None]  # called with the amount done and the total
SCORE_BUDGET = 2**23  # scores held at a time: 32 MB
MAX_FILLED = 512  # answers whose other positions are asked together
TABLE_STYLE: dict[str, Any] = {  # every row, in full
    "tbl_rows": -1,
    "fmt_str_lengths": 200,
    "tbl_hide_dataframe_shape": True,
    "tbl_hide_column_data_types": True,
}


class Answer(NamedTuple):
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
    precision: Settled = "fp32"  # of the scores of dot products

    def answer(
        self, questions: Sequence[Question], top: int, include_known: bool = False
    ) -> list[list[Answer]]:
        """Return the best answers of each question with one open slot."""
        answers: list[list[Answer]] = [[] for _ in questions]
        with torch.inference_mode(), self.model.scoring():
            for numbers, facts, position in self._batches(questions, top):
                check_deadline()
                answered = self._answer_batch(facts, position, top, include_known)
                for number, answers_of_question in zip(numbers, answered, strict=True):
                    answers[number] = answers_of_question
        return answers

    def _batches(
        self, questions: Sequence[Question], top: int = 1
    ) -> Iterator[tuple[list[int], Facts, Slot]]:
        """Yield questions that are scored together: their numbers, their facts, their open slot."""
        groups: dict[tuple[int, Slot], list[int]] = {}
        for number, question in enumerate(questions):
            groups.setdefault((question.fact.arity, question.position), []).append(number)

        for (_, position), group in groups.items():
            n_candidates = self.kb.n_relations if position is None else self.kb.n_entities
            batch_rows = max(1, min(SCORE_BUDGET // n_candidates, MAX_FILLED // max(top, 1)))
            for start in range(0, len(group), batch_rows):
                numbers = group[start : start + batch_rows]
                facts = [questions[number].fact for number in numbers]
                relation = np.concatenate([fact.relation for fact in facts])
                entities = np.concatenate([fact.entities for fact in facts])
                yield numbers, Facts(relation, entities), position

    def _answer_batch(
        self, facts: Facts, position: Slot, top: int, include_known: bool
    ) -> list[list[Answer]]:
        """Return the best answers of each question; all open the same slot."""
        scores, fill = self._open(facts, position)
        unknown = scores.clone() if include_known else scores
        self._leave_out_known(unknown, facts, position)
        best_scores, candidates = best_columns(scores, top)
        is_known = unknown.gather(1, candidates) == -inf

        # Probabilities are a softmax over the candidates that are ranked; relations have no
        # temperature. A plausibility leaves out other known answers, even where they are ranked.
        temperature = 1.0 if position is None else self.calibration.temperature_of(facts.arity)
        scaled = best_scores.double() / temperature
        log_sum = _log_sum_exp(scores, temperature)
        log_rest = _log_sum_exp(unknown, temperature) if include_known else log_sum
        log_share = scaled - log_rest.logaddexp(scaled.masked_fill(~is_known, -inf))

        confidences: Confidences = [None] * candidates.numel()
        vocabulary = self.kb.relations
        if position is not None:
            vocabulary = self.kb.entities
            confidences = self._confidences(facts, position, candidates, fill, log_share, is_known)
        numbers = (best_scores, (scaled - log_sum).exp(), is_known)
        score, probability, known = (column.flatten().tolist() for column in numbers)
        names = zip(vocabulary.decode(candidates.flatten()), strict=True)
        answers = map(Answer, names, score, probability, confidences, known)

        # Fewer candidates than asked for may be left: those at minus infinity come last.
        lists = []
        for n_answers in (best_scores > -inf).sum(dim=1).tolist():
            row = list(islice(answers, candidates.shape[1]))
            lists.append(row[:n_answers])
        return lists

    def _confidences(
        self,
        facts: Facts,
        position: int,
        candidates: Tensor,
        fill: Fill | None,
        log_share: Tensor,
        is_known: Tensor,
    ) -> Confidences:
        """Return the confidence in the facts that candidates make, row by row; None: not fitted."""
        if not candidates.numel() or str(facts.arity) not in self.calibration.confidence:
            return [None] * candidates.numel()
        rows = np.repeat(np.arange(len(facts)), candidates.shape[1])
        filled = fill_positions(facts.take(rows), position, candidates.flatten().numpy())

        # The log-probabilities of the candidates are at hand, those of the given entities are not.
        others = [other for other in range(facts.arity) if other != position]
        log_probability = np.zeros(filled.entities.shape)
        log_probability[:, position] = log_share.flatten()
        if others:
            queries = None if fill is None else fill(candidates)
            log_probability[:, others] = self._log_probabilities(filled, others, queries)
        return self._weigh(filled, log_probability, is_known.flatten().numpy()).confidence

    def fill_best(self, facts: Facts, position: int, top: int) -> Facts:
        """Fill a position with its best candidates that are not known, ``top`` for each fact."""
        batch_rows = max(1, SCORE_BUDGET // self.kb.n_entities)
        parts = []
        for start in range(0, len(facts), batch_rows):
            check_deadline()
            batch = facts.take(slice(start, start + batch_rows))
            with self.model.scoring():
                scores, _ = self._open(batch, position)
            check_finite(scores)

            self._leave_out_known(scores, batch, position)
            best_scores, candidates = best_columns(scores, top)
            is_left = best_scores > -inf
            repeated = batch.take(is_left.nonzero()[:, 0].numpy())
            ids = candidates[is_left].numpy()
            parts.append({facts.arity: fill_positions(repeated, position, ids)})
        return join(*parts)[facts.arity]

    def _open(self, facts: Facts, position: Slot) -> tuple[Tensor, Fill | None]:
        """Score all entities at a position; None: all relations, others at minus infinity.

        Also return how to fill questions, if scores are dot products.
        """
        relation, entities = facts.to_tensors()
        if position is None:
            # Relations of another arity cannot hold.
            arities = torch.tensor([signature.arity for signature in self.kb.signatures])
            scores = self.model.score_relations(entities)
            return scores.masked_fill(arities != facts.arity, -inf), None

        bare = dot_product_of(self.model)
        if bare is None:
            return self.model.score_candidates(relation, entities, position), None
        query, fill = bare.open_questions(relation, entities, position)
        table = bare.candidates(position)
        scores = query.new_empty(len(query), len(table))
        multiply(query, rounded(table, self.precision), scores)
        memory = self.model.memory_cells(relation, entities, position)
        if memory is not None:
            scale, (rows, columns, values) = memory
            scores = scores * scale
            scores.index_put_((rows, columns), values.to(scores), accumulate=True)
        return scores, fill

    def _leave_out_known(self, scores: Tensor, facts: Facts, position: Slot) -> None:
        """Set the scores of all known answers to minus infinity."""
        known = self.known.lookup(facts.relation, facts.entities, position)
        scores[torch.from_numpy(known.rows), torch.from_numpy(known.values)] = -inf

    def evidence(self, facts: Facts) -> FactEvidence:
        """Gather all that speaks for each fact."""
        log_probability = np.zeros(facts.entities.shape)
        for model, rows in self.raters(facts):
            rater = replace(self, model=model)
            positions = range(facts.arity)
            log_probability[rows] = rater._log_probabilities(facts.take(rows), positions)
        return self._weigh(facts, log_probability, self.known.contains(facts))

    def raters(self, facts: Facts) -> Iterator[tuple[ScoringModel, Bools]]:
        """Yield models, each with the facts that it rates.

        A memory has counted the training facts: it rates each of them as if it had not.
        """
        is_counted = np.zeros(len(facts), dtype=bool)
        index = self._train_index.get(facts.arity)
        if isinstance(self.model, WithMemory) and index is not None:
            is_counted = index.find(facts.columns()) >= 0
            if is_counted.any():
                yield self.model.leaving_out(), is_counted
        if not is_counted.all():
            yield self.model, ~is_counted

    @cached_property
    def _train_index(self) -> dict[int, RowIndex]:
        """The training facts, by arity."""
        blocks = self.kb.splits.get("train", {})
        return {arity: RowIndex.build(facts.columns())[0] for arity, facts in blocks.items()}

    def _log_probabilities(
        self, facts: Facts, positions: Sequence[int], queries: Tensor | None = None
    ) -> Floats:
        temperature = self.calibration.temperature_of(facts.arity)
        return log_probabilities(
            self.model, facts, self.known, temperature, positions, queries, self.precision
        )

    def _weigh(self, facts: Facts, log_probability: Floats, known: Bools) -> FactEvidence:
        """Turn the log-probabilities of the entities of facts, ``(n, arity)``, into evidence."""
        plausibility: Floats = log_probability.mean(axis=1)
        fit = self.slot_fit.of(facts, own=known).min(axis=1, initial=1.0)

        confidence = self.calibration.confidence_of(facts.arity, plausibility, fit)
        chances = [None] * len(facts) if confidence is None else confidence.tolist()
        total = self.calibration.evidence_of(facts.arity, plausibility, fit)
        return FactEvidence(plausibility, fit, known, chances, total)


def _log_sum_exp(scores: Tensor, temperature: float) -> Tensor:
    """Return the logarithm of each row's sum of exponentials, ``(b, 1)``; overwrite the scores.

    It is minus infinity where all scores are. NaN is refused.
    """
    highest = scores.amax(dim=1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    powers = scores.sub_(highest).div_(temperature * log(2)).exp2_()
    log_sum = powers.sum(dim=1, keepdim=True).double().log_()
    log_sum += highest.double() / temperature
    if not (log_sum < inf).all():
        check_finite(log_sum.clamp(min=0))
    return log_sum


def check_top(top: int) -> None:
    """Refuse a number of answers that is none."""
    if not isinstance(top, Integral) or isinstance(top, bool) or top < 1:
        raise ConfigError(f"expected top of 1 or more, found {top!r}")
