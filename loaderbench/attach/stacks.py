"""Stacks of other processes from py-spy, which reads their memory without stopping them.

Source: py-spy's documentation, `py-spy record --format raw --nonblocking`.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loaderbench.child_processes import die_with_parent
from loaderbench.code_places import CodeFrame

OWN_RATE_HZ, RATE_HZ = 100, 25
"""Sampling rates for the stacks of the main process alone, and for those of all processes."""

PATIENCE_S = 20.0  # for py-spy to write its file when its time is over

QUEUES = "multiprocessing/queues.py"

_NOT_INSTALLED = "py-spy is not installed; install it with: pip install py-spy"
_NOT_PERMITTED = (
    "py-spy may not read the process; run attach as root, or set kernel.yama.ptrace_scope=0 "
    "(in a container: --cap-add SYS_PTRACE)"
)
_PROCESS = re.compile(r"process (\d+):")
_THREAD = re.compile(r";?thread \((\w+)\)(?::(?P<name>[^;]*))?;?")
_OUTERMOST = ("<module>", "_run_module_as_main")
_FRAME = re.compile(r"(?P<function>.*?) \((?P<file>.*?)(?::(?P<line>\d+))?\)$")


@dataclass(frozen=True)
class Stack:
    """The calls of a thread, outermost first, and how many stack samples found them.

    `thread` is its ID in the kernel; `None` before Python 3.11, where py-spy prints another one.
    """

    pid: int
    frames: tuple[CodeFrame, ...]
    looks: int
    is_main_thread: bool = True
    thread: int | None = None

    @property
    def sends(self) -> bool:
        """Whether the thread sends what was put into a queue of `multiprocessing`."""
        return any(frame.file.endswith(QUEUES) and frame.function.endswith("_feed") for frame in self.frames)


@dataclass(frozen=True)
class Stacks:
    """Stacks of a process and its descendants: `all` of them, and those that were `running` on a CPU.

    `own` are stacks of the process alone, which are sampled more often because small shares need many stack samples.
    `why_not` gives the reason if there are none.
    """

    own: tuple[Stack, ...] = ()
    all: tuple[Stack, ...] = ()
    running: tuple[Stack, ...] = ()
    why_not: str = ""

    @property
    def senders(self) -> frozenset[int]:
        """The IDs of the threads that send batches, as far as known."""
        return frozenset(one.thread for one in self.all if one.thread is not None and one.sends)

    def without(self, pids: Collection[int]) -> Stacks:
        """The same stacks, except those of these processes."""
        seen, running = (tuple(one for one in some if one.pid not in pids) for some in (self.all, self.running))
        return replace(self, all=seen, running=running)


class StackRecorder:
    """Runs three py-spy processes: for the process alone, with its descendants, and for their running threads only."""

    def __init__(self, pid: int, seconds: float, folder: Path, program: str | None = None) -> None:
        self._pid, self._program = pid, py_spy() if program is None else program
        self._files = [folder / f"{pid}-{what}.raw" for what in ("own", "all", "running")]
        flags = (["--idle"], ["--idle", "--subprocesses"], ["--subprocesses"])
        rates = (OWN_RATE_HZ, RATE_HZ, RATE_HZ)
        self._started = [
            self._start(seconds, rate_hz, file, more)
            for rate_hz, file, more in zip(rates, self._files, flags, strict=True)
            if self._program
        ]

    def _start(self, seconds: float, rate_hz: int, file: Path, flags: list[str]) -> subprocess.Popen[str]:
        command = [self._program or "", "record", "--pid", str(self._pid), "--duration", str(max(1, round(seconds)))]
        command += ["--rate", str(rate_hz), "--format", "raw", "--output", str(file), *flags]
        command += ["--threads", "--nonblocking", "--full-filenames"]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads have been started yet
        )

    def stacks(self) -> Stacks:
        """Wait until py-spy is done, and read the stacks that it found."""
        if not self._started:
            return Stacks(why_not=_NOT_INSTALLED)
        errors = "".join(map(_stderr_of, self._started))
        own, seen, running = (tuple(self._parsed(file)) for file in self._files)
        return Stacks(own, seen, running) if own and seen else Stacks(why_not=_why_not(errors))

    def _parsed(self, file: Path) -> Iterator[Stack]:
        if not file.exists():
            return
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if (found := parse(line, self._pid)) is not None:
                    yield found

    def stop(self) -> None:
        """Stop early: py-spy writes what it has found so far."""
        for process in self._started:
            process.send_signal(signal.SIGINT)


def py_spy() -> str | None:
    """The path of py-spy: alongside this Python, or on `PATH`."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _stderr_of(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=PATIENCE_S)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]


def _why_not(errors: str) -> str:
    if "permission" in errors.lower() or "not permitted" in errors.lower():
        return _NOT_PERMITTED
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "it saw no stack")
    return f"py-spy: {last.removeprefix('Error: ')}"


def parse(line: str, pid: int) -> Stack | None:
    """Parse a line: processes from `pid` down if there are several, a thread, its frames, and a count.

    Returns `None` for any other line.
    """
    text, _, count = line.rstrip("\n").rpartition(" ")
    thread = next(iter([*_THREAD.finditer(text)][-1:]), None)
    if thread is None or not count.isdigit():
        return None
    pid = [pid, *map(int, _PROCESS.findall(text[: thread.start()]))][-1]
    frames = tuple(map(_frame, text[thread.end() :].split(";"))) if text[thread.end() :] else ()
    number = thread.group(1)
    is_main = _is_main_thread(pid, number, thread["name"] or "", frames)
    return Stack(pid, frames, int(count), is_main, int(number) if number.isdigit() else None)


def _is_main_thread(pid: int, number: str, name: str, frames: Sequence[CodeFrame]) -> bool:
    """Whether this is the main thread: by its id, which is the pid, or by its name in a container with its own pids.

    Before Python 3.11, py-spy knows neither; then the outermost frame identifies the main thread.
    """
    if number == str(pid) or name.strip() == "MainThread":
        return True
    return number.startswith("0x") and bool(frames) and frames[0].function in _OUTERMOST


def _frame(text: str) -> CodeFrame:
    found = _FRAME.match(text)
    if found is None:
        return CodeFrame("", 0, text)
    return CodeFrame(found["file"], int(found["line"] or 0), found["function"])
