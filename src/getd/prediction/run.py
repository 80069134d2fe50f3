"""A trained run: evaluate it, ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from getd.errors import ConfigError, RunError
from getd.evaluation.remembering import choose_weights
from getd.evaluation.report import Evaluation, evaluate, validation_mrr
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.memory import Memory, MemoryWeights, Remembering
from getd.models.registry import make_model, model_settings
from getd.prediction.question import Question, parse_question
from getd.runs.folder import RunFolder
from getd.settings import build


@dataclass(frozen=True)
class Answer:
    """A candidate for the open slot of a question."""

    name: str  # an entity, or a relation's label
    score: float  # raw
    probability: float  # softmax over the candidates that are ranked
    known: bool  # whether the data has this fact already


class Run:
    """A run that was opened: its model and its knowledge base."""

    def __init__(self, folder: RunFolder, kb: KnowledgeBase, model: ScoringModel) -> None:
        self.folder, self.kb, self.model = folder, kb, model

    @property
    def bare_model(self) -> ScoringModel:
        """The model without its memory."""
        return self.model.model if isinstance(self.model, Remembering) else self.model

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def known(self) -> KnownAnswers:
        """The known answers of all splits."""
        return self.kb.known()

    def evaluate(self, split: str = "test", **options: Any) -> Evaluation:
        """Rank the answers of a split; options as for :func:`getd.evaluation.report.evaluate`."""
        return evaluate(self.model, self.kb, split, **options)

    def remember(self, sample: int | None = None) -> float:
        """Give the run a memory of its training facts, with weights that are fitted on validation; the MRR there.

        ``sample``: fit on so many facts of validation, drawn at random, instead of all.
        """
        memory = Memory.from_facts(self.kb.split("train"), self.kb.n_entities)
        chosen = choose_weights(self.bare_model, memory, self.kb, sample)
        self.model = Remembering(self.bare_model, memory, chosen)
        mrr = validation_mrr(self.model, self.kb.split("valid"), self.known, sample=sample)
        weights = {name: values.model_dump() for name, values in chosen.items()}
        self.folder.write_json("memory.json", {"weights": weights, "valid_mrr": mrr, "sample": sample})
        return mrr

    def predict(
        self, relation: str, entities: Sequence[str] | Mapping[str, str], top: int = 10, include_known: bool = False
    ) -> list[Answer]:
        """The best answers of a question; ``?`` marks what is asked for, in place of an entity or of the relation.

        Known answers are left out, as they are in evaluation, unless ``include_known``.
        """
        return self.answer(parse_question(self.kb, relation, entities), top, include_known)

    @torch.no_grad()
    def answer(
        self, question: Question, top: int = 10, include_known: bool = False, known: KnownAnswers | None = None
    ) -> list[Answer]:
        """The best answers of a question that was understood already; ``known`` in place of all known answers."""
        fact, position = question.fact, question.position
        relation, entities = torch.tensor(fact.relation), torch.tensor(fact.entities)
        if position is None:
            scores, names = self.model.score_relations(entities)[0], self.kb.relations
        else:
            scores, names = self.model.score_candidates(relation, entities, position)[0], self.kb.entities
        is_known = torch.zeros(len(scores), dtype=torch.bool)
        is_known[torch.tensor((known or self.known).lookup(fact.relation, fact.entities, position).values)] = True
        ranked = scores.double()
        if position is None:  # a relation of another arity cannot hold here
            fits = torch.tensor([signature.arity == fact.arity for signature in self.kb.signatures])
            ranked[~fits] = -torch.inf
        if not include_known:
            ranked[is_known] = -torch.inf
        probability = torch.softmax(ranked, dim=0)
        best = _best(ranked, top).tolist()
        return [Answer(names[i], float(scores[i]), float(probability[i]), bool(is_known[i])) for i in best]


def _best(scores: torch.Tensor, top: int) -> torch.Tensor:
    """Where the best of some scores are, best first, the earlier of equal ones first; those of minus infinity never.

    >>> _best(torch.tensor([1.0, 3.0, -torch.inf, 3.0, 1.0]), 3)
    tensor([1, 3, 0])
    """
    if top < 1:
        return torch.zeros(0, dtype=torch.int64)
    least = torch.topk(scores, min(top, len(scores))).values[-1]
    places = torch.nonzero((scores >= least) & (scores > -torch.inf))[:, 0]  # few, but for ties
    return places[torch.argsort(scores[places], descending=True, stable=True)][:top]


def open_run(path: str | Path, memory: bool = True) -> Run:
    """Open the folder that training left, with its memory, if it has one."""
    folder = RunFolder(Path(path))
    kb, config = folder.read_knowledge_base(), folder.read_config()
    model = build_model(config["model"], folder.read_json("model.json"))
    fill(model, folder.read_weights(), folder.path / "weights.safetensors")
    if memory and folder.has_memory():
        model = Remembering(model, Memory.from_facts(kb.split("train"), kb.n_entities), _memory_weights(folder))
    model.eval()
    return Run(folder, kb, model)


def _memory_weights(folder: RunFolder) -> dict[str, MemoryWeights]:
    try:
        weights = folder.read_json("memory.json")["weights"]
        return {name: build(MemoryWeights, values) for name, values in weights.items()}
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError):
        raise RunError(f"{folder.path / 'memory.json'}: expected the weights of a memory, found others") from None


def fill(model: ScoringModel, weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Give a model the weights of a file; weights of another model are refused."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        wrong = " ".join(str(error).split()[:24])
        raise RunError(f"{path}: expected the weights of this model, found others ({wrong} …)") from None


def build_model(
    values: Mapping[str, Any], sizes: Mapping[str, Any], generator: torch.Generator | None = None
) -> ScoringModel:
    """A model from the ``[model]`` table of a config and from its sizes."""
    name = values["name"]
    settings = model_settings(name, {key: value for key, value in values.items() if key != "name"})
    counts = sizes["n_entities"], sizes["n_relations"], sizes["arities"]
    return make_model(name, settings, *counts, generator, sizes.get("roles"))
