"""Rates and reads of each machine of a distributed training, and their sums, because machines may share storage."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.diagnosis.ranks import with_evidence
from loaderbench.records import Evidence, HostUse, Trial, Verdict
from loaderbench.records.words import in_bytes, sum_if_all_known


def describe_hosts(ranks: Sequence[Trial]) -> tuple[HostUse, ...]:
    """The use of each machine, ordered by its first rank; empty if all ranks ran on one machine."""
    names = list(dict.fromkeys(trial.host for trial in ranks))
    if len(names) < 2:
        return ()
    return tuple(_use(name, [trial for trial in ranks if trial.host == name]) for name in names)


def all_hosts(hosts: Sequence[HostUse]) -> HostUse | None:
    """The sums over all machines, without a name; `None` for a single machine."""
    if not hosts:
        return None
    rates, reads = ([getattr(one, name) for one in hosts] for name in ("samples_per_s", "read_bytes_per_s"))
    return _summed("", sum(one.ranks for one in hosts), rates, reads)


def with_storage(verdict: Verdict, hosts: Sequence[HostUse]) -> Verdict:
    """The verdict with the total reads of all machines as evidence, if storage is the limit."""
    return with_evidence(verdict, storage_evidence(verdict, hosts))


def storage_evidence(verdict: Verdict, hosts: Sequence[HostUse]) -> Evidence | None:
    """The line about total reads; `None` if storage is not the limit or the reads are unknown."""
    together = all_hosts(hosts)
    if together is None or not together.read_bytes_per_s or not (verdict.limit or "").startswith("storage"):
        return None
    total = in_bytes(int(together.read_bytes_per_s))
    text = f"{total}/s on {len(hosts)} hosts together: the load on their storage, if shared"
    return Evidence("ranks", "Reads", text)


def _use(name: str, trials: Sequence[Trial]) -> HostUse:
    loads = [trial.workers or trial.main_process for trial in trials]
    reads = [None if one is None else one.read_bytes_per_s for one in loads]
    return _summed(name, len(trials), [trial.samples_per_s for trial in trials], reads)


def _summed(host: str, ranks: int, rates: Sequence[float | None], reads: Sequence[float | None]) -> HostUse:
    samples_per_s, read_bytes_per_s = sum_if_all_known(rates), sum_if_all_known(reads)
    reasons = {}
    if samples_per_s is None:
        reasons["samples_per_s"] = "a rank counted no batches"
    if read_bytes_per_s is None:
        reasons["read_bytes_per_s"] = "the reads of a rank's processes are unknown"
    return HostUse(
        host=host, ranks=ranks, samples_per_s=samples_per_s, read_bytes_per_s=read_bytes_per_s, not_measured=reasons
    )
