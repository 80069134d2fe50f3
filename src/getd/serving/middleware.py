"""What stands between the world and the app: limits of size and time, and who may be reached by which name."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from getd.io.deadline import DeadlineExceeded

CLIENT_LEFT = 499  # the status of requests that nobody waits for any more, in the metrics
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'",
    ),
)


@dataclass(frozen=True)
class ServeSettings:
    """How a run is served."""

    token: str | None = None  # that requests must bear
    max_body: int = 1 << 20  # bytes
    timeout: float = 30.0  # seconds that a request may take
    hosts: tuple[str, ...] = ()  # names it may be reached by; none: any
    batching: bool = True  # whether requests that come at once are answered together
    batch: int = 256  # questions answered together


class Guard:
    """Refuses bodies that are too large and requests that take too long; counts and times all."""

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, count: Callable[[str, int, float], None]
    ) -> None:
        self.app, self.settings, self.count = app, settings, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, settings = time.perf_counter(), 0, self.settings

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        async def answer() -> None:
            if settings.hosts and _host(scope) not in settings.hosts:
                told = f"expected one of the hosts {', '.join(settings.hosts)}"
                await problem(400, told)(scope, receive, noted)
                return
            body = await _read(scope, receive, settings.max_body)
            if body is None:
                await problem(413, f"expected a body of {settings.max_body:,} bytes at most")(
                    scope, receive, noted
                )
            else:
                await _while_connected(self.app(scope, _once(body), noted), receive)

        try:
            await asyncio.wait_for(answer(), settings.timeout)
        except (TimeoutError, DeadlineExceeded):
            if status:  # an answer is on its way already
                raise
            await problem(503, f"it took longer than {settings.timeout:g} seconds")(
                scope, receive, noted
            )
        except Exception:
            logging.getLogger("getd").exception("a request failed")
            if status:
                raise
            await problem(500, "something went wrong here; the service's log tells more")(
                scope, receive, noted
            )
        finally:
            self.count(scope["path"], status or CLIENT_LEFT, time.perf_counter() - start)


def _host(scope: Scope) -> str:
    """The name that a request reached us by, without the port."""
    found: str = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    return found.rpartition(":")[0] if found.rpartition(":")[2].isdigit() else found


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The body of a request; ``None``: it is longer than it may be."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > most:
        return None
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            return None
    return body


def _once(body: bytes) -> Receive:
    """Receives a body that was read already."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _while_connected(work: Awaitable[None], receive: Receive) -> None:
    """Do it, unless whoever asked leaves before."""
    working, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, left), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def problem(code: int, told: str) -> JSONResponse:
    """What was wrong, in one line."""
    return JSONResponse({"detail": told}, status_code=code)
