"""Complete n-ary knowledge bases: learn from known facts, predict missing ones.

>>> import getd
>>> kb = getd.KnowledgeBase.from_facts([("award", "Jordan", "Bulls", "MVP", "1991-92")])
>>> kb.arities
(4,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from getd import algebra, models
    from getd.api import (
        combine,
        convert,
        demo,
        describe,
        load,
        open_run,
        reproduce,
        serve,
        train,
        tune,
    )
    from getd.errors import GetdError
    from getd.evaluation.evaluate import evaluate
    from getd.evaluation.metrics import measure
    from getd.evaluation.rank_scores import rank_scores
    from getd.evaluation.report import Evaluation
    from getd.facts.knowledge_base import KnowledgeBase
    from getd.models.base import DotProductModel, ScoringModel
    from getd.prediction.answer import Answer
    from getd.prediction.explain import Explanation
    from getd.prediction.question import Question
    from getd.prediction.rate import Rating
    from getd.run import Run
    from getd.runs.config import Config
    from getd.training.callbacks import Callbacks

__version__ = "0.1.0"
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
    "__version__",
    "algebra",
    "combine",
    "convert",
    "demo",
    "describe",
    "evaluate",
    "load",
    "measure",
    "models",
    "open_run",
    "rank_scores",
    "reproduce",
    "serve",
    "train",
    "tune",
]

_MODULES = {  # of public names that are not in getd.api
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
    "evaluate": "getd.evaluation.evaluate",
    "measure": "getd.evaluation.metrics",
    "rank_scores": "getd.evaluation.rank_scores",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import getd`` stays quick."""
    if name not in __all__:
        raise AttributeError(f"module 'getd' has no attribute {name!r}")
    if name in ("algebra", "models"):
        return import_module(f"getd.{name}")
    return getattr(import_module(_MODULES.get(name, "getd.api")), name)
