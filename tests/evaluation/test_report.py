"""Evaluations as objects, as JSON, and as a notebook shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import getd
from getd.evaluation.evaluate import baseline_models, evaluate
from getd.evaluation.protocol import Choice, Protocol, Provenance
from getd.evaluation.report import Evaluation, Report


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    kb = getd.load("demo")
    epoch = Choice("valid", ("train", "valid"), 20)
    model = baseline_models(kb)["lookup"]
    return evaluate(model, kb, sample=30, provenance=Provenance(epoch=epoch))


def test_an_evaluation_comes_back_from_its_json(evaluation: Evaluation) -> None:
    text = json.dumps(evaluation.as_dict())
    again = Evaluation.model_validate(json.loads(text))
    assert again == evaluation
    assert json.dumps(again.as_dict()) == text


def as_of_before(value: Any) -> Any:
    """A report of the time when baselines were called floors and chance was not measured."""
    if not isinstance(value, dict):
        return value
    names = {"baselines": "floors"}
    lost = ("mrr_at_chance", "level", "members")
    return {names.get(k, k): as_of_before(v) for k, v in value.items() if k not in lost}


def test_a_report_of_an_older_version_is_read(evaluation: Evaluation) -> None:
    report = Report.model_validate({**as_of_before(evaluation.as_dict()), "best_epoch": 3})
    assert report.best_epoch == 3
    assert {name: metrics.mrr for name, metrics in report.baselines.items()} == {
        name: metrics.mrr for name, metrics in evaluation.baselines.items()
    }
    groups = evaluation.by["arity"]
    assert {name: group.baselines for name, group in report.by["arity"].items()} == {
        name: group.baselines for name, group in groups.items()
    }
    assert report.protocol.sentence() == evaluation.protocol.sentence()


def test_a_key_that_was_not_given_is_not_written() -> None:
    protocol = Protocol(split="valid", trained_on=("train",), filter="nothing")
    assert protocol.as_dict() == {"split": "valid", "trained_on": ["train"], "filter": "nothing"}


def test_the_epoch_of_a_protocol_may_be_chosen_on_another_split(evaluation: Evaluation) -> None:
    before = evaluation.protocol.as_dict()
    after = evaluation.protocol.with_epoch_chosen_on("test").as_dict()
    assert after == {**before, "epoch": {**before["epoch"], "chosen_on": "test"}}


def test_an_evaluation_shows_its_metrics_in_a_line(evaluation: Evaluation) -> None:
    shown = repr(evaluation)
    assert shown.startswith(f"<Evaluation on test: MRR {evaluation.mrr:.4f}, Hits@1 ")
    assert str(evaluation) == shown


def test_a_notebook_shows_the_baselines_and_nothing_that_acts(evaluation: Evaluation) -> None:
    baselines = {**evaluation.baselines, "<script>": evaluation.metrics}
    page = evaluation.model_copy(update={"baselines": baselines})._repr_html_()
    for metrics in baselines.values():
        assert f"<td>{metrics.hits_at_10:.4f}</td>" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "20 facts" in page
