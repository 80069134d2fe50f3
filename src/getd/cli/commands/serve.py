"""``getd serve``."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.output import print_line, print_notices
from getd.errors import ConfigError, RunError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MOST_AT_ONCE = 512  # connections


def serve(
    run: Path,
    /,
    *,
    host: Annotated[str, Parameter(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port to listen at.")] = 8000,
    token: Annotated[
        str | None,
        Parameter(help="What requests must bear; also from the environment, GETD_TOKEN."),
    ] = None,
    timeout: Annotated[float, Parameter(help="Seconds that a request may take.")] = 30.0,
    max_body: Annotated[int, Parameter(help="Bytes that a request may hold.")] = 1 << 20,
    batching: Annotated[bool, Parameter(help="Answer requests that come at once together.")] = True,
) -> None:
    """Serve a run over HTTP: an API, and a page for people at /.

    Parameters
    ----------
    run
        The folder that training left.
    """
    try:
        import uvicorn

        from getd.serving.app import create_app
        from getd.serving.idle_timeout import IdleTimeoutProtocol
        from getd.serving.log import LOG_CONFIG
        from getd.serving.middleware import ServeSettings
    except ImportError:
        raise ConfigError("serving needs FastAPI and uvicorn: pip install 'getd[serve]'") from None
    from getd.cli.opening import open_run

    token = os.environ.get("GETD_TOKEN") if token is None else token
    for name, value, low, high in (("--port", port, 1, 65535), ("--timeout", timeout, 0.1, 86400)):
        if not low <= value <= high:
            raise ConfigError(f"expected {name} between {low:g} and {high:g}, found {value:g}")
    if max_body < 1024:
        raise ConfigError(f"expected --max-body of 1024 or more, found {max_body}")
    if token is not None and not (
        token and token.isascii() and token.isprintable() and " " not in token
    ):
        raise ConfigError(
            "expected a token of plain ASCII letters, without blanks, found another or an empty one"
        )
    if host not in LOOPBACK and token is None:
        print_notices(
            [f"everyone who reaches {host}:{port} can ask this run; --token asks for a word"]
        )
    hosts = (
        ("127.0.0.1", "[::1]", "localhost") if host in LOOPBACK else ()
    )  # no page elsewhere may name us otherwise
    settings = ServeSettings(
        token=token, timeout=timeout, max_body=max_body, batching=batching, hosts=hosts
    )
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            create_app(open_run(run).opened, settings),
            log_config=LOG_CONFIG,
            log_level="warning",
            timeout_graceful_shutdown=10,
            limit_concurrency=MOST_AT_ONCE,
            http=IdleTimeoutProtocol,
            ws="none",
        )
        place = f"[{host}]" if ":" in host else host
        print_line(f"serving {run} at http://{place}:{port}/ (Ctrl-C ends it)")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except OSError as error:
        raise RunError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
