"""A model, a knowledge base and a protocol to an evaluation, with the baselines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from getd.arrays import Ids
from getd.errors import ConfigError, nearest
from getd.evaluation.metrics import Metrics, mean_reciprocal_rank, measure
from getd.evaluation.protocol import Choice, Measured, filter_splits, protocol_of
from getd.evaluation.rank_scores import Ranks, Ties
from getd.evaluation.ranks import CHUNK, rank_facts
from getd.facts.facts import Blocks, Facts, count, join, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.frequency import Frequency
from getd.models.lookup import Lookup

GROUPINGS = ("arity", "position", "relation", "seen")


@dataclass(frozen=True)
class Evaluation:
    """How well a model answers the questions of a split, and by which protocol that was measured."""

    protocol: Mapping[str, Any]
    metrics: Metrics
    baselines: Mapping[str, Metrics]  # frequency and lookup on the same questions
    by: Mapping[str, Mapping[str, Metrics]]  # grouping, then group
    baselines_by: Mapping[
        str, Mapping[str, Mapping[str, float]]
    ]  # the MRR of each baseline, by grouping and group

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank."""
        return self.metrics.mrr

    @property
    def hits_at_1(self) -> float:
        """The share of answers ranked first."""
        return self.metrics.hits_at_1

    @property
    def hits_at_3(self) -> float:
        """The share of answers among the first three."""
        return self.metrics.hits_at_3

    @property
    def hits_at_10(self) -> float:
        """The share of answers among the first ten."""
        return self.metrics.hits_at_10

    @property
    def mean_rank(self) -> float:
        """The mean rank."""
        return self.metrics.mean_rank

    @property
    def amri(self) -> float:
        """The adjusted mean rank index: 1 the best, 0 chance."""
        return self.metrics.amri

    @property
    def mrr_at_chance(self) -> float:
        """The MRR of candidates in random order."""
        return self.metrics.mrr_at_chance

    @property
    def mrr_interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval of the MRR."""
        return self.metrics.mrr_interval

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return self.metrics.questions

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON: text keys, plain numbers."""
        return {
            "protocol": dict(self.protocol),
            "metrics": self.metrics.as_dict(),
            "baselines": {name: metrics.as_dict() for name, metrics in self.baselines.items()},
            "by": {
                grouping: {
                    group: metrics.as_dict()
                    | {"baselines": dict(self.baselines_by[grouping][group])}
                    for group, metrics in groups.items()
                }
                for grouping, groups in self.by.items()
            },
        }


def evaluate(
    model: ScoringModel,
    kb: KnowledgeBase,
    split: str = "test",
    *,
    ties: Ties = "realistic",
    sample: int | None = None,
    seed: int = 0,
    by: Sequence[str] = GROUPINGS,
    baselines: bool = True,
    trained_on: Sequence[str] = ("train",),
    epoch: Choice | None = None,
    memory: Choice | None = None,
    chunk: int = CHUNK,
) -> Evaluation:
    """Rank the answer at every position of every fact of a split, other known answers left out.

    Known answers are those of all splits where test is evaluated, and those of all but test elsewhere.

    Parameters
    ----------
    sample
        Evaluate on that many facts, drawn at random by ``seed``; on all where it is not given or not smaller.
    by
        The breakdowns: by arity, position, relation, and by whether a fact trained on answers the question too.
    baselines
        Whether to measure frequency and lookup, counted on the facts trained on, on the same questions.
    trained_on
        The splits whose facts the model has seen.
    epoch, memory
        By which facts the epoch was chosen, and the weights of the memory fitted: for the protocol.
    """
    check_groupings(by)
    blocks = sample_facts(kb.split(split), sample, seed)
    questions = _Questions(blocks, kb.known(*filter_splits(kb, split)), ties, chunk, seed)
    ranks = questions.rank(model)
    beside = (
        {
            name: questions.rank(baseline)
            for name, baseline in baseline_models(kb, trained_on).items()
        }
        if baselines
        else {}
    )
    groups = {grouping: _labels(grouping, blocks, kb, trained_on) for grouping in by}
    drawn = count(blocks) if count(blocks) < count(kb.split(split)) else None
    measured = Measured(ties, drawn, seed, kb.n_entities, len(ranks.rank))
    return Evaluation(
        protocol=protocol_of(model, kb, split, trained_on, measured, epoch, memory),
        metrics=questions.measure(ranks),
        baselines={name: questions.measure(baseline) for name, baseline in beside.items()},
        by={
            grouping: questions.measure_groups(ranks, labels) for grouping, labels in groups.items()
        },
        baselines_by={
            grouping: _baselines_of_groups(beside, labels) for grouping, labels in groups.items()
        },
    )


def evaluate_baselines(kb: KnowledgeBase, split: str = "test") -> dict[str, Metrics]:
    """The baselines alone, ranked on a split: what one has before any model."""
    known = kb.known(*filter_splits(kb, split))
    questions = _Questions(sample_facts(kb.split(split), None), known, "realistic", CHUNK, 0)
    return {
        name: questions.measure(questions.rank(baseline))
        for name, baseline in baseline_models(kb).items()
    }


def validation_mrr(
    model: ScoringModel,
    blocks: Blocks,
    known: KnownAnswers,
    *,
    ties: Ties = "realistic",
    sample: int | None = None,
    seed: int = 0,
    chunk: int = CHUNK,
) -> float:
    """The MRR over all questions of some facts, or of a sample, and nothing else: for every epoch of training."""
    questions = _Questions(sample_facts(blocks, sample, seed), known, ties, chunk, seed)
    return mean_reciprocal_rank(questions.rank(model).rank)


def baseline_models(
    kb: KnowledgeBase, trained_on: Sequence[str] = ("train",)
) -> dict[str, ScoringModel]:
    """The counting models that stand beside every model, made from the facts of these splits."""
    facts = join(*(kb.split(name) for name in trained_on))
    sizes = (kb.n_relations, kb.n_entities)
    return {
        "frequency": Frequency.from_facts(facts, *sizes),
        "lookup": Lookup.from_facts(facts, *sizes),
    }


def check_groupings(by: Sequence[str]) -> None:
    """Refuse a breakdown there is not."""
    for grouping in by:
        if grouping not in GROUPINGS:
            hint = nearest(grouping, GROUPINGS)
            raise ConfigError(
                f"by: expected one of {', '.join(GROUPINGS)}, found {grouping!r}{hint}"
            )


@dataclass(frozen=True, eq=False)
class _Questions:
    """Every position of some facts, arity by arity, fact by fact; ranks and labels of questions are in that order."""

    blocks: Blocks
    known: KnownAnswers
    ties: Ties
    chunk: int
    seed: int

    def rank(self, model: ScoringModel) -> Ranks:
        found = [
            rank_facts(model, facts, self.known, ties=self.ties, chunk=self.chunk)
            for facts in self.blocks.values()
        ]
        rank = np.concatenate([ranks.rank.reshape(-1) for ranks in found])
        return Ranks(rank, np.concatenate([ranks.candidates.reshape(-1) for ranks in found]))

    def measure(self, ranks: Ranks, chosen: Any = slice(None)) -> Metrics:
        arities = np.concatenate(
            [np.full(len(facts), facts.arity) for facts in self.blocks.values()]
        )
        fact = np.repeat(np.arange(len(arities)), arities)
        return measure(ranks.rank[chosen], ranks.candidates[chosen], fact[chosen], seed=self.seed)

    def measure_groups(
        self, ranks: Ranks, labels: tuple[Ids, Mapping[int, str]]
    ) -> dict[str, Metrics]:
        numbers, names = labels
        return {
            names[number]: self.measure(ranks, numbers == number)
            for number in np.unique(numbers).tolist()
        }


def _baselines_of_groups(
    baselines: Mapping[str, Ranks], labels: tuple[Ids, Mapping[int, str]]
) -> dict[str, dict[str, float]]:
    numbers, names = labels
    return {
        names[n]: {
            name: mean_reciprocal_rank(ranks.rank[numbers == n])
            for name, ranks in baselines.items()
        }
        for n in np.unique(numbers).tolist()
    }


def _labels(
    grouping: str, blocks: Blocks, kb: KnowledgeBase, trained_on: Sequence[str]
) -> tuple[Ids, Mapping[int, str]]:
    """The group of each question as a number, and the name of each number."""
    if grouping == "seen":
        known = kb.known(*trained_on)
        return _flat([_seen(facts, known) for facts in blocks.values()]), {0: "unseen", 1: "seen"}
    if grouping == "relation":
        columns = [facts.relation[:, None] for facts in blocks.values()]
        return _flat(_spread(columns, blocks)), dict(enumerate(kb.relations))
    columns = [
        np.arange(arity)[None] if grouping == "position" else np.array([[arity]])
        for arity in blocks
    ]
    return _flat(_spread(columns, blocks)), {
        number: str(number) for number in range(max(blocks) + 1)
    }


def _seen(facts: Facts, known: KnownAnswers) -> Ids:
    """Whether each question of some facts has a known answer, ``(n, arity)``."""
    found = [
        known.is_known(facts.relation, facts.entities, position) for position in range(facts.arity)
    ]
    return np.column_stack(found).astype(np.int64)


def _spread(columns: Sequence[Ids], blocks: Blocks) -> list[Ids]:
    return [
        np.broadcast_to(c, facts.entities.shape)
        for c, facts in zip(columns, blocks.values(), strict=True)
    ]


def _flat(tables: Sequence[Ids]) -> Ids:
    return np.concatenate([table.reshape(-1) for table in tables])
