"""On a real device: waits by events, readings by NVML, and the main job with a training step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

from loaderbench.store import read_run

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timed,  # one after another: they share the device
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


RUN_TIMEOUT_S = 900.0
"""Some 30 trials, of which each starts CUDA and a model in about 6 s: three times what that takes."""


class BusyDevice:
    """Keeps the device busy for `busy_s` a batch by matrix products whose time was measured first."""

    def __init__(self, busy_s: float) -> None:
        from loaderbench.consumers.cuda import CudaWaitClock

        self.wait_clock = CudaWaitClock()
        self._matrix = torch.rand(2048, 2048, device="cuda")
        self._products = max(1, round(busy_s / self._product_s()))

    def consume(self, batch: Any, samples: int) -> None:
        for _ in range(self._products):
            self._matrix @ self._matrix

    def _product_s(self) -> float:
        for count in (50, 200):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(count):
                self._matrix @ self._matrix
            torch.cuda.synchronize()
        return (time.perf_counter() - began) / 200


def sleepy(sleep_s: float) -> Iterator[Any]:
    while True:
        time.sleep(sleep_s)
        yield [0] * 8


def test_a_device_that_is_kept_busy_hardly_waits() -> None:
    from loaderbench.recorder import Rules, measure

    assert measure(sleepy(0.002), BusyDevice(0.02), Rules(seconds=1)).data_wait_share < 0.1


def test_a_device_without_work_waits_for_the_loader() -> None:
    from loaderbench.recorder import Rules, measure

    found = measure(sleepy(0.03), BusyDevice(0.01), Rules(seconds=1))
    each_s = found.steady_s / found.batches
    assert found.data_wait_share == pytest.approx(1 - 0.01 / each_s, abs=0.1)


def test_nvml_knows_the_device_by_cuda_s_uuid() -> None:
    from loaderbench.monitors import GpuMonitor
    from loaderbench.records import Gpu

    found = torch.cuda.get_device_properties(0)
    memory = torch.zeros(1 << 28, dtype=torch.uint8, device="cuda")
    monitor = GpuMonitor([Gpu(0, str(found.uuid), found.name, found.total_memory)])
    (reading,) = monitor.read()
    assert not {"", "memory_used_bytes", "utilization_percent"} & monitor.why_not(0).keys(), monitor.why_not(0)
    assert (reading.memory_used_bytes or 0) >= memory.numel()
    assert reading.utilization_percent is not None


def test_performance_metrics_see_a_busy_device_or_say_why_not() -> None:
    from loaderbench.monitors import GpuMonitor
    from loaderbench.records import Gpu

    found = torch.cuda.get_device_properties(0)
    monitor, device = GpuMonitor([Gpu(0, str(found.uuid), found.name, found.total_memory)]), BusyDevice(0.02)
    monitor.read()
    for _ in range(25):
        device.consume(None, 1)
    torch.cuda.synchronize()
    (reading,) = monitor.read()
    if "gpm" in monitor.why_not(0):
        pytest.skip(monitor.why_not(0)["gpm"])
    assert reading.gpm is not None
    assert (reading.gpm.sm_active_percent or 0) > 20


def test_the_main_job_trains_on_the_device(command: Cli, photos: Path, tmp_path: Path) -> None:
    suite = Path(__file__).parents[2] / "suites" / "images.yaml"
    flags = ("-P", "batch_size=8", "-P", "num_workers=0,2", "--seconds", "0.5", "--no-verify", "--out", "r")
    result = command("run", suite, "--data", photos, *flags, timeout_s=RUN_TIMEOUT_S)
    assert result.returncode == 0, result.stderr
    run = read_run(tmp_path / "r")
    assert run.consumer == "model"
    assert run.plan.collapsed == {}
    assert len(run.configurations) == 4
    for trial in run.sweep:
        assert trial.status == "completed", trial.failure
        assert 0 <= (trial.data_wait_share or 0) <= 1
        assert (trial.gpus[0].memory_used_bytes or 0) > 100_000_000
        assert trial.gpus[0].utilization_percent is not None
    assert run.isolation is not None
    for isolated in run.isolation.runs:
        if isolated.name in ("replay_device", "replay_host", "loader_warm"):
            assert isolated.time_s is not None, isolated.not_measured
    assert run.isolation.transfer_s is not None
    assert run.ceiling is not None
    assert run.ceiling.basis == "cached batches replayed, 3 rounds"


def test_a_profiler_tells_what_the_device_was_exposed_to() -> None:
    from loaderbench import Profiler
    from loaderbench.profiler.measured import WAIT_OF_DEVICE

    shares = []
    for wait_s, busy_s in ((0.002, 0.02), (0.03, 0.01)):
        device = BusyDevice(busy_s)
        with Profiler(warmup=5) as prof:
            for batch in prof.iter(islice(sleepy(wait_s), 60)):
                device.consume(batch, len(batch))
        assert WAIT_OF_DEVICE in prof.result.notes
        assert prof.result.trials[0].gpus[0].memory_used_bytes is not None
        shares.append(prof.result.trials[0].data_wait_share)
    assert shares[0] < 0.1
    assert shares[1] > 0.4
