"""ASGI middleware: allowed host names, a limit on the body, a timeout, request metrics."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from getd.io.deadline import DeadlineExceeded

CLIENT_LEFT = 499  # the status, in the metrics, of requests whose client has left
POLICY = b"default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'"
HEADERS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", POLICY))


@dataclass(frozen=True)
class ServeSettings:
    """How a run is served."""

    token: str | None = None  # that requests must bear
    max_body: int = 1 << 20  # bytes
    timeout: float = 30.0  # seconds that a request may take
    hosts: tuple[str, ...] = ()  # names it may be reached by; none: any
    batching: bool = True  # whether simultaneous requests are answered together
    threads: int | None = None  # of matrix products; None: as torch has them


class Guard:
    """Refuses bodies that are too large and requests that take too long; counts and times all.

    A request goes first to ``shortcut``, with its body; if that returns nothing, to the app.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        count: Callable[[str, int, float], None],
        shortcut: Callable[[Scope, bytes], Awaitable[Response | None]],
    ) -> None:
        self.app = app
        self.settings = settings
        self.count = count
        self.shortcut = shortcut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        start = time.perf_counter()
        sender = _Sender(send)
        timeout = self.settings.timeout
        try:
            async with asyncio.timeout(timeout):
                await self._answer(scope, receive, sender)
        except (TimeoutError, DeadlineExceeded):
            if sender.status:  # an answer is on its way already
                raise
            refusal = problem(503, f"it took longer than {timeout:g} seconds")
            await refusal(scope, receive, sender)
        except Exception:
            logging.getLogger("getd").exception("a request failed")
            if sender.status:
                raise
            refusal = problem(500, "something went wrong here; the service's log tells more")
            await refusal(scope, receive, sender)
        finally:
            seconds = time.perf_counter() - start
            self.count(scope["path"], sender.status or CLIENT_LEFT, seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the app, if it may pass."""
        hosts = self.settings.hosts
        if hosts and _host(scope) not in hosts:
            refusal = problem(400, f"expected one of the hosts {', '.join(hosts)}")
            await refusal(scope, receive, send)
            return

        max_body = self.settings.max_body
        body = await _read_body(scope, receive, max_body)
        if body is None:
            refusal = problem(413, f"expected a body of {max_body:,} bytes at most")
            await refusal(scope, receive, send)
            return

        async def receive_body() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def answer() -> None:
            response = await self.shortcut(scope, body)
            await (response or self.app)(scope, receive_body, send)

        await _while_connected(answer(), receive)


class _Sender:
    """Sends messages with our headers, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self.status = 0  # nothing was sent yet
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await self._send(message)


def _host(scope: Scope) -> str:
    """Return the name by which a request reached us, without the port."""
    host: str = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    name, _, port = host.rpartition(":")
    return name if port.isdigit() else host


async def _read_body(scope: Scope, receive: Receive, max_body: int) -> bytes | None:
    """Read the body of a request; ``None``: it is too long."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > max_body:
        return None

    body = b""
    has_more = True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > max_body:
            return None
    return body


async def _while_connected(work: Awaitable[None], receive: Receive) -> None:
    """Do some work, unless the client leaves before it is done."""
    has_left = False

    async def wait_for_disconnect() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        connection.reschedule(asyncio.get_running_loop().time())

    leaving = asyncio.ensure_future(wait_for_disconnect())
    try:
        async with asyncio.timeout(None) as connection:
            await work
    except TimeoutError:
        if not has_left:
            raise
    finally:
        leaving.cancel()


def problem(code: int, message: str) -> JSONResponse:
    """Return a refusal that says in one line what is wrong."""
    return JSONResponse({"detail": message}, status_code=code)
