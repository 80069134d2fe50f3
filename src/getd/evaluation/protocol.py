"""The protocol of a number: its questions, what was left out, and what chose the model.

Test decides nothing: its known answers are left out only where test itself is evaluated. Whatever
is chosen or fitted (an epoch, the weights of a memory, temperatures) is ranked with the known
answers of train and valid left out, and no others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from getd.evaluation.record import Record
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers

Splits = tuple[str, ...]
Sample = int | None  # how many facts, drawn at random; None: all
LEVEL = "scores that rounding alone can put apart"  # are ties


@dataclass(frozen=True)
class Choice:
    """The facts by which something was chosen or fitted."""

    split: str | None  # None: nothing was chosen, as where the last epoch is kept
    filter: Splits = ()  # those whose known answers were left out of the ranks
    sample: Sample = None  # of the split

    def ranking(self) -> dict[str, Any]:
        """Return what the JSON form says about the ranks."""
        return {"filter": left_out(self.filter) if self.filter else None, "sample": self.sample}


class ChosenEpoch(Record):
    """Which facts chose the epoch."""

    chosen_on: str | None  # None: the last epoch was kept
    filter: str | None
    sample: Sample

    def sentence(self) -> str:
        if self.chosen_on is None:
            return "the last epoch"
        return f"epoch chosen on {self.chosen_on} ({_ranking(self.filter, self.sample)})"


class FittedMemory(Record):
    """Which facts a memory counts, and on which its weights were fitted."""

    counts: Splits
    weights: int  # how many
    fitted_on: str | None = None  # None: not known
    filter: str | None = None
    sample: Sample = None

    def sentence(self) -> str:
        words = f"a memory that counts {_join_names(self.counts)}"
        if self.fitted_on is None:
            return words
        fitted = f"its {self.weights} weights fitted on the labels of {self.fitted_on}"
        return f"{words}, {fitted} ({_ranking(self.filter, self.sample)})"


class FittedMembers(Record):
    """On which facts the weights of the members of an ensemble were fitted."""

    weights: int  # how many
    fitted_on: str | None
    filter: str | None
    sample: Sample

    def sentence(self) -> str:
        fitted = f"their {self.weights} weights fitted on the labels of {self.fitted_on}"
        return f"{fitted} ({_ranking(self.filter, self.sample)})"


@dataclass(frozen=True)
class Provenance:
    """How a model came to be, as far as it is known."""

    trained_on: Splits = ("train",)  # the splits whose facts it has seen
    epoch: Choice | None = None  # which facts chose the epoch of its weights
    memory: Choice | None = None  # which facts the weights of its memory were fitted on
    members: Choice | None = None  # which facts the weights of its members were fitted on

    def chosen_epoch(self) -> ChosenEpoch | None:
        """Return what a protocol says about the epoch."""
        if self.epoch is None:
            return None
        return ChosenEpoch(chosen_on=self.epoch.split, **self.epoch.ranking())

    def fitted_memory(self, weights: int | None) -> FittedMemory | None:
        """Return what a protocol says about a memory; ``weights`` is None if there is none."""
        if weights is None:
            return None
        fitted = {}
        if self.memory is not None:
            fitted = {"fitted_on": self.memory.split, **self.memory.ranking()}
        return FittedMemory(counts=self.trained_on, weights=weights, **fitted)

    def fitted_members(self, weights: int) -> dict[str, FittedMembers]:
        """Return what a protocol adds about the weights of members, if they were fitted."""
        if self.members is None:
            return {}
        ranking = self.members.ranking()
        fitted = FittedMembers(weights=weights, fitted_on=self.members.split, **ranking)
        return {"member_weights": fitted}


class Protocol(Record):
    """How an evaluation was made; ``docs/evaluation.md`` says what each key means.

    Older reports lack some keys; those have a default.
    """

    split: str
    trained_on: Splits
    filter: str = ""
    ties: str = "realistic"
    level: str = LEVEL
    sample: Sample = None
    seed: int = 0
    candidates: int = 0
    questions: int = 0
    members: int = 1
    epoch: ChosenEpoch | None = None
    memory: FittedMemory | None = None
    member_weights: FittedMembers | None = None
    precision: str = "fp32"  # of scores

    def sentence(self) -> str:
        """Describe the protocol in one line."""
        parts = [f"trained on {_join_names(self.trained_on)}", self.filter]
        if self.sample is not None:
            parts.append(f"{self.sample:,} facts, drawn at random")
        if self.members > 1:
            fitted = f", {self.member_weights.sentence()}" if self.member_weights else ""
            parts.append(f"{self.members} models as one{fitted}")
        if self.precision != "fp32":
            parts.append(f"scores in {self.precision}")
        parts += [chosen.sentence() for chosen in (self.epoch, self.memory) if chosen]
        return "; ".join(parts)

    def with_epoch_chosen_on(self, split: str) -> Self:
        """Return the protocol of a run whose validation facts were those of another split."""
        epoch = self.epoch or ChosenEpoch(chosen_on=split, filter=None, sample=None)
        return self.model_copy(update={"epoch": epoch.model_copy(update={"chosen_on": split})})


def filter_splits(kb: KnowledgeBase, split: str) -> Splits:
    """Name the splits whose known answers are left out: all, but test only if it is evaluated."""
    return tuple(name for name in kb.splits if name != "test" or split == "test")


def known_for_choosing(kb: KnowledgeBase) -> KnownAnswers:
    """Return the known answers to leave out where something is chosen or fitted on validation."""
    kb.require("valid")
    return kb.known(*filter_splits(kb, "valid"))


def left_out(splits: Sequence[str]) -> str:
    """Describe a filter.

    >>> left_out(["train", "valid"])
    'known answers of train and valid left out'
    """
    return f"known answers of {_join_names(splits)} left out"


def _ranking(filtered: str | None, sample: Sample) -> str:
    drawn = "" if sample is None else f", {sample:,} facts"
    return f"{filtered}{drawn}"


def _join_names(names: Sequence[str]) -> str:
    """Join names in a sentence.

    >>> _join_names(["train"]), _join_names(["train", "valid", "test"])
    ('train', 'train, valid and test')
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
