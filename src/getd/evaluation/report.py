"""Evaluations and reports: what was measured, and its JSON form."""

from html import escape

from pydantic import AliasChoices, Field

from getd.evaluation.metrics import Metrics
from getd.evaluation.protocol import Protocol
from getd.evaluation.record import Record

SHOWN = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}
BASELINES = AliasChoices("baselines", "floors")  # older versions wrote "floors"


class GroupMetrics(Metrics):
    """The metrics of a group of questions, with the MRR of each baseline on them."""

    baselines: dict[str, float] = Field(default_factory=dict, validation_alias=BASELINES)


class Evaluation(Record):
    """How well a model answers the questions of a split, and by which protocol."""

    protocol: Protocol
    metrics: Metrics
    baselines: dict[str, Metrics] = Field(validation_alias=BASELINES)  # on the same questions
    by: dict[str, dict[str, GroupMetrics]]  # grouping, then group

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank."""
        return self.metrics.mrr

    @property
    def hits_at_1(self) -> float:
        """The share of answers ranked first."""
        return self.metrics.hits_at_1

    @property
    def hits_at_3(self) -> float:
        """The share of answers among the first three."""
        return self.metrics.hits_at_3

    @property
    def hits_at_10(self) -> float:
        """The share of answers among the first ten."""
        return self.metrics.hits_at_10

    @property
    def mean_rank(self) -> float:
        """The mean rank."""
        return self.metrics.mean_rank

    @property
    def amri(self) -> float:
        """The adjusted mean rank index: 1 the best, 0 chance."""
        return self.metrics.amri

    @property
    def mrr_at_chance(self) -> float:
        """The MRR of candidates in random order."""
        return self.metrics.mrr_at_chance

    @property
    def mrr_interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval of the MRR."""
        return self.metrics.mrr_interval

    @property
    def questions(self) -> int:
        """The number of questions."""
        return self.metrics.questions

    def __repr__(self) -> str:
        values = [f"{name} {getattr(self, key):.4f}" for key, name in SHOWN.items()]
        return f"<Evaluation on {self.protocol.split}: {', '.join(values)}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Show the metrics as a table in a notebook."""
        head = "".join(f"<th>{name}</th>" for name in SHOWN.values())
        lines = [f"<tr><th></th>{head}</tr>"]
        for name, metrics in {"this model": self.metrics, **self.baselines}.items():
            cells = "".join(f"<td>{getattr(metrics, key):.4f}</td>" for key in SHOWN)
            lines.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
        protocol = escape(f"{self.protocol.split}: {self.protocol.sentence()}")
        return f"<table><caption>{protocol}</caption>{''.join(lines)}</table>"


class Report(Evaluation):
    """``report.json``: how the finished model did on test, once."""

    best_epoch: int | None = None  # None: the last epoch was kept
    valid_mrr: float | None = None  # of the best epoch
