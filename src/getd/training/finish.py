"""Finish a training: write the weights, fit what depends on them, evaluate on test once."""

from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.fitted import recalibrate, remember
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training.health import training_notices
from getd.training.loop import Trainer


def finish(
    kb: KnowledgeBase, folder: RunFolder, config: Config, trainer: Trainer, ask_test: bool
) -> OpenedRun:
    """Turn a trained model into a finished run."""
    # From here on, a memory or a calibration that was fitted to other weights is not used.
    folder.write_weights(trainer.model.state_dict())
    run = OpenedRun(folder, kb, trainer.model.cpu().eval())

    settings = config.training
    if config.memory.use or folder.has_memory():
        remember(run, settings.validation_sample)
    elif "valid" in kb.splits:
        recalibrate(run, settings.validation_sample)

    # Test is read here, and only here.
    if ask_test and "test" in kb.splits:
        evaluation = run.evaluate("test", sample=settings.test_sample, seed=settings.seed)
        report = evaluation.as_dict()
        if trainer.progress.best_epoch:
            report["best_epoch"] = trainer.progress.best_epoch
            report["valid_mrr"] = trainer.progress.best_mrr
        folder.write_json("report.json", report)

    run.notices = tuple(training_notices(run.model, kb, folder.read_history()))
    return run
