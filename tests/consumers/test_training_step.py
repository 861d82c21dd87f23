"""A training step takes batches as the recipes give them: normalized, or uint8 to be normalized on its device."""

from types import SimpleNamespace

import pytest
import torch
from simulated_device import patch
from torchvision.models.googlenet import GoogLeNetOutputs

from loaderbench.consumers import training_step
from loaderbench.consumers.cuda import RunAhead
from loaderbench.consumers.eager_step import EagerStep, native_precision
from loaderbench.consumers.step_options import StepOptions
from loaderbench.consumers.training_step import TrainingStep
from loaderbench.diagnosis.failures import classify
from loaderbench.imagenet import MEAN, STD


def test_uint8_batches_are_normalized_before_the_model_sees_them() -> None:
    step, seen = TrainingStep(StepOptions(model="resnet18", device="cpu")), list[torch.Tensor]()
    step._train.model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    normalized = (images / 255 - mean) / std
    for batch in (images, normalized):
        step.consume((batch, torch.tensor([0, 1])), 2)
    assert torch.allclose(seen[0], seen[1], atol=1e-4)
    assert torch.allclose(seen[1], normalized)


def test_labels_beyond_the_classes_of_the_model_are_no_error() -> None:
    step = TrainingStep(StepOptions(model="resnet18", device="cpu"))
    before = [part.detach().clone() for part in step._train.model.parameters()]
    step.consume((torch.rand(3, 3, 64, 64), torch.tensor([0, 999, 21_840])), 3)
    after = list(step._train.model.parameters())
    assert all(bool(part.isfinite().all()) for part in after)
    assert not all(torch.equal(part, was) for part, was in zip(after, before, strict=True)), "it trained on the batch"


@pytest.mark.parametrize(("native", "precision"), [(True, torch.bfloat16), (False, torch.float16)])
def test_a_device_that_emulates_bfloat16_computes_in_float16(
    monkeypatch: pytest.MonkeyPatch, native: bool, precision: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or native)
    assert native_precision() == precision


def test_the_host_runs_no_more_than_a_few_steps_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    device, run_ahead = patch(monkeypatch), RunAhead()
    for number in range(50):
        device.launch(10e-3)
        device.host(1e-3)
        run_ahead.queued()
        assert device.queued <= 3
        assert number < 3 or device.now_s > (number - 2.01) * 10e-3
    assert device.blocked_s > 0.4
    before_s = device.blocked_s
    for _ in range(50):
        device.launch(1e-3)
        device.host(20e-3)
        run_ahead.queued()
    assert device.blocked_s == before_s, "a device that keeps up holds up nobody"


@pytest.mark.parametrize(("device", "index"), [("cuda", 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_a_step_on_a_gpu_makes_it_the_current_device(monkeypatch: pytest.MonkeyPatch, device: str, index: int) -> None:
    """torch's own check of the device runs: it refuses one without an index."""
    current: list[int] = []
    monkeypatch.setattr(torch._C, "_cuda_setDevice", current.append, raising=False)
    monkeypatch.setattr(training_step, "EagerStep", lambda _, on: SimpleNamespace(computes_in=str(on)))
    step = TrainingStep(StepOptions(model="resnet18", device=device))
    assert current == [index]
    assert step.computes_in == f"cuda:{index}"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("images", [torch.float16, torch.float32, torch.float64])
def test_labels_and_images_of_any_type_are_trained_on(dtype: torch.dtype, images: torch.dtype) -> None:
    step = EagerStep(StepOptions(model="squeezenet1_1", device="cpu"), torch.device("cpu"))
    before = [part.detach().clone() for part in step.model.parameters()]
    step(torch.rand(2, 3, 32, 32).to(images), torch.tensor([0, 100], dtype=dtype))
    assert not all(torch.equal(old, new) for old, new in zip(before, step.model.parameters(), strict=True))


def step_of(monkeypatch: pytest.MonkeyPatch, net: torch.nn.Module) -> EagerStep:
    monkeypatch.setattr("torchvision.models.get_model", lambda *_, **__: net)
    return EagerStep(StepOptions(model="vgg11", device="cpu"), torch.device("cpu"))


def test_images_that_the_model_does_not_take_are_named_with_their_shape() -> None:
    step = EagerStep(StepOptions(model="squeezenet1_1", device="cpu"), torch.device("cpu"))
    with pytest.raises(
        TypeError, match=r"consumer.model: squeezenet1_1 failed on images of shape \(2, 3, 4, 4\): "
    ) as said:
        step(torch.rand(2, 3, 4, 4), torch.tensor([0, 1]))
    assert classify(f"TypeError: {said.value}").kind == "model_input"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "device_memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "device_memory"),
        (RuntimeError("CUDA error: device-side assert triggered"), "device_assert"),
    ],
)
def test_an_error_of_the_device_in_the_model_is_named_as_what_it_is(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, kind: str
) -> None:
    class Fails(torch.nn.Linear):
        def forward(self, _: torch.Tensor) -> torch.Tensor:
            raise raised

    with pytest.raises((TypeError, type(raised))) as said:
        step_of(monkeypatch, Fails(1, 1))(torch.rand(2, 3, 4, 4), torch.tensor([0, 1]))
    assert classify(f"{type(said.value).__name__}: {said.value}").kind == kind


def test_a_model_with_auxiliary_classifiers_trains_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As GoogLeNet and Inception return them, which leave out those that are off."""

    class Several(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.main, self.auxiliary = torch.nn.Linear(3, 5), torch.nn.Linear(3, 5)

        def forward(self, images: torch.Tensor) -> GoogLeNetOutputs:
            means = images.mean((2, 3))
            return GoogLeNetOutputs(self.main(means), self.auxiliary(means), None)

    net = Several()
    before = [part.detach().clone() for part in net.parameters()]
    step_of(monkeypatch, net)(torch.rand(2, 3, 4, 4), torch.tensor([0, 9]))
    assert not any(torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))
