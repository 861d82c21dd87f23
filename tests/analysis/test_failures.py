"""Last words are recognised."""

import signal

import pytest

from loaderbench.analysis.failures import classify, classify_exit, hang

WORDS = {
    "torchvision_mismatch": "RuntimeError: operator torchvision::nms does not exist",
    "shared_memory_full": "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: No space left",
    "worker_killed": "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.",
    "worker_crashed": "ERROR: Unexpected segmentation fault encountered in worker.",
    "worker_exited": "RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly with exit code 1.",
    "too_many_files": "RuntimeError: Too many open files. Communication with the workers is no longer possible",
    "device_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
    "host_memory": "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate",
    "cuda_in_fork": "RuntimeError: Cannot re-initialize CUDA in forked subprocess.",
    "not_picklable": "AttributeError: Can't pickle local object 'f.<locals>.<lambda>'",
    "bad_image": "loaderbench.datasets.samples.BadImageError: x.jpg: OSError: image file is truncated",
    "collate": "RuntimeError: stack expects each tensor to be equal size, but got [3, 2, 2]",
    "missing": "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
    "permission": "PermissionError: [Errno 13] Permission denied: 'x'",
    "error": "ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize(("kind", "message"), WORDS.items())
def test_a_message_has_its_kind_and_a_hint(kind: str, message: str) -> None:
    found = classify(message)
    assert (found.kind, found.message) == (kind, message)
    assert found.hint


def test_a_long_message_keeps_its_end() -> None:
    assert classify("x" * 10_000 + "ValueError: the end").message.endswith("ValueError: the end")


def test_a_death_is_told_by_its_signal() -> None:
    assert classify_exit(-signal.SIGKILL, "").kind == "process_killed"
    crashed = classify_exit(-signal.SIGSEGV, "")
    assert (crashed.kind, "SIGSEGV" in crashed.message) == ("process_crashed", True)
    assert classify_exit(3, "nothing known").kind == "process_exited"


def test_a_hang_says_what_it_was_doing() -> None:
    assert "first batch" in hang(3, "first batch and warm-up").message
