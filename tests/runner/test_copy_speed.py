"""A trial that replays batches from the host measures how fast they can be copied: on a simulated device."""

from __future__ import annotations

import pytest
from simulated_device import SimulatedDevice, patch
from simulated_gpu import BYTES_PER_S, SimulatedGpu

from loaderbench.gpu_checkup import rates as module
from loaderbench.gpu_checkup.rates import copy_speed
from loaderbench.monitors import with_copy_speed
from loaderbench.records import GpuUse

BATCH_BYTES, SAMPLES = 38e6, 64


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    monkeypatch.setattr(module, "computing_device", lambda: 1)
    return patch(monkeypatch)


def test_both_kinds_of_memory_are_measured_with_buffers_of_a_batch(device: SimulatedDevice) -> None:
    found = copy_speed(BATCH_BYTES, SAMPLES, lambda _: SimulatedGpu(device))
    assert found is not None
    assert (found.index, found.bytes_per_sample) == (1, BATCH_BYTES / SAMPLES)
    assert found.pinned_gb_per_s.est == pytest.approx(BYTES_PER_S[True] / 1e9)
    assert found.pageable_gb_per_s.est == pytest.approx(BYTES_PER_S[False] / 1e9)
    assert device.now_s < 0.1, "no more than a few copies"
    use = with_copy_speed(GpuUse(1, "GPU-b", not_measured={"copy_speed": "why", "power_w": "MIG"}), found)
    assert (use.copy_speed, use.not_measured) == (found, {"power_w": "MIG"})


def test_a_device_without_room_for_one_more_batch_leaves_the_trial_whole(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = SimulatedGpu(device)

    def full(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(gpu, "prepare_copy", full)
    assert copy_speed(BATCH_BYTES, SAMPLES, lambda _: gpu) is None


def test_without_a_gpu_nothing_is_copied() -> None:
    def never(_: int) -> SimulatedGpu:
        raise AssertionError

    assert copy_speed(BATCH_BYTES, SAMPLES, never) is None
