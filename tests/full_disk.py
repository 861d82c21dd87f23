"""Writing to a full disk, for tests of formats."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MOUNTED = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'
_WRITE = """\
import errno, os, sys
from importlib import import_module
from pathlib import Path
from loaderbench.formats import Item

folder, module, name = sys.argv[1:]
how = getattr(import_module(module), name)()
try:
    how.write_part((Item(f"{n:09d}", ".jpg", n, os.urandom(70_001)) for n in range(100)), Path(folder))
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def samples_of(photos: Path) -> list[tuple[str, int]]:
    return [(str(path), number % 3) for number, path in enumerate(sorted(photos.rglob("*.jpg")))]


@contextmanager
def file_size_limited(size: int) -> Iterator[None]:
    """The system refuses to write more into any file."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def error_of_full_disk(how: type, folder: Path) -> str:
    """The name of the error that a format raises on a disk of 2 MiB, which only a namespace of its own can mount."""
    unshared = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, "sh", str(folder), sys.executable]
    try:
        subprocess.run([*unshared[:3], "mount", "-t", "tmpfs", "none", str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    done = subprocess.run([*unshared, _WRITE, how.__module__, how.__name__], check=True, capture_output=True, text=True)
    return done.stdout.strip()
