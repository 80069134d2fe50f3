"""The statistics that batch norms evaluate with."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from getd.evaluation.report import sample_facts
from getd.facts.facts import Blocks, Facts
from getd.models.base import ScoringModel
from getd.models.norms import batch_norms, taking_statistics

SAMPLE = 4096  # facts of an arity
BATCH = 512


def take_statistics(model: ScoringModel, blocks: Blocks, seed: int, device: torch.device) -> None:
    """Give the batch norms of a model the statistics of training facts under its present weights.

    Of each arity the same facts every time: all, or a random sample where there are many.
    """
    if not batch_norms(model):
        return
    with taking_statistics(model):
        for batch in _batches(blocks, seed):
            relation = torch.tensor(batch.relation, device=device)
            model.pass_through(relation, torch.tensor(batch.entities, device=device))


def _batches(blocks: Blocks, seed: int) -> Iterator[Facts]:
    for arity, facts in blocks.items():
        for sample in sample_facts({arity: facts}, SAMPLE, seed).values():
            for start in range(0, len(sample), BATCH):
                yield sample.take(slice(start, start + BATCH))
