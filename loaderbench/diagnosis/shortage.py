"""Finds what configurations ran out of in a sweep: shared memory or host memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.diagnosis.failures import TOO_MANY_FILES, TOO_MANY_PROCESSES, ran_out_of_memory
from loaderbench.loaders import COUNT_AXES, worker_count
from loaderbench.records import Config, Evidence, Failure, Trial, config_label, in_bytes

SHARED = "shared_memory_full"


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A resource that some configurations ran out of.

    `config` is the failed configuration with the fewest workers, `needed_bytes` the total size of its batches, and
    `most_bytes` that of the largest. `None` if unknown.
    """

    shared: bool
    limit_bytes: int
    config: Config
    needed_bytes: int | None
    most_bytes: int | None

    @property
    def place(self) -> str:
        """The resource and its size, as in `/dev/shm (64 MiB)`."""
        return f"{'/dev/shm' if self.shared else 'memory'} ({in_bytes(self.limit_bytes)})"

    def evidence(self) -> Evidence:
        """`Shared memory: num_workers=2 batch_size=32 failed; about 74 MiB needed, /dev/shm has 1 MiB`."""
        needs = f"about {in_bytes(self.needed_bytes)} needed, " if self.needed_bytes and self.shared else ""
        size = in_bytes(self.limit_bytes)
        has = f"/dev/shm has {size}" if self.shared else f"at most {size} can be used"
        label = "Shared memory" if self.shared else "Memory"
        return Evidence("shortage", label, f"{config_label(self.config)} failed; {needs}{has}")


def find_shortage(trials: Sequence[Trial], than: Config | None = None) -> Shortage | None:
    """The shortage of configurations with more workers than `than`, or of all; `None` if nothing ran out."""
    least = -1 if than is None else _workers(than)
    failed = [(trial.config, trial.failure) for trial in trials if trial.failure and _filled_host(trial.failure)]
    short = [found for found in failed if found[1].limit_bytes is not None and _workers(found[0]) > least]
    if than is not None and _more_workers_completed(trials, than):
        return None
    shared = any(failure.kind == SHARED for _, failure in short)
    matching = [(config, failure) for config, failure in short if (failure.kind == SHARED) == shared]
    if not matching:
        return None
    config, failure = min(matching, key=lambda found: (_workers(found[0]), found[1].needed_bytes or 0))
    return Shortage(
        shared=shared,
        limit_bytes=failure.limit_bytes or 0,
        config=config,
        needed_bytes=failure.needed_bytes,
        most_bytes=max((failure.needed_bytes for _, failure in matching if failure.needed_bytes), default=None),
    )


def more_workers_fail(trials: Sequence[Trial], than: Config) -> bool:
    """Whether configurations with more workers than this one ran out of memory, open files or processes."""
    failed = [(trial.config, trial.failure) for trial in trials if trial.failure]
    return not _more_workers_completed(trials, than) and any(
        _workers(config) > _workers(than)
        and (_filled_host(failure) or failure.kind in (TOO_MANY_FILES, TOO_MANY_PROCESSES))
        for config, failure in failed
    )


def _filled_host(failure: Failure) -> bool:
    """Whether the host ran out of memory, rather than the GPU."""
    return ran_out_of_memory(failure) and failure.kind != "device_memory"


def _more_workers_completed(trials: Sequence[Trial], than: Config) -> bool:
    """Whether the same configuration completed with more workers; the others then failed because of larger batches."""
    more = (t.config for t in trials if t.status == "completed" and _workers(t.config) > _workers(than))
    return any({**config, **{axis: than.get(axis) for axis in COUNT_AXES if axis in config}} == than for config in more)


def _workers(config: Config) -> int:
    return worker_count(config, {}) or 0
