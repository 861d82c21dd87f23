"""A rank that gets no GPU of its own says why, and nothing is said of any other error."""

from __future__ import annotations

import pytest

from loaderbench import rank_devices
from loaderbench.rank_devices import why_no_gpu

MISSING = "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported"
SHARED = "NCCL error: invalid usage\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 17000"


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of four ranks of a machine, the seventh of eight of two machines."""
    for name, value in {"LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "2", "RANK": "6"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("rank")
@pytest.mark.parametrize(
    ("error", "gpus", "said"),
    [
        (MISSING, 2, "4 ranks on a machine with 2 GPUs; start one rank per GPU (--nproc-per-node 2)"),
        (MISSING, 1, "4 ranks on a machine with 1 GPU; start one rank per GPU (--nproc-per-node 1)"),
        (MISSING, 4, "no GPU 6 on this machine; choose the GPU by LOCAL_RANK (2 here), not by RANK"),
        (MISSING, 8, ""),
        (MISSING, 0, ""),
        (SHARED, 2, "4 ranks on a machine with 2 GPUs; start one rank per GPU (--nproc-per-node 2)"),
        (SHARED, 4, "two ranks use the same GPU; call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) in each"),
        ("CUDA error: an illegal memory access was encountered", 2, ""),
    ],
)
def test_why_a_rank_got_no_gpu(error: str, gpus: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_devices, "_gpu_count", lambda: gpus)

    assert why_no_gpu(RuntimeError(error)) == said


@pytest.mark.usefixtures("rank")
def test_the_cause_of_an_error_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_devices, "_gpu_count", lambda: 2)
    error = ValueError("cannot start")
    error.__cause__ = RuntimeError(MISSING)

    assert why_no_gpu(error).startswith("4 ranks on a machine with 2 GPUs")


def test_nothing_is_said_outside_of_a_job_or_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_devices, "_gpu_count", lambda: 2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)

    assert why_no_gpu(RuntimeError(MISSING)) == ""
    assert why_no_gpu(None) == ""
