"""The environment of a chaos run: its folder, its /dev/shm, and the library that makes its writes fail."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
WRITE_FAULTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* While the file CHAOS holds an error number, writes to files below CHAOS_FOLDER fail with it. */
static int fault(int file) {
    char link[64], path[4096];
    int number = 0;
    FILE *asked = fopen(getenv("CHAOS"), "r");
    if (!asked) return 0;
    if (fscanf(asked, "%d", &number) != 1) number = 0;
    fclose(asked);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    const char *folder = getenv("CHAOS_FOLDER");
    return strncmp(path, folder, strlen(folder)) ? 0 : number;
}
ssize_t write(int file, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    int number = fault(file);
    if (number) { errno = number; return -1; }
    return real(file, data, size);
}
"""


def compiled_write_faults(place: Path) -> Path | None:
    """Compile the library into this folder; `None` without a compiler."""
    source, library = place / "writes.c", place / "writes.so"
    source.write_text(WRITE_FAULTS)
    if shutil.which("gcc") is None:
        return None
    done = subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=False)
    return library if done.returncode == 0 else None


@dataclass(frozen=True)
class Place:
    """A folder with suite and photos; its runs see `shared_memory` as /dev/shm."""

    folder: Path
    shared_memory: Path = SHARED_MEMORY

    def shared_files(self) -> set[str]:
        """Files that torch has left in the shared memory."""
        return {path.name for path in self.shared_memory.glob("torch_*")}

    def command(self, *command: str) -> list[str]:
        """The command line, with this shared memory mounted."""
        if self.shared_memory == SHARED_MEMORY:
            return list(command)
        bind = f'mount --bind {shlex.quote(str(self.shared_memory))} {SHARED_MEMORY} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", bind, "sh", *command]


@contextmanager
def own_place(place: Path, number: int, *, own_shared_memory: bool) -> Iterator[Place]:
    """Create a folder for the runs of one seed, and remove it afterwards."""
    folder, shared = place / f"chaos{number}", SHARED_MEMORY / f"loaderbench-chaos-{os.getpid()}-{number}"
    folder.mkdir()
    shutil.copy(place / "s.yaml", folder)
    (folder / "photos").symlink_to(place / "photos", target_is_directory=True)
    try:
        if own_shared_memory:
            shared.mkdir()
        yield Place(folder, shared if own_shared_memory else SHARED_MEMORY)
    finally:
        shutil.rmtree(shared, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def may_mount() -> bool:
    """Whether processes are allowed to mount file systems."""
    tried = ["unshare", "--mount", "mount", "--bind", "/mnt", "/mnt"]
    return (
        shutil.which("unshare") is not None and not subprocess.run(tried, capture_output=True, check=False).returncode
    )
