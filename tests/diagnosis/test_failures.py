"""Last words are recognized."""

import signal

import pytest

from loaderbench.diagnosis.failures import (
    classify,
    classify_exit,
    classify_raised,
    hang,
    last_words,
    ran_out_of_memory,
    what_fits,
)
from loaderbench.records import Config, Failure, Trial

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
    "shared_handle": "zipfile.BadZipFile: Bad CRC-32 for file '7'",
    "started_workers": "AssertionError: can only test a child process",
    "compiler": "TypeError: consumer.model: vgg11 failed on images of shape (4, 3, 8, 8): Failed to find C compiler",
    "model_input": "TypeError: consumer.model: vgg11 failed on images of shape (4, 3, 8, 8): Output size is too small",
    "target": "loaderbench.errors.MissingError: target mine:make: no module mine next to the suite or on sys.path",
    "missing": "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
    "permission": "PermissionError: [Errno 13] Permission denied: 'x'",
    "error": "ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize(("kind", "message"), WORDS.items())
def test_a_message_has_its_kind_and_a_hint(kind: str, message: str) -> None:
    found = classify(message)
    shown = message.partition(": ")[2] if message.startswith("loaderbench.") else message
    assert (found.kind, found.message) == (kind, shown)
    assert found.hint


@pytest.mark.parametrize(
    "raised",
    [
        "OSError: [Errno 28] No space left on device: '/data/cache/0001.npy'",
        "ConnectionError: s3 bucket: operation exited unexpectedly",
    ],
)
def test_an_error_of_the_dataset_is_not_taken_for_one_of_the_loader(raised: str) -> None:
    assert classify(raised).kind == "error"


@pytest.mark.parametrize("place", ["", ": '/dev/shm/pym-12-abc'"])
def test_shared_memory_that_is_full_has_no_file_or_one_in_it(place: str) -> None:
    assert classify(f"OSError: [Errno 28] No space left on device{place}").kind == "shared_memory_full"


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("missing", "FileNotFoundError: [Errno 2] No such file or directory: '/data/a/x.jpg'"),
        ("missing", "RuntimeError: [Errno 2] No such file or directory: '/data/a/x.jpg'"),
        ("permission", "PermissionError: [Errno 13] Permission denied: '/data/a/x.jpg'"),
        ("permission", "RuntimeError: [Errno 13] Permission denied: '/data/a/x.jpg'"),
    ],
)
def test_an_image_that_cannot_be_opened_is_not_said_to_be_broken(kind: str, raised: str) -> None:
    assert classify(f"loaderbench.errors.BadImageError: /data/a/x.jpg: {raised}").kind == kind


WORKER = """\
Caught BadImageError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "image_samples.py", line 3, in decode
loaderbench.errors.BadImageError: /data/x.jpg: UnidentifiedImageError: cannot identify it"""


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (f"loaderbench.errors.BadImageError: {WORKER}", "/data/x.jpg: UnidentifiedImageError: cannot identify it"),
        (
            "loaderbench.errors.BadImageError: /data/x.jpg: OSError: truncated\ncaused by OSError: truncated",
            "/data/x.jpg: OSError: truncated",
        ),
        ("loaderbench.errors.MissingError: target a:b: no module a", "target a:b: no module a"),
        ("ValueError: no such label", "ValueError: no such label"),
        ("mylib.errors.LabelError: no such label", "mylib.errors.LabelError: no such label"),
    ],
)
def test_only_the_text_of_an_exception_of_ours_is_said(raised: str, said: str) -> None:
    found = classify(raised)
    assert last_words(raised) == last_words(found.message) == said
    assert "loaderbench" not in found.message
    assert "loaderbench" not in hang(5, "steady", log_end=f"Traceback (most recent call last):\n{raised}").message


def test_a_sample_that_is_none_is_not_said_to_have_another_shape() -> None:
    none = classify("TypeError: default_collate: batch must contain tensors, numpy arrays; found <class 'NoneType'>")
    assert none.kind == "collate"
    assert "a sample is None" in none.hint
    assert "the same shape" in classify(WORDS["collate"]).hint


BUSY = "CUDA error: {} busy or unavailable\nCUDA kernel errors might be asynchronously reported at some other API call"
PINNING = """RuntimeError: Caught {0} in pin memory thread for device 0.
Original Traceback (most recent call last):
  File "torch/utils/data/_utils/pin_memory.py", line 41, in do_one_step
{0}: CUDA error: out of memory"""
CUDA_ERRORS = (
    (
        "device_memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total",
    ),
    ("device_memory", "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    ("device_memory", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("device_memory", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ("host_memory", PINNING.format("RuntimeError")),
    ("host_memory", PINNING.format("torch.AcceleratorError")),
    ("device_assert", "torch.AcceleratorError: CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert'"),
    ("device_unsupported", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("device_busy", BUSY.format("all CUDA-capable devices are")),
    ("device_busy", BUSY.format("CUDA-capable device(s) is/are")),
    ("device_missing", "torch.AcceleratorError: CUDA error: invalid device ordinal"),
    ("device_missing", "RuntimeError: No CUDA GPUs are available"),
    ("device_missing", "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"),
    ("device_missing", "AssertionError: Torch not compiled with CUDA enabled"),
    ("device_missing", "RuntimeError: CUDA error: no CUDA-capable device is detected"),
    ("device_driver", "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update"),
    ("device_driver", "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version"),
    ("device_failed", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("device_failed", "RuntimeError: CUDA error: unspecified launch failure"),
    ("device_failed", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
)


@pytest.mark.parametrize(("kind", "message"), CUDA_ERRORS)
def test_an_error_of_cuda_has_its_kind_and_a_hint_of_its_own(kind: str, message: str) -> None:
    found = classify(message)
    assert found.kind == kind
    assert found.hint


def test_a_worker_that_a_signal_of_a_crash_ended_has_crashed() -> None:
    said = "RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly\ncaused by RuntimeError: DataLoader worker "
    assert classify(f"{said}(pid 7) is killed by signal: Segmentation fault.").kind == "worker_crashed"


def test_a_long_message_keeps_its_end() -> None:
    assert classify("x" * 10_000 + "ValueError: the end").message.endswith("ValueError: the end")


def test_a_death_is_told_by_its_signal() -> None:
    assert classify_exit(-signal.SIGKILL, "").kind == "process_killed"
    crashed = classify_exit(-signal.SIGSEGV, "")
    assert (crashed.kind, "SIGSEGV" in crashed.message) == ("process_crashed", True)
    assert "native library" in crashed.hint
    assert (
        classify_exit(-signal.SIGTERM, "").hint == "your code or another program sent SIGTERM; see the end of the log"
    )
    assert classify_exit(3, "nothing known").kind == "process_exited"
    assert "os._exit" in classify_exit(3, "nothing known").hint
    assert "traceback" in classify_exit(1, "Traceback (most recent call last):\n  File x\nKeyError: 7").hint


def test_a_kill_is_told_where_the_system_has_no_sigkill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGKILL")
    assert classify_exit(-9, "").kind == "process_killed"


def test_a_target_that_is_not_there_says_where_it_was_looked_for() -> None:
    hint = classify("MissingError: target mine:make: no module mine").hint
    assert hint == "targets are looked up next to the suite file, then on sys.path"
    assert classify("MissingError: /photos: no such folder").kind == "missing"


IN_A_WORKER = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    next(iter(loader))
ValueError: Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(index)
{raised}
Hint: this second line belongs to the message
"""


@pytest.mark.parametrize(
    "raised", ["ValueError: no label in x.jpg", "mine.Broken: no label in x.jpg", "AssertionError"]
)
def test_the_last_words_are_the_worker_s_exception_and_not_its_second_line(raised: str) -> None:
    assert last_words(IN_A_WORKER.format(raised=raised)) == raised


def test_the_last_words_without_a_traceback_are_the_exception_or_the_last_line() -> None:
    assert last_words("torch.OutOfMemoryError: CUDA out of memory\nTried to allocate\n") == (
        "torch.OutOfMemoryError: CUDA out of memory"
    )
    assert last_words("one\n  two  \n\n") == "two"
    assert last_words("") == ""


def test_a_hang_says_what_it_was_doing() -> None:
    assert "first batch" in hang(3, "first batch and warm-up").message


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ("Traceback:\n  File x\nRuntimeError: no memory", "RuntimeError: no memory"),
        ("Traceback:\nmy.pkg.OddError: first\n  size 3\n  size 4\n", "my.pkg.OddError: first"),
        ("ValueError: inner\n\nDuring handling:\nTypeError: outer\nmore", "TypeError: outer"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("it began\nKilled.\n\n", "Killed."),
        ("2 Errors: none of them named\nend", "end"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_the_last_words_name_the_type_of_the_error_however_many_lines_its_text_has(message: str, last: str) -> None:
    assert last_words(message) == last


def test_a_message_is_kept_to_two_thousand_letters() -> None:
    assert classify("x" * 2_000).message == "x" * 2_000
    assert classify("y" + "x" * 2_000).message == "... " + "x" * 2_000
    assert classify("  x\n").message == "x"


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert classify_exit(-250, "").message == "killed by signal 250"
    assert classify_exit(-signal.SIGTERM, "").message == "killed by SIGTERM"


def test_an_exit_is_told_with_its_code_and_the_cause_that_the_log_knows() -> None:
    known = classify_exit(1, "RuntimeError: unable to allocate shared memory(shm)")
    assert (known.kind, "exited with code 1 " in known.message) == ("shared_memory_full", True)
    assert known.hint == classify("unable to allocate shared memory").hint
    assert classify_exit(0, "").kind == "process_exited"


def test_a_hang_says_where_it_stood_and_what_was_raised_before() -> None:
    log = "Traceback (most recent call last):\n  File x\nAttributeError: Can't pickle local object 'f'"
    found = hang(30.0, "steady state", "worker 1 in read", log)
    assert "30 s" in found.message
    assert "worker 1 in read" in found.message
    assert found.message.endswith("before that: AttributeError: Can't pickle local object 'f'")
    assert found.hint == classify("Can't pickle local object").hint
    plain = hang(30.0, "steady state", "", "AttributeError: Can't pickle local object 'f'")
    assert "before that" not in plain.message
    assert "stacks" not in plain.message
    assert "timeout_s" in plain.hint
    files = "Traceback (most recent call last):\n  File x\nOSError: [Errno 24] Too many open files"
    assert hang(30.0, "steady state", "", files).kind == "too_many_files"
    assert found.kind == plain.kind == "hang"
    unknown = hang(30.0, "steady state", "", "Traceback (most recent call last):\n  File x\nValueError: 7")
    assert unknown.message.endswith("before that: ValueError: 7")
    assert unknown.hint == plain.hint


def test_of_what_was_raised_before_a_hang_the_last_with_a_name_counts() -> None:
    raised = ("OSError: [Errno 24] Too many open files", "ConnectionResetError: [Errno 104] Connection reset by peer")
    log = "".join(
        f'Traceback (most recent call last):\n  File "queues.py", line 1, in _feed\n{text}\n' for text in raised
    )
    found = hang(1.0, "warm-up", log_end=log)

    assert found.kind == "too_many_files"
    assert found.message.endswith(f"before that: {raised[0]}")


def test_a_traceback_without_an_end_leaves_the_last_line() -> None:
    assert last_words("Traceback (most recent call last):\n  File x\n    code") == "code"
    twice = "Traceback (most recent call last):\n  a\nOne: 1\nTraceback (most recent call last):\n  b\nTwo: 2\n  c"
    assert last_words(twice) == "Two: 2"


def sized(batch: object, workers: object = 4, failure: str = "") -> Trial:
    failed = Failure(failure, "", "") if failure else None
    config: Config = {"batch_size": batch, "num_workers": workers}  # type: ignore[dict-item]
    status = "failed" if failure else "completed"
    return Trial(id="t", role="sweep", config=config, round=1, status=status, failure=failed)  # type: ignore[arg-type]


def test_what_had_room_is_the_largest_that_was_completed_below_what_failed() -> None:
    failed = sized(64, 4, "shared_memory_full")
    rows = [failed, sized(8), sized(32), sized(16), sized(128), sized(64, 2), sized(64, 1), sized(63, 3)]
    said = what_fits(failed, rows)
    assert "num_workers=2" in said
    assert "batch_size=32" in said
    assert what_fits(failed, [failed, sized(64, 2)]).startswith("Fits in memory with num_workers=2,")
    assert what_fits(failed, [failed, sized(63, 3)]) == ""


def test_one_that_failed_in_another_round_had_no_room() -> None:
    failed = sized(64, 4, "host_memory")
    rows = [failed, sized(32), sized(32, 4, "host_memory"), sized(16)]
    assert what_fits(failed, rows).startswith("Fits in memory with batch_size=16,")


def test_room_is_told_only_of_what_ran_out_of_it() -> None:
    failed = sized(64, 4, "bad_image")
    assert what_fits(failed, [failed, sized(32)]) == ""
    assert what_fits(sized(64), [sized(32)]) == ""


@pytest.mark.parametrize("size", [None, True, "auto"])
def test_a_size_that_is_no_number_is_not_compared(size: object) -> None:
    failed = sized(64, 4, "host_memory")
    assert what_fits(failed, [failed, sized(size)]) == ""
    odd = sized(size, 4, "host_memory")
    assert what_fits(odd, [odd, sized(0)]) == ""


@pytest.mark.parametrize(
    ("kind", "by_kernel", "ran_out"),
    [
        ("worker_killed", None, True),
        ("worker_killed", True, True),
        ("worker_killed", False, False),
        ("hang", None, False),
    ],
)
def test_what_another_than_the_kernel_killed_ran_out_of_nothing(
    kind: str, by_kernel: bool | None, ran_out: bool
) -> None:
    assert ran_out_of_memory(Failure(kind, "", "", by_oom_killer=by_kernel)) == ran_out
    assert not ran_out_of_memory(None)


def test_the_lowest_signal_is_a_crash_too_and_a_traceback_without_frames_is_read() -> None:
    assert classify_exit(-1, "").kind == "process_crashed"
    assert last_words("Traceback (most recent call last):\nKeyError: 7\nmore") == "KeyError: 7"


def test_as_much_as_failed_is_no_room_even_where_it_was_completed_once() -> None:
    assert what_fits(sized(64, 4, "host_memory"), [sized(64)]) == ""


def test_a_worker_that_exited_is_named_by_what_it_wrote() -> None:
    message, log = (
        "RuntimeError: DataLoader worker (pid 7) exited unexpectedly",
        "x\nRuntimeError: can't start new thread\ny",
    )
    found = classify_raised(message, log)
    assert (found.kind, found.message) == ("too_many_processes", message)
    assert "--pids-limit" in found.hint
    assert classify_raised(message, "nothing that is known").kind == "worker_exited"
    terminated = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated."
    assert classify_raised(terminated, "nothing that is known").kind == "worker_exited"
    assert classify_raised("ValueError: planted", log).kind == "error"


def test_the_exception_s_own_lines_in_the_log_are_not_the_worker_s() -> None:
    """A batch of a worker that is gone cannot be fetched: the trial's own traceback is in the log as well."""
    own = "FileNotFoundError: [Errno 2] No such file or directory"
    message = f"{own}\na DataLoader worker exited unexpectedly: its batch could not be fetched"
    log = f'Traceback (most recent call last):\n  File "reductions.py", line 1, in rebuild_storage_fd\n{own}\n'
    assert classify_raised(message, log).kind == "worker_exited"
    by_worker = "FileNotFoundError: [Errno 2] No such file or directory: 'labels.csv'\n"
    assert classify_raised(message, log + by_worker).kind == "missing"
