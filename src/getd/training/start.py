"""A knowledge base and settings to a run on disk: started, resumed, finished, evaluated once."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from getd.config import build, section_of
from getd.errors import ConfigError, RunError, WriteError, nearest
from getd.evaluation.evaluate import validation_mrr
from getd.evaluation.held_out_loss import held_out_loss
from getd.evaluation.protocol import filter_splits, known_for_choosing
from getd.facts.facts import count
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.io.environment import environment
from getd.models.base import ScoringModel
from getd.models.registry import MODELS, model_settings
from getd.models.settings import TensorModelSettings
from getd.prediction.run import Run, open_bare_run
from getd.runs.fingerprint import facts_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.lock import clear_empty, owned
from getd.runs.records import shown
from getd.runs.sizes import sizes
from getd.runs.stored import bounded, build_model, check_shapes, checked_sizes
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.checkpoint import read_head
from getd.training.health import training_notices
from getd.training.loop import Trainer
from getd.training.regimes import REGIMES
from getd.training.settings import MemorySettings, TrainSettings

SECTIONS = ("data", "model", "training", "memory", "published", "row")


def train(
    kb: KnowledgeBase,
    model: str | None = None,
    out: str | Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callbacks | None = None,
    ask_test: bool = True,
    **training: Any,
) -> Run:
    """Train a model on a knowledge base and leave a run folder.

    Parameters
    ----------
    model
        The name of the model; that of the config, or ``getd``, where it is not given.
    out
        The run folder; ``runs/DATA-MODEL`` where it is not given.
    config
        Tables ``model`` and ``training``, as in a TOML file.
    resume
        Go on with the run that is there, bit for bit as if it had not stopped.
    overwrite
        Start anew where there is a run.
    ask_test
        Whether the finished model is evaluated on test (once), where there is one.
    training
        Settings of ``[training]``, over those of the config.
    """
    tables, callbacks = full_config(config or {}, model, training), callbacks or Callbacks()
    folder = RunFolder(Path(out) if out else Path("runs") / f"{kb.name}-{tables['model']['name']}")
    with ExitStack() as owning:
        if folder.exists():
            owning.enter_context(owned(folder.path))
            if not (resume or overwrite):
                raise _holds_a_run(folder)
        elif not folder.is_free():
            raise RunError(f"{folder.path} is there and is no run; choose another place")

        if resume and folder.exists():
            tables = _resumed(kb, folder, config or {}, model, training)
        else:
            _check(kb, tables)
            _begin(kb, folder, tables)
            owning.enter_context(owned(folder.path))
        return _finish(kb, folder, tables, callbacks, ask_test)


def full_config(
    config: Mapping[str, Any], model: str | None, training: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables of a config with every setting in them, checked."""
    for section in config:
        if section not in SECTIONS:
            raise ConfigError(f"no section {section!r} in a config{nearest(section, SECTIONS)}")
    values = section_of(config, "model")
    name = model or values.get("name", "getd")
    values.pop("name", None)
    settings = model_settings(name, values)
    chosen = build(
        TrainSettings,
        {**MODELS[name].training_defaults, **section_of(config, "training"), **training},
        "training",
    )
    if isinstance(settings, TensorModelSettings) and settings.norms_by_position is None:
        one_position = (
            chosen.regime == "kvsall" and settings.norm == "batch"
        )  # is what a batch has statistics of
        settings = settings.model_copy(update={"norms_by_position": one_position})
    memory = build(MemorySettings, section_of(config, "memory"), "memory")
    extra = {key: config[key] for key in ("data", "published") if key in config}
    return {
        **extra,
        "model": {"name": name, **settings.model_dump()},
        "training": chosen.model_dump(),
        "memory": memory.model_dump(),
    }


def _check(kb: KnowledgeBase, tables: Mapping[str, Any]) -> None:
    """Refuse data and settings that cannot be trained, before anything is written."""
    kb.split("train")
    if tables["memory"]["use"]:
        kb.split("valid")
    _device(build(TrainSettings, tables["training"]))
    with torch.device("meta"):
        build_model(tables["model"], sizes(kb))


def _begin(kb: KnowledgeBase, folder: RunFolder, tables: Mapping[str, Any]) -> None:
    """The files that are there before the first epoch, all at once; a run that is there is replaced by them."""
    is_replaced = folder.exists()
    if not is_replaced and folder.path.exists():
        clear_empty(folder.path)
    try:
        with atomic_path(folder.path, replace=is_replaced) as temporary:
            temporary.mkdir()
            new = RunFolder(temporary)
            new.write_config(tables)
            new.write_json("model.json", sizes(kb))
            new.write_json(
                "environment.json",
                environment() | {"validation_filter": filter_splits(kb, "valid")},
            )
            new.write_knowledge_base(kb)
            (temporary / "checkpoint").mkdir()
    except WriteError:
        if is_replaced or not folder.exists():
            raise
        with owned(folder.path):  # another process began one just now
            raise _holds_a_run(folder) from None


def _holds_a_run(folder: RunFolder) -> RunError:
    return RunError(
        f"{folder.path} holds a run already; pass --resume to go on with it or --overwrite to start anew"
    )


def _resumed(
    kb: KnowledgeBase,
    folder: RunFolder,
    config: Mapping[str, Any],
    model: str | None,
    training: Mapping[str, Any],
) -> dict[str, Any]:
    """The settings of a run that goes on, on the same facts, from a checkpoint that fits."""
    tables = _same_settings(folder, config, model, training)
    _check_facts(kb, folder)
    if folder.checkpoint.exists():
        _check_checkpoint(folder, tables, checked_sizes(folder, kb))
    elif folder.is_finished():
        raise RunError(
            f"{folder.path} is trained and has no checkpoint to go on from; begin another run"
        )
    folder.write_config(tables)
    return tables


def _check_facts(kb: KnowledgeBase, folder: RunFolder) -> None:
    """Refuse other facts than those that the run began with, and facts of the run that are not whole."""
    before = folder.read_knowledge_base()
    began, kept = folder.read_roles().fingerprint, facts_fingerprint(before)
    if began is not None and began != kept:
        raise RunError(
            f"{folder.path}: expected the names and facts that the run began with, found others"
        )
    if facts_fingerprint(kb) == kept:
        return
    if kb.entities != before.entities or kb.signatures != before.signatures:
        raise RunError(f"{folder.path} was trained on other data than {kb.name}")
    sizes_of = [count(each.splits.get("train", {})) for each in (before, kb)]
    facts = f"{sizes_of[0]:,} train facts" + (
        f", found {sizes_of[1]:,}" if sizes_of[0] != sizes_of[1] else ""
    )
    raise RunError(
        f"{folder.path} was trained on other facts than {kb.name} has ({facts}); begin another run"
    )


def _check_checkpoint(
    folder: RunFolder, tables: Mapping[str, Any], model_sizes: Mapping[str, Any]
) -> None:
    """Refuse a checkpoint that was written with other settings, before anything large is made."""
    head = read_head(folder.checkpoint)
    config = folder.path / "config.toml"
    settings = json.loads(build(TrainSettings, tables["training"]).model_dump_json())
    for key, value in settings.items():
        if key != "epochs" and key in head.settings and head.settings[key] != value:
            expected = (
                f"training.{key} = {shown(head.settings[key])}, as the checkpoint was written with"
            )
            raise RunError(f"{config}: expected {expected}, found {shown(value)}")
    with bounded(folder, inf), torch.device("meta"):
        model = build_model(tables["model"], model_sizes)
    check_shapes(folder.checkpoint, model, head.shapes)


def _same_settings(
    folder: RunFolder, config: Mapping[str, Any], model: str | None, training: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a run that goes on: its own; what is given again must agree, but for the number of epochs."""
    before = {"training": {}, **folder.read_config()}
    given = {
        "model": dict(config.get("model", {})),
        "training": {**config.get("training", {}), **training},
    }
    if model:
        given["model"]["name"] = model
    for section, values in given.items():
        for key, value in values.items():
            kept, name = before[section].get(key), f"{section}.{key}"
            agrees = kept == (list(value) if isinstance(value, tuple) else value)
            if not agrees and name != "training.epochs":
                raise RunError(
                    f"{folder.path} was begun with {name} = {kept}, found {value}; begin another run"
                )
    merged = {section: {**before[section], **given[section]} for section in given}
    try:
        return full_config({**before, **merged}, None, {})
    except ConfigError as error:
        raise RunError(f"{folder.path / 'config.toml'}: {error}") from None


@contextmanager
def trainer_of(
    kb: KnowledgeBase, tables: Mapping[str, Any], model_sizes: Mapping[str, Any]
) -> Iterator[Trainer]:
    """A trainer that has not begun, its threads and its random numbers; ``tables`` are those of a full config."""
    settings = build(TrainSettings, tables["training"])
    with _arithmetic(settings.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = build_model(
            tables["model"], model_sizes, torch.Generator().manual_seed(settings.seed)
        )
        device = _device(settings)
        model.to(device)
        regime = REGIMES[settings.regime](
            kb.split("train"), kb.known("train"), kb.n_entities, settings, device
        )
        loss = _held_out_loss(kb, settings) if settings.validation_loss else None
        yield Trainer(model, regime, _validation(kb, settings), settings, loss)


def _finish(
    kb: KnowledgeBase,
    folder: RunFolder,
    tables: Mapping[str, Any],
    callbacks: Callbacks,
    ask_test: bool,
) -> Run:
    with trainer_of(kb, tables, checked_sizes(folder, kb)) as trainer:
        if folder.checkpoint.exists():
            trainer.resume(folder.checkpoint)
        folder.cut_history(trainer.progress.epoch - 1)
        try:
            with interrupts() as interrupted:
                trainer.train(folder.checkpoint, _watch(folder, callbacks, interrupted))
        except Interrupted:
            raise Interrupted(f"go on with: getd train --resume --out {folder.path}") from None
    folder.write_weights(
        trainer.model.state_dict()
    )  # what was fitted to others is not used from now on
    run, settings = open_bare_run(folder.path), trainer.settings
    if tables["memory"]["use"] or folder.has_memory():
        run.remember(settings.validation_sample)
    elif "valid" in kb.splits:
        run.calibrate(settings.validation_sample)
    if ask_test and "test" in kb.splits:  # the one time
        progress = trainer.progress
        chosen = (
            {"best_epoch": progress.best_epoch, "valid_mrr": progress.best_mrr}
            if progress.best_epoch
            else {}
        )
        folder.write_json(
            "report.json",
            run.evaluate("test", sample=settings.test_sample, seed=settings.seed).as_dict()
            | chosen,
        )
    run.notices = tuple(training_notices(run.model, kb, folder.read_history()))
    return run


def _validation(
    kb: KnowledgeBase, settings: TrainSettings
) -> Callable[[ScoringModel], float] | None:
    if "valid" not in kb.splits:
        return None
    known = known_for_choosing(kb)
    return lambda model: validation_mrr(
        model, kb.split("valid"), known, sample=settings.validation_sample, seed=settings.seed
    )


def _held_out_loss(kb: KnowledgeBase, settings: TrainSettings) -> Callable[[ScoringModel], float]:
    blocks, known = kb.split("valid"), known_for_choosing(kb)
    return lambda model: held_out_loss(
        model, blocks, known, settings.validation_sample, settings.seed
    )


def _watch(folder: RunFolder, callbacks: Callbacks, interrupted: threading.Event) -> Callbacks:
    def on_epoch(epoch: Epoch) -> None:
        folder.append_history(
            {key: value for key, value in asdict(epoch).items() if value is not None}
        )
        callbacks.on_epoch(epoch)

    return Callbacks(
        callbacks.on_batch, on_epoch, lambda: interrupted.is_set() or callbacks.should_stop()
    )


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM end the training after the batch under way; a second one ends it at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def note(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _arithmetic(threads: int | None) -> Iterator[None]:
    """So many threads; numbers below 1e-38 are 0: the exponentials of low scores are many such, and slow ones."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)


def _device(settings: TrainSettings) -> torch.device:
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("training.device is cuda, but torch finds no GPU here")
    if settings.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(settings.device)
