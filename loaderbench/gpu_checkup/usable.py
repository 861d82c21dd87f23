"""GPUs that CUDA finds, and whether a kernel runs on the one that trials use."""

from __future__ import annotations

from loaderbench.diagnosis.failures import classify, last_words
from loaderbench.records import Gpu, Reasons


def visible_gpus() -> tuple[tuple[Gpu, ...], Reasons]:
    """Return devices in CUDA's order, or why there is none; a CUDA error is a reason, too."""
    from loaderbench.consumers import cuda

    try:
        return cuda.visible_gpus()
    except Exception as error:  # torch 2.4 has no exception class for CUDA errors
        return (), {"gpus": named(error)}


def why_unusable(gpu: Gpu) -> str | None:
    """Why no kernel runs on a device, with what to do; `None` if kernels run."""
    try:
        launch_kernel(gpu.device)
    except Exception as error:  # any CUDA error, as above
        return f"no kernel runs on {gpu.device} ({gpu.name}): {named(error)}"
    return None


def launch_kernel(device: str) -> None:
    """Run a kernel and check its result. Raises CUDA's errors, and `RuntimeError` for a wrong result."""
    import torch

    ones = torch.ones(64, device=device)
    found = float((ones + ones).sum().item())
    if found != 128.0:
        raise RuntimeError(f"wrong kernel result: 64 twos add up to {found:g}")


def named(error: BaseException) -> str:
    """Describe an error on one line: its kind, its message, and what to do."""
    said = f"{type(error).__name__}: {error}"
    failure = classify(said)
    if failure.kind == "error":
        return last_words(said)
    return f"{failure.kind}: {last_words(said)}; {failure.hint}"
