"""One rank of a trial: joins a process group as in training, and measures together with the other ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from loaderbench.child_processes import ended_with_parent
from loaderbench.consumers import consumer_of
from loaderbench.datasets import Built
from loaderbench.ranks import this_rank
from loaderbench.runner.measured_process import measure_here, report_failure
from loaderbench.runner.processes import write_to
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.rank_counters import RankCounters
from loaderbench.runner.rank_of_trial import RankOfTrial
from loaderbench.runner.time_slices import SharedCounters


def rank_log(log: Path, rank: int) -> Path:
    """The log of a rank, alongside the log of its trial."""
    return log.with_name(f"{log.stem}-rank{rank}{log.suffix}")


def rank_main(
    order: TrialOrder, pipes: Sequence[Connection], rank_memory: Any, memory: Any, built: Built | None
) -> None:
    """Run one rank of a trial; torch's launcher calls this in each process that it starts.

    `built` is the dataset, if all ranks share it.
    """
    with ended_with_parent():
        rank = this_rank() or 0
        for other, pipe in enumerate(pipes):
            if other != rank:
                pipe.close()
        write_to(rank_log(order.log, rank))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the launcher's own handler was inherited
        rank_counters = RankCounters(rank_memory, len(pipes))
        rank_counters.begin(rank, os.getpid())
        loaders: list[Any] = []
        try:
            _join_process_group(order, len(pipes))
            own = RankOfTrial(order, pipes[rank], rank_counters, rank)
            measure_here(order, pipes[rank], SharedCounters(memory), loaders, rank=own, built=built)
            _leave_process_group()  # not after an exception: other ranks would fail before it is reported
        except BaseException as error:
            report_failure(error, pipes[rank], loaders)
            raise SystemExit(1) from None


def _join_process_group(order: TrialOrder, ranks: int) -> None:
    """Join a process group as in training: gloo for host tensors, NCCL for GPU tensors, threads as under torchrun."""
    import torch

    if ranks > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    may_use_gpu = consumer_of(order.suite.consumer, order.consumer).may_use_device
    has_nccl = torch.cuda.is_available() and torch.distributed.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if may_use_gpu and has_nccl else "gloo"
    torch.distributed.init_process_group(backend, timeout=timedelta(seconds=order.suite.measure.timeout_s))


def _leave_process_group() -> None:
    import torch

    torch.distributed.destroy_process_group()
