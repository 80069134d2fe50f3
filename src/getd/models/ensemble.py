r"""Several trained models as one: the mean of their scores.

A softmax turns the mean of scores into the geometric mean of the members' probabilities, made to
sum to 1.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from getd.models.aliases import Candidates
from getd.models.base import ScoringModel


class Ensemble(ScoringModel):
    """The mean of the scores of models of the same entities and relations."""

    def __init__(self, members: Sequence[ScoringModel]) -> None:
        super().__init__(members[0].sizes)
        self.members = nn.ModuleList(members)

    def __iter__(self) -> Iterator[ScoringModel]:
        for member in self.members:
            assert isinstance(member, ScoringModel)
            yield member

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        scores = []
        for member in self:
            scores.append(member.score_candidates(relation, entities, position, candidates))
        return torch.stack(scores).mean(dim=0)
