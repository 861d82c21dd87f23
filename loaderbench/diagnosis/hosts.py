"""What each machine of a distributed training loads and reads, and all of them together: they may share storage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loaderbench.diagnosis.ranks import with_evidence
from loaderbench.records import Evidence, HostUse, Trial, Verdict
from loaderbench.records.words import in_bytes


def describe_hosts(ranks: Sequence[Trial]) -> tuple[HostUse, ...]:
    """Each machine, by its first rank; empty where all ranks ran on one."""
    names = list(dict.fromkeys(trial.host for trial in ranks))
    if len(names) < 2:
        return ()
    return tuple(_use(name, [trial for trial in ranks if trial.host == name]) for name in names)


def all_hosts(hosts: Sequence[HostUse]) -> HostUse | None:
    """The sums over all machines, without a name; `None` without several."""
    if not hosts:
        return None
    rates, reads = ([getattr(one, name) for one in hosts] for name in ("samples_per_s", "read_bytes_per_s"))
    return _summed("", sum(one.ranks for one in hosts), rates, reads)


def with_storage(verdict: Verdict, hosts: Sequence[HostUse]) -> Verdict:
    """The verdict with what all machines read together, if storage is the limit."""
    return with_evidence(verdict, storage_evidence(verdict, hosts))


def storage_evidence(verdict: Verdict, hosts: Sequence[HostUse]) -> Evidence | None:
    """The line for it; `None` where there is none."""
    together = all_hosts(hosts)
    if together is None or not together.read_bytes_per_s or not (verdict.limit or "").startswith("storage"):
        return None
    total = in_bytes(int(together.read_bytes_per_s))
    said = f"{total}/s over all {len(hosts)} hosts: the load on their storage, if shared"
    return Evidence("ranks", "Reads", said)


def _use(name: str, trials: Sequence[Trial]) -> HostUse:
    loads = [trial.workers or trial.main_process for trial in trials]
    reads = [None if one is None else one.read_bytes_per_s for one in loads]
    return _summed(name, len(trials), [trial.samples_per_s for trial in trials], reads)


def _summed(host: str, ranks: int, rates: Sequence[float | None], reads: Sequence[float | None]) -> HostUse:
    samples_per_s, read_bytes_per_s = _sum(rates), _sum(reads)
    reasons = {}
    if samples_per_s is None:
        reasons["samples_per_s"] = "a rank counted no batch"
    if read_bytes_per_s is None:
        reasons["read_bytes_per_s"] = "the reads of a rank's processes are not known"
    return HostUse(
        host=host, ranks=ranks, samples_per_s=samples_per_s, read_bytes_per_s=read_bytes_per_s, not_measured=reasons
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """`None` if any is unknown: a part of a sum would look like all of it."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None
