"""Files from the network: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from getd.errors import DownloadError
from getd.io.atomic import atomic_path

Progress = Callable[[str, int, int | None], None]  # address, bytes so far, bytes in all if known
BLOCK = 1 << 16  # bytes between two calls of progress
TIMEOUT = 60  # seconds without an answer


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
        What each file must hash to after ``convert``.
    convert
        Brings the bytes of a file into normal form.
    target
        The folder; it appears only when every file is there and right.
    """
    with atomic_path(target) as folder:
        folder.mkdir()
        for name, urls in addresses.items():
            data = convert(_fetch_first(urls, progress))
            digest = hashlib.sha256(data).hexdigest()
            if digest != sha256[name]:
                wrong = f"expected SHA-256 {sha256[name]}, found {digest}"
                raise DownloadError(f"{target.name}/{name} from {urls[0]}: {wrong}")
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
