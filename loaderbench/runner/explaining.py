"""A failure in the numbers of this machine: what was needed, and what there is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import psutil

from loaderbench.environment import oom_kills, read_limits
from loaderbench.loaders import backend_of
from loaderbench.records import Failure
from loaderbench.runner.protocol import TrialOrder

_KILLED = ("worker_killed", "process_killed")
_BY_ANOTHER = "it was killed by something else: a person, a scheduler of jobs, a guard of memory outside the kernel"


def explained(failure: Failure, order: TrialOrder, kills_before: int | None) -> Failure:
    """The same failure, its hint with what this machine says of it. `kills_before`: of the OOM killer, until then."""
    facts = _FACTS.get(failure.kind)
    said = facts(order, kills_before) if facts is not None else ""
    if failure.kind in _KILLED and kills_before is not None and (kills := oom_kills()) is not None:
        failure = replace(failure, by_oom_killer=kills > kills_before)
        if not failure.by_oom_killer:
            failure = replace(failure, hint=_BY_ANOTHER)
    return with_clue(failure, said)


def with_clue(failure: Failure, said: str) -> Failure:
    """The same failure with a sentence before its hint."""
    return replace(failure, hint=f"{said}. {failure.hint[:1].upper()}{failure.hint[1:]}") if said else failure


def _shared_memory(order: TrialOrder, _: int | None) -> str:
    try:
        there = shutil.disk_usage("/dev/shm")
    except OSError:
        return ""
    has = f"/dev/shm has {_size(there.total)}, {_size(there.free)} of it free now"
    needed = needed_bytes(order)
    if needed is None:
        return has
    workers, ahead, batch = _loader(order)
    return f"{workers} workers with {ahead} batches of {batch} each need about {_size(needed)}; {has}"


def needed_bytes(order: TrialOrder) -> int | None:
    """Bytes of the batches that are under way at once; `None` where the size of a sample is not known."""
    each = order.suite.dataset.with_axes(order.planned.config).sample_bytes()
    workers, ahead, batch = _loader(order)
    return None if each is None else workers * ahead * batch * each


def _loader(order: TrialOrder) -> tuple[int, int, int]:
    """Workers, batches that each prepares ahead, and samples of a batch."""
    found = {**order.suite.loader, **order.planned.config}
    backend, batch = backend_of(found), found.get("batch_size")
    return backend.workers(found), backend.ahead(found), batch if isinstance(batch, int) else 1


def _memory(order: TrialOrder, kills_before: int | None) -> str:
    workers, _, batch = _loader(order)
    free = psutil.virtual_memory().available
    limit = read_limits().memory_bytes
    bound = f", the cgroup allows {_size(limit)}" if limit else ""
    kills = oom_kills()
    if kills is None or kills_before is None:
        killer = ""
    elif kills > kills_before:
        killer = f"the out-of-memory killer ended {kills - kills_before} of its processes; "
    else:
        killer = "the out-of-memory killer counted none of its processes; "
    return f"{killer}{workers} workers with batches of {batch}; {_size(free)} of memory is free now{bound}"


def _open_files(_: TrialOrder, __: int | None) -> str:
    try:
        import resource
    except ImportError:  # Windows
        return ""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"a process may open {soft:,} files here, and may raise that to {hard:,}"


def _bad_images(order: TrialOrder, _: int | None) -> str:
    return order.suite.dataset.with_axes(order.planned.config).explain_unreadable(order.samples)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


_FACTS: dict[str, Callable[[TrialOrder, int | None], str]] = {
    "shared_memory_full": _shared_memory,
    "worker_killed": _memory,
    "process_killed": _memory,
    "host_memory": _memory,
    "too_many_files": _open_files,
    "bad_image": _bad_images,
}
