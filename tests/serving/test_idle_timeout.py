"""Idle connections are closed; a port in use is one line."""

from __future__ import annotations

import re
import socket
import threading
import time

import pytest

from getd.runs.opened import OpenedRun

pytest.importorskip("uvicorn", reason="getd[serve] is not installed")
import uvicorn

from getd.cli.app import main
from getd.serving import idle_timeout
from getd.serving.app import create_app
from getd.serving.middleware import ServeSettings


def test_idle_connections_are_closed_and_a_taken_port_is_one_line(
    served: OpenedRun, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(idle_timeout, "IDLE_TIMEOUT", 1.0)
    protocol = idle_timeout.IdleTimeoutProtocol
    config = uvicorn.Config(
        create_app(served, ServeSettings()), log_level="warning", http=protocol, ws="none"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            for beginning in (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"):
                with socket.create_connection(("127.0.0.1", port), timeout=60) as idle:
                    idle.sendall(beginning)
                    assert idle.recv(100) == b""
            with socket.create_connection(("127.0.0.1", port), timeout=60) as busy:
                for _ in range(2):
                    busy.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert whole_reply(busy).startswith(b"HTTP/1.1 200")
                    # Between two requests a connection may be idle.
                    time.sleep(1.2 * idle_timeout.IDLE_TIMEOUT)
            assert main(["serve", str(served.path), "--port", str(port)]) == 1
            refused = rf"cannot listen at 127.0.0.1, port {port}: .*\n"
            assert re.fullmatch(refused, capfd.readouterr().err)
        finally:
            server.should_exit = True
            thread.join()
    assert main(["serve", str(served.path), "--token", ""]) == 2


def whole_reply(connection: socket.socket) -> bytes:
    """Head and body of a reply, in however many pieces they come."""
    reply = b""
    while b"\r\n\r\n" not in reply:
        piece = connection.recv(10_000)
        assert piece, f"the connection was closed after {reply!r}"
        reply += piece
    head, _, body = reply.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"content-length: (\d+)", head.lower())
    while len(body) < int(length):
        piece = connection.recv(10_000)
        assert piece, f"the connection was closed after {body!r}"
        body += piece
    return head + body
