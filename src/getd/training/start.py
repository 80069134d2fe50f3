"""Start or resume a training: data and settings in, a run folder out.

::

    train ─┬─ new:    check → build the trainer → create the folder ─┐
           └─ resume: same settings, same facts, sound checkpoint ───┴→ loop → finish
"""

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from types import FrameType

import torch

from getd.errors import ConfigError, RunError, WriteError
from getd.evaluation.evaluate import validation_mrr
from getd.evaluation.protocol import filter_splits, known_for_choosing
from getd.evaluation.scoring import held_out_loss
from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.io.environment import environment
from getd.models.base import ModelSizes
from getd.models.registry import make_model
from getd.runs.config import Config, TrainSettings
from getd.runs.fingerprint import facts_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.integrity import bounded, check_shapes, check_sizes
from getd.runs.lock import clear_empty, owned
from getd.runs.opened import OpenedRun
from getd.runs.records import shown
from getd.runs.sizes import model_sizes, sizes_record
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.checkpoint import read_head
from getd.training.finish import finish
from getd.training.loop import Measure, Trainer
from getd.training.precision import choose_precision
from getd.training.regimes import REGIMES

NO_VALIDATION = "no validation facts: no early stopping, no memory and no confidence of answers"


def train(
    kb: KnowledgeBase,
    config: Config,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callbacks | None = None,
    ask_test: bool = True,
) -> OpenedRun:
    """Train a model on a knowledge base and leave a run folder; see :func:`getd.api.train`."""
    folder = RunFolder(Path(out) if out else Path("runs") / f"{kb.name}-{config.model_name}")
    callbacks = callbacks or Callbacks()

    with ExitStack() as stack:
        if folder.exists():
            stack.enter_context(owned(folder.path))
            if not (resume or overwrite):
                raise _holds_a_run(folder)
        elif not folder.is_free():
            raise RunError(f"{folder.path} is there and is no run; choose another place")

        is_resumed = resume and folder.exists()
        if is_resumed:
            config = _resumed(kb, folder, config)
        else:
            kb.require("train")
            if config.memory.use:
                kb.require("valid")
            if "valid" not in kb.splits:
                callbacks.on_choice(NO_VALIDATION)

        # A new folder is created once the trainer stands: until then mistakes leave no file behind.
        with trainer_of(kb, config) as trainer:
            if not is_resumed:
                _create(kb, folder, config, trainer.settings)
                stack.enter_context(owned(folder.path))
            elif folder.checkpoint.exists():
                trainer.resume(folder.checkpoint)
            callbacks.on_start(config.training.epochs)
            _run(trainer, folder, callbacks)

        return finish(kb, folder, config, trainer, ask_test)


@contextmanager
def trainer_of(kb: KnowledgeBase, config: Config) -> Iterator[Trainer]:
    """Build a trainer, with its threads and its random numbers set for as long as it is used."""
    settings = config.training
    device = _device(settings)

    with _arithmetic(settings.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        generator = torch.Generator().manual_seed(settings.seed)
        model = make_model(config.model_name, config.model, model_sizes(kb), generator)
        model.to(device)
        precision = choose_precision(settings, model, device)
        settings = settings.model_copy(update={"precision": precision})

        make_regime = REGIMES[settings.regime]
        regime = make_regime(kb.split("train"), kb.known("train"), kb.n_entities, settings, device)
        mrr = _on_validation(validation_mrr, kb, settings) if "valid" in kb.splits else None
        loss = _on_validation(held_out_loss, kb, settings) if settings.validation_loss else None
        yield Trainer(model, regime, mrr, settings, loss)


def _run(trainer: Trainer, folder: RunFolder, callbacks: Callbacks) -> None:
    """Train to the end; history and checkpoints go to the folder."""
    folder.cut_history(trainer.progress.epoch - 1)

    def on_epoch(epoch: Epoch) -> None:
        line = {key: value for key, value in asdict(epoch).items() if value is not None}
        folder.append_history(line)
        callbacks.on_epoch(epoch)

    again = f"resume with: getd train --resume --out {shlex.quote(str(folder.path))}"
    with interrupts() as interrupted:

        def should_stop() -> bool:
            return interrupted.is_set() or callbacks.should_stop()

        try:
            trainer.train(folder.checkpoint, Callbacks(callbacks.on_batch, on_epoch, should_stop))
        except Interrupted:
            raise Interrupted(again, by_signal=interrupted.is_set()) from None

    # A signal during the last validation comes too late for the loop.
    if interrupted.is_set():
        raise Interrupted(again, by_signal=True)


def _create(kb: KnowledgeBase, folder: RunFolder, config: Config, settings: TrainSettings) -> None:
    """Write the files of a new run at once; a run that is there is replaced by them.

    ``settings`` say what was chosen where the config leaves it open.
    """
    is_replaced = folder.exists()
    if not is_replaced and folder.path.exists():
        clear_empty(folder.path)

    try:
        with atomic_path(folder.path, replace=is_replaced) as temporary:
            temporary.mkdir()
            new = RunFolder(temporary)
            new.write_config({**config.tables(), "training": settings.model_dump()})
            new.write_json("model.json", sizes_record(model_sizes(kb)))
            choices = {"validation_filter": filter_splits(kb, "valid")}
            new.write_json("environment.json", environment() | choices)
            new.write_knowledge_base(kb)
            (temporary / "checkpoint").mkdir()
    except WriteError:
        if is_replaced or not folder.exists():
            raise
        with owned(folder.path):  # another process started a run at this moment
            raise _holds_a_run(folder) from None


def _holds_a_run(folder: RunFolder) -> RunError:
    hint = "pass --resume to continue it or --overwrite to replace it"
    return RunError(f"{folder.path} holds a run already; {hint}")


def _resumed(kb: KnowledgeBase, folder: RunFolder, config: Config) -> Config:
    """Check that a run can be resumed on these facts; returns its settings."""
    resumed = _same_settings(folder, config)
    check_facts(kb, folder)
    sizes = check_sizes(folder, kb)
    if folder.checkpoint.exists():
        _check_checkpoint(folder, resumed, sizes)
    elif folder.is_finished():
        hint = "begin another run"
        raise RunError(f"{folder.path} is trained and has no checkpoint to resume from; {hint}")
    folder.write_config(resumed.tables())
    return resumed


def _same_settings(folder: RunFolder, config: Config) -> Config:
    """Return the settings of the run; those given again must agree, except the number of epochs."""
    tables = {"training": {}, **folder.read_config()}
    tables["training"].setdefault("precision", "fp32")  # as it was before there was a choice
    for section in ("model", "training"):
        stored = tables[section]
        given = dict(config.given.get(section, {}))
        if given.get("precision") == "auto":  # the run has settled what that means
            del given["precision"]
        tables[section] = {**stored, **given}

        for key, value in given.items():
            name = f"{section}.{key}"
            before = stored.get(key)
            agrees = before == (list(value) if isinstance(value, tuple) else value)
            if not agrees and name != "training.epochs":
                difference = f"{name} = {before}, found {value}"
                raise RunError(f"{folder.path} was begun with {difference}; begin another run")

    try:
        return Config.parse(tables)
    except ConfigError as error:
        raise RunError(f"{folder.path / 'config.toml'}: {error}") from None


def check_facts(kb: KnowledgeBase, folder: RunFolder) -> None:
    """Refuse facts that are not those of the run, and a run whose own facts were changed."""
    stored = folder.read_knowledge_base()
    stored_fingerprint = facts_fingerprint(stored)
    first_fingerprint = folder.read_roles().fingerprint
    if first_fingerprint is not None and first_fingerprint != stored_fingerprint:
        expected = "expected the names and facts that the run began with"
        raise RunError(f"{folder.path}: {expected}, found others")

    if facts_fingerprint(kb) == stored_fingerprint:
        return
    if kb.entities != stored.entities or kb.signatures != stored.signatures:
        raise RunError(f"{folder.path} was trained on other data than {kb.name}")
    n_stored = count(stored.splits.get("train", {}))
    n_given = count(kb.splits.get("train", {}))
    facts = f"{n_stored:,} train facts"
    if n_given != n_stored:
        facts += f", found {n_given:,}"
    difference = f"other facts than {kb.name} has ({facts})"
    raise RunError(f"{folder.path} was trained on {difference}; begin another run")


def _check_checkpoint(folder: RunFolder, config: Config, sizes: ModelSizes) -> None:
    """Refuse a checkpoint of other settings, before anything large is built."""
    head = read_head(folder.checkpoint)
    progress = head.progress
    begun = progress.epoch if progress.batches_done else progress.epoch - 1
    epochs = config.training.epochs
    if epochs < begun:
        expected = f"expected training.epochs of {begun} or more, as many as were begun"
        raise RunError(f"{folder.path}: {expected}, found {epochs}")

    settings = config.training.model_dump(mode="json", exclude={"epochs"})
    for key, value in settings.items():
        written = head.settings.get(key, value)
        if written != value:
            raise RunError(
                f"{folder.path / 'config.toml'}: expected training.{key} = {shown(written)}, "
                f"as the checkpoint was written with, found {shown(value)}"
            )

    with bounded(folder, inf), torch.device("meta"):
        model = make_model(config.model_name, config.model, sizes)
    check_shapes(folder.checkpoint, head.shapes, model.state_dict())


def _on_validation(
    measure: Callable[..., float], kb: KnowledgeBase, settings: TrainSettings
) -> Measure:
    """Return what measures a model on validation."""
    known = known_for_choosing(kb)
    sample = settings.validation_sample
    return partial(
        measure, blocks=kb.split("valid"), known=known, sample=sample, seed=settings.seed
    )


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event; a second signal interrupts at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def set_event(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, set_event) for number in signals}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _arithmetic(threads: int | None) -> Iterator[None]:
    """Set the number of threads, and flush denormals to 0.

    The exponentials of low scores are often below 1e-38, and such numbers are slow.
    """
    previous = torch.get_num_threads()
    torch.set_num_threads(threads or previous)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(previous)
        torch.set_flush_denormal(False)


def _device(settings: TrainSettings) -> torch.device:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("training.device is cuda, but torch finds no GPU here")
    if settings.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(settings.device)
