"""A model on the demo that is not trained."""

from __future__ import annotations

import pytest

import getd
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.getd import GETD
from tests.tiny import untrained_getd


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return getd.load("demo")


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> GETD:
    return untrained_getd(kb)
