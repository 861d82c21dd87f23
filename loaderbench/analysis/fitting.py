"""What was tried beside a trial that ran out of memory, and had room."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.analysis.failures import ran_out_of_memory
from loaderbench.records import Trial

_AXES = (("num_workers", "workers"), ("batch_size", "samples in a batch"))


def what_fits(failed: Trial, trials: Sequence[Trial]) -> str:
    """The largest worker count and the largest batch that were completed with all else as in `failed`; empty if none.

    One that failed in another round does not fit.
    """
    if not ran_out_of_memory(failed.failure):
        return ""
    found = [(noun, _largest(name, failed, trials)) for name, noun in _AXES]
    told = [f"{most} {noun}" for noun, most in found if most is not None]
    return f"With all else the same there was room for {', or for '.join(told)}" if told else ""


def _largest(name: str, failed: Trial, trials: Sequence[Trial]) -> int | None:
    """The largest value below that of the failed trial whose trials were all completed."""
    beside = [trial for trial in trials if _others(name, trial) == _others(name, failed)]
    gone = {trial.config.get(name) for trial in beside if trial.status != "completed"}
    counts = [_count(trial.config.get(name)) for trial in beside if trial.config.get(name) not in gone]
    own = _count(failed.config.get(name))
    return max((count for count in counts if count is not None and own is not None and count < own), default=None)


def _others(name: str, trial: Trial) -> dict[str, object]:
    return {key: value for key, value in trial.config.items() if key != name}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
