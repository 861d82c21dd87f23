"""Finds the processes of a training, from any of them: its ranks, and the workers of each rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, filterfalse, pairwise
from pathlib import Path

from loaderbench.errors import MissingError, UsageError
from loaderbench.monitors import proc
from loaderbench.ranks import LAUNCHERS, rank_in

STOPPED = ("T", "t")
"""States of a process that was stopped by a signal or a debugger. Source: proc(5)."""

WORKER_THREAD = "pt_data_worker"
NAMES_WORKERS = (2, 6)
"""The first version of torch that gives workers this name."""

_VERSION = re.compile(r"^__version__ = '(\d+)\.(\d+)", re.MULTILINE)
_PROCESS = re.compile(r"^Tgid:\s*(\d+)", re.MULTILINE)
_names: dict[int, bool] = {}  # by pid, once torch was found in the process
_STARTED_BY = ("multiprocessing.spawn", "multiprocessing.forkserver", "--multiprocessing-fork")
_HELPERS = ("resource_tracker", "semaphore_tracker", "loaderbench.fork_server")


@dataclass(frozen=True)
class Training:
    """The main process of a training.

    `rank` is its rank in a distributed job, else `None`. `ranks` is the number of ranks on all machines.
    """

    pid: int
    command: str
    rank: int | None = None
    ranks: int = 1

    def __str__(self) -> str:
        """A description such as `rank 1 of 2, process 1234: python train.py`."""
        rank = "" if self.rank is None else f"rank {self.rank} of {self.ranks}, "
        return f"{rank}process {self.pid}: {self.command}"

    def workers(self) -> list[int]:
        """The pids of all live workers."""
        below = proc.process_tree(self.pid)[1:]
        named = [pid for pid in below if _comm(pid) == WORKER_THREAD]
        if named or _names_workers(self.pid):  # some may belong to another rank, which this rank has started
            return [pid for pid in named if _loop_of(pid) == self.pid]
        return [pid for pid in below if self._may_be_worker(pid)]

    def _may_be_worker(self, pid: int) -> bool:
        """Whether this may be a worker that torch does not name: forked with the same command, or spawned."""
        return command_of(pid) == self.command or _is_spawned(pid)


def find_trainings(pid: int) -> list[Training]:
    """All ranks of the job that a process belongs to, in order; outside of a job, the training alone.

    A `pid` can also be the ID of a thread, as `htop` lists them. Processes that a script starts by itself, for example
    with `torch.multiprocessing.spawn`, each count as a training.

    Raises `UsageError` for a process that does not exist, is stopped, belongs to another user, or has no Python process
    below it, and for a shell that started several trainings. Raises `MissingError` if the system has no `/proc`.
    """
    pid = _process_of(pid)
    _check(pid)
    found = _trainings_of(pid)
    for one in found:
        if _state(one.pid) in STOPPED:
            how = "by Ctrl-Z or a debugger"
            raise UsageError(f"process {one.pid} is stopped, {how}; continue it: kill -CONT {one.pid}")
    return found


def _trainings_of(pid: int) -> list[Training]:
    main = _main_of(pid)
    tree = proc.process_tree(main)
    pythons = [below for below in tree if below != os.getpid() and is_python(below)]
    if main not in pythons:
        _refuse_several(main, pythons)
    launcher = _launcher_of(main)
    ranks = sorted(_ranks_below(launcher), key=lambda one: one.rank or 0)
    if ranks:
        return [replace(one, ranks=max(one.ranks, len(ranks))) for one in ranks]
    with_torch = [below for below in pythons if _uses_torch(below)]
    loading = {_loop_of(below) for below in tree if _comm(below) == WORKER_THREAD}
    if starts := [below for below in pythons if below in loading]:  # the parent process may only have started them
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


def _refuse_several(shell: int, pythons: Sequence[int]) -> None:
    """Raise `UsageError` if a shell, or another launcher, started trainings with different commands."""
    trains = [below for below in pythons if _uses_torch(below) or rank_of(below) is not None]
    separate = {command_of(topmost): topmost for topmost in (_topmost(below, pythons) for below in trains)}
    if len(separate) > 1:
        named = ", ".join(f"{topmost} ({command})" for command, topmost in separate.items())
        raise UsageError(f"process {shell} ({_comm(shell)}) started several trainings; pass the PID of one: {named}")


def _topmost(pid: int, pythons: Sequence[int]) -> int:
    """The last of these Python processes on the way up."""
    found = pid
    while (pid := parent_of(pid)) > 1:
        found = pid if pid in pythons else found
    return found


def _is_spawned(pid: int) -> bool:
    """Whether `multiprocessing` started the process, other than as one of its helpers."""
    command = command_of(pid)
    return any(word in command for word in _STARTED_BY) and not any(helper in command for helper in _HELPERS)


def _names_workers(pid: int) -> bool:
    """Whether the process uses a version of torch that names its workers, according to torch's version file.

    The result is cached: while the memory maps of a process are read, the process cannot map memory.
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


def _process_of(thread: int) -> int:
    """The pid of the process that a thread belongs to; a pid is also the ID of its main thread."""
    found = _PROCESS.search(proc.read_text(f"/proc/{thread}/status"))
    return int(found[1]) if found else thread


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
    """The process whose worker this is; the process itself if it is not a worker."""
    while _comm(pid) == WORKER_THREAD and (above := _loop_of(pid)) > 1:
        pid = above
    return pid


def _loop_of(worker: int) -> int:
    """The process whose loop uses a worker: the worker's parent, or the parent of the server that forked the worker."""
    above = parent_of(worker)
    command, started_by = command_of(above), parent_of(above)
    is_forked = command == command_of(started_by)  # forked by such a server, whose command it shares
    return started_by if "multiprocessing.forkserver" in command and not is_forked else above


def _launcher_of(pid: int) -> int:
    """The launcher of a rank; the process itself if it has no rank."""
    found = pid
    while rank_of(found) is not None and _may_launch(above := parent_of(found)):
        found = above
    return found


def _may_launch(pid: int) -> bool:
    """Whether this can be a launcher. The first process can be one in a container; elsewhere, it starts everything."""
    return pid > 0 and bool(proc.environment_of(pid)) and (pid > 1 or is_python(pid))


def _ranks_below(launcher: int) -> Iterator[Training]:
    """The topmost processes with a rank.

    A cluster may set the rank of a launcher as well, but not its `LOCAL_RANK`.
    """
    tree = proc.process_tree(launcher)
    named = "LOCAL_RANK" if any("LOCAL_RANK" in proc.environment_of(pid) for pid in tree) else "RANK"

    def is_rank(pid: int) -> bool:
        return rank_of(pid) is not None and named in proc.environment_of(pid)

    def is_topmost(pid: int) -> bool:
        """Whether no Python process above has a rank. A wrapper, such as a shell script, inherits the rank as well."""
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
    """The rank that a launcher such as torch's has set in the environment of a process."""
    return rank_in(proc.environment_of(pid))


def command_of(pid: int) -> str:
    """The command line, with arguments joined by spaces."""
    return proc.read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def parent_of(pid: int) -> int:
    """The pid of the parent process; 0 if the process has ended."""
    text = proc.read_text(f"/proc/{pid}/stat")
    return int(text[text.rindex(")") + 2 :].split()[1]) if text else 0


def is_python(pid: int) -> bool:
    """Whether this is a Python process: by the name of its program, or because the program embeds Python's library."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        program = _comm(pid)
    return "python" in program.lower() or "libpython" in _maps(pid)


def _is_launcher(pid: int) -> bool:
    """Whether the command launches trainings, like `accelerate launch`, which imports torch itself."""
    words = command_of(pid).split()
    named = (word for before, word in pairwise(words) if not word.startswith("-") and before not in ("-W", "-X"))
    return Path(next(named, "")).name in LAUNCHERS  # a script, or the module after -m


def _uses_torch(pid: int) -> bool:
    return "libtorch" in _maps(pid)


def _state(pid: int) -> str:
    text = proc.read_text(f"/proc/{pid}/stat")
    return text[text.rindex(")") + 2] if text else ""


def _comm(pid: int) -> str:
    return proc.read_text(f"/proc/{pid}/comm").strip()


def _user(uid: int) -> str:
    import pwd  # missing on Windows, where a line says that attach needs Linux

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
