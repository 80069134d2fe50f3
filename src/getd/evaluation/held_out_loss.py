"""The loss of facts that were not learnt from."""

from __future__ import annotations

import torch

from getd.facts.facts import Blocks, sample_facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

AT_ONCE = 256  # questions


def held_out_loss(
    model: ScoringModel,
    blocks: Blocks,
    known: KnownAnswers,
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Minus the log-probability of the answer at each position of each fact, on average; other known answers left out.

    Without dropout, smoothing and regularisers, so it is not quite what training shows of its own facts.
    """
    total, questions = 0.0, 0
    with model.scoring() as device:
        for facts in sample_facts(blocks, sample, seed).values():
            for start in range(0, len(facts), AT_ONCE):
                part = facts.take(slice(start, start + AT_ONCE))
                relation = torch.tensor(part.relation, device=device)
                entities = torch.tensor(part.entities, device=device)
                for position in range(part.arity):
                    scores = model.score_candidates(relation, entities, position).double()
                    answers = known.lookup(part.relation, part.entities, position)
                    rows, values = answers.others(part.entities[:, position])
                    scores[
                        torch.tensor(rows, device=device), torch.tensor(values, device=device)
                    ] = -torch.inf
                    own = scores.gather(1, entities[:, position, None])[:, 0]
                    total += float((scores.logsumexp(dim=1) - own).sum())
                questions += len(part) * part.arity
    return total / questions
