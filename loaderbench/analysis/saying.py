"""Figures of a diagnosis in words."""

from __future__ import annotations

from loaderbench.analysis.facts import Facts
from loaderbench.analysis.limits import disturbed
from loaderbench.analysis.thresholds import SPARE_CPUS


def in_kernel(facts: Facts) -> str:
    """The kernel's share of the CPU time, and the page faults."""
    share = (facts.loads.system_share if facts.loads else None) or 0.0
    return (
        f"{in_percent(share)} of the CPU time is the kernel's, at {facts.faults_per_sample:,.0f} page faults a sample"
    )


def cpus_in_use(facts: Facts) -> str:
    """How many CPUs this program uses, and others where they disturb."""
    if facts.own_cpus is None:
        return "how many CPUs it used is not known"
    others = f", and other programs {facts.others_cpus:.1f}" if facts.others_cpus and disturbed(facts) else ""
    threads = f", {facts.library_cpus:.1f} of them by threads of libraries" if facts.library_cpus >= SPARE_CPUS else ""
    return f"{facts.own_cpus:.1f} of {facts.cpus:g} CPUs are in use{threads}{others}"


def in_percent(share: float) -> str:
    """`27 %`."""
    return f"{share * 100:.0f} %"


def in_seconds(seconds: float) -> str:
    """Seconds, or milliseconds below one."""
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"
