"""The statistics that batch norms evaluate with."""

import torch

from getd.facts.facts import Blocks, sample_facts
from getd.models.base import DotProductModel, ScoringModel
from getd.models.norms import batch_norms, taking_statistics

SAMPLE = 4096  # facts of each arity
BATCH_ROWS = 512


def take_statistics(model: ScoringModel, blocks: Blocks, seed: int, device: torch.device) -> None:
    """Give a model's batch norms the statistics of training facts under its present weights.

    Of each arity they see the same facts every time: all, or a random sample of many.
    """
    norms = batch_norms(model)
    if not norms:
        return

    batches = []
    for arity, facts in blocks.items():
        for sample in sample_facts({arity: facts}, SAMPLE, seed).values():
            relation, entities = sample.to_tensors(device)
            parts = (torch.split(relation, BATCH_ROWS), torch.split(entities, BATCH_ROWS))
            for batch in zip(*parts, strict=True):
                batches.append(batch)
    with taking_statistics(model, norms):
        for relation, entities in batches:
            model.pass_through(relation, entities)
        unseen = [norm for norm in norms if not norm.batches_taken]

    # Unseen norms act on the query for an open relation; the others keep their statistics.
    if unseen and isinstance(model, DotProductModel) and model.relation_is_dot_product:
        with taking_statistics(model, unseen):
            for _, entities in batches:
                model.relation_query(entities)
