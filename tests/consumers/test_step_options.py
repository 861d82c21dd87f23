"""Options of `kind: model`: what is refused in one line, and what the step does with the rest, on the CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from loaderbench.consumers import consumer_of, needs_accelerator, option_problems
from loaderbench.consumers.eager_step import EagerStep
from loaderbench.consumers.kind import HostWaitClock
from loaderbench.consumers.model import Model
from loaderbench.consumers.step_options import StepOptions
from loaderbench.consumers.training_step import TrainingStep
from loaderbench.suite import Suite

BATCH = (torch.rand(2, 3, 64, 64), torch.tensor([0, 1]))


def section(**options: Any) -> Any:
    return Suite.model_validate({"consumer": {"kind": "model", **options}}).consumer


def said(**options: Any) -> list[tuple[str | None, str]]:
    return [(problem.option, problem.what) for problem in option_problems(section(**options))]


def step(**options: Any) -> TrainingStep:
    return TrainingStep(StepOptions(model="squeezenet1_1", device="cpu", **options))


@pytest.mark.parametrize(
    ("options", "option", "words"),
    [
        ({"device": "gpu"}, "device", "expected cuda, cuda:N, xpu, xpu:N, mps or cpu, got 'gpu'"),
        ({"device": "cuda:-1"}, "device", "expected cuda"),
        ({"precision": "bfloat15"}, "precision", "did you mean bfloat16?"),
        ({"device": "cpu", "precision": "tf32"}, "precision", "tf32 needs a GPU; use `fp32`"),
        ({"device": "cpu", "cuda_graphs": True}, "cuda_graphs", "needs a GPU; drop it"),
        ({"device": "cpu", "prefetch_stream": True}, "prefetch_stream", "needs a GPU"),
        ({"device": "cpu", "data_parallel": True}, "data_parallel", "needs a GPU"),
        ({"compile": True, "cuda_graphs": True}, "cuda_graphs", "cannot be combined with `compile`"),
        ({"data_parallel": True, "cuda_graphs": True}, "cuda_graphs", "cannot be combined with `data_parallel`"),
    ],
)
def test_what_cannot_be_is_named_with_what_to_do(options: dict[str, Any], option: str, words: str) -> None:
    ((where, what),) = said(**options)
    assert where == option
    assert words in what


def test_options_that_fit_are_accepted() -> None:
    assert said(device="cuda:1", precision="fp32", optimizer="adamw", image_size=96, channels_last=False) == []
    assert said(cuda_graphs=True, prefetch_stream=True) == []
    assert said(kind="auto", precision="bfloat16") == [], "on a machine with a GPU it is the step's"


def test_the_plan_names_the_step_with_what_makes_it_faster() -> None:
    assert consumer_of(section(), "model").describe() == (
        "Training step: resnet50 on cuda, mixed precision, sgd, channels_last"
    )
    options = {"device": "cuda:1", "precision": "fp32", "image_size": 96, "channels_last": False, "cuda_graphs": True}
    assert StepOptions(model="vgg11", **options).describe() == "vgg11 on cuda:1, fp32, sgd, images of 96 px, CUDA graph"


def test_only_a_step_on_the_cpu_needs_no_gpu() -> None:
    assert not needs_accelerator(section(device="cpu"))
    assert needs_accelerator(section(device="cuda:1"))
    assert not needs_accelerator(section(kind="auto"))


@pytest.mark.parametrize(("device", "gpus", "fits"), [("cuda", 1, True), ("cuda:1", 1, False), ("cuda:1", 2, True)])
def test_a_gpu_that_is_not_there_is_one_line(device: str, gpus: int, fits: bool) -> None:
    why = consumer_of(section(device=device), "model").why_not_on(gpus)
    assert why == ("" if fits else "consumer.device: cuda:1 does not exist; this machine has 1 GPU; use cuda:0")


def test_one_gpu_cannot_share_batches() -> None:
    parallel = consumer_of(section(data_parallel=True), "model")
    assert parallel.why_not_on(1) == "consumer.data_parallel needs 2 GPUs or more; drop it"
    assert parallel.why_not_on(2) == ""


def test_on_the_cpu_waits_are_those_of_the_host() -> None:
    model = Model(model="squeezenet1_1", device="cpu")
    made = model.make({}, Path(), lambda: 0.0)
    made.consume(BATCH, 2)
    assert isinstance(made.wait_clock, HostWaitClock)


@pytest.mark.parametrize(
    ("precision", "expected"),
    [("mixed", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16), ("fp32", torch.float32)],
)
def test_the_model_computes_in_the_precision_that_was_asked_for(precision: str, expected: torch.dtype) -> None:
    eager = EagerStep(StepOptions(model="squeezenet1_1", device="cpu", precision=precision), torch.device("cpu"))
    seen: list[torch.dtype] = []
    first = next(module for module in eager.model.modules() if isinstance(module, torch.nn.Conv2d))
    first.register_forward_hook(lambda _, __, output: seen.append(output.dtype))
    before = [part.detach().clone() for part in eager.model.parameters()]
    eager(*BATCH)
    assert seen == [expected]
    assert eager.computes_in == str(expected).removeprefix("torch.")
    assert not all(torch.equal(a, b) for a, b in zip(before, eager.model.parameters(), strict=True)) or (
        precision == "float16"  # a scale that is too large at first skips a step, as in any training
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="it would use the GPUs that are here")
def test_the_threads_of_data_parallel_compute_in_the_precision_too() -> None:
    """Where torch finds no GPU, it calls the model itself, and no thread: the test does."""
    options = StepOptions(model="squeezenet1_1", device="cpu", precision="bfloat16", data_parallel=True)
    eager = EagerStep(options, torch.device("cpu"))
    assert isinstance(eager.model, torch.nn.DataParallel)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(eager.model, BATCH[0]).result().dtype == torch.bfloat16
    before = [part.detach().clone() for part in eager.model.parameters()]
    eager(*BATCH)
    assert not all(torch.equal(a, b) for a, b in zip(before, eager.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("optimizer", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_the_optimizer_is_the_one_that_was_asked_for(optimizer: Any, kind: type[torch.optim.Optimizer]) -> None:
    options = StepOptions(model="squeezenet1_1", device="cpu", optimizer=optimizer)
    eager = EagerStep(options, torch.device("cpu"))
    assert type(eager.optimizer) is kind
    eager(*BATCH)
    assert eager.optimizer.state, "it stepped"


@pytest.mark.parametrize(("channels_last", "side"), [(True, 32), (False, 48)])
def test_images_reach_the_model_in_its_size_and_layout(channels_last: bool, side: int) -> None:
    options = StepOptions(model="squeezenet1_1", device="cpu", channels_last=channels_last, image_size=side)
    eager = EagerStep(options, torch.device("cpu"))
    seen: list[torch.Tensor] = []
    eager.model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    eager(*BATCH)
    assert seen[0].shape == (2, 3, side, side)
    assert seen[0].is_contiguous(memory_format=torch.channels_last) is channels_last


def test_a_compiled_model_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[torch.nn.Module] = []
    monkeypatch.setattr(torch, "compile", lambda net: compiled.append(net) or net)
    step(compile=True).consume(BATCH, 2)
    assert len(compiled) == 1


@pytest.mark.slow
def test_the_real_compiler_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    small = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(9))
    small(torch.zeros(1, 3, 8, 8))
    monkeypatch.setattr("torchvision.models.get_model", lambda *_, **__: small)
    made = step(compile=True, image_size=8)
    for _ in range(2):
        made.consume(BATCH, 2)
    assert isinstance(made._train.model, torch._dynamo.OptimizedModule)  # type: ignore[attr-defined]
