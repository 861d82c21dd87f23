"""Serve a folder through FUSE as slow storage: `python slow_files.py FOLDER MOUNT LATENCY_S STALL_AT`.

Each read of a file takes LATENCY_S seconds. Read number STALL_AT takes a minute, as when a file server restarts (0 for
no such read). Needs libfuse and the dependency group `storage`; exits with code 77 without them. `conditions.py` starts
it.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

try:
    from mfusepy import FUSE, Operations
except (ImportError, OSError) as error:  # OSError: libfuse is missing
    print(error, file=sys.stderr)
    sys.exit(77)

STALL_S = 60.0
STATUS = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")


class SlowFiles(Operations):
    """A read-only file system with slow reads."""

    use_ns = True

    def __init__(self, folder: Path, latency_s: float, stall_at: int) -> None:
        self._folder, self._latency_s, self._stall_at = folder, latency_s, stall_at
        self._reads = itertools.count(1)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:  # noqa: ARG002 - as FUSE calls it
        found = os.lstat(self._inside(path))
        return {**{name: getattr(found, name) for name in STATUS}, "st_mtime": found.st_mtime_ns}

    def readdir(self, path: str, fh: int) -> list[str]:  # noqa: ARG002
        return [".", "..", *(file.name for file in self._inside(path).iterdir())]

    def open(self, path: str, flags: int) -> int:
        return os.open(self._inside(path), flags)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        time.sleep(STALL_S if next(self._reads) == self._stall_at else self._latency_s)
        return os.pread(fh, size, offset)

    def release(self, path: str, fh: int) -> int:  # noqa: ARG002
        os.close(fh)
        return 0

    def _inside(self, path: str) -> Path:
        return self._folder / path.lstrip("/")


if __name__ == "__main__":
    folder, mount, latency_s, stall_at = sys.argv[1:]
    FUSE(SlowFiles(Path(folder).resolve(), float(latency_s), int(stall_at)), mount, foreground=True, allow_other=True)
