"""Where what is made once is kept between runs, and how many threads make it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """The user's cache folder, by the system's own custom; `LOADERBENCH_CACHE` moves it."""
    if chosen := os.environ.get("LOADERBENCH_CACHE"):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "loaderbench"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "loaderbench"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "loaderbench" / "cache"
    return Path.home() / ".cache" / "loaderbench"


def usable_cores() -> int:
    """CPUs that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
