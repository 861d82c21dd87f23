"""A GPU on which no kernel runs is never used: the probe of a run says why, and the run continues without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from loaderbench.consumers import cuda, resolve_consumer
from loaderbench.errors import MissingError
from loaderbench.gpu_checkup import usable
from loaderbench.records import Gpu
from loaderbench.runner.probe import Probe, probe
from loaderbench.suite import Suite

GPU = Gpu(0, "a", "NVIDIA Z1", 8 << 30)
NO_CODE = "CUDA error: no kernel image is available for execution on the device\nCompile with `TORCH_USE_CUDA_DSA`."
BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"


class Server:
    """Answers in this process; a process that crashed sends nothing."""

    uses_devices = True

    def __init__(self, crashes_in: str = "") -> None:
        self.crashes_in = crashes_in

    def ask(self, target: Callable[..., None], *args: object, timeout_s: float) -> Any:
        sent: list[Any] = []
        if target.__name__ != self.crashes_in:
            target(SimpleNamespace(send=sent.append), *args)
        return sent[0] if sent else None


def probed(monkeypatch: pytest.MonkeyPatch, said: str = "", crashes_in: str = "") -> Probe:
    def launch(_: str) -> None:
        if said:
            raise RuntimeError(said)

    monkeypatch.setattr(cuda, "visible_gpus", lambda: ((GPU,), {}))
    monkeypatch.setattr(usable, "launch_kernel", launch)
    return probe(Server(crashes_in))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "kind", "hint"),
    [(NO_CODE, "device_unsupported", "install a build"), (BUSY, "device_busy", "CUDA_VISIBLE_DEVICES")],
)
def test_a_device_on_which_no_kernel_runs_is_no_gpu_of_a_run(
    monkeypatch: pytest.MonkeyPatch, said: str, kind: str, hint: str
) -> None:
    found = probed(monkeypatch, said)
    assert (found.gpus, found.visible) == ((), 1)
    why = found.not_measured["gpus"]
    assert f"no kernel runs on cuda:0 (NVIDIA Z1): {kind}: " in why
    assert hint in why
    assert "\n" not in why


def test_a_kernel_that_crashes_or_hangs_is_no_fault_of_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(monkeypatch, crashes_in="_answer_kernel")
    assert found.gpus == ()
    assert "its driver crashed or hangs" in found.not_measured["gpus"]


def test_a_device_that_computes_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probed(monkeypatch) == Probe((GPU,), {}, 1)


@pytest.mark.parametrize(
    ("consumer", "launched"),
    [
        ({"kind": "model", "device": "cuda:1"}, [1]),
        ({"kind": "model"}, [0]),
        ({"kind": "auto"}, [0]),
        ({"kind": "model", "device": "cuda:2"}, []),
        ({"kind": "model", "data_parallel": True}, [0, 1]),
    ],
)
def test_the_kernel_runs_on_the_gpu_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, consumer: dict[str, Any], launched: list[int]
) -> None:
    seen: list[int] = []
    both = (GPU, replace(GPU, index=1, uuid="b"))
    monkeypatch.setattr(cuda, "visible_gpus", lambda: (both, {}))
    monkeypatch.setattr(usable, "launch_kernel", lambda device: seen.append(int(device.removeprefix("cuda:"))))
    suite = Suite.model_validate({"consumer": consumer})
    assert probe(Server(), suite).gpus == both  # type: ignore[arg-type]
    assert seen == launched


def test_cuda_that_fails_when_it_is_asked_for_its_devices_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises() -> None:
        raise RuntimeError(BUSY)

    monkeypatch.setattr(cuda, "visible_gpus", raises)
    found = probe(Server())  # type: ignore[arg-type]
    assert found.gpus == ()
    assert "device_busy" in found.not_measured["gpus"]


TOO_OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 12020). Please update it\nmore"
)


@pytest.mark.parametrize(
    ("said", "chosen", "why"),
    [
        (TOO_OLD, None, TOO_OLD.splitlines()[0]),
        ("", None, "CUDA finds no usable device"),
        ("", "7", "CUDA finds no usable device with CUDA_VISIBLE_DEVICES='7'"),
    ],
)
def test_what_torch_says_of_a_driver_is_the_reason_and_a_choice_of_devices_is_named(
    monkeypatch: pytest.MonkeyPatch, said: str, chosen: str | None, why: str
) -> None:
    def is_available() -> bool:
        if said:
            warnings.warn(said, UserWarning, stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert cuda.visible_gpus() == ((), {"gpus": why})


def test_a_suite_that_needs_a_gpu_says_why_none_can_be_used() -> None:
    options = Suite.model_validate({"consumer": {"kind": "model"}}).consumer
    with pytest.raises(
        MissingError, match=r"none can be used \(device_busy: in use\); use a machine with a GPU, or kind: auto"
    ):
        resolve_consumer(options, accelerator=False, why_none="device_busy: in use")


@pytest.mark.parametrize(
    ("consumer", "gpus", "missing"),
    [
        ({"kind": "model", "model": "resnet5", "device": "cpu"}, (), True),
        ({"kind": "auto", "model": "resnet5"}, (GPU,), True),
        ({"kind": "auto", "model": "resnet5"}, (), False),
        ({"kind": "model", "model": "ResNet50", "device": "cpu"}, (), False),
    ],
)
def test_a_model_that_torchvision_does_not_have_is_one_line_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, consumer: dict[str, Any], gpus: tuple[Gpu, ...], missing: bool
) -> None:
    monkeypatch.setattr(cuda, "visible_gpus", lambda: (gpus, {}))
    monkeypatch.setattr(usable, "launch_kernel", lambda _: None)
    suite = Suite.model_validate({"consumer": consumer})
    if not missing:
        assert probe(Server(), suite).gpus == gpus  # type: ignore[arg-type]
        return
    with pytest.raises(MissingError, match=r"consumer.model: torchvision has no classifier 'resnet5'; did you mean"):
        probe(Server(), suite)  # type: ignore[arg-type]
