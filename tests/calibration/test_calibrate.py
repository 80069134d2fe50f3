"""What a calibration is fitted on, what it gains, and its file."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.calibration.calibrate import (
    Calibration,
    CalibrationFile,
    calibrate,
    calibration_facts,
    reliability,
)
from getd.calibration.temperature import fit_temperature
from getd.errors import RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.models.getd import GETD
from tests.calibration.reference_calibration import NAMES, random_kb
from tests.evaluation.reference_evaluation import Table


class Constant(Table):
    """A model that finds everything equally likely."""

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        return torch.zeros_like(super().score_candidates(relation, entities, position, candidates))


def fitted(model: type[Table], kb: KnowledgeBase) -> Calibration:
    untrained: ScoringModel = model(kb.n_relations, kb.n_entities)
    return calibrate(untrained.eval(), kb)


def test_no_fact_of_test_plays_a_part() -> None:
    """Poisoned: facts of a relation that valid lacks. They filter no question, but fill slots."""
    poison = [("s", *names) for names in product(NAMES[:7], repeat=3)]
    calibration = fitted(Table, random_kb())
    assert calibration.confidence["3"].fit_slope > 0
    assert fitted(Table, random_kb(poison)) == calibration


def test_true_facts_weigh_as_much_as_false_ones() -> None:
    """Where nothing tells them apart, facts are as likely true as false, though more are false."""
    pairs = [(f"e{i}", f"e{j}") for i in range(12) for j in range(12) if i != j]
    held_out = [pair for number, pair in enumerate(pairs) if number % 2]
    kept = [pair for number, pair in enumerate(pairs) if not number % 2]
    kb = KnowledgeBase.from_facts(
        {"train": [("r", *pair) for pair in kept], "valid": [("r", *pair) for pair in held_out]}
    )
    confidence = fitted(Constant, kb).confidence["2"]
    assert confidence.of(np.array([-math.log(7)]), np.ones(1))[0] == pytest.approx(0.5, abs=0.07)


def test_calibration_is_better_than_none_and_confidence_rises(
    kb: KnowledgeBase, model: GETD
) -> None:
    fitted, facts = calibrate(model, kb, sample=120), calibration_facts(model, kb, sample=120)
    known = kb.known("train", "valid")
    before, after = reliability(model, facts, known, [Calibration(), fitted])
    assert after.error <= before.error
    for arity in kb.arities:
        confidences = [
            fitted.confidence_of(arity, np.array([x]), np.array([f]))
            for x in (-20.0, -5.0, -0.1)
            for f in (0.0, 1.0)
        ]
        values = [float(value[0]) for value in confidences if value is not None]
        assert values[0::2] == sorted(values[0::2])
        assert all(
            worse <= better for worse, better in zip(values[0::2], values[1::2], strict=True)
        )
        assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize(("shape", "least"), [("logistic", 1000), ("isotonic", 1)])
def test_both_shapes_are_kept_and_read_again(
    kb: KnowledgeBase, model: GETD, shape: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getd.calibration.confidence.ISOTONIC_FACTS", least)
    fitted = calibrate(model, kb, sample=60)
    again = Calibration.model_validate_json(fitted.model_dump_json())
    assert again == fitted
    assert {confidence.shape for confidence in again.confidence.values()} == {shape}


def test_arities_of_few_facts_are_fitted_with_the_others(kb: KnowledgeBase, model: GETD) -> None:
    valid = kb.split("valid")
    few = kb.with_splits(
        train=kb.split("train"),
        valid={**valid, 4: valid[4].take(slice(0, 3))},
        test=kb.split("test"),
    )
    pooled = fit_temperature(model, few.split("valid"), few.known("train", "valid"))
    assert calibrate(model, few).temperature["4"] == pooled
    tiny = {arity: facts.take(slice(0, 2)) for arity, facts in valid.items()}
    assert set(
        calibrate(model, kb.with_splits(train=kb.split("train"), valid=tiny)).temperature.values()
    ) == {1.0}


def test_the_file_holds_the_calibration_and_what_it_gains(kb: KnowledgeBase, model: GETD) -> None:
    file = CalibrationFile.fit(model, kb, 60, "a fingerprint")
    assert file.calibration == calibrate(model, kb, 60)
    again = CalibrationFile.parse(json.loads(json.dumps(file.as_dict())), Path("calibration.json"))
    assert again == file
    assert list(file.as_dict()) == ["temperature", "confidence", "valid", "fitted_to"]
    assert file.valid is not None
    assert file.valid.after.error <= file.valid.before.error


def test_a_file_that_is_read_and_written_has_the_keys_it_had() -> None:
    value = {"temperature": {"2": 1.5}, "confidence": {}, "more": 3}
    file = CalibrationFile.parse(value, Path("calibration.json"))
    assert file.model_copy(update={"fitted_to": "x"}).as_dict() == {**value, "fitted_to": "x"}
    with pytest.raises(RunError, match=r"^calibration.json: expected a calibration, found another"):
        CalibrationFile.parse({"temperature": {}}, Path("calibration.json"))
