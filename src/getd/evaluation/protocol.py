"""How a number was measured: what was asked, what was left out, and which facts chose or fitted anything before.

Test decides nothing: its known answers are left out only where test itself is evaluated. Whatever is chosen or fitted
(the epoch, a memory's weights, temperatures) is ranked without the answers known from train and valid alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble

LEVEL = "scores that rounding alone can put apart"  # are ties


@dataclass(frozen=True)
class Choice:
    """The facts that something was chosen or fitted by."""

    split: str | None  # None: nothing was chosen, as where the last epoch is kept
    filter: tuple[str, ...] = ()  # the splits whose known answers were left out of the ranks
    sample: int | None = None  # how many facts of the split, drawn at random; None: all


@dataclass(frozen=True)
class Measured:
    """What an evaluation counts on its way."""

    ties: str
    sample: int | None
    seed: int
    candidates: int
    questions: int


def filter_splits(kb: KnowledgeBase, split: str) -> tuple[str, ...]:
    """The splits whose known answers an evaluation of a split leaves out: all, but test only where test is asked."""
    return tuple(name for name in kb.splits if name != "test" or split == "test")


def known_for_choosing(kb: KnowledgeBase) -> KnownAnswers:
    """The known answers that may decide what is chosen or fitted on validation: those of train and valid."""
    kb.require("valid")
    return kb.known(*filter_splits(kb, "valid"))


def protocol_of(
    model: ScoringModel,
    kb: KnowledgeBase,
    split: str,
    trained_on: Sequence[str],
    measured: Measured,
    epoch: Choice | None = None,
    memory: Choice | None = None,
) -> dict[str, Any]:
    """The protocol of an evaluation, ready for JSON; ``docs/evaluation.md`` says what each key means."""
    bare = model.bare
    return {
        "split": split,
        "trained_on": list(trained_on),
        "filter": left_out(filter_splits(kb, split)),
        "ties": measured.ties,
        "level": LEVEL,
        "sample": measured.sample,
        "seed": measured.seed,
        "candidates": measured.candidates,
        "questions": measured.questions,
        "members": len(bare.members) if isinstance(bare, Ensemble) else 1,
        "epoch": None if epoch is None else {"chosen_on": epoch.split, **_ranked(epoch)},
        "memory": _memory(model.memory_weights, trained_on, memory),
    }


def protocol_sentence(protocol: Mapping[str, Any]) -> str:
    """A protocol for people, in one line."""
    parts = [f"trained on {_and(protocol['trained_on'])}", protocol["filter"]]
    if protocol["sample"] is not None:
        parts.append(f"{protocol['sample']:,} facts, drawn at random")
    if protocol.get("members", 1) > 1:
        parts.append(f"{protocol['members']} models as one")
    if protocol.get("epoch"):
        parts.append(_epoch_words(protocol["epoch"]))
    if protocol.get("memory"):
        parts.append(_memory_words(protocol["memory"]))
    return "; ".join(parts)


def left_out(splits: Sequence[str]) -> str:
    """A filter in words.

    >>> left_out(["train", "valid"])
    'known answers of train and valid left out'
    """
    return f"known answers of {_and(splits)} left out"


def _memory(
    weights: int | None, trained_on: Sequence[str], choice: Choice | None
) -> dict[str, Any] | None:
    if weights is None:
        return None
    fitted = {} if choice is None else {"fitted_on": choice.split, **_ranked(choice)}
    return {"counts": list(trained_on), "weights": weights, **fitted}


def _ranked(choice: Choice) -> dict[str, Any]:
    return {"filter": left_out(choice.filter) if choice.filter else None, "sample": choice.sample}


def _epoch_words(epoch: Mapping[str, Any]) -> str:
    if epoch["chosen_on"] is None:
        return "the last epoch"
    return f"epoch chosen on {epoch['chosen_on']} ({_choice_words(epoch)})"


def _memory_words(memory: Mapping[str, Any]) -> str:
    words = f"a memory that counts {_and(memory['counts'])}"
    if "fitted_on" not in memory:
        return words
    fitted = f"its {memory['weights']} weights fitted on the labels of {memory['fitted_on']}"
    return f"{words}, {fitted} ({_choice_words(memory)})"


def _choice_words(choice: Mapping[str, Any]) -> str:
    drawn = "" if choice["sample"] is None else f", {choice['sample']:,} facts"
    return f"{choice['filter']}{drawn}"


def _and(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _and(["train"]), _and(["train", "valid", "test"])
    ('train', 'train, valid and test')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
