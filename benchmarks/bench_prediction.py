"""How long the ten best answers of ``Run.predict`` take, by the number of entities.

A 4-ary GETD with d = 25 and random weights. *Bare* is the product of the query with the table and
``topk``, for one question or for all hundred together; ``predict`` does names, the query, the
filter of known answers and probabilities beside. Both must find the same answers. Times are the
best of several.

A calibrated run gives confidence too: it asks for every other position of every answer. The same
confidences must come from rating the facts that the answers make. Their *bare products* are those
of the queries with the table, and the sums of powers of the scores.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import torch
from torch import Tensor

from benchmarks.harness import Figure, Plot, Result, Series, best
from benchmarks.subjects import Shape, make_model, random_facts
from getd.calibration.calibrate import Calibration
from getd.calibration.confidence import Confidence
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation, default_roles
from getd.facts.vocabulary import Vocabulary
from getd.prediction.answer import Answer, Answers
from getd.prediction.question import fill_positions, parse_question
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun

ENTITIES, QUESTIONS, TOP, POSITION = (10_000, 100_000, 1_000_000), 100, 10, 1
TOGETHER = 32  # questions in a batch
KINDS = ("predict, 1 question", "bare, 1 question", "predict, 100 questions", "bare, 100 questions")


def measure(quick: bool = False) -> Result:
    """Latency for one question and for many, by the number of entities."""
    sizes, questions = ((100, 200), 4) if quick else (ENTITIES, QUESTIONS)
    by_size = {n: _times(Shape(4, 25, 25, n), questions, repeats=1 if quick else 7) for n in sizes}
    x = [float(n) for n in sizes]
    confident = {
        dim: _confident_times(Shape(4, dim, dim, sizes[0]), 4 if quick else TOGETHER, quick)
        for dim in (25, 50)
    }
    figures = [
        Figure(f"one question, {n:,} entities", 1000 * times[0], "ms")
        for n, times in by_size.items()
    ]
    figures += [
        Figure(f"one question over bare, {n:,} entities", t[0] / t[1], "x")
        for n, t in by_size.items()
    ]
    figures += [
        Figure(f"{questions} questions, {n:,} entities", 1000 * times[2], "ms")
        for n, times in by_size.items()
    ]
    figures += _confident_figures(confident, sizes[0])
    return Result(
        name="prediction",
        figures=figures,
        plots=[
            Plot(
                f"the {TOP} best answers",
                "entities",
                "ms",
                [
                    Series(kind, x, [1000 * by_size[n][i] for n in sizes])
                    for i, kind in enumerate(KINDS)
                ],
            )
        ],
        details={
            "seconds": {
                str(n): dict(zip(KINDS, times, strict=True)) for n, times in by_size.items()
            },
            "confident seconds": {str(dim): times for dim, times in confident.items()},
            "questions": questions,
            "top": TOP,
            "threads": torch.get_num_threads(),
        },
        packages=("getd", "polars", "torch"),
    )


def _confident_figures(confident: dict[int, list[float]], n: int) -> list[Figure]:
    figures = []
    for dim, (one, one_by_one, batch, bare) in confident.items():
        label = f"with confidence, d = R = {dim}, {n:,} entities"
        is_subject = dim == min(confident)
        figures += [
            Figure(f"one question {label}", 1000 * one, "ms", 1.5 if is_subject else None),
            Figure(
                f"{TOGETHER} as a batch over one by one, {label}",
                one_by_one / batch,
                "x",
                10.0 if is_subject else None,
                at_least=True,
            ),
            Figure(f"{TOGETHER} questions {label}", 1000 * batch, "ms"),
            Figure(f"{TOGETHER} questions over bare products, {label}", batch / bare, "x"),
        ]
    return figures


def _confident_times(shape: Shape, together: int, quick: bool) -> list[float]:
    """One question by name; many one by one, and as a batch; the products that a batch needs."""
    run, facts = _run(shape, together)
    arity = str(shape.arity)
    curve = Confidence(slope=0.5, fit_slope=0.5, intercept=2.0)
    run.opened.calibration = Calibration(temperature={arity: 0.7}, confidence={arity: curve})
    names = [_question(run, facts, row) for row in range(together)]
    questions = [run.question(*name) for name in names]
    _check_confidence(run, facts, run.answer(questions, TOP))

    table = run.model.entity.weight.detach()
    queries = torch.randn(together * TOP * (shape.arity - 1), shape.dim)
    tiles = torch.split(queries, max(1, 2**20 // shape.n_entities))

    def bare() -> None:
        for tile in tiles:
            (tile @ table.T).exp2_().sum(dim=1)

    repeats = 1 if quick else 7
    one = min(best(lambda: run.predict(*names[0], top=TOP), repeats=10 * repeats))
    many = best(
        lambda: [run.answer([question], TOP) for question in questions],
        lambda: run.answer(questions, TOP),
        bare,
        repeats=repeats,
    )
    return [one, *many]


def _check_confidence(run: Run, facts: Facts, predicted: list[Answers]) -> None:
    """The confidence in an answer is that in the fact it makes, rated by itself."""
    for row, answers in enumerate(predicted):
        ids = run.kb.entities.ids([answer.name for answer in answers])
        filled = fill_positions(facts.take(np.full(len(ids), row)), POSITION, ids)
        confidences = [rating.confidence for rating in run.predictor.rate(filled)]
        assert None not in confidences
        given = [answer.confidence for answer in answers]
        np.testing.assert_allclose(given, confidences, atol=1e-5)  # type: ignore[arg-type]


def _times(shape: Shape, questions: int, repeats: int) -> tuple[float, float, float, float]:
    run, facts = _run(shape, questions)
    parsed = [_question(run, facts, row) for row in range(questions)]
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    with torch.no_grad():
        query = run.model.query(relation, entities, POSITION)  # (questions, d)
    first, table = query[:1].contiguous(), run.model.candidates(POSITION).detach()
    answers: list[list[Answer]] = []

    def bare(vectors: Tensor) -> Tensor:
        return torch.topk(vectors @ table.T, TOP, dim=1).indices

    def predict() -> None:
        answers[:] = run.answer([parse_question(run.kb, *question) for question in parsed], top=TOP)

    one, bare_one = best(
        lambda: run.predict(*parsed[0], top=TOP), lambda: bare(first), repeats=repeats
    )
    many, bare_many = best(predict, lambda: bare(query), repeats=min(repeats, 2))
    _check(run, facts, query @ table.T, answers)
    return one, bare_one, many, bare_many


def _run(shape: Shape, questions: int) -> tuple[Run, Facts]:
    """A run as training would leave it, but in memory and with random weights."""
    names = pl.Series([f"entity{i:07d}" for i in range(shape.n_entities)])
    labels = [f"relation{i:02d}" for i in range(shape.n_relations)]
    facts = random_facts(shape, questions)
    kb = KnowledgeBase(
        name="random",
        entities=Vocabulary(names),
        relations=Vocabulary(labels),
        signatures=tuple(Relation(label, default_roles(shape.arity)) for label in labels),
        splits=MappingProxyType({"train": {shape.arity: facts}}),
        duplicates=MappingProxyType({}),
    )
    run = Run(OpenedRun(RunFolder(Path("nowhere")), kb, make_model(shape).eval()))
    run.predictor.prepare()  # the indexes are built before the first question, not with it
    return run, facts


def _question(run: Run, facts: Facts, row: int) -> tuple[str, list[str]]:
    names = run.kb.entities.decode(facts.entities[row])
    return run.kb.relations[int(facts.relation[row])], [
        *names[:POSITION],
        "?",
        *names[POSITION + 1 :],
    ]


def _check(run: Run, facts: Facts, scores: Tensor, predicted: list[list[Answer]]) -> None:
    """The answers score like the best that are not known; up to rounding, so near ties may swap."""
    scores = scores.clone()
    known = run.predictor.known.lookup(facts.relation, facts.entities, POSITION)
    scores[torch.tensor(known.rows), torch.tensor(known.values)] = -torch.inf
    expected = torch.topk(scores, TOP, dim=1).values
    for row, answers in enumerate(predicted):
        ids = torch.tensor(np.array(run.kb.entities.ids([answer.name for answer in answers])))
        assert len(set(ids.tolist())) == TOP
        torch.testing.assert_close(scores[row, ids], expected[row], rtol=1e-4, atol=1e-6)
        given = torch.tensor([answer.score for answer in answers])
        torch.testing.assert_close(given, expected[row], rtol=1e-4, atol=1e-6)
