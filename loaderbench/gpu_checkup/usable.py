"""Which GPUs CUDA shows, and whether a kernel runs on the one that trials use."""

from __future__ import annotations

from loaderbench.diagnosis.failures import classify, last_words
from loaderbench.records import Gpu, Reasons


def visible_gpus() -> tuple[tuple[Gpu, ...], Reasons]:
    """Devices in CUDA's order, or why there is none; an error of CUDA is a reason too."""
    from loaderbench.consumers import cuda

    try:
        return cuda.visible_gpus()
    except Exception as error:  # CUDA's errors have no class of their own in torch 2.4
        return (), {"gpus": named(error)}


def why_unusable(gpu: Gpu) -> str | None:
    """Why no kernel runs on a device, with what to do; `None` where one does."""
    try:
        launch_kernel(gpu.device)
    except Exception as error:  # as above
        return f"no kernel runs on {gpu.device} ({gpu.name}): {named(error)}"
    return None


def launch_kernel(device: str) -> None:
    """Run a kernel and read its result. Raises what CUDA says, and `RuntimeError` for a wrong result."""
    import torch

    ones = torch.ones(64, device=device)
    found = float((ones + ones).sum().item())
    if found != 128.0:
        raise RuntimeError(f"wrong kernel result: 64 twos add up to {found:g}")


def named(error: BaseException) -> str:
    """The kind of an error, its words, and what to do about it, on one line."""
    said = f"{type(error).__name__}: {error}"
    failure = classify(said)
    if failure.kind == "error":
        return last_words(said)
    return f"{failure.kind}: {last_words(said)}; {failure.hint}"
