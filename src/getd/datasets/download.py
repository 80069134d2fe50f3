"""Files from the network, whole or not at all."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence

from getd.errors import DownloadError

Progress = Callable[[str, int, int | None], None]  # address, bytes so far, bytes in all if known
BLOCK = 1 << 16  # bytes between two calls of progress
TIMEOUT = 60  # seconds without an answer


def fetch(urls: Sequence[str], progress: Progress | None) -> bytes:
    """Fetch a file from the first of these addresses that has it, whole."""
    errors = []
    for url in urls:
        try:
            return _fetch_one(url, progress)
        except DownloadError as error:
            errors.append(error)
    raise errors[0]


def _fetch_one(url: str, progress: Progress | None) -> bytes:
    data = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            length = response.headers["Content-Length"]
            total = int(length) if length else None
            while block := response.read(BLOCK):
                data += block
                if progress:
                    progress(url, len(data), total)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {error.reason}"
        raise DownloadError(f"cannot download {url}: {answer}") from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"cannot download {url}: {reason}") from None

    if total is not None and len(data) < total:
        broken = f"the connection broke after {len(data):,} of {total:,} bytes"
        raise DownloadError(f"cannot download {url}: {broken}")
    return bytes(data)
