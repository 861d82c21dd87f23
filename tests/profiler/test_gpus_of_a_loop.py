"""GPUs of a profiled loop: read in a thread of their own, and only those that the loop's process uses."""

from __future__ import annotations

import pytest
import torch
from nvml_stub import StubNvml

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU here")

LOOP = """
from simulated_gpus import step
from loaderbench import Profiler
step(None)
batches, waits_s, body_s = [[0] * 4] * 100, [], []
with Profiler(warmup=5) as prof:
    for _ in range(2):
        asked_s = time.perf_counter()
        for batch in prof.iter(list(batches)):
            waits_s.append(time.perf_counter() - asked_s)
            step(batch)
            asked_s = time.perf_counter()
(trial,) = prof.result.trials
show({"gpus": [asdict(gpu) for gpu in trial.gpus], "longest_wait_s": max(waits_s), "first_s": waits_s[0],
      "seen": [gpu.index for gpu in prof.result.environment.gpus],
      "drawn": sorted({point.metric for point in prof.result.readings if point.metric.startswith("gpu")})})
"""


def test_a_profile_has_the_gpu_that_its_process_uses(stub_nvml: StubNvml) -> None:
    stub_nvml.set({"memory_used@0": 70e9, "memory_used@1": 3e9}, gpus=2, busy_percent=60, sample_s=0.05)
    found = stub_nvml.run_python(LOOP)
    (used,) = found["gpus"]
    assert (used["index"], used["memory_used_bytes"]) == (1, 3_000_000_000)
    assert used["utilization_percent"] == pytest.approx(60)
    assert found["seen"] == [0, 1]
    assert {"gpu1_memory_used_bytes", "gpu1_utilization_percent"} <= set(found["drawn"])
    assert not any(name.startswith("gpu0") for name in found["drawn"])


@pytest.mark.sleeping
def test_a_slow_driver_delays_no_batch_and_no_beginning_of_an_epoch(stub_nvml: StubNvml) -> None:
    stub_nvml.set(gpus=2, call_s=1)
    found = stub_nvml.run_python(LOOP)
    assert found["longest_wait_s"] < 0.5
    assert found["gpus"][0]["not_measured"]["memory_used_bytes"] == "no NVML reading in the steady state"
