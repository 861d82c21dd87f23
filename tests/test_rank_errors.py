"""Errors of torch's own stores and launcher become one line that says what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from torch import distributed
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousTimeoutError

from loaderbench import rank_errors
from loaderbench.rank_errors import why_no_gpu, why_no_ranks

SOON = timedelta(seconds=1)

MISSING = "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported"
SHARED = "NCCL error: invalid usage\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 17000"


def store(host: str, port: int, *, first: bool) -> Any:
    return vars(distributed)["TCPStore"](host, port, 2, is_master=first, timeout=SOON)


@contextmanager
def used_port() -> Iterator[int]:
    with closing(socket.socket()) as other:
        other.bind(("", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_in_use_is_named() -> None:
    with used_port() as port, pytest.raises(distributed.DistNetworkError) as found:
        store("127.0.0.1", port, first=True)
    said = f"port {port} is in use on this machine; choose another one on all machines"
    assert why_no_ranks(found.value) == said


def test_machines_that_did_not_join_are_counted() -> None:
    with pytest.raises(distributed.DistStoreError) as found:
        store("127.0.0.1", 0, first=True)
    said = why_no_ranks(found.value)
    assert said == "1 of 2 machines joined in time; start the same command on every machine, or correct --nnodes"


def test_a_first_machine_that_does_not_answer_is_named_through_the_error_around_it() -> None:
    with used_port() as port:
        pass
    try:
        store("127.0.0.1", port, first=False)
    except distributed.DistNetworkError as error:
        around = RuntimeError("see the inner exception")
        around.__cause__ = error
    assert why_no_ranks(around).startswith(f"no answer from 127.0.0.1:{port}; start the training on that machine too")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RendezvousTimeoutError(),
            "the other machines did not join in time; start the same command on every machine, ",
        ),
        (RendezvousClosedError(), "the machines could not meet: RendezvousClosedError"),
        (RendezvousClosedError("closed\nby lb-a"), "the machines could not meet: RendezvousClosedError: closed"),
    ],
)
def test_errors_of_the_launcher_are_one_line(error: Exception, said: str) -> None:
    found = why_no_ranks(error)
    assert found.startswith(said)
    assert "\n" not in found


def test_other_errors_are_not_explained() -> None:
    assert why_no_ranks(ValueError("EADDRINUSE")) == ""
    assert why_no_ranks(None) == ""


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of four ranks of a machine, the seventh of eight of two machines."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
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
    monkeypatch.setattr(rank_errors, "_gpu_count", lambda: gpus)

    assert why_no_gpu(RuntimeError(error)) == said


@pytest.mark.usefixtures("rank")
@pytest.mark.parametrize(
    ("error", "gpus", "visible", "said"),
    [
        (
            MISSING,
            1,
            "2",
            "CUDA_VISIBLE_DEVICES=2 shows rank 6 one GPU; "
            "if each rank has its own, use cuda:0 in it, else start one rank",
        ),
        (MISSING, 2, "0,1", "4 ranks on a machine with 2 GPUs; start one rank per GPU (--nproc-per-node 2)"),
        (SHARED, 1, "0", "4 ranks on a machine with 1 GPU; start one rank per GPU (--nproc-per-node 1)"),
    ],
)
def test_a_rank_that_sees_one_gpu_by_a_variable_may_have_its_own(
    error: str, gpus: int, visible: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_errors, "_gpu_count", lambda: gpus)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert why_no_gpu(RuntimeError(error)) == said


@pytest.mark.usefixtures("rank")
def test_the_cause_of_an_error_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_errors, "_gpu_count", lambda: 2)
    error = ValueError("cannot start")
    error.__cause__ = RuntimeError(MISSING)

    assert why_no_gpu(error).startswith("4 ranks on a machine with 2 GPUs")


def test_nothing_is_said_outside_of_a_job_or_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_errors, "_gpu_count", lambda: 2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)

    assert why_no_gpu(RuntimeError(MISSING)) == ""
    assert why_no_gpu(None) == ""
