"""The cache folder, which keeps generated files between runs."""

from __future__ import annotations

import getpass
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from loaderbench.user_paths import expanded


def user_cache() -> Path:
    """The user's cache folder, by the system's convention; `LOADERBENCH_CACHE` moves it.

    It is a folder for temporary files if there is no writable home, as in many containers.
    """
    if chosen := os.environ.get("LOADERBENCH_CACHE"):
        return expanded(chosen).absolute()
    with suppress(OSError, RuntimeError):  # the home is unknown, or cannot contain the folder
        folder = _usual_cache()
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return _temporary_cache()


def _temporary_cache() -> Path:
    """A temporary folder for each user, kept between runs; a new one if another user owns its name."""
    with suppress(OSError, KeyError):  # this user has no name
        folder = Path(tempfile.gettempdir()) / f"loaderbench-{getpass.getuser()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="loaderbench-"))


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())


def _usual_cache() -> Path:
    if Path(xdg := os.environ.get("XDG_CACHE_HOME", "")).is_absolute():  # others are invalid, by the specification
        return Path(xdg) / "loaderbench"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "loaderbench"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "loaderbench" / "cache"
    return Path.home() / ".cache" / "loaderbench"
