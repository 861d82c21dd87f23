"""Every scenario, by family."""

from __future__ import annotations

from benchmarks.diagnosis import (
    decoding,
    drawn,
    drawn_work,
    epochs,
    fixed_workers,
    grouped_streams,
    healthy,
    helpers_of_workers,
    locks,
    main_process,
    native_threads,
    one_busy_cpu,
    opaque,
    others_in_the_way,
    quota,
    storage,
    stragglers,
    swapping,
    sweeps,
    target_epochs,
    thread_loaders,
    transforming,
    transport,
    uncollated,
    uneven,
    working_threads,
)
from benchmarks.diagnosis.scenario import Scenario

FAMILIES = (
    decoding,
    transforming,
    opaque,
    storage,
    locks,
    others_in_the_way,
    one_busy_cpu,
    stragglers,
    main_process,
    epochs,
    transport,
    quota,
    drawn,
    drawn_work,
    uneven,
    healthy,
    sweeps,
    target_epochs,
    fixed_workers,
    thread_loaders,
    native_threads,
    helpers_of_workers,
    working_threads,
    grouped_streams,
    uncollated,
    swapping,
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for family in FAMILIES for scenario in family.SCENARIOS}
