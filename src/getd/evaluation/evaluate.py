"""Evaluate a model on a knowledge base, next to two baselines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from getd.arrays import Bools
from getd.choices import Precision, Ties
from getd.errors import check_choice
from getd.evaluation.groups import GROUPINGS, group_questions
from getd.evaluation.metrics import Metrics, mean_reciprocal_rank, measure
from getd.evaluation.precision import Settled, settle_precision
from getd.evaluation.protocol import LEVEL, Protocol, Provenance, Sample, filter_splits, left_out
from getd.evaluation.rank_scores import Ranks
from getd.evaluation.ranks import rank_facts
from getd.evaluation.report import Evaluation, GroupMetrics
from getd.facts.facts import Blocks, count, join, sample_facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble
from getd.models.registry import BASELINES

TRAINED_ON_TRAIN = Provenance()


def evaluate(
    model: ScoringModel,
    kb: KnowledgeBase,
    split: str = "test",
    *,
    ties: Ties = "realistic",
    sample: Sample = None,
    seed: int = 0,
    by: str | Sequence[str] = GROUPINGS,
    baselines: bool = True,
    precision: Precision = "fp32",
    provenance: Provenance = TRAINED_ON_TRAIN,
) -> Evaluation:
    """Rank the answer at every position of every fact of a split, other known answers left out.

    Known answers are those of all splits if test is evaluated, those of train and valid otherwise.

    ``ties`` are ranked as by :func:`~getd.evaluation.ranks.rank_facts`. ``sample`` is the number of
    facts to draw at random by ``seed``; None: all. ``by`` names the breakdowns: by arity, position,
    relation, and by whether a fact trained on answers the question too. With ``baselines``,
    frequency and lookup, counted on the facts trained on, are measured as well. ``precision`` is
    that of the scores of a dot product; ``auto`` is bf16 where there are many candidates and the
    machine is faster with it. ``provenance`` says how the model came to be; by default it was
    trained on train.
    """
    groupings = [by] if isinstance(by, str) else by
    for grouping in groupings:
        check_choice("by", grouping, GROUPINGS)
    trained_on = provenance.trained_on
    facts = kb.split(split)
    blocks = sample_facts(facts, sample, seed)
    filtered = filter_splits(kb, split)
    questions = _Questions(blocks, kb.known(*filtered), ties, seed)

    settled = settle_precision(precision, model)
    ranks = questions.rank(model, settled)
    baseline_ranks = {}
    if baselines:
        for name, baseline in baseline_models(kb, trained_on).items():
            baseline_ranks[name] = questions.rank(baseline)

    groups = {}
    for grouping in groupings:
        measured = {}
        for group, mask in group_questions(grouping, blocks, kb, trained_on):
            metrics = questions.measure(ranks, mask).as_dict()
            mrrs = {}
            for name, other in baseline_ranks.items():
                mrrs[name] = mean_reciprocal_rank(other.rank[mask])
            measured[group] = GroupMetrics(**metrics, baselines=mrrs)
        groups[grouping] = measured

    n_facts = count(blocks)
    ensemble = model.bare if isinstance(model.bare, Ensemble) else None
    special: dict[str, Any] = {}  # keys that most protocols do not have
    if ensemble is not None:
        special |= provenance.fitted_members(ensemble.weights.numel())
    if settled != "fp32":
        special["precision"] = settled
    protocol = Protocol(
        split=split,
        trained_on=trained_on,
        filter=left_out(filtered),
        ties=ties,
        level=LEVEL,
        sample=n_facts if n_facts < count(facts) else None,
        seed=seed,
        candidates=kb.n_entities,
        questions=len(ranks.rank),
        members=len(ensemble.members) if ensemble else 1,
        epoch=provenance.chosen_epoch(),
        memory=provenance.fitted_memory(model.memory_weights),
        **special,
    )
    return Evaluation(
        protocol=protocol,
        metrics=questions.measure(ranks),
        baselines={name: questions.measure(other) for name, other in baseline_ranks.items()},
        by=groups,
    )


def evaluate_baselines(kb: KnowledgeBase, split: str = "test") -> dict[str, Metrics]:
    """Measure the baselines alone on a split."""
    known = kb.known(*filter_splits(kb, split))
    questions = _Questions(sample_facts(kb.split(split), None), known)
    metrics = {}
    for name, baseline in baseline_models(kb).items():
        metrics[name] = questions.measure(questions.rank(baseline))
    return metrics


def validation_mrr(
    model: ScoringModel,
    blocks: Blocks,
    known: KnownAnswers,
    *,
    sample: Sample = None,
    seed: int = 0,
) -> float:
    """Compute the MRR over all questions of facts, or of a sample; for every epoch of training."""
    questions = _Questions(sample_facts(blocks, sample, seed), known)
    return mean_reciprocal_rank(questions.rank(model).rank)


def baseline_models(
    kb: KnowledgeBase, trained_on: Sequence[str] = ("train",)
) -> dict[str, ScoringModel]:
    """Make the baselines by counting the facts of splits."""
    facts = join(*(kb.split(name) for name in trained_on))
    sizes = (kb.n_relations, kb.n_entities)
    return {name: baseline.from_facts(facts, *sizes) for name, baseline in BASELINES.items()}


@dataclass(frozen=True, eq=False)
class _Questions:
    """Every position of facts, in the order of arity, fact and position; so are their ranks."""

    blocks: Blocks
    known: KnownAnswers
    ties: Ties = "realistic"
    seed: int = 0

    def rank(self, model: ScoringModel, precision: Settled = "fp32") -> Ranks:
        ranks = []
        candidates = []
        for facts in self.blocks.values():
            part = rank_facts(model, facts, self.known, ties=self.ties, precision=precision)
            ranks.append(part.rank.ravel())
            candidates.append(part.candidates.ravel())
        return Ranks(np.concatenate(ranks), np.concatenate(candidates))

    def measure(self, ranks: Ranks, mask: Bools | slice = slice(None)) -> Metrics:
        """Measure the ranks of all questions, or of those in a mask."""
        arities = [np.full(len(facts), facts.arity) for facts in self.blocks.values()]
        arity = np.concatenate(arities)
        fact = np.arange(len(arity)).repeat(arity)
        return measure(ranks.rank[mask], ranks.candidates[mask], fact[mask], seed=self.seed)
