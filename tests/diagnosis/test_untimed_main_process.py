"""The cause in a main process that loads by itself, without timed stages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_cause import DECODING, cause_of, states

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.facts import Facts

ALONE_UNTRACED = Facts(
    workers=0, cpus=2, wait_share=0.8, next_s=0.02, next_cpu_s=1e-3, own_cpus=0.1, idle_cpus=0.0, others_cpus=1.8
)


@pytest.mark.parametrize(("queued", "limit"), [(0.56, "storage_latency"), (0.58, "neighbors")])
def test_other_programs_are_no_cause_where_the_loading_process_hardly_wants_a_cpu(
    queued: float, limit: str | None
) -> None:
    found = find_cause(replace(ALONE_UNTRACED, loads=states(0.03, queued)))
    assert (found and found.limit) == limit


def test_a_main_process_that_hardly_uses_a_cpu_waits_for_storage() -> None:
    idle = replace(DECODING, workers=0, cpu_s={}, wall_s={}, idle_share=None, loads=states(0.1), own_cpus=0.2)
    assert cause_of(idle) == ("sample", "storage_latency")
    assert cause_of(replace(idle, is_loader=False)) == ("main_process", "storage_latency")
    helped = replace(idle, loads=states(0.1, other_threads_cpu_share=0.9))
    assert cause_of(helped) == ("sample", "workers")
