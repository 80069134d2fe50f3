"""Files from the network: whole, checked, and in place in one step, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from getd.errors import DownloadError
from getd.io.atomic import atomic_path

Progress = Callable[
    [str, int, int | None], None
]  # what is fetched, bytes so far, bytes in all where known
_BLOCK = 1 << 16
_TIMEOUT = 60  # seconds without an answer


def fetch_files(
    addresses: Mapping[str, Sequence[str]],
    sha256: Mapping[str, str],
    convert: Callable[[bytes], bytes],
    target: Path,
    progress: Progress | None = None,
) -> None:
    """Fetch files into a new folder.

    Parameters
    ----------
    addresses
        For each file name the addresses to try, in order.
    sha256
        What each file must hash to once ``convert`` has brought it into its form.
    target
        The folder; it comes to be only when every file is there and right.
    """
    with atomic_path(target) as folder:
        folder.mkdir()
        for name, urls in addresses.items():
            data = convert(_fetch_first(urls, progress))
            found = hashlib.sha256(data).hexdigest()
            if found != sha256[name]:
                raise DownloadError(
                    f"{target.name}/{name} from {urls[0]}: expected SHA-256 {sha256[name]}, found {found}"
                )
            (folder / name).write_bytes(data)


def _fetch_first(urls: Sequence[str], progress: Progress | None) -> bytes:
    errors = []
    for url in urls:
        try:
            return _fetch(url, progress)
        except DownloadError as error:
            errors.append(error)
    raise errors[0]


def _fetch(url: str, progress: Progress | None) -> bytes:
    data = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            total = (
                int(answer.headers["Content-Length"]) if answer.headers["Content-Length"] else None
            )
            while block := answer.read(_BLOCK):
                data += block
                if progress:
                    progress(url, len(data), total)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(
            f"cannot download {url}: the server answered {error.code} {error.reason}"
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"cannot download {url}: {reason}") from None
    if total is not None and len(data) < total:
        raise DownloadError(
            f"cannot download {url}: the connection broke after {len(data):,} of {total:,} bytes"
        )
    return bytes(data)
