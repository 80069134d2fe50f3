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
    from getd.datasets.convert import convert
    from getd.datasets.load import load
    from getd.errors import GetdError
    from getd.facts.knowledge_base import KnowledgeBase
    from getd.prediction.run import open_run
    from getd.profile.describe import describe
    from getd.training.start import train

__version__ = "0.1.0"

_PUBLIC = {
    "GetdError": "getd.errors",
    "KnowledgeBase": "getd.facts.knowledge_base",
    "convert": "getd.datasets.convert",
    "describe": "getd.profile.describe",
    "load": "getd.datasets.load",
    "open_run": "getd.prediction.run",
    "train": "getd.training.start",
}
__all__ = [
    "GetdError",
    "KnowledgeBase",
    "__version__",
    "convert",
    "describe",
    "load",
    "open_run",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import getd`` and ``getd --help`` stay quick."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'getd' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
