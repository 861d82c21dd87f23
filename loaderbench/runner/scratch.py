"""The folder for the sockets of a run's processes, removed with them no matter how they end.

`multiprocessing` puts its sockets into a folder that remains if the process that made it is killed. Here, that folder
is inside one that its owner locks while alive, and the next start removes folders without a lock holder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from multiprocessing import util
from pathlib import Path

from loaderbench.new_files import CAN_LOCK, hold

PREFIX, _LOCK = "loaderbench-", "lock"
_EXIT_PRIORITY = -200  # after multiprocessing removes its own folder, at priority -100
_SOCKET = "/loaderbench-12345678/pymp-12345678/listener-12345678"
_MAX_SOCKET_BYTES = 100  # bytes of the path; the maximum is 104 on macOS and 108 on Linux
_SHORT_PARENT = Path("/tmp")
_finalizers: list[util.Finalize] = []


@cache
def claim_scratch() -> Path | None:
    """Make this process's folder and remove those of dead processes; `None` if the system has no such locks."""
    if not CAN_LOCK:  # Windows, where processes communicate without files
        return None
    parent = _parent_folder()
    _remove_stale(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    lock = (folder / "new").open("w")
    hold(lock)
    (folder / "new").rename(folder / _LOCK)  # locked before another process can find it
    _finalizers.append(util.Finalize(None, _remove, args=(folder, lock), exitpriority=_EXIT_PRIORITY))
    _let_multiprocessing_use(folder)
    return folder


def leave_scratch() -> None:
    """Remove this process's folder, before `os._exit`. A forked copy does not remove its parent's folder."""
    for leave in _finalizers:
        leave()


def _parent_folder() -> Path:
    """The folder for temporary files, or `/tmp` if a socket's path in it would be too long for the system."""
    usual = Path(tempfile.gettempdir())
    too_long = len(os.fsencode(f"{usual}{_SOCKET}")) > _MAX_SOCKET_BYTES
    return _SHORT_PARENT if too_long and os.access(_SHORT_PARENT, os.W_OK) else usual


def _let_multiprocessing_use(folder: Path) -> None:
    """Make multiprocessing create its folder inside `folder`, unless it already has one."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        util.get_temp_dir()
    finally:
        tempfile.tempdir = before


def _remove(folder: Path, lock: object) -> None:  # noqa: ARG001 - kept open, and so held, until here
    shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(parent: Path) -> None:
    """Remove this user's folders whose owners are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or already removed
            if folder.stat().st_uid == os.getuid() and _is_unlocked(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _is_unlocked(lock: Path) -> bool:
    """Whether certainly no process holds the lock. Raises `OSError` if there is no lock file."""
    with lock.open("r+") as file:
        return hold(file) is True
