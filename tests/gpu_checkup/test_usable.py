"""A GPU on which no kernel runs is never used: the probe of a run says why, and the run goes on without it."""

from __future__ import annotations

import pytest

from loaderbench.consumers import cuda, resolve_consumer
from loaderbench.errors import MissingError
from loaderbench.gpu_checkup import usable
from loaderbench.records import Gpu
from loaderbench.runner.probe import Probe, _devices
from loaderbench.suite import Suite

GPU = Gpu(0, "a", "NVIDIA Z1", 8 << 30)
NO_CODE = "CUDA error: no kernel image is available for execution on the device\nCompile with `TORCH_USE_CUDA_DSA`."
BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "visible_gpus", lambda: ((GPU,), {}))


def raises(message: str) -> object:
    def call(*_: object) -> None:
        raise RuntimeError(message)

    return call


@pytest.mark.parametrize(
    ("said", "kind", "hint"),
    [(NO_CODE, "device_unsupported", "install a build"), (BUSY, "device_busy", "CUDA_VISIBLE_DEVICES")],
)
def test_a_device_on_which_no_kernel_runs_is_no_gpu_of_a_run(
    one_gpu: None, monkeypatch: pytest.MonkeyPatch, said: str, kind: str, hint: str
) -> None:
    monkeypatch.setattr(usable, "launch_kernel", raises(said))
    found = _devices()
    assert (found.gpus, found.visible) == ((), 1)
    why = found.not_measured["gpus"]
    assert f"no kernel runs on cuda:0 (NVIDIA Z1): {kind}: " in why
    assert hint in why
    assert "\n" not in why


def test_a_device_that_computes_is_used(one_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usable, "launch_kernel", lambda _: None)
    assert _devices() == Probe((GPU,), {}, 1)


def test_cuda_that_fails_when_it_is_asked_for_its_devices_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "visible_gpus", raises(BUSY))
    found = _devices()
    assert found.gpus == ()
    assert "device_busy" in found.not_measured["gpus"]


def test_a_suite_that_needs_a_gpu_says_why_none_can_be_used() -> None:
    options = Suite.model_validate({"consumer": {"kind": "model"}}).consumer
    with pytest.raises(
        MissingError, match=r"none can be used \(device_busy: in use\); use a machine with a GPU, or kind: auto"
    ):
        resolve_consumer(options, accelerator=False, why_none="device_busy: in use")
