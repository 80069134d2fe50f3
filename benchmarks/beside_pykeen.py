"""Training steps of ours and of PyKEEN's on the same facts, from the same weights, in turns."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import Skipped, summary, timings
from benchmarks.subjects import make_trainer
from getd.facts.facts import Facts
from getd.training.loop import Trainer
from getd.training.regimes.base import Batch, shuffled_batches

READY = 20  # batches of theirs that are made ahead


@dataclass(frozen=True)
class Size:
    """What is compared."""

    dim: int = 32
    batch: int = (
        16  # questions; PyKEEN holds batch x entities x dim numbers for DistMult and ComplEx
    )
    facts: int = 512  # a batch of TransE
    negatives: int = 64  # of a fact, TransE
    steps: int = 200
    rounds: int = 5


def beside_pykeen(
    facts: Facts, n_entities: int, n_relations: int, size: Size
) -> dict[str, dict[str, Any]]:
    """The seconds of so many steps of each model, ours and theirs."""
    os.environ.setdefault(
        "PYSTOW_HOME", tempfile.mkdtemp()
    )  # PyKEEN writes there when it is imported
    try:
        from benchmarks.pykeen_models import NAMES
    except ImportError:
        raise Skipped("PyKEEN is not here: pip install 'getd[bench]'") from None
    times = {}
    for name in NAMES:
        ours, theirs = _Pair(name, facts, n_entities, n_relations, size).works()
        mine, other = timings(ours, theirs, repeats=size.rounds)
        times[name] = {"ours": summary(mine), "theirs": summary(other), "steps": size.steps}
    return times


class _Pair:
    """One model twice, with all that its steps need."""

    def __init__(
        self, name: str, facts: Facts, n_entities: int, n_relations: int, size: Size
    ) -> None:
        from benchmarks.pykeen_models import make_pair

        self.name, self.size, self.n_entities = name, size, n_entities
        self.sampled = name == "transe"
        self.rows = size.facts if self.sampled else size.batch
        triples = torch.tensor(facts.rows()[:, [1, 0, 2]])  # head, relation, tail
        ours, self.model = make_pair(
            name, size.dim, n_entities, n_relations, reciprocal=not self.sampled, triples=triples
        )
        regime = {"regime": "kvsall"}
        if self.sampled:
            regime = {"regime": "sampled", "sampled_loss": "margin", "shared_negatives": False}  # type: ignore[dict-item]
            regime["negatives"] = size.negatives // 2  # type: ignore[assignment]
        self.trainer: Trainer = make_trainer(ours, {2: facts}, batch_size=self.rows, **regime)
        batches = shuffled_batches(
            self.trainer.regime.sizes, self.rows, torch.Generator().manual_seed(0)
        )
        self.batches = [batch for batch in batches if len(batch.rows) == self.rows]
        self.loop, self.optimizer = self._their_loop(triples, n_entities, n_relations)

    def works(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """So many steps of ours, so many of theirs; both were found to score and to lose alike."""
        self._check()
        ready = cycle(
            [
                self._their_batch(self.trainer.regime.prepare(batch))
                for batch in self.batches[:READY]
            ]
        )
        coming = cycle(self.batches)

        def ours() -> None:
            for batch in islice(coming, self.size.steps):
                self.trainer.step(self.trainer.regime.prepare(batch))

        def theirs() -> None:
            for batch in islice(ready, self.size.steps):
                self._their_step(batch)

        return ours, theirs

    def _their_loop(
        self, triples: Tensor, n_entities: int, n_relations: int
    ) -> tuple[Any, torch.optim.Optimizer]:
        from pykeen.losses import CrossEntropyLoss, MarginRankingLoss
        from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
        from pykeen.triples import CoreTriplesFactory

        factory = CoreTriplesFactory(
            triples,
            num_entities=n_entities,
            num_relations=n_relations,
            create_inverse_triples=not self.sampled,
        )
        self.model.loss = MarginRankingLoss(margin=1.0) if self.sampled else CrossEntropyLoss()
        optimizer = torch.optim.Adam(self.model.get_grad_params(), lr=1e-3)
        kind = SLCWATrainingLoop if self.sampled else LCWATrainingLoop
        return kind(model=self.model, triples_factory=factory, optimizer=optimizer), optimizer

    def _their_step(self, batch: dict[str, Tensor]) -> float:
        """As their loop does it."""
        self.optimizer.zero_grad()
        loss: float = self.loop._forward_pass(batch, 0, self.rows, self.rows, 0.0, None)
        self.optimizer.step()
        self.model.post_parameter_update()
        return loss

    def _their_batch(self, ours: Any) -> dict[str, Tensor]:
        """The same questions (TransE: facts and negatives) as PyKEEN holds them."""
        if self.sampled:
            relation, (head, tail) = ours.facts.relation, ours.facts.entities.unbind(1)
            k = ours.negatives.ids.shape[2]
            wrong = torch.stack([head, relation, tail], dim=1)[:, None].repeat(1, 2 * k, 1)
            wrong[:, :k, 0], wrong[:, k:, 2] = ours.negatives.ids[:, 0], ours.negatives.ids[:, 1]
            return {"positives": torch.stack([head, relation, tail], dim=1), "negatives": wrong}
        given = ours.entities[:, 1 - ours.position]
        pairs = torch.stack([given, 2 * ours.relation + (ours.position == 0)], dim=1)
        target = torch.zeros(len(pairs), self.n_entities)
        target[ours.answers] = 1
        return {"pairs": pairs, "target": target}

    @torch.no_grad()
    def _check(self) -> None:
        """The same scores, and the same loss of a batch in which no negative is left out."""
        ours = self.trainer.model.eval()
        self.model.eval()
        for batch in self._some():
            prepared: Any = self.trainer.regime.prepare(batch)
            theirs = self._their_batch(prepared)
            if self.sampled:
                own = torch.cat(
                    [prepared.facts.entities.unsqueeze(2), prepared.negatives.ids], dim=2
                )
                scores = ours.score_positions(
                    prepared.facts.relation, prepared.facts.entities, own
                )[0]
                right, wrong = (
                    self.model.score_hrt(theirs["positives"]),
                    self.model.score_hrt(theirs["negatives"].view(-1, 3)),
                )
                expected = wrong.view(len(right), 2, -1)
                torch.testing.assert_close(scores[:, :, 1:], expected, rtol=1e-4, atol=1e-4)
                torch.testing.assert_close(
                    scores[:, :, 0], right.expand(-1, 2), rtol=1e-4, atol=1e-4
                )
            else:
                scores = ours.score_candidates(
                    prepared.relation, prepared.entities, prepared.position
                )
                torch.testing.assert_close(
                    scores, self.model.score_t(theirs["pairs"]), rtol=1e-4, atol=1e-4
                )
            ours.zero_grad()
            with torch.enable_grad():
                mine = self.trainer.regime.prepare(batch).backward(ours)
                loss = self.loop._process_batch(theirs, 0, len(batch.rows)).item()
            assert abs(mine - loss) < 1e-3 * abs(loss), (self.name, mine, loss)
        ours.train()
        self.model.train()

    def _some(self) -> Iterator[Any]:
        """Yield batches to check: one per position; for TransE, one without a left-out negative."""
        if self.sampled:
            few = (Batch(batch.block, batch.rows[:8], batch.place) for batch in self.batches)
            yield next(batch for batch in few if not len(self._prepared(batch).left_out))
            return
        for position in range(2):
            yield next(batch for batch in self.batches if batch.block == position)
