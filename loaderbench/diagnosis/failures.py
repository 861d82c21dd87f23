"""Classifies a failed trial by its error message. The first pattern that matches wins."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from loaderbench.records import Failure, Trial

MAX_MESSAGE = 2_000
_SIGKILL = 9  # `signal.SIGKILL` does not exist on Windows
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration)(?:: .*)?")
_OWN_NAME = re.compile(r"^((?:caused by )?)loaderbench(?:\.\w+)+: ", re.MULTILINE)
_CAUSED_BY = "caused by "
_TRACEBACK = "Traceback (most recent call last):"

WORKER_EXITED = "worker_exited"
TOO_MANY_FILES = "too_many_files"
TOO_MANY_PROCESSES = "too_many_processes"
MISSING_HINT = "the file does not exist; check the path"
PERMISSION_HINT = "no permission to read this path; check its owner and mode"
TOO_MANY_HINT = "use fewer workers, or raise the limit (docker run --pids-limit, ulimit -u)"

STARTED_HINT = (
    "an iterator that already started its workers cannot be measured in another process: "
    "pass a function that makes the loader"
)

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "torchvision_mismatch",
        r"operator torchvision::nms does not exist",
        "torch and torchvision builds do not match; reinstall both: `uv pip install --reinstall torch torchvision`",
    ),
    (
        "shared_memory_full",
        r"unable to allocate shared memory|killed by signal: Bus error"
        r"|\[Errno 28\] No space left on device(?!: '(?!/dev/shm/))",  # a file elsewhere is on a full disk
        "batches do not fit in /dev/shm: use fewer workers, a smaller prefetch_factor, "
        "or more shared memory (docker run --shm-size=8g)",
    ),
    ("worker_killed", r"is killed by signal: Killed", "probably out of memory: use fewer workers or a smaller batch"),
    (
        "worker_crashed",
        r"Unexpected segmentation fault encountered in worker|is killed by signal: (?:Segmentation fault|Aborted)",
        "a native library crashed in a worker; see the end of the log",
    ),
    (
        WORKER_EXITED,
        r"worker .*exited unexpectedly|is killed by signal: ",
        "a worker exited; see its output in the log",
    ),
    (
        TOO_MANY_FILES,
        r"Too many open files|received 0 items of ancdata",
        "raise the limit (ulimit -n), or call torch.multiprocessing.set_sharing_strategy('file_system') in each worker",
    ),
    (
        TOO_MANY_PROCESSES,
        r"can't start new thread|Thread creation failed|BlockingIOError: \[Errno 11\] Resource temporarily unavailable",
        TOO_MANY_HINT,
    ),
    (
        "host_memory",
        r"in pin memory thread(?s:.)*(?:out of memory|OutOfMemoryError)",
        "the host has no memory left to pin: set pin_memory: false, or use a smaller batch or fewer workers",
    ),
    (
        "device_memory",
        r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|CU\w+_STATUS_ALLOC_FAILED",
        "out of GPU memory: use a smaller batch",
    ),
    (
        "device_assert",
        r"device-side assert triggered",
        "index out of range on the GPU, often a label as large as the number of classes; "
        "set CUDA_LAUNCH_BLOCKING=1 to find it",
    ),
    (
        "device_unsupported",
        r"no kernel image is available|is not compatible with the current PyTorch installation",
        "this torch has no code for this GPU: install a build for its compute capability",
    ),
    (
        "device_busy",
        r"devices? ?(?:\(s\) is/)?are busy or unavailable",
        "another process holds this GPU exclusively: end it, or choose another GPU with CUDA_VISIBLE_DEVICES",
    ),
    (
        "device_missing",
        r"invalid device ordinal|No CUDA GPUs are available|no CUDA-capable device is detected",
        "no such GPU: compare CUDA_VISIBLE_DEVICES with `nvidia-smi -L`",
    ),
    (
        "device_missing",
        r"Found no NVIDIA driver on your system|Torch not compiled with CUDA enabled",
        "torch finds no GPU here: `loaderbench doctor` says why; use a machine with a GPU, or emulate one",
    ),
    (
        "device_driver",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|unsupported display driver",
        "the driver does not match this torch build: update it, or install a torch for an older CUDA",
    ),
    (
        "device_failed",
        r"CUDA error: (?:unspecified launch failure|an illegal|misaligned address|uncorrectable|the launch timed out)",
        "a kernel failed on the GPU: CUDA_LAUNCH_BLOCKING=1 shows which; nvidia-smi -q and dmesg show hardware errors",
    ),
    (
        "host_memory",
        r"DefaultCPUAllocator: can't allocate memory|\bMemoryError\b",
        "out of memory: use a smaller batch or fewer workers",
    ),
    (
        "cuda_in_fork",
        r"Cannot re-initialize CUDA in forked subprocess",
        "do not use CUDA in workers, or set multiprocessing_context: spawn",
    ),
    (
        "not_picklable",
        r"[Cc]an't (?:get|pickle) local object|[Cc]annot pickle|PicklingError",
        "spawn and forkserver pickle the dataset for each worker: open files in the worker, avoid lambdas",
    ),
    ("missing", r"BadImageError: .*(?:FileNotFoundError|\[Errno 2\])", MISSING_HINT),
    ("permission", r"BadImageError: .*(?:PermissionError|\[Errno 13\])", PERMISSION_HINT),
    (
        "bad_image",
        r"BadImageError|UnidentifiedImageError|image file is truncated|DecompressionBombError",
        "this image cannot be decoded: repair or remove it, or skip such files with dataset.skip_bad: true",
    ),
    (
        "collate",
        r"'NoneType' object has no attribute 'numel'|object of type 'NoneType' has no len\(\)"
        r"|default_collate: .*found <class 'NoneType'>",
        "a sample is None: __getitem__ has no return, or returns None after an error",
    ),
    (
        "collate",
        r"stack expects each tensor to be equal size|default_collate: batch must contain"
        r"|each element in list of batch should be of equal size",
        "samples of a batch must have the same shape: crop or resize them in the transform",
    ),
    (
        "shared_handle",
        r"BadZipFile|Bad CRC-32|zlib\.error|Unable to (?:synchronously )?(?:open|read) (?:object|data)",
        "forked workers share the position of an open file: open it in each worker, on first use",
    ),
    ("started_workers", r"can only test a child process", STARTED_HINT),
    (
        "not_for_a_classifier",
        r"consumer\.kind: model trains an image classifier",
        "set consumer.kind: target to measure your own step, or kind: auto to copy batches and emulate a GPU",
    ),
    (
        "compiler",
        r"[Ff]ailed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler|Cannot find a working triton",
        "torch.compile needs a C++ compiler and Triton: install gcc and g++, or drop consumer.compile",
    ),
    (
        "model_input",
        r"consumer\.model: \w+ failed on images of shape",
        "set consumer.image_size to the size that the model takes, a larger batch, or another model",
    ),
    (
        "target",
        r"MissingError: target ",
        "targets are looked up next to the suite file, then on sys.path",
    ),
    ("missing", r"FileNotFoundError|No such file or directory|MissingError", MISSING_HINT),
    ("permission", r"PermissionError", PERMISSION_HINT),
)


FORK_SERVER_KILLED = "fork_server_killed"
_OF_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP")
_CRASHED = "a native library crashed; see the end of the log"
_ENDED_ITSELF = "code of yours or of a library ended the process, as sys.exit and os._exit do; see the end of the log"
OUT_OF_MEMORY = frozenset(
    {"host_memory", "device_memory", "worker_killed", "process_killed", FORK_SERVER_KILLED, "shared_memory_full"}
)
"""Kinds of failure that a larger batch can only make worse."""

_ONE_CAUSE = OUT_OF_MEMORY | {"hang", "bad_image", "pruned", TOO_MANY_FILES, TOO_MANY_PROCESSES}
"""Kinds with one fix, whose messages differ only in sizes, phases or file names."""

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def ran_out_of_memory(failure: Failure | None) -> bool:
    """Whether a failure is an out-of-memory kind; a process killed by anything but the kernel does not count."""
    return failure is not None and failure.kind in OUT_OF_MEMORY and failure.by_oom_killer is not False


def classify(message: str) -> Failure:
    """Classify an exception by its type and text as Python prints them, including a worker's exception."""
    shown = _shorten(_without_own_names(message))
    for kind, pattern, hint in _KNOWN:
        if re.search(pattern, message):
            return Failure(kind, shown, hint)
    return Failure("error", shown, "see the traceback at the end of the trial's log")


def classify_raised(message: str, log: str) -> Failure:
    """Classify an exception; if it only says that a worker exited, by what the worker wrote to the log.

    The log also holds the exception's own lines, which are skipped because the worker did not write them.
    """
    found = classify(message)
    own = frozenset(message.splitlines())
    by_worker = "\n".join(line for line in log.splitlines() if line not in own)
    named = classify(by_worker) if found.kind == WORKER_EXITED else found
    return replace(found, kind=named.kind, hint=named.hint) if named.kind != "error" else found


def classify_exit(exit_code: int, log_end: str) -> Failure:
    """Classify the death of a trial's own process; a negative code is the signal's number."""
    if exit_code == -_SIGKILL:
        return Failure("process_killed", "killed by signal 9", "probably out of memory; check the kernel log (dmesg)")
    if exit_code < 0:
        name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
        hint = _CRASHED if name in _OF_CRASHES else f"your code or another program sent {name}; see the end of the log"
        return Failure("process_crashed", f"killed by {name}", hint)
    known, message = classify(log_end), f"exited with code {exit_code} before it was measured"
    if known.kind != "error":
        return Failure(known.kind, message, known.hint)
    return Failure("process_exited", message, known.hint if _TRACEBACK in log_end else _ENDED_ITSELF)


def fork_server_killed() -> Failure:
    """The failure of a trial whose fork server was killed, which ends all trials in progress."""
    messages = "the fork server, which starts the trials, was killed; this ended the trial"
    return Failure(FORK_SERVER_KILLED, messages, "probably out of memory; check the kernel log (dmesg)")


def hang(timeout_s: float, phase: str, blocked_at: str = "", log_end: str = "") -> Failure:
    """The failure of a trial ended by the watchdog, with its phase and where each process was blocked.

    An exception that a process logged before the hang is the cause if its kind is known: torch's queues wait forever
    for an object that could not be pickled.
    """
    return _hang(f"no result after {timeout_s:g} s", "raise measure.timeout_s", phase, blocked_at, log_end)


def no_progress(
    idle_s: float, phase: str, blocked_at: str = "", log_end: str = "", *, than: str = "in other trials"
) -> Failure:
    """The failure of a trial ended after ten times the longest time without progress, of the trials named by `than`."""
    what = f"no progress for {idle_s:.0f} s, at least 10\N{MULTIPLICATION SIGN} the longest wait {than}"
    return _hang(what, "measure it in a separate run", phase, blocked_at, log_end)


def _hang(what: str, if_slow: str, phase: str, blocked_at: str, log_end: str) -> Failure:
    where = f"; {blocked_at}; stack traces are in the log" if blocked_at else ""
    raised, known = _last_classified(log_end)
    message = f"{what}; phase: {phase}{where}" + (f"; before that: {raised}" if raised else "")
    if known is not None:
        return Failure(TOO_MANY_FILES if known.kind == TOO_MANY_FILES else "hang", message, known.hint)
    deadlock = "if it deadlocks, often at a lock held across fork, set multiprocessing_context: spawn"
    return Failure("hang", message, f"if the loader is slow, {if_slow}; {deadlock}")


def _last_classified(log_end: str) -> tuple[str, Failure | None]:
    """The last message and kind of a traceback in the log that can be classified; otherwise the last message.

    Errors that follow when a process cannot send (a closed pipe, a lost connection) are often written after the cause.
    """
    messages = [_last_line(_TRACEBACK + text) for text in log_end.split(_TRACEBACK)[1:]]
    for words in reversed(messages):
        if (known := classify(words)).kind != "error":
            return _without_own_names(words), known
    return (_without_own_names(messages[-1]) if messages else ""), None


def failure_in_words(failure: Failure) -> str:
    """A failure as a reason: `trial failed: out of memory: CUDA out of memory`."""
    return f"trial failed: {failure.kind.replace('_', ' ')}: {last_words(failure.message)}"


def cause_of(failure: Failure) -> str:
    """A key shared by failures of one kind with the same cause: their last message without numbers and addresses."""
    return "" if failure.kind in _ONE_CAUSE else _NUMBER.sub("#", last_words(failure.message))


def last_words(message: str) -> str:
    """What happened, in one line. Exceptions of loaderbench are written without their class."""
    return _without_own_names(_last_line(message))


def _without_own_names(message: str) -> str:
    """The message without the classes of loaderbench's own exceptions, whose texts are complete."""
    return _OWN_NAME.sub(r"\1", message)


def _last_line(message: str) -> str:
    """The line of an exception's text that says what happened: `Name: text`, or else the last nonempty line.

    Of several tracebacks, the last counts: it is the worker's own if torch passes one on.
    """
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if starts:
        raised = next((line for line in lines[starts[-1] + 1 :] if not line[0].isspace()), None)
        if raised is not None:
            return raised
    named = [line for line in lines if _EXCEPTION.fullmatch(line)]
    first = [line for line in lines if not line.startswith(_CAUSED_BY)]
    return (named or first or lines or [""])[-1].strip()


def _shorten(message: str) -> str:
    """Keep the end of the message, which says what happened."""
    text = message.strip()
    return text if len(text) <= MAX_MESSAGE else "... " + text[-MAX_MESSAGE:]


_AXES = ("num_workers", "batch_size")


def what_fits(failed: Trial, trials: Sequence[Trial]) -> str:
    """The largest worker count and the largest batch that completed with all else as in `failed`; empty if none.

    A value that failed in another round does not fit.
    """
    if not ran_out_of_memory(failed.failure):
        return ""
    found = [(name, _largest(name, failed, trials)) for name in _AXES]
    fits = [f"{name}={most}" for name, most in found if most is not None]
    return f"Fits in memory with {' or with '.join(fits)}, all else unchanged" if fits else ""


def _largest(name: str, failed: Trial, trials: Sequence[Trial]) -> int | None:
    """The largest value below that of the failed trial for which all trials completed."""
    comparable = [trial for trial in trials if _others(name, trial) == _others(name, failed)]
    failed_values = {trial.config.get(name) for trial in comparable if trial.status != "completed"}
    counts = [_count(trial.config.get(name)) for trial in comparable if trial.config.get(name) not in failed_values]
    own = _count(failed.config.get(name))
    return max((count for count in counts if count is not None and own is not None and count < own), default=None)


def _others(name: str, trial: Trial) -> dict[str, object]:
    return {key: value for key, value in trial.config.items() if key != name}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
