"""CompletionRequest n-ary knowledge bases: learn from known facts, fill the holes in unknown ones.

>>> import getd
>>> kb = getd.KnowledgeBase.from_facts([("award", "Jordan", "Bulls", "MVP", "1991-92")])
>>> kb.arities
(4,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from getd.api import Tuned, open_run, train, tune
    from getd.datasets.convert import convert
    from getd.datasets.load import load
    from getd.errors import GetdError
    from getd.evaluation.evaluate import evaluate
    from getd.evaluation.report import Evaluation
    from getd.facts.knowledge_base import KnowledgeBase
    from getd.models.base import DotProductModel, ScoringModel
    from getd.prediction.answer import Answer
    from getd.prediction.explain import Explanation
    from getd.prediction.question import Question
    from getd.prediction.rate import Rating
    from getd.profile.describe import describe
    from getd.run import Run
    from getd.runs.config import Config
    from getd.training.callbacks import Callbacks

__version__ = "0.1.0"

_PUBLIC = {
    "Answer": "getd.prediction.answer",
    "Callbacks": "getd.training.callbacks",
    "Config": "getd.runs.config",
    "DotProductModel": "getd.models.base",
    "Evaluation": "getd.evaluation.report",
    "Explanation": "getd.prediction.explain",
    "GetdError": "getd.errors",
    "KnowledgeBase": "getd.facts.knowledge_base",
    "Question": "getd.prediction.question",
    "Rating": "getd.prediction.rate",
    "Run": "getd.run",
    "ScoringModel": "getd.models.base",
    "Tuned": "getd.api",
    "convert": "getd.datasets.convert",
    "describe": "getd.profile.describe",
    "evaluate": "getd.evaluation.evaluate",
    "load": "getd.datasets.load",
    "open_run": "getd.api",
    "train": "getd.api",
    "tune": "getd.api",
}
__all__ = [
    "Answer",
    "Callbacks",
    "Config",
    "DotProductModel",
    "Evaluation",
    "Explanation",
    "GetdError",
    "KnowledgeBase",
    "Question",
    "Rating",
    "Run",
    "ScoringModel",
    "Tuned",
    "__version__",
    "convert",
    "describe",
    "evaluate",
    "load",
    "open_run",
    "train",
    "tune",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import getd`` and ``getd --help`` stay quick."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'getd' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
