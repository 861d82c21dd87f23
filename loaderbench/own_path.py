"""Starts Python processes whose modules are found where this process finds its own.

A process of `python -c`, as `multiprocessing` starts it, looks in the working directory first. There, a `queue.py` of
the user would replace Python's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SAFE_PATH = "PYTHONSAFEPATH"  # from Python 3.11 on
_OURS = "loaderbench"


@contextmanager
def same_path() -> Iterator[None]:
    """Let Python processes started in the block skip the working directory, unless this process looks there too."""
    if _SAFE_PATH in os.environ or _looks_in_working_directory():
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        os.environ.pop(_SAFE_PATH, None)


def forget_same_path() -> None:
    """In a process started in the block: let the Python programs that it starts look where they always do."""
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]


def _looks_in_working_directory() -> bool:
    try:
        here = Path.cwd()
        return any(not entry or Path(entry).resolve() == here for entry in sys.path)
    except OSError:  # the working directory was removed
        return False
