"""Names the cause of a failed trial from its last words. The first pattern that fits wins."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from loaderbench.records import Failure, Trial

MAX_MESSAGE = 2_000
_SIGKILL = 9  # `signal.SIGKILL` is not there on Windows
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration)(?:: .*)?")
_TRACEBACK = "Traceback (most recent call last):"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "torchvision_mismatch",
        r"operator torchvision::nms does not exist",
        "torch and torchvision come from different builds; "
        "`uv pip install --reinstall torch torchvision` installs a pair that fits",
    ),
    (
        "shared_memory_full",
        r"unable to allocate shared memory|killed by signal: Bus error|\[Errno 28\] No space left on device",
        "the workers' batches do not fit in /dev/shm: fewer workers, a smaller prefetch_factor, "
        "or a larger one (docker run --shm-size=8g)",
    ),
    ("worker_killed", r"is killed by signal: Killed", "out of memory, most likely: fewer workers or a smaller batch"),
    (
        "worker_crashed",
        r"Unexpected segmentation fault encountered in worker|is killed by signal: (?:Segmentation fault|Aborted)",
        "a native library crashed in a worker; the log holds its last words",
    ),
    ("worker_exited", r"exited unexpectedly", "a worker ended by itself; the log holds what it wrote"),
    (
        "too_many_files",
        r"Too many open files|received 0 items of ancdata",
        "raise the limit (ulimit -n), or torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    ("device_memory", r"CUDA out of memory|OutOfMemoryError", "a smaller batch fits the device"),
    ("host_memory", r"DefaultCPUAllocator: can't allocate memory|\bMemoryError\b", "a smaller batch, or fewer workers"),
    ("cuda_in_fork", r"Cannot re-initialize CUDA in forked subprocess", "keep CUDA out of the workers"),
    (
        "not_picklable",
        r"[Cc]an't (?:get|pickle) local object|[Cc]annot pickle|PicklingError",
        "spawn and forkserver send the dataset to each worker: open files there, and use no lambdas",
    ),
    (
        "bad_image",
        r"BadImageError|UnidentifiedImageError|image file is truncated|DecompressionBombError",
        "this image cannot be decoded: repair it, take it out of the folder, or leave such files out with "
        "dataset.skip_bad: true",
    ),
    (
        "collate",
        r"stack expects each tensor to be equal size|default_collate: batch must contain"
        r"|each element in list of batch should be of equal size"
        r"|'NoneType' object has no attribute 'numel'|object of type 'NoneType' has no len\(\)",
        "samples of one batch have to have one shape: crop or resize them in the transform",
    ),
    (
        "shared_handle",
        r"BadZipFile|Bad CRC-32|zlib\.error|Unable to (?:synchronously )?(?:open|read) (?:object|data)",
        "workers that are forked share the place in a file that was opened before: open it in each worker, at its "
        "first sample",
    ),
    (
        "target",
        r"MissingError: target ",
        "the name is looked up beside the suite's file first, then on sys.path",
    ),
    ("missing", r"FileNotFoundError|No such file or directory|MissingError", "the path is not there any more"),
    ("permission", r"PermissionError", "the path cannot be read by this user"),
)


OUT_OF_MEMORY = frozenset({"host_memory", "device_memory", "worker_killed", "process_killed", "shared_memory_full"})
"""Kinds of failure that a larger batch can only make worse."""


def ran_out_of_memory(failure: Failure | None) -> bool:
    """Whether a failure is of such a kind; what was killed by another than the kernel is not."""
    return failure is not None and failure.kind in OUT_OF_MEMORY and failure.by_oom_killer is not False


def classify(message: str) -> Failure:
    """Name an exception by its type and text as Python prints them, one of a worker included."""
    shown = _shorten(message)
    for kind, pattern, hint in _KNOWN:
        if re.search(pattern, message):
            return Failure(kind, shown, hint)
    return Failure("error", shown, "the end of the trial's log shows where it was raised")


def classify_exit(exit_code: int, log_end: str) -> Failure:
    """Name the death of a trial's own process; a negative code is the signal's number."""
    if exit_code == -_SIGKILL:
        return Failure("process_killed", "killed by signal 9", "out of memory, most likely: see the kernel's log")
    if exit_code < 0:
        name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else str(-exit_code)
        return Failure("process_crashed", f"ended by {name}", "a native library crashed; the log holds its last words")
    known = classify(log_end)
    kind = "process_exited" if known.kind == "error" else known.kind
    return Failure(kind, f"ended with exit code {exit_code} before it was measured", known.hint)


def hang(timeout_s: float, phase: str, stands: str = "", log_end: str = "") -> Failure:
    """Name a trial that was ended by the watchdog, what it was doing, and where each of its processes stood.

    What a process had written of an exception before that is the cause where it has a name: torch's queues wait for
    ever for what could not be sent.
    """
    where = f"; {stands}; the log has the stacks of each" if stands else ""
    raised = last_words(log_end) if _TRACEBACK in log_end else ""
    known = classify(raised) if raised else None
    return Failure(
        "hang",
        f"no result after {timeout_s:g} s; it was in {phase}{where}" + (f"; before that: {raised}" if raised else ""),
        known.hint
        if known is not None and known.kind != "error"
        else "a loader this slow needs a larger measure.timeout_s; one that stands still may hold a lock over a fork: "
        "try multiprocessing_context: spawn",
    )


def last_words(message: str) -> str:
    """The one line of an exception's text that says what happened: `Name: text`, else the last that is not empty.

    Of several tracebacks the last counts: it is the worker's own where torch passes one on.
    """
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if starts:
        raised = next((line for line in lines[starts[-1] + 1 :] if not line[0].isspace()), None)
        if raised is not None:
            return raised
    named = [line for line in lines if _EXCEPTION.fullmatch(line)]
    return (named or lines or [""])[-1].strip()


def _shorten(message: str) -> str:
    """Keep the end, where Python says what happened."""
    text = message.strip()
    return text if len(text) <= MAX_MESSAGE else "... " + text[-MAX_MESSAGE:]


_AXES = (("num_workers", "workers"), ("batch_size", "samples in a batch"))


def what_fits(failed: Trial, trials: Sequence[Trial]) -> str:
    """The largest worker count and the largest batch that were completed with all else as in `failed`; empty if none.

    One that failed in another round does not fit.
    """
    if not ran_out_of_memory(failed.failure):
        return ""
    found = [(noun, _largest(name, failed, trials)) for name, noun in _AXES]
    room = [f"{most} {noun}" for noun, most in found if most is not None]
    return f"With all else the same there was room for {', or for '.join(room)}" if room else ""


def _largest(name: str, failed: Trial, trials: Sequence[Trial]) -> int | None:
    """The largest value below that of the failed trial whose trials were all completed."""
    beside = [trial for trial in trials if _others(name, trial) == _others(name, failed)]
    gone = {trial.config.get(name) for trial in beside if trial.status != "completed"}
    counts = [_count(trial.config.get(name)) for trial in beside if trial.config.get(name) not in gone]
    own = _count(failed.config.get(name))
    return max((count for count in counts if count is not None and own is not None and count < own), default=None)


def _others(name: str, trial: Trial) -> dict[str, object]:
    return {key: value for key, value in trial.config.items() if key != name}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
