"""What is fitted to a trained model on validation, and kept in its run: a memory, a calibration."""

from getd.calibration.calibrate import CalibrationFile
from getd.evaluation.evaluate import validation_mrr
from getd.evaluation.protocol import Sample, filter_splits, known_for_choosing
from getd.facts.facts import count
from getd.memory.fit import facts_to_fit, fit_weights
from getd.memory.memory import Memory
from getd.memory.weights import MemoryFile
from getd.memory.with_memory import WithMemory
from getd.runs.fingerprint import weights_fingerprint
from getd.runs.lock import owned
from getd.runs.opened import OpenedRun, model_fingerprint


def remember(run: OpenedRun, sample: Sample = None) -> MemoryFile:
    """Give a run a memory of its training facts; returns what is stored of it.

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
        calibration_file = CalibrationFile.fit(model, kb, sample, model_fingerprint(model))

        n_fitted = count(facts_to_fit(memory, kb, sample))
        memory_file = MemoryFile(
            weights=weights,
            valid_mrr=mrr,
            sample=n_fitted if n_fitted < count(kb.split("valid")) else None,
            filter=filter_splits(kb, "valid"),
            fitted_to=weights_fingerprint(bare.state_dict()),
        )
        run.folder.write_json_files(
            {"memory.json": memory_file.as_dict(), "calibration.json": calibration_file.as_dict()}
        )
        run.model = model
        run.calibration = calibration_file.calibration
        run.notices = ()
    return memory_file


def recalibrate(run: OpenedRun, sample: Sample = None) -> CalibrationFile:
    """Fit on validation what turns scores into probabilities, and keep it in the run.

    ``sample`` is the largest number of validation facts to fit on, drawn at random.
    """
    with owned(run.path):
        fitted_to = model_fingerprint(run.model)
        calibration_file = CalibrationFile.fit(run.model, run.kb, sample, fitted_to)
        run.folder.write_json("calibration.json", calibration_file.as_dict())
        run.calibration = calibration_file.calibration
        run.notices = ()
    return calibration_file
