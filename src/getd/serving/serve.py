"""Serve a run: check the settings, listen, then answer until interrupted."""

import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import uvicorn

from getd.errors import ConfigError, RunError
from getd.runs.opened import OpenedRun, open_run
from getd.serving.app import create_app
from getd.serving.idle_timeout import IdleTimeoutProtocol
from getd.serving.log import LOG_CONFIG
from getd.serving.middleware import ServeSettings

OnReady = Callable[[str, Sequence[str]], None]  # called with the address and with notices
LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_CONNECTIONS = 512
MIN_BODY = 1024  # bytes


def serve(
    run: OpenedRun | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    timeout: float = 30.0,
    max_body: int = 1 << 20,
    batching: bool = True,
    on_ready: OnReady = lambda address, notices: None,
) -> None:
    """Serve a run until interrupted.

    ``token`` is what requests must send, by default ``GETD_TOKEN`` of the environment. A request
    may take ``timeout`` seconds and hold ``max_body`` bytes; ``batching`` answers simultaneous ones
    together. A run folder is opened last: wrong settings or a port in use are reported at once.
    """
    token = os.environ.get("GETD_TOKEN") if token is None else token
    _check(port, token, timeout, max_body)

    # On this machine alone, no web page may reach the service by another name.
    hosts = ("127.0.0.1", "[::1]", "localhost") if host in LOOPBACK else ()
    with _listen(host, port) as listener, _one_thread() as threads:
        settings = ServeSettings(
            token=token,
            max_body=max_body,
            timeout=timeout,
            hosts=hosts,
            batching=batching,
            threads=threads,
        )
        opened = open_run(run) if isinstance(run, Path) else run
        config = uvicorn.Config(
            create_app(opened, settings),
            log_config=LOG_CONFIG,
            log_level="warning",
            timeout_graceful_shutdown=10,
            limit_concurrency=MAX_CONNECTIONS,
            http=IdleTimeoutProtocol,
            ws="none",
            access_log=False,
            proxy_headers=False,  # nothing depends on where a request comes from
        )

        notices = list(opened.notices)
        if not hosts and token is None:
            reach = f"anyone who can reach {host}:{port} can query this run"
            notices.append(f"{reach}; use --token to require a token")
        shown_host = f"[{host}]" if ":" in host else host
        on_ready(f"http://{shown_host}:{port}/", notices)
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _one_thread() -> Iterator[int]:
    """Leave matrix products to the thread of the model; yield how many threads it may use.

    Where there are more such threads than cores, they sleep after each product, and wake up late.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def _check(port: int, token: str | None, timeout: float, max_body: int) -> None:
    for name, value, low, high in (("--port", port, 1, 65535), ("--timeout", timeout, 0.1, 86400)):
        if not low <= value <= high:
            raise ConfigError(f"expected {name} between {low:g} and {high:g}, found {value:g}")
    if max_body < MIN_BODY:
        raise ConfigError(f"expected --max-body of {MIN_BODY} or more, found {max_body}")

    if token is not None and not re.fullmatch("[!-~]+", token):
        expected = "expected a token of plain ASCII characters without spaces"
        raise ConfigError(f"{expected}, found another or an empty one")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise RunError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
