r"""New entities for a trained run, without training it again.

A new entity gets the vector under which its facts are likeliest, all else as it was:

.. math:: \sum_f \sum_p -\log \operatorname{softmax}_c(\phi_p(c))_{f_p} + \lambda |\delta|^2, \qquad v = m + s \, \delta

with :math:`m` the mean of the vectors that stand in its places in training facts, and :math:`s` their spread. No number
that was learnt before changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from getd.arrays import Ids
from getd.calibration.calibrate import Calibration
from getd.errors import RunError
from getd.facts.facts import Facts, count, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.facts.vocabulary import Vocabulary
from getd.io.atomic import atomic_path
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import make_model, model_settings
from getd.runs.fingerprint import weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.runs.sizes import model_sizes, sizes_record
from getd.runs.stored import model_fingerprint
from getd.training.losses.softmax import softmax_loss

STEPS = 150  # at least
PASSES = 30  # times that each fact is learnt from, at least
LEARNING_RATE = 0.05  # of δ
PRIOR = 0.005  # λ
AT_ONCE = 256  # facts in a step
ROOM = 2**24  # scores held at a time
SMOOTHING = 0.1  # of the labels, so that scores stay in the range of those that were learnt


def extend(
    run: OpenedRun,
    named: Sequence[tuple[int, Sequence[str]]],
    out: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> OpenedRun:
    """Write a run that knows more facts ``(relation, names)``, and the entities new in them."""
    folder = RunFolder(out)
    if folder.path.exists():
        raise RunError(f"{out} is there already; choose another place")

    kb, moved = with_facts(run.kb, named)
    new = np.setdiff1d(np.arange(kb.n_entities), moved)
    model = _larger(run, kb, moved)
    if len(new):
        fit_entities(model, kb, new, progress)

    more = count(kb.split("train")) - count(run.kb.split("train"))
    about = {"new_entities": len(new), "facts": more, "known_before": len(named) - more}
    _write(run, folder, kb, model, about)
    return open_run(out)


def with_facts(
    kb: KnowledgeBase, named: Sequence[tuple[int, Sequence[str]]]
) -> tuple[KnowledgeBase, Ids]:
    """The knowledge base with more training facts ``(relation, names)``; and the new number of each entity."""
    names = [name for _, fact in named for name in fact]
    entities = Vocabulary([*kb.entities, *names])
    moved = entities.ids(kb.entities.names)
    splits = {
        split: {
            arity: Facts(facts.relation, moved[facts.entities]) for arity, facts in blocks.items()
        }
        for split, blocks in kb.splits.items()
    }
    larger = kb.with_entities(entities, splits)
    known, more = larger.known(), []
    for arity in sorted({len(fact) for _, fact in named}):
        here = [(number, fact) for number, fact in named if len(fact) == arity]
        ids = entities.ids([name for _, fact in here for name in fact]).reshape(len(here), arity)
        rows = np.unique(np.column_stack([[number for number, _ in here], ids]), axis=0)
        block = Facts(rows[:, 0], rows[:, 1:])
        more.append({arity: block.take(~known.contains(block))})
    return larger.with_splits(**{**splits, "train": join(splits["train"], *more)}), moved


def _larger(run: OpenedRun, kb: KnowledgeBase, moved: Ids) -> ScoringModel:
    """Build the model for more entities: known ones keep their rows, new ones start at 0."""
    config = run.folder.read_config()
    settings = model_settings(config.model_name, config.model_values)
    found = make_model(config.model_name, settings, model_sizes(kb))
    before = run.model.bare.state_dict()
    after = {}
    for name, tensor in found.state_dict().items():
        old = before[name]
        if tensor.shape == old.shape:
            after[name] = old
        else:
            after[name] = torch.zeros_like(tensor).index_copy_(0, torch.tensor(moved), old)
    found.load_state_dict(after)
    return found.eval()


def fit_entities(
    model: ScoringModel,
    kb: KnowledgeBase,
    new: Ids,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Give new entities their vectors; their rows alone change."""
    facts = {
        arity: found
        for arity, block in kb.split("train").items()
        if len(found := block.take(np.flatnonzero(np.isin(block.entities, new).any(axis=1))))
    }
    asked, ids = _Asked(deepcopy(model)), torch.tensor(new)
    tables = {
        f"model.{name}.weight": table.weight.detach()
        for name, table in model.entity_tables().items()
    }
    centre = {name: _means(table, kb, new) for name, table in tables.items()}
    spread = {
        name: table[_others(len(table), new)].std(dim=0).mean() for name, table in tables.items()
    }
    delta = {name: torch.zeros_like(rows, requires_grad=True) for name, rows in centre.items()}
    optimizer = torch.optim.Adam(delta.values(), lr=LEARNING_RATE)
    known, generator = kb.known("train"), torch.Generator().manual_seed(0)
    parts = {arity: _parts(block, generator) for arity, block in facts.items()}
    steps = max(STEPS, *(-(-PASSES * len(block) // AT_ONCE) for block in facts.values()))
    at_once = max(1, ROOM // kb.n_entities)

    def rows_of(name: str) -> Tensor:
        found: Tensor = centre[name] + spread[name] * delta[name]
        return found

    for step in range(steps):
        optimizer.zero_grad()
        prior = torch.stack([values.square().sum(dim=1).mean() for values in delta.values()]).mean()
        (PRIOR * prior).backward()  # type: ignore[no-untyped-call]
        for arity, part in parts.items():
            some = next(part)
            for start, position in product(
                range(0, len(some), at_once), range(arity)
            ):  # what fits, one by one
                here = some.take(slice(start, start + at_once))
                weights = {
                    name: table.index_copy(0, ids, rows_of(name)) for name, table in tables.items()
                }
                loss = _loss(asked, weights, here, position, known) * len(here) / len(some)
                (loss / (arity * len(facts))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        progress(step + 1, steps)
    with torch.no_grad():
        state = model.state_dict()
        for name in tables:
            state[name.removeprefix("model.")].index_copy_(0, ids, rows_of(name))


class _Asked(nn.Module):
    """Scores as a module's own call, which is what can be called with other weights."""

    def __init__(self, model: ScoringModel) -> None:
        super().__init__()
        self.model = model.eval()
        for part in self.model.modules():
            if isinstance(part, nn.Embedding):
                part.sparse = False

    def forward(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        return self.model.score_candidates(relation, entities, position)


def _parts(facts: Facts, generator: torch.Generator) -> Iterator[Facts]:
    """Parts for steps, without end: all facts in ever new orders, each as often as any other."""
    while True:
        order = torch.randperm(len(facts), generator=generator).numpy()
        for part in np.array_split(order, -(-len(order) // AT_ONCE)):
            yield facts.take(part)


def _loss(
    asked: _Asked, weights: Mapping[str, Tensor], facts: Facts, position: int, known: KnownAnswers
) -> Tensor:
    """The mean loss of the questions that open a position of facts."""
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    scores = functional_call(asked, dict(weights), (relation, entities, position))
    rows, values = known.lookup(facts.relation, facts.entities, position).others(
        facts.entities[:, position]
    )
    return softmax_loss(
        scores, entities[:, position], (torch.tensor(rows), torch.tensor(values)), SMOOTHING
    )


def _others(n: int, new: Ids) -> Tensor:
    kept = torch.ones(n, dtype=torch.bool)
    kept[torch.tensor(new)] = False
    return kept


def _means(table: Tensor, kb: KnowledgeBase, new: Ids) -> Tensor:
    """For each new entity the mean of the vectors of the others that stand in its places."""
    place = np.full(kb.n_entities, -1)
    place[new] = np.arange(len(new))
    total, weight = torch.zeros(len(new), table.shape[1]), torch.zeros(len(new), 1)
    for facts in kb.split("train").values():
        for position in range(facts.arity):
            column = facts.entities[:, position]
            old = place[column] < 0
            sums = torch.zeros(kb.n_relations, table.shape[1])
            sums.index_add_(0, torch.tensor(facts.relation[old]), table[torch.tensor(column[old])])
            counts = torch.bincount(torch.tensor(facts.relation[old]), minlength=kb.n_relations)
            here = facts.take(~old)
            relation, rows = (
                torch.tensor(here.relation),
                torch.tensor(place[here.entities[:, position]]),
            )
            seen = counts[relation] > 0
            mean = sums[relation] / counts[relation].clamp(min=1)[:, None]
            total.index_add_(0, rows[seen], mean[seen])
            weight.index_add_(0, rows[seen], torch.ones(int(seen.sum()), 1))
    everyone = table[_others(len(table), new)].mean(dim=0)
    return torch.where(weight > 0, total / weight.clamp(min=1), everyone)


def _write(
    run: OpenedRun,
    folder: RunFolder,
    kb: KnowledgeBase,
    model: ScoringModel,
    about: Mapping[str, int],
) -> None:
    with atomic_path(folder.path, replace=False) as temporary:
        temporary.mkdir()
        new = RunFolder(temporary)
        new.write_config(run.folder.read_config())
        new.write_json("model.json", sizes_record(model_sizes(kb)))
        new.write_json("environment.json", run.folder.read_json("environment.json"))
        new.write_json("extended.json", {"from": str(run.path), **about})
        new.write_knowledge_base(kb)
        new.write_weights(model.state_dict())
        _keep_fitted(run, new, model)


def _keep_fitted(run: OpenedRun, new: RunFolder, model: ScoringModel) -> None:
    """The memory and the calibration of a run, where it uses them: what was learnt stays, so they fit as before."""
    larger = model
    if isinstance(run.model, WithMemory):
        larger = WithMemory(model, run.model.memory, run.model.weights)
        remembered = run.folder.read_json("memory.json")
        new.write_json(
            "memory.json", {**remembered, "fitted_to": weights_fingerprint(model.state_dict())}
        )
    if run.calibration != Calibration():
        calibrated = run.folder.read_json("calibration.json")
        new.write_json("calibration.json", {**calibrated, "fitted_to": model_fingerprint(larger)})
