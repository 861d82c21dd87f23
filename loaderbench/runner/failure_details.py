"""Adds facts to a failure: this machine's limits, and what only the trial's own process can find out."""

from __future__ import annotations

import io
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from typing import Any

from loaderbench import host_memory
from loaderbench.diagnosis.failures import (
    FORK_SERVER_KILLED,
    TOO_MANY_FILES,
    TOO_MANY_HINT,
    TOO_MANY_PROCESSES,
    WORKER_EXITED,
    ran_out_of_memory,
)
from loaderbench.diagnosis.gpu_memory import gpu_shortage
from loaderbench.environment import oom_kills, process_limit, read_limits, refused_processes
from loaderbench.loaders import Prefetch, prefetch_of
from loaderbench.ranks import rank_count
from loaderbench.records import Failure, in_bytes
from loaderbench.runner.protocol import TrialOrder
from loaderbench.suite.model import prefetched_bytes

_EXITED = (WORKER_EXITED, "process_exited", "hang", "error")
_KILLED = ("worker_killed", "process_killed", FORK_SERVER_KILLED)
_BY_KERNEL = "out of memory: use fewer workers, a smaller batch or a larger memory limit"
_BY_ANOTHER = "a user, a job scheduler or a memory guard may have killed it"


def explained(
    failure: Failure, order: TrialOrder, kills_before: int | None, refused_before: int | None = None
) -> Failure:
    """The failure with a hint that includes this machine's numbers.

    `kills_before` and `refused_before` count the OOM kills and the processes refused by a limit before the trial began.
    """
    if failure.kind in _EXITED and refused_before is not None and (refused_processes() or 0) > refused_before:
        failure = replace(failure, kind=TOO_MANY_PROCESSES, hint=TOO_MANY_HINT)
    facts = _FACTS.get(failure.kind)
    clue = facts(order, kills_before) if facts is not None else ""
    if failure.kind in _KILLED and kills_before is not None and (kills := oom_kills()) is not None:
        by_kernel = kills > kills_before
        failure = replace(failure, by_oom_killer=by_kernel, hint=_BY_KERNEL if by_kernel else _BY_ANOTHER)
    if failure.kind == "bad_image":
        dataset = order.suite.dataset.with_axes(order.planned.config)
        failure = replace(failure, hint=dataset.hint_unreadable(order.samples, failure.message, failure.hint))
    return with_clue(_with_numbers(failure, order), clue)


def _with_numbers(failure: Failure, order: TrialOrder) -> Failure:
    """The failure with the limit of the resource that ran out, and the bytes in flight."""
    if failure.kind == "device_memory":
        shortage = gpu_shortage(failure.message)
        numbered = replace(failure, limit_bytes=shortage.total, needed_bytes=shortage.needed)
        return with_clue(numbered, str(shortage))
    if not ran_out_of_memory(failure):
        return failure
    limit = read_limits().memory_bytes
    has = host_memory.total_bytes() if limit is None else limit
    if failure.kind == "shared_memory_full":
        with suppress(OSError):
            has = shutil.disk_usage("/dev/shm").total
    return replace(failure, limit_bytes=has, needed_bytes=prefetched_bytes(order.suite, order.planned.config))


def with_clue(failure: Failure, clue: str) -> Failure:
    """The failure with a sentence placed before its hint."""
    return replace(failure, hint=f"{clue}. {failure.hint[:1].upper()}{failure.hint[1:]}") if clue else failure


def of_rank(rank: int | None, failure: Failure) -> Failure:
    """The failure with the rank that failed, if there are several ranks."""
    return failure if rank is None else replace(failure, rank=rank, message=f"rank {rank}: {failure.message}")


def _shared_memory(order: TrialOrder, _: int | None) -> str:
    try:
        disk = shutil.disk_usage("/dev/shm")
    except OSError:
        return ""
    has = f"/dev/shm: {in_bytes(disk.free)} free of {in_bytes(disk.total)}"
    needed, found = prefetched_bytes(order.suite, order.planned.config), _prefetch(order)
    if not needed:
        return has
    ahead = f"{_count(found.batches_per_worker, 'batch', 'batches')} of {found.batch_size}"
    ranks = rank_count(order.planned.config)
    each = "each" if ranks is None else f"each, in {_count(ranks, 'rank', 'ranks')}"
    return f"{_count(found.workers, 'worker', 'workers')} with {ahead} {each}: about {in_bytes(needed)} needed; {has}"


def _prefetch(order: TrialOrder) -> Prefetch:
    return prefetch_of(order.suite.loader, order.planned.config)


def _memory(order: TrialOrder, kills_before: int | None) -> str:
    found = _prefetch(order)
    workers = None if found.workers is None else _count(found.workers, "worker", "workers")
    batches = None if found.batch_size is None else f"batches of {found.batch_size}"
    free = host_memory.available_bytes()
    limit = read_limits().memory_bytes
    bound = f", cgroup limit: {in_bytes(limit)}" if limit else ""
    kills = oom_kills()
    if kills is None or kills_before is None:
        killer = ""
    elif kills > kills_before:
        killer = f"the kernel's OOM killer killed {kills - kills_before} of its processes"
    else:
        killer = "the kernel's OOM killer killed none of its processes"
    loads = " with ".join(filter(None, (workers, batches)))
    has = f"free memory: {'unknown' if free is None else in_bytes(free)}{bound}"
    return "; ".join(filter(None, (killer, loads, has)))


def _open_files(_: TrialOrder, __: int | None) -> str:
    try:
        import resource
    except ImportError:  # Windows
        return ""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"open-file limit: {soft:,} per process (hard limit: {hard:,})"


def _processes(order: TrialOrder, _: int | None) -> str:
    found, limit = _prefetch(order).workers, process_limit()
    workers = "" if found is None else _count(found, "worker", "workers")
    of_group = "" if limit is None else f"cgroup limit: {limit:,} processes and threads (pids.max)"
    return "; ".join(filter(None, (workers, of_group)))


def _count(number: int | None, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_FACTS: dict[str, Callable[[TrialOrder, int | None], str]] = {
    "shared_memory_full": _shared_memory,
    "worker_killed": _memory,
    FORK_SERVER_KILLED: _memory,
    "process_killed": _memory,
    "host_memory": _memory,
    TOO_MANY_FILES: _open_files,
    TOO_MANY_PROCESSES: _processes,
}


_DEPTH = 5  # levels of nested attributes
_INSPECT_S, _MAX_SAMPLES = 2.0, 64  # seconds and samples at most
_PICKLED = ("dataset", "collate_fn", "worker_init_fn", "sampler", "batch_sampler")


def clue_of(kind: str, source: Any) -> str:
    """What a dataset or loader contributed to a failure of this kind, in a sentence; empty if unknown."""
    explain = _EXPLANATIONS.get(kind)
    try:
        return explain(source) if explain is not None else ""
    except Exception:  # a user's object can raise anything
        return ""


def _not_picklable(source: Any) -> str:
    if hasattr(source, "dataset"):
        parts = [(name, getattr(source, name, None)) for name in _PICKLED]
    else:
        parts = [("dataset", source)]
    held = next((found for name, value in parts if (found := _culprit(name, value, _DEPTH))), "")
    return f"{held} cannot be pickled" if held else ""


def _culprit(name: str, value: Any, depth: int) -> str | None:
    """The path and type of the innermost attribute that cannot be pickled."""
    if _can_be_pickled(value):
        return None
    inside = _inside(name, value) if depth else iter(())
    found = next((found for inner, held in inside if (found := _culprit(inner, held, depth - 1))), None)
    return found or f"{name} ({type(value).__name__})"


def _can_be_pickled(value: Any) -> bool:
    try:
        ForkingPickler(io.BytesIO()).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    except Exception:  # e.g. a multiprocessing lock, which can only be pickled while a process is spawned
        return True
    return True


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((f"{name}[{key!r}]", held) for key, held in value.items())
    if isinstance(value, list | tuple):
        return ((f"{name}[{place}]", held) for place, held in enumerate(value))
    return ((f"{name}.{key}", held) for key, held in getattr(value, "__dict__", {}).items())


def _mismatch(source: Any) -> str:
    """Two samples that differ, by index and shape; empty for an iterable of batches, which cannot be inspected."""
    if not hasattr(source, "dataset"):
        return ""
    until_s, first = time.monotonic() + _INSPECT_S, ""
    for index, sample in enumerate(_first_samples(source.dataset)):
        shape = _shape(sample)
        first = first or shape
        if shape != first:
            return f"sample 0 is {first}, sample {index} is {shape}"
        if time.monotonic() > until_s:
            break
    return f"sample 0 is {first}" if first else ""


def _batch_bytes(source: Any) -> str:
    """The shared memory that a batch takes, estimated from the first sample."""
    batch, sample = source.batch_size, source.dataset[0]
    if batch is None:
        return ""
    return f"a batch of {batch} takes about {in_bytes(batch * _bytes(sample))} of shared memory"


def _bytes(sample: Any) -> int:
    """Bytes of the tensors and arrays in a sample."""
    if isinstance(sample, Mapping):
        return sum(map(_bytes, sample.values()))
    if isinstance(sample, list | tuple):
        return sum(map(_bytes, sample))
    return int(getattr(sample, "nbytes", 0))


def _first_samples(dataset: Any) -> Iterable[Any]:
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return (dataset[index] for index in range(min(_MAX_SAMPLES, len(dataset))))
    return islice(dataset, _MAX_SAMPLES)


def _shape(sample: Any) -> str:
    """The shapes of a sample, as in `(Tensor[3, 224, 224], int)`."""
    if isinstance(sample, Mapping):
        return "{" + ", ".join(f"{key}: {_shape(held)}" for key, held in sample.items()) + "}"
    if isinstance(sample, list | tuple):
        return "(" + ", ".join(map(_shape, sample)) + ")"
    size = getattr(sample, "shape", None)
    return type(sample).__name__ + ("" if size is None else str(list(size)))


_EXPLANATIONS: dict[str, Callable[[Any], str]] = {
    "not_picklable": _not_picklable,
    "collate": _mismatch,
    "shared_memory_full": _batch_bytes,
}
