"""Where files are kept that can be made again: downloads and measurements of the machine."""

from pathlib import Path

import platformdirs


def user_cache(name: str) -> Path:
    """Return the path of a file or a folder in the user's cache; it need not exist."""
    return platformdirs.user_cache_path("getd") / name
