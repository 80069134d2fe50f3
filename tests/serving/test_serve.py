"""``getd serve``: where it listens and what it says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import getd as package
from getd.facts.knowledge_base import KnowledgeBase
from tests.conftest import Result

uvicorn = pytest.importorskip("uvicorn", reason="getd[serve] is not installed")


def test_it_listens_at_the_port_that_it_names(
    getd: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("r", "b", "c")]})
    package.train(kb, model="n-cp", out=tmp_path / "run", epochs=1)
    seen: list[tuple[str, int]] = []

    threads = torch.get_num_threads()

    def run(self: Any, sockets: list[socket.socket]) -> None:
        seen.extend(listener.getsockname() for listener in sockets)
        assert torch.get_num_threads() == 1  # the thread of the model has the others

    monkeypatch.setattr(uvicorn.Server, "run", run)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = getd("serve", tmp_path / "run", "--port", port)
    assert (result.code, result.err) == (0, "")
    address = f"http://127.0.0.1:{port}/"
    assert result.out == f"serving {tmp_path / 'run'} at {address} (Ctrl-C to stop)\n"
    assert seen == [("127.0.0.1", port)]
    assert torch.get_num_threads() == threads
