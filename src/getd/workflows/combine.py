"""Combine trained runs: an ensemble of their models, which is a run itself.

::

    open → same facts, other weights → fit on validation → memory, calibration → test, once
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from getd.errors import ConfigError, RunError
from getd.evaluation.evaluate import validation_mrr
from getd.evaluation.protocol import Sample, filter_splits, known_for_choosing
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.split import SPLITS
from getd.io.atomic import atomic_path
from getd.io.environment import environment
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble, combine_members
from getd.models.registry import COMBINED
from getd.runs.fingerprint import facts_fingerprint, weights_fingerprint
from getd.runs.fitted import recalibrate, remember
from getd.runs.folder import RunFolder
from getd.runs.lock import clear_empty, owned
from getd.runs.opened import OpenedRun, open_run
from getd.runs.records import CombinationRecord, MemberRecord, StoredConfig
from getd.runs.sizes import model_sizes, sizes_record
from getd.workflows.member_weights import fit_members

Progress = Callable[[int, int], None]  # called with the steps done, and all steps


@dataclass(frozen=True)
class Member:
    """A model to combine, and where it is from."""

    path: Path
    model: ScoringModel
    settings: dict[str, Any]  # with its name
    learns_relations: bool
    fingerprint: str


@dataclass
class Steps:
    """Counts the steps that are done."""

    total: int
    show: Progress
    done: int = 0

    def next(self) -> None:
        self.done += 1
        self.show(self.done, self.total)


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def combine(
    paths: Sequence[Path],
    out: Path,
    *,
    memory: bool = True,
    sample: Sample = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
    ask_test: bool = True,
) -> OpenedRun:
    """Combine trained runs to a run in another folder; see :func:`getd.api.combine`."""
    if len(paths) < 2:
        raise ConfigError(f"expected two or more runs to combine, found {len(paths)}")
    for first, second in combinations(paths, 2):
        if first.resolve() == second.resolve():
            raise ConfigError(f"{first} is named twice; name each run once")
    folder = RunFolder(out)
    _check_out(folder, paths, overwrite)

    with ExitStack() as stack:
        is_replaced = folder.exists()
        if is_replaced:
            stack.enter_context(owned(folder.path))
        runs = [open_run(path, memory=False) for path in paths]
        kb = _common_knowledge_base(runs)
        members = _members(runs)
        sample = sample or _validation_sample(runs)

        # A step for each member, for each position of each arity, and for the three at the end.
        positions = sum(facts.arity for facts in kb.split("valid").values())
        steps = Steps(len(members) + positions + 3, progress)
        model, record = _fit(members, kb, sample, steps)

        if not is_replaced and folder.path.exists():
            clear_empty(folder.path)
        with atomic_path(folder.path, replace=is_replaced) as temporary:
            temporary.mkdir()
            run = OpenedRun(RunFolder(temporary), kb, model)
            _write(run, runs, members, record, memory)
            _fit_on_top(run, memory, sample)
            steps.next()
            if ask_test and "test" in kb.splits:
                _report(run, record)
            steps.next()
    return OpenedRun(folder, kb, run.model, run.calibration, tuple(_notices(record)))


def _check_out(folder: RunFolder, paths: Sequence[Path], overwrite: bool) -> None:
    """Refuse a folder that must not be written, before anything is computed."""
    if folder.path.resolve() in [path.resolve() for path in paths]:
        raise RunError(f"{folder.path} is one of the runs to combine; choose another folder")
    if folder.exists() and not overwrite:
        raise RunError(f"{folder.path} holds a run already; pass --overwrite to replace it")
    if not folder.exists() and not folder.is_free():
        raise RunError(f"{folder.path} is there and is no run; choose another folder")


def _common_knowledge_base(runs: Sequence[OpenedRun]) -> KnowledgeBase:
    """Return the knowledge base of runs, which must all have the same, with validation."""
    first, *others = runs
    expected = facts_fingerprint(first.kb)
    for other in others:
        if facts_fingerprint(other.kb) != expected:
            difference = _difference(first.kb, other.kb)
            together = f"{first.path} and {other.path} cannot be combined"
            raise RunError(f"{together}: their {difference} differ")
    if "valid" not in first.kb.splits:
        needed = "the weights of a combination are fitted on them"
        raise RunError(f"{first.path} has no validation facts, and {needed}")
    return first.kb


def _difference(first: KnowledgeBase, second: KnowledgeBase) -> str:
    """Name the first thing in which two knowledge bases differ."""
    if first.entities != second.entities:
        return f"entities ({first.n_entities:,} and {second.n_entities:,})"
    if first.signatures != second.signatures:
        return f"relations ({first.n_relations:,} and {second.n_relations:,})"
    for split in SPLITS:
        if dict(first.splits.get(split, {})) != dict(second.splits.get(split, {})):
            return f"{split} facts"
    return "names"


def _members(runs: Sequence[OpenedRun]) -> list[Member]:
    """Return the models of runs, without memories; no two may have the same weights."""
    members = [member for run in runs for member in _members_of(run)]
    for first, second in combinations(members, 2):
        if first.fingerprint == second.fingerprint:
            raise RunError(f"{first.path} and {second.path} contain the same model")
    return members


def _members_of(run: OpenedRun) -> Iterator[Member]:
    """Yield the model of a run; those of a combined run come one by one."""
    config = run.folder.read_config()
    models = [run.model]
    settings = [dict(config["model"])]
    if isinstance(run.model, Ensemble):
        models = list(run.model)
        settings = config.model_values["members"]

    for number, (model, values) in enumerate(zip(models, settings, strict=True)):
        learns_relations = config.learns_relations
        if isinstance(run.model, Ensemble) and not run.model.weights[-1, number]:
            learns_relations = False  # others of its combination did
        fingerprint = weights_fingerprint(model.state_dict())
        yield Member(run.path, model, values, learns_relations, fingerprint)


def _validation_sample(runs: Sequence[OpenedRun]) -> Sample:
    """Return the smallest sample of validation that a run was trained with; None: all had all."""
    samples = [run.folder.read_config().validation_sample for run in runs]
    return min((sample for sample in samples if sample), default=None)


def _fit(
    members: Sequence[Member], kb: KnowledgeBase, sample: Sample, steps: Steps
) -> tuple[Ensemble, CombinationRecord]:
    """Fit the weights of members, and measure all models on validation."""
    models = [member.model for member in members]
    learn_relations = [member.learns_relations for member in members]
    fitted = fit_members(models, kb, learn_relations, sample, steps.next)
    ensemble = combine_members(models, fitted.weights).eval()

    known = known_for_choosing(kb)
    mrrs = []
    for model in [*models, ensemble]:
        mrrs.append(validation_mrr(model, kb.split("valid"), known, sample=sample))
        steps.next()

    records = []
    for member, mrr in zip(members, mrrs, strict=False):
        name = member.settings["name"]
        path = str(member.path)
        records.append(
            MemberRecord(run=path, model=name, fingerprint=member.fingerprint, valid_mrr=mrr)
        )
    record = CombinationRecord(
        members=records,
        weights=fitted.weights,
        valid_mrr=mrrs[-1],
        sample=fitted.sample,
        filter=list(filter_splits(kb, "valid")),
    )
    return ensemble, record


def _write(
    run: OpenedRun,
    runs: Sequence[OpenedRun],
    members: Sequence[Member],
    record: CombinationRecord,
    memory: bool,
) -> None:
    """Write the files of a combined run."""
    folder = run.folder
    configs = [each.folder.read_config() for each in runs]
    names = {config.get("data") for config in configs}
    folder.write_config(
        {
            "data": names.pop() if len(names) == 1 else None,
            "model": {"name": COMBINED, "members": [member.settings for member in members]},
            "training": _training(configs),
            "memory": {"use": memory},
        }
    )
    folder.write_json("model.json", sizes_record(model_sizes(run.kb)))

    # The epochs of the members were chosen with the known answers of any of these left out.
    filters = {split for each in runs for split in each.epoch_choice().filter}
    choices = {"validation_filter": [split for split in SPLITS if split in filters]}
    folder.write_json("environment.json", environment() | choices)
    folder.write_json("combined.json", record.model_dump())
    folder.write_knowledge_base(run.kb)
    folder.write_weights(run.model.state_dict())


def _training(configs: Sequence[StoredConfig]) -> dict[str, Any]:
    """Return what later commands read of the trainings of members."""

    def numbers(key: str) -> list[float]:
        values = [config.get("training", {}).get(key) for config in configs]
        return [value for value in values if isinstance(value, int | float)]

    # A member that was validated on all facts leaves none that were not used.
    samples = numbers("validation_sample")
    return {
        "validation_sample": max(samples) if len(samples) == len(configs) else None,
        "test_sample": min(numbers("test_sample"), default=None),
        "relation_loss": max(numbers("relation_loss"), default=0.0),
    }


def _fit_on_top(run: OpenedRun, memory: bool, sample: Sample) -> None:
    """Fit what goes on top of the weights."""
    if memory:
        remember(run, sample)
    else:
        recalibrate(run, sample)


def _report(run: OpenedRun, record: CombinationRecord) -> None:
    """Evaluate on test, once."""
    tested = run.folder.read_config().get("training", {}).get("test_sample")
    report = run.evaluate("test", sample=tested).as_dict()
    run.folder.write_json("report.json", report | {"valid_mrr": record.valid_mrr})


def _notices(record: CombinationRecord) -> Iterator[str]:
    best = max(record.members, key=lambda member: member.valid_mrr)
    if record.valid_mrr <= best.valid_mrr:
        yield (
            f"the combination is not better than {best.run} on validation: "
            f"MRR {record.valid_mrr:.4f} and {best.valid_mrr:.4f}, both without memory"
        )
