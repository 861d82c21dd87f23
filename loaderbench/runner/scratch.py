"""The folder through which the processes of a run reach each other, gone with them however they end.

`multiprocessing` puts its sockets into a folder of its own, which stays where the process that made it is killed. Here
that folder lies in one that is locked while its owner lives: the next start removes those that nobody holds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from multiprocessing import util
from pathlib import Path

from loaderbench import locking

PREFIX, _LOCK = "loaderbench-", "lock"
_LAST = -200  # after the end of multiprocessing's own folder, which is at -100
_SOCKET = "/loaderbench-12345678/pymp-12345678/listener-12345678"
_LONGEST_SOCKET = 100  # bytes of its path, of the 104 that macOS takes and the 108 of Linux
_SHORT = Path("/tmp")
_finalizers: list[util.Finalize] = []


@cache
def claim_scratch() -> Path | None:
    """Make this process's folder and remove those of the dead; `None` where the system knows no such lock."""
    if not locking.KNOWN:  # Windows, whose processes reach each other without files
        return None
    place = _place()
    _remove_left(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    lock = (folder / "new").open("w")
    locking.hold(lock)
    (folder / "new").rename(folder / _LOCK)  # held from the moment that another can find it
    _finalizers.append(util.Finalize(None, _leave, args=(folder, lock), exitpriority=_LAST))
    _let_multiprocessing_use(folder)
    return folder


def leave_scratch() -> None:
    """Remove this process's folder, before `os._exit`. In a forked copy, the folder of its parent stays."""
    for leave in _finalizers:
        leave()


def _place() -> Path:
    """The folder for temporary files, unless the path of a socket in it were too long for the system."""
    usual = Path(tempfile.gettempdir())
    too_long = len(os.fsencode(f"{usual}{_SOCKET}")) > _LONGEST_SOCKET
    return _SHORT if too_long and os.access(_SHORT, os.W_OK) else usual


def _let_multiprocessing_use(folder: Path) -> None:
    """Unless it has a folder already: it is asked for one while `folder` passes for the system's."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        util.get_temp_dir()
    finally:
        tempfile.tempdir = before


def _leave(folder: Path, lock: object) -> None:  # noqa: ARG001 - kept open, and so held, until here
    shutil.rmtree(folder, ignore_errors=True)


def _remove_left(place: Path) -> None:
    """Remove this user's folders whose owners are gone."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another's, or gone meanwhile
            if folder.stat().st_uid == os.getuid() and _is_free(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _is_free(lock: Path) -> bool:
    """Whether nobody holds it for sure. Raises `OSError` where there is none."""
    with lock.open("r+") as file:
        return locking.hold(file) is True
