"""The main function of a trial's process, which measures in this process or starts the ranks that do."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

from loaderbench.ranks import rank_count
from loaderbench.runner.measured_process import measure_here, report_failure
from loaderbench.runner.processes import end_own_session, enter_own_session, write_to
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.rank_launch import measure_ranks
from loaderbench.runner.stacks import answer_with_stacks
from loaderbench.runner.time_slices import SharedCounters


def trial_main(order: TrialOrder, pipe: Connection, memory: Any) -> None:
    """Run one trial; the last message is a `Result` or a `Raised`. `memory` is that of the shared counters."""
    enter_own_session(pipe)
    write_to(order.log)
    answer_with_stacks()
    loaders: list[Any] = []
    counters, ranks = SharedCounters(memory), rank_count(order.planned.config)
    try:
        if ranks is None:
            measure_here(order, pipe, counters, loaders)
        else:
            measure_ranks(order, ranks, pipe, counters)
    except BaseException as error:
        try:
            report_failure(error, pipe, loaders)
        except OSError:  # the run itself is gone
            end_own_session()
        raise SystemExit(1) from None
