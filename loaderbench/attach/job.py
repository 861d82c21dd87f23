"""Which processes belong to a training: its ranks, and the workers of each, found from any one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, filterfalse, pairwise
from pathlib import Path

from loaderbench.errors import MissingError, UsageError
from loaderbench.monitors import proc
from loaderbench.ranks import rank_in

STOPPED = ("T", "t")
"""States of a process that a signal or a debugger has stopped. Source: proc(5)."""

WORKER_THREAD = "pt_data_worker"
NAMES_WORKERS = (2, 6)
"""The version of torch from which on a worker has this name."""

_VERSION = re.compile(r"^__version__ = '(\d+)\.(\d+)", re.MULTILINE)
_names: dict[int, bool] = {}  # by process, once torch is found in it
_STARTED_BY = ("multiprocessing.spawn", "multiprocessing.forkserver", "--multiprocessing-fork")
_HELPERS = ("resource_tracker", "semaphore_tracker", "loaderbench.fork_server")
_LAUNCHERS = (
    *("accelerate", "accelerate-launch", "accelerate.commands.launch"),
    *("torchrun", "torch.distributed.run", "deepspeed"),
)


@dataclass(frozen=True)
class Training:
    """The main process of a training.

    `rank` is its rank in a distributed job, which has `ranks` on all machines; `None` outside of one.
    """

    pid: int
    command: str
    rank: int | None = None
    ranks: int = 1

    def __str__(self) -> str:
        """`rank 1 of 2, process 1234: python train.py`."""
        rank = "" if self.rank is None else f"rank {self.rank} of {self.ranks}, "
        return f"{rank}process {self.pid}: {self.command}"

    def workers(self) -> list[int]:
        """The workers that are alive."""
        below = proc.process_tree(self.pid)[1:]
        named = [pid for pid in below if _comm(pid) == WORKER_THREAD]
        if named or _names_workers(self.pid):  # some may be of another rank, which this one has started
            return [pid for pid in named if _loop_of(pid) == self.pid]
        return [pid for pid in below if self._may_be_worker(pid)]

    def _may_be_worker(self, pid: int) -> bool:
        """Where torch names no worker: forked with the same command, or started by `multiprocessing`."""
        return command_of(pid) == self.command or _is_spawned(pid)


def find_trainings(pid: int) -> list[Training]:
    """Every rank of the job that a process belongs to, in order; outside of one, the training.

    Processes that a script has started by itself, as by `torch.multiprocessing.spawn`, count as a training each.

    Raises `UsageError` for a process that is not there, is stopped, is another user's or has no Python below it, and
    `MissingError` where the system has no `/proc`.
    """
    _check(pid)
    found = _trainings_of(pid)
    for one in found:
        if _state(one.pid) in STOPPED:
            how = "by Ctrl-Z or a debugger"
            raise UsageError(f"process {one.pid} is stopped, {how}; continue it: kill -CONT {one.pid}")
    return found


def _trainings_of(pid: int) -> list[Training]:
    main = _main_of(pid)
    launcher = _above_ranks(main)
    ranks = sorted(_ranks_below(launcher), key=lambda one: one.rank or 0)
    if ranks:
        return [replace(one, ranks=max(one.ranks, len(ranks))) for one in ranks]
    tree = proc.process_tree(main)
    pythons = [below for below in tree if below != os.getpid() and is_python(below)]
    with_torch = [below for below in pythons if _uses_torch(below)]
    loading = {_loop_of(below) for below in tree if _comm(below) == WORKER_THREAD}
    if starts := [below for below in pythons if below in loading]:  # a parent may only have started them
        return [Training(below, command_of(below)) for below in starts]
    spawned = [below for below in with_torch if _is_spawned(below) and _names_workers(below)]
    if spawned:
        return [Training(below, command_of(below)) for below in with_torch if below == main or below in spawned]
    found = next(chain(filterfalse(_is_launcher, with_torch), filterfalse(_is_launcher, pythons), pythons), None)
    if found is None:
        raise UsageError(
            f"process {pid} ({_comm(pid)}) is not Python and has no Python child; pass the PID of the training script"
        )
    return [Training(found, command_of(found))]


def _is_spawned(pid: int) -> bool:
    """Whether `multiprocessing` started it, and not to help itself."""
    command = command_of(pid)
    return any(word in command for word in _STARTED_BY) and not any(helper in command for helper in _HELPERS)


def _names_workers(pid: int) -> bool:
    """Whether the process has a torch that names its workers, by the version file next to torch's library.

    It is looked for once: reading the maps of a process stops it from mapping more.
    """
    if pid not in _names and (version := _torch_version(pid)) is not None:
        _names[pid] = version >= NAMES_WORKERS
    return _names.get(pid, False)


def _torch_version(pid: int) -> tuple[int, int] | None:
    library = next((line.split(maxsplit=5)[-1] for line in _maps(pid).splitlines() if "libtorch_cpu" in line), "")
    folder = library.rpartition("/lib/")[0]
    found = _VERSION.search(proc.read_text(f"/proc/{pid}/root{folder}/version.py")) if folder else None
    return (int(found[1]), int(found[2])) if found else None


def _maps(pid: int) -> str:
    return proc.read_text(f"/proc/{pid}/maps")


def _check(pid: int) -> None:
    if not proc.available():
        raise MissingError("attach needs Linux and its /proc")
    folder = Path(f"/proc/{pid}")
    try:
        owner = folder.stat().st_uid
    except OSError:
        raise UsageError(f"no process {pid} on this machine, or in this container") from None
    if os.geteuid() not in (0, owner):
        raise UsageError(f"process {pid} belongs to {_user(owner)}; run attach as that user, or as root")
    if pid == os.getpid():
        raise UsageError(f"process {pid} is this command; pass the PID of a training process")
    if _state(pid) in ("Z", "X", ""):
        raise UsageError(f"process {pid} has ended")


def _main_of(pid: int) -> int:
    """The process that has this one as its worker; itself if it is none."""
    while _comm(pid) == WORKER_THREAD and (above := _loop_of(pid)) > 1:
        pid = above
    return pid


def _loop_of(worker: int) -> int:
    """The process whose loop takes a worker's batches: its parent, or that of the server that forked it."""
    above = parent_of(worker)
    command, started_by = command_of(above), parent_of(above)
    is_forked = command == command_of(started_by)  # by such a server, whose command it has
    return started_by if "multiprocessing.forkserver" in command and not is_forked else above


def _above_ranks(pid: int) -> int:
    """The launcher of a rank; of anything else, itself."""
    found = pid
    while rank_of(found) is not None and _may_launch(above := parent_of(found)):
        found = above
    return found


def _may_launch(pid: int) -> bool:
    """In a container, a launcher may be the first process; elsewhere, that one starts everything."""
    return pid > 0 and bool(proc.environment_of(pid)) and (pid > 1 or is_python(pid))


def _ranks_below(launcher: int) -> Iterator[Training]:
    """The topmost processes with a rank; a cluster may set that of a launcher, too, but not its `LOCAL_RANK`."""
    tree = proc.process_tree(launcher)
    named = "LOCAL_RANK" if any("LOCAL_RANK" in proc.environment_of(pid) for pid in tree) else "RANK"

    def is_rank(pid: int) -> bool:
        return rank_of(pid) is not None and named in proc.environment_of(pid)

    def is_topmost(pid: int) -> bool:
        """A wrapper around it, such as a shell script, has its rank, too."""
        while pid > 1 and pid != launcher:
            pid = parent_of(pid)
            if is_rank(pid) and is_python(pid):
                return False
        return True

    for pid in tree:
        if is_rank(pid) and is_python(pid) and is_topmost(pid):
            count = proc.environment_of(pid).get("WORLD_SIZE", "")
            yield Training(pid, command_of(pid), rank_of(pid), int(count) if count.isdigit() else 1)


def rank_of(pid: int) -> int | None:
    """What torch's launcher, and those like it, put into the environment of a rank."""
    return rank_in(proc.environment_of(pid))


def command_of(pid: int) -> str:
    """The command line, its arguments joined by spaces."""
    return proc.read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def parent_of(pid: int) -> int:
    """The parent's pid; 0 where the process is gone."""
    text = proc.read_text(f"/proc/{pid}/stat")
    return int(text[text.rindex(")") + 2 :].split()[1]) if text else 0


def is_python(pid: int) -> bool:
    """By the name of its program, or by the library of one that embeds Python."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        program = _comm(pid)
    return "python" in program.lower() or "libpython" in _maps(pid)


def _is_launcher(pid: int) -> bool:
    """Whether its command starts trainings, such as `accelerate launch`, which imports torch itself."""
    words = command_of(pid).split()
    named = (word for before, word in pairwise(words) if not word.startswith("-") and before not in ("-W", "-X"))
    return Path(next(named, "")).name in _LAUNCHERS  # a script, or the module after -m


def _uses_torch(pid: int) -> bool:
    return "libtorch" in _maps(pid)


def _state(pid: int) -> str:
    text = proc.read_text(f"/proc/{pid}/stat")
    return text[text.rindex(")") + 2] if text else ""


def _comm(pid: int) -> str:
    return proc.read_text(f"/proc/{pid}/comm").strip()


def _user(uid: int) -> str:
    import pwd  # which Windows lacks, where a line says that attach needs Linux

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
