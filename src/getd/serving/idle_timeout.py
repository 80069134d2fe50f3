"""Close connections that send no request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

IDLE_TIMEOUT = 15.0  # seconds for the head of a request


class IdleTimeoutProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Waits for the head of a request for some time; the app watches what comes after it."""

    cycle: Any  # the request that is being answered, or the last one
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(IDLE_TIMEOUT, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
