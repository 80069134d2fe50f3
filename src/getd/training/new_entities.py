r"""New entities for a trained run, without training it again.

A new entity gets the vector under which its facts are likeliest; everything else stays as it was:

.. math::
    \sum_f \sum_p -\log \operatorname{softmax}_c(\phi_p(c))_{f_p} + \lambda |\delta|^2,
    \qquad v = m + s \, \delta

with :math:`m` the mean of the vectors that fill the same slots in training facts, and :math:`s` the
spread of all vectors. No number that was learnt before changes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from getd.arrays import Ids
from getd.calibration.calibrate import Calibration
from getd.errors import RunError
from getd.facts.facts import Blocks, Facts, count, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.facts.vocabulary import Vocabulary
from getd.io.atomic import atomic_path
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import build_model
from getd.runs.fingerprint import weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, model_fingerprint, open_run
from getd.runs.sizes import model_sizes, sizes_record
from getd.training.losses.softmax import softmax_loss

MIN_STEPS = 150
MIN_PASSES = 30  # times that each fact is learnt from
LEARNING_RATE = 0.05  # of δ
PRIOR = 0.005  # λ
BATCH_ROWS = 256  # facts of an arity in a step
SCORE_BUDGET = 2**24  # scores held at a time
SMOOTHING = 0.1  # of labels, so that scores stay in the range of those that were learnt

NewFacts = Sequence[tuple[int, Sequence[str]]]  # relation ids, and names, which may be new
Progress = Callable[[int, int], None]  # gets the steps done, and all steps


def extend(run: OpenedRun, named: NewFacts, out: Path, progress: Progress) -> OpenedRun:
    """Write a run that knows more facts, and the entities that are new in them."""
    if out.exists():
        raise RunError(f"{out} is there already; choose another place")

    kb, new_ids = with_facts(run.kb, named)
    new = np.setdiff1d(np.arange(kb.n_entities), new_ids)
    model = _larger(run, kb, new_ids)
    if len(new):
        fit_entities(model, kb, new, progress)

    n_facts = count(kb.split("train")) - count(run.kb.split("train"))
    about = {
        "from": str(run.path),
        "new_entities": len(new),
        "facts": n_facts,
        "known_before": len(named) - n_facts,
    }
    _write(run, out, kb, model, about)
    return open_run(out)


def with_facts(kb: KnowledgeBase, named: NewFacts) -> tuple[KnowledgeBase, Ids]:
    """Add training facts to a knowledge base; returns the new id of each old entity, too."""
    names = [name for _, fact in named for name in fact]
    entities = Vocabulary([*kb.entities, *names])
    new_ids = entities.ids(kb.entities.names)
    splits: dict[str, Blocks] = {}
    for split, blocks in kb.splits.items():
        splits[split] = {
            arity: Facts(facts.relation, new_ids[facts.entities]) for arity, facts in blocks.items()
        }

    # Facts that any split has already are not added.
    larger = replace(kb, entities=entities, splits=splits)
    known = larger.known()
    ids = dict(zip(names, entities.ids(names).tolist(), strict=True))
    rows: dict[int, list[list[int]]] = {}  # by arity
    for relation, fact in named:
        rows.setdefault(len(fact), []).append([relation, *(ids[name] for name in fact)])
    added = {}
    for arity, arity_rows in rows.items():
        distinct = np.unique(arity_rows, axis=0)
        facts = Facts(distinct[:, 0], distinct[:, 1:])
        added[arity] = facts.take(~known.contains(facts))
    splits["train"] = join(splits["train"], added)
    return larger.with_splits(**splits), new_ids


def _larger(run: OpenedRun, kb: KnowledgeBase, new_ids: Ids) -> ScoringModel:
    """Build the model for more entities: known ones keep their rows, new ones start at 0."""
    config = run.folder.read_config()
    model = build_model(config.model_name, config.model_values, model_sizes(kb))

    weights = run.model.bare.state_dict()
    for name, tensor in model.state_dict().items():
        if tensor.shape != weights[name].shape:
            rows = torch.tensor(new_ids)
            weights[name] = torch.zeros_like(tensor).index_copy_(0, rows, weights[name])
    model.load_state_dict(weights)
    return model.eval()


def fit_entities(model: ScoringModel, kb: KnowledgeBase, new: Ids, progress: Progress) -> None:
    """Give new entities their vectors; only their rows change."""
    blocks = {}  # the facts of new entities
    for arity, facts in kb.split("train").items():
        rows = np.flatnonzero(np.isin(facts.entities, new).any(axis=1))
        if len(rows):
            blocks[arity] = facts.take(rows)

    scorer = _Scorer(deepcopy(model))
    tables = {}  # by parameter
    for module, embedding in model.entity_tables().items():
        tables[f"{module}.weight"] = _NewRows.start(embedding.weight.detach(), kb, new)
    deltas = [table.delta for table in tables.values()]
    optimizer = torch.optim.Adam(deltas, lr=LEARNING_RATE)
    known = kb.known("train")
    generator = torch.Generator().manual_seed(0)
    batches = {arity: _batches(facts, generator) for arity, facts in blocks.items()}

    largest = max(len(facts) for facts in blocks.values())
    n_steps = max(MIN_STEPS, -(-MIN_PASSES * largest // BATCH_ROWS))
    chunk_rows = max(1, SCORE_BUDGET // kb.n_entities)
    for step in range(n_steps):
        optimizer.zero_grad()
        lengths = [delta.square().sum(dim=1).mean() for delta in deltas]
        (PRIOR * torch.stack(lengths).mean()).backward()  # type: ignore[no-untyped-call]

        # Arities count the same, and so do the positions of a batch. Chunks fit the budget.
        for arity, arity_batches in batches.items():
            batch = next(arity_batches)
            for start in range(0, len(batch), chunk_rows):
                chunk = batch.take(slice(start, start + chunk_rows))
                for position in range(arity):
                    filled = {name: table.filled() for name, table in tables.items()}
                    loss = _loss(scorer, filled, chunk, position, known)
                    loss = loss * len(chunk) / len(batch)
                    (loss / (arity * len(blocks))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        progress(step + 1, n_steps)

    with torch.no_grad():
        for name, table in tables.items():
            model.get_parameter(name).copy_(table.filled())


class _NewRows(NamedTuple):
    """The rows of new entities in a table of a model: ``v = m + s δ``, with δ learnt."""

    table: Tensor
    rows: Tensor
    centre: Tensor  # m
    spread: Tensor  # s
    delta: Tensor  # δ

    @classmethod
    def start(cls, table: Tensor, kb: KnowledgeBase, new: Ids) -> Self:
        """Begin with a δ of 0."""
        centre = _means(table, kb, new)
        old = np.setdiff1d(np.arange(kb.n_entities), new)
        spread = table[torch.tensor(old)].std(dim=0).mean()
        delta = torch.zeros_like(centre, requires_grad=True)
        return cls(table, torch.tensor(new), centre, spread, delta)

    def filled(self) -> Tensor:
        """Return the table with the vectors in it."""
        return self.table.index_copy(0, self.rows, self.centre + self.spread * self.delta)


class _Scorer(nn.Module):
    """Scores as the forward pass of a module, which can be called with other weights."""

    def __init__(self, model: ScoringModel) -> None:
        super().__init__()
        self.model = model.eval()
        for part in self.model.modules():
            if isinstance(part, nn.Embedding):
                part.sparse = False

    def forward(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        return self.model.score_candidates(relation, entities, position)


def _batches(facts: Facts, generator: torch.Generator) -> Iterator[Facts]:
    """Yield batches without end: all facts in a new order, then all again."""
    while True:
        order = torch.randperm(len(facts), generator=generator).numpy()
        for rows in np.array_split(order, -(-len(order) // BATCH_ROWS)):
            yield facts.take(rows)


def _loss(
    scorer: _Scorer, tables: Mapping[str, Tensor], facts: Facts, position: int, known: KnownAnswers
) -> Tensor:
    """Return the mean loss of the questions that open a position of facts."""
    relation, entities = facts.to_tensors()
    weights = {f"model.{name}": table for name, table in tables.items()}
    scores = functional_call(scorer, weights, (relation, entities, position))
    answers = known.lookup(facts.relation, facts.entities, position)
    rows, others = answers.others(facts.entities[:, position])
    return softmax_loss(
        scores, entities[:, position], (torch.tensor(rows), torch.tensor(others)), SMOOTHING
    )


def _means(table: Tensor, kb: KnowledgeBase, new: Ids) -> Tensor:
    """Return, for each new entity, the mean of the vectors of old entities in its slots.

    It is the mean over all old entities if none fills the same slots.
    """
    index_of = torch.full((kb.n_entities,), -1)
    index_of[torch.tensor(new)] = torch.arange(len(new))
    total = torch.zeros(len(new), table.shape[1])
    weight = torch.zeros(len(new), 1)
    for facts in kb.split("train").values():
        relations, entities = facts.to_tensors()
        for column in entities.unbind(1):
            index = index_of[column]
            is_old = index < 0

            # The sum and the number of old entities at this position, by relation.
            sums = torch.zeros(kb.n_relations, table.shape[1])
            sums.index_add_(0, relations[is_old], table[column[is_old]])
            counts = torch.bincount(relations[is_old], minlength=kb.n_relations)[:, None]

            # Each fact of a new entity adds the mean of its slot.
            is_filled = ~is_old & (counts[relations, 0] > 0)
            relation = relations[is_filled]
            rows = index[is_filled]
            total.index_add_(0, rows, sums[relation] / counts[relation])
            weight += torch.bincount(rows, minlength=len(new))[:, None]

    overall = table[index_of < 0].mean(dim=0)
    return torch.where(weight > 0, total / weight.clamp(min=1), overall)


def _write(
    run: OpenedRun, out: Path, kb: KnowledgeBase, model: ScoringModel, about: Mapping[str, object]
) -> None:
    """Write the extended run; what was fitted to the old one fits the new one as well."""
    with atomic_path(out, replace=False) as temporary:
        temporary.mkdir()
        new = RunFolder(temporary)
        new.write_config(run.folder.read_config())
        new.write_json("model.json", sizes_record(model_sizes(kb)))
        new.write_json("environment.json", run.folder.read_json("environment.json"))
        new.write_json("extended.json", about)
        new.write_knowledge_base(kb)
        new.write_weights(model.state_dict())
        if run.folder.is_combined():
            new.write_json("combined.json", run.folder.read_json("combined.json"))

        fitted_to = {}
        fitted_model = model
        if isinstance(run.model, WithMemory):
            fitted_model = WithMemory(model, run.model.memory, run.model.weights)
            fitted_to["memory.json"] = weights_fingerprint(model.state_dict())
        if run.calibration != Calibration():
            fitted_to["calibration.json"] = model_fingerprint(fitted_model)
        for name, fingerprint in fitted_to.items():
            new.write_json(name, {**run.folder.read_json(name), "fitted_to": fingerprint})
