"""Explanations are training facts that the answer rests on."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from experiments.using import demo_rules
from getd.evaluation.ranks import rank_facts
from getd.run import Run
from getd.runs.opened import OpenedRun


def test_a_fact_is_no_reason_for_itself(small: Run) -> None:
    (facts,) = small.kb.split("train").values()
    for row in range(4):
        fact = facts.take(slice(row, row + 1))
        for why in small.predictor.explain_fact(fact, range(3), top=100):
            assert why.facts
            assert small.kb.decode(fact)[0] not in {reason.fact for reason in why.facts}


def test_the_demo_s_reasons_are_facts_of_its_rules(demo_run: Run) -> None:
    kb = demo_run.kb
    is_rule = []
    follows = demo_rules(kb)
    for facts in kb.split("test").values():
        sample = facts.take(slice(0, 25))
        ranks = rank_facts(demo_run.model, sample, demo_run.predictor.known).rank
        for row, position in np.argwhere(ranks == 1).tolist():
            fact = sample.take(slice(row, row + 1))
            (why,) = demo_run.predictor.explain_fact(fact, [position])
            is_rule.append(any(follows(kb.decode(fact)[0], reason.fact) for reason in why.facts))
            assert 0 < sum(reason.pull for reason in why.facts) <= 1 + 1e-9
    assert len(is_rule) > 150
    assert sum(is_rule) / len(is_rule) >= 0.8


def test_a_model_that_tells_nothing_apart_has_no_reasons(small: Run) -> None:
    model = deepcopy(small.model)
    for parameter in model.parameters():
        parameter.data.zero_()
    run = Run(OpenedRun(small.folder, small.kb, model))

    (facts,) = small.kb.split("train").values()
    reasons = [why.facts for why in run.predictor.explain_fact(facts.take(slice(1)), range(3))]
    assert reasons == [(), (), ()]
