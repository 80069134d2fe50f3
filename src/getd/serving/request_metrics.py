"""Counts and times requests, for Prometheus."""

from collections.abc import Container

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST


class RequestMetrics:
    """The number and the duration of requests, by path."""

    def __init__(self) -> None:
        self.paths: Container[str] = ()  # those of the app; all others count as one
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "getd_requests",
            "Requests by path and status.",
            ["path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "getd_request_seconds",
            "How long requests took, by path.",
            ["path"],
            registry=self._registry,
        )

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        path = path if path in self.paths else "other"
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Return all numbers in the format of Prometheus."""
        return generate_latest(self._registry)
