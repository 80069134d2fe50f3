"""What is fitted to a trained model on validation, and kept in its run: a memory, a calibration."""

from __future__ import annotations

from typing import Any

from getd.calibration.calibrate import Calibration, calibrate, calibration_facts, reliability
from getd.evaluation.evaluate import validation_mrr
from getd.evaluation.protocol import filter_splits, known_for_choosing
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory, WithMemory
from getd.models.base import ScoringModel
from getd.runs.fingerprint import weights_fingerprint
from getd.runs.lock import owned
from getd.runs.opened import OpenedRun
from getd.runs.stored import model_fingerprint


def remember(run: OpenedRun, sample: int | None = None) -> float:
    """Give a run a memory of its training facts; returns the MRR on validation.

    The weights of the memory are fitted on validation, then the run is calibrated again. Test is
    not read. ``sample`` is the number of validation facts to fit on, drawn at random; None: all.
    """
    kb = run.kb
    bare = run.model.bare
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)

    with owned(run.path):
        weights = fit_weights(bare, memory, kb, sample)
        model = WithMemory(bare, memory, weights)
        mrr = validation_mrr(model, kb.split("valid"), known_for_choosing(kb), sample=sample)
        calibration, calibration_file = _calibrated(run, model, sample)

        memory_file = {
            "weights": {name: values.model_dump() for name, values in weights.items()},
            "valid_mrr": mrr,
            "sample": sample,
            "filter": filter_splits(kb, "valid"),
            "fitted_to": weights_fingerprint(bare.state_dict()),
        }
        run.folder.write_json_files(
            {"memory.json": memory_file, "calibration.json": calibration_file}
        )
        run.model = model
        run.calibration = calibration
        run.notices = ()
    return mrr


def recalibrate(run: OpenedRun, sample: int | None = None) -> Calibration:
    """Fit on validation what turns scores into probabilities, and keep it in the run.

    ``sample`` is the largest number of validation facts to fit on, drawn at random.
    """
    with owned(run.path):
        calibration, calibration_file = _calibrated(run, run.model, sample)
        run.folder.write_json("calibration.json", calibration_file)
        run.calibration = calibration
        run.notices = ()
    return calibration


def _calibrated(
    run: OpenedRun, model: ScoringModel, sample: int | None
) -> tuple[Calibration, dict[str, Any]]:
    """Calibrate a model; returns the calibration and the content of its file."""
    calibration = calibrate(model, run.kb, sample)
    facts = calibration_facts(model, run.kb, sample)
    known = known_for_choosing(run.kb)
    before, after = reliability(model, facts, known, [Calibration(), calibration])

    measured = {"before": before.as_dict(), "after": after.as_dict(), "sample": sample}
    fitted_to = model_fingerprint(model)
    return calibration, {**calibration.model_dump(), "valid": measured, "fitted_to": fitted_to}
