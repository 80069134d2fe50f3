"""Ranking a test set: filtered ranks from given scores, and a GETD ranked from its weights.

*Given scores*: the test questions of WN18, both positions, each with a random float32 score for
each of the 40,943 entities. All find the same ranks and numbers of candidates:

- ours: the index of known answers is built from all facts, looked up for the questions, and the
  scores are ranked (``rank_scores``). Every score is checked to be finite, which the others do not
  do.
- PyKEEN: what its evaluator does to a batch, with its functions:
  ``create_sparse_positive_filter_``, ``filter_scores_``, ``RankBasedEvaluator.process_scores_``. It
  overwrites scores, so it has a copy, made beforehand. The batch size is the quickest of several,
  found beforehand, with filters to make and without.
- *filters ready*: both without making filters.
- sorting: known answers get the score of minus infinity, each row is sorted by numpy, and the
  answer is found by bisection; on the first questions only, ours on the same.
- reading: the sum of all scores, by torch. The scores do not fit into any cache, so nobody can be
  quicker.

*From weights*: ``rank_facts`` of a GETD with d = R = 50 on the test set of WikiPeople-3, over its
bare products: the queries of all questions, and their products with the table into one buffer, at
shapes that are good for them.

Times are the best of several, taking turns, with torch's own number of threads.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import Figure, Plot, Result, Series, Skipped, best
from benchmarks.subjects import Shape, make_model, random_facts
from getd.datasets.load import load
from getd.errors import GetdError
from getd.evaluation.rank_scores import Ranks, rank_scores
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.getd import GETD

POSITIONS = (0, 1)
BATCHES = (1, 2, 4, 8, 32, 128)
TRIED = 512  # questions on which the batch size is found
SORTED, ROWS, COLUMNS = 200, 512, 4096
Given = tuple[
    list[Facts], Facts, int, int
]  # the facts of all splits, those asked, how many relations and entities


def measure(quick: bool = False) -> Result:
    """All figures of ranking; with ``quick`` on small random knowledge bases."""
    given = _random_facts(2) if quick else _real_facts("WN18")
    seconds, batches = _from_scores(given, repeats=1 if quick else 5)
    ours, ready = seconds["ours"], seconds["ours, filters ready"]
    weights = _from_weights(_random_facts(3) if quick else _real_facts("WikiPeople-3"), quick)
    shown = [name for name in seconds if "first" not in name]
    return Result(
        name="ranking",
        figures=[
            Figure("PyKEEN over ours", seconds["PyKEEN"] / ours, "x", 3, at_least=True),
            Figure(
                "PyKEEN over ours, filters ready",
                seconds["PyKEEN, filters ready"] / ready,
                "x",
                3,
                at_least=True,
            ),
            Figure(
                "sorting over ours",
                seconds["sorting, first"] / seconds["ours, first"],
                "x",
                3,
                at_least=True,
            ),
            Figure("ours over reading the scores", ours / seconds["reading"], "x"),
            Figure("ours over reading the scores, filters ready", ready / seconds["reading"], "x"),
            Figure(
                "a test set from weights, over its bare products",
                weights["ranking"] / weights["bare"],
                "x",
            ),
        ],
        plots=[
            Plot(
                "filtered ranks from given scores",
                "",
                "s",
                [
                    Series(
                        "seconds",
                        [float(i) for i in range(len(shown))],
                        [seconds[name] for name in shown],
                    )
                ],
                log=False,
                x_ticks=shown,
            )
        ],
        details={
            "seconds": seconds,
            "seconds from weights": weights,
            "questions": len(POSITIONS) * len(given[1]),
            "candidates": given[3],
            "PyKEEN's batch sizes": batches,
            "threads": torch.get_num_threads(),
        },
        packages=("getd", "numpy", "pykeen", "torch"),
    )


def _real_facts(name: str) -> Given:
    try:
        kb = load(name)
    except GetdError as error:
        raise Skipped(f"{name} is needed: {error}") from error
    (arity,) = kb.arities
    splits = [kb.split(split)[arity] for split in kb.splits]
    return splits, kb.split("test")[arity], kb.n_relations, kb.n_entities


def _random_facts(arity: int) -> Given:
    shape = Shape(arity, dim=4, rank=4, n_entities=30, n_relations=2)
    splits = [random_facts(shape, n, seed) for seed, n in enumerate((300, 60))]
    return splits, splits[1], shape.n_relations, shape.n_entities


def _from_scores(given: Given, repeats: int) -> tuple[dict[str, float], list[int]]:
    """The seconds of each way from scores to ranks, and PyKEEN's best batch sizes."""
    splits, facts, _, n_entities = given
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randn(len(facts), n_entities, generator=generator) for _ in POSITIONS]
    known = _known(given)
    answers = [known.lookup(facts.relation, facts.entities, position) for position in POSITIONS]

    def ours() -> list[Ranks]:
        index = _known(given)
        left_out = [
            index.lookup(facts.relation, facts.entities, position) for position in POSITIONS
        ]
        return [rank_scores(scores[p], facts.entities[:, p], left_out[p]) for p in POSITIONS]

    def ours_ready() -> list[Ranks]:
        return [rank_scores(scores[p], facts.entities[:, p], answers[p]) for p in POSITIONS]

    first = facts.take(np.arange(len(facts)) < SORTED)
    heads = [matrix[:SORTED] for matrix in scores]

    def ours_first() -> list[Ranks]:
        left_out = [
            known.lookup(first.relation, first.entities, position) for position in POSITIONS
        ]
        return [rank_scores(heads[p], first.entities[:, p], left_out[p]) for p in POSITIONS]

    pykeen = _PyKEEN(splits, facts, [matrix.clone() for matrix in scores])
    for theirs in (pykeen.rank(BATCHES[1]), pykeen.rank(BATCHES[-1])):
        for mine, other in zip(ours(), theirs, strict=True):
            assert np.array_equal(mine.rank, other.rank)
            assert np.array_equal(mine.candidates, other.candidates)
    for mine, other_rank in zip(ours_first(), _sort(heads, first, known), strict=True):
        assert np.array_equal(mine.rank, other_rank)

    batch = pykeen.best_batch(ready=False, repeats=min(repeats, 3))
    batch_ready = pykeen.best_batch(ready=True, repeats=min(repeats, 3))
    filters = pykeen.filters(batch_ready)
    works: dict[str, Callable[[], object]] = {
        "reading": lambda: [matrix.sum() for matrix in scores],
        "ours": ours,
        "ours, filters ready": ours_ready,
        "PyKEEN": lambda: pykeen.rank(batch),
        "PyKEEN, filters ready": lambda: pykeen.rank(batch_ready, filters),
        "ours, first": ours_first,
        "sorting, first": lambda: _sort(heads, first, known),
    }
    return dict(zip(works, best(*works.values(), repeats=repeats), strict=True)), [
        batch,
        batch_ready,
    ]


def _known(given: Given) -> KnownAnswers:
    splits, facts, *_ = given
    return KnownAnswers.build([{facts.arity: part} for part in splits])


class _PyKEEN:
    """PyKEEN's evaluator on given scores."""

    def __init__(self, splits: Sequence[Facts], facts: Facts, scores: list[Tensor]) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            warnings.catch_warnings(),
            patch.dict(os.environ),
        ):
            warnings.simplefilter("ignore")
            os.environ["PYSTOW_HOME"] = folder  # where it makes folders as soon as it is imported
            from pykeen.evaluation import RankBasedEvaluator
            from pykeen.evaluation.evaluator import create_sparse_positive_filter_, filter_scores_
        self.make_filter, self.filter_scores = create_sparse_positive_filter_, filter_scores_
        self.evaluator: Any = RankBasedEvaluator()
        self.triples = _triples(facts)
        self.known = torch.cat([_triples(part) for part in splits])
        self.scores = scores

    def batches(self, size: int, most: int | None) -> Iterator[tuple[slice, Tensor]]:
        for start in range(0, min(most or len(self.triples), len(self.triples)), size):
            rows = slice(start, start + size)
            yield rows, self.triples[rows]

    def filters(self, size: int, most: int | None = None) -> list[list[Tensor]]:
        return [self.filters_of(batch) for _, batch in self.batches(size, most)]

    def filters_of(self, batch: Tensor) -> list[Tensor]:
        """The filters of both positions, which share what they can."""
        head, same_relation = self.make_filter(batch, self.known, None, filter_col=0)
        tail, _ = self.make_filter(batch, self.known, same_relation, filter_col=2)
        return [head, tail]

    def best_batch(self, ready: bool, repeats: int) -> int:
        filters = {size: self.filters(size, TRIED) if ready else None for size in BATCHES}
        works = [partial(self.rank, size, filters[size], TRIED) for size in BATCHES]
        return BATCHES[int(np.argmin(best(*works, repeats=repeats)))]

    def rank(
        self, size: int, filters: list[list[Tensor]] | None = None, most: int | None = None
    ) -> list[Ranks]:
        self.evaluator.clear()
        for number, (rows, batch) in enumerate(self.batches(size, most)):
            batch_filters = self.filters_of(batch) if filters is None else filters[number]
            line = torch.arange(len(batch))
            for target, column, left_out, matrix in zip(
                ("head", "tail"), (0, 2), batch_filters, self.scores, strict=True
            ):
                scores, answers = matrix[rows], batch[:, column]
                right = scores[line, answers]
                scores = self.filter_scores(scores, left_out)
                scores[line, answers] = right
                self.evaluator.process_scores_(batch, target, scores, right[:, None])
        return [
            Ranks(
                np.concatenate(self.evaluator.ranks[target, "realistic"]).astype(np.float64),
                np.concatenate(self.evaluator.num_candidates[target]),
            )
            for target in ("head", "tail")
        ]


def _triples(facts: Facts) -> Tensor:
    return torch.tensor(
        np.column_stack([facts.entities[:, 0], facts.relation, facts.entities[:, 1]])
    )


def _sort(scores: list[Tensor], facts: Facts, known: KnownAnswers) -> list[np.ndarray]:
    """Rank by sorting each row; what is left out comes last, below the answer."""
    ranks = []
    for position, matrix in zip(POSITIONS, scores, strict=True):
        left_out, answers = (
            known.lookup(facts.relation, facts.entities, position),
            facts.entities[:, position],
        )
        ordered, line = matrix.numpy().copy(), np.arange(len(facts))
        right = ordered[line, answers]
        ordered[left_out.rows, left_out.values] = -np.inf
        ordered[line, answers] = right
        ordered.sort(axis=1)
        below = [np.searchsorted(row, limit) for row, limit in zip(ordered, right, strict=True)]
        at_most = [
            np.searchsorted(row, limit, side="right")
            for row, limit in zip(ordered, right, strict=True)
        ]
        above, level = ordered.shape[1] - np.array(at_most), np.subtract(at_most, below) - 1
        ranks.append(1 + above + level / 2)
    return ranks


def _from_weights(given: Given, quick: bool) -> dict[str, float]:
    """The seconds of ranking a GETD, and of its products alone."""
    _, facts, n_relations, n_entities = given
    size = 4 if quick else 50
    model = make_model(Shape(facts.arity, size, size, n_entities, n_relations)).eval()
    known = _known(given)
    with torch.no_grad():
        ranks = rank_facts(model, facts, known)
        assert ranks.rank.shape == facts.entities.shape
        queries = _queries(model, facts)
        scores = queries[0] @ model.candidates(0).T
        left_out = known.lookup(facts.relation, facts.entities, 0)
        from_scores = rank_scores(scores, facts.entities[:, 0], left_out)
        # Scores may round differently, and change places.
        assert np.abs(from_scores.rank - ranks.rank[:, 0]).mean() < 1
        buffer = torch.empty(ROWS * COLUMNS)

        def bare() -> None:
            for position, query in enumerate(_queries(model, facts)):
                for rows in query.split(ROWS):
                    for table in model.candidates(position).split(COLUMNS):
                        out = buffer[: len(rows) * len(table)].view(len(rows), len(table))
                        torch.mm(rows, table.T, out=out)

        ranking, products = best(
            lambda: rank_facts(model, facts, known), bare, repeats=2 if quick else 7
        )
    return {"ranking": ranking, "bare": products}


def _queries(model: GETD, facts: Facts) -> list[Tensor]:
    relation, entities = (
        torch.tensor(facts.relation).split(ROWS),
        torch.tensor(facts.entities).split(ROWS),
    )
    pairs = list(zip(relation, entities, strict=True))
    return [
        torch.cat([model.query(r, e, position) for r, e in pairs])
        for position in range(facts.arity)
    ]
