"""Inject seeded random faults into short runs: what each run said, and whether anything was lost or left behind.

    uv run python benchmarks/torture.py --only chaos [--times 1000] [--seed 0] [--at-once 4] [--keep FOLDER]
    uv run python benchmarks/torture.py --only chaos --seeds 623,903

A fault depends only on its seed, so `--seeds N` repeats it. A preloaded library, compiled here, makes writes fail;
without a compiler, such faults are not drawn. Each run has its own folder for photos, temporary files and, if mounts
are allowed, shared memory. Concurrent runs share the CPUs, so the times of faults and the time limits are counted in
seconds of an idle CPU: see `machine_time.py`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
from chaos_place import Place, compiled_write_faults, may_mount, own_place
from machine_time import MachineClock

from loaderbench.store import read_run, readable_trials

LIMIT_S = 120
ENDED_S = 4  # less than the five seconds of a fork server that imports torch for nobody
LOOK_S = 0.05
KILLED, STOPPED, FAILED_WRITE, INTERRUPTED = "kill -9", "SIGSTOP", "write", "Ctrl-C twice"


@dataclass(frozen=True)
class Fault:
    """A fault, its victim, and its time after the start of a run. `number` is the errno of a failed write."""

    kind: str
    whom: str
    after_s: float
    lasts_s: float = 0.0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.whom}".strip()


def drawn(seed: int, *, writes: bool) -> Fault:
    """Draw the fault of this seed."""
    dice = random.Random(seed)
    kind = dice.choice([KILLED, KILLED, STOPPED, INTERRUPTED, *([FAILED_WRITE] if writes else [])])
    after_s, lasts_s = dice.uniform(1.0, 14.0), dice.uniform(0.5, 5.0)
    if kind == KILLED:
        return Fault(kind, dice.choice(["parent", "trial", "worker", "fork server"]), after_s)
    if kind == STOPPED:
        return Fault(kind, dice.choice(["trial", "worker", "fork server", "all"]), after_s, lasts_s)
    if kind == FAILED_WRITE:
        number = dice.choice([5, 28])
        return Fault(kind, "EIO" if number == 5 else "ENOSPC", after_s, lasts_s, number)
    return Fault(kind, "", after_s)


def chaos(place: Path, seeds: Iterable[int], at_once: int = 1, keep: Path | None = None) -> Iterator[str]:
    """Run each seed and yield its problems, then a table by fault; `keep` is where folders with problems are kept."""
    preload, own_shared_memory = compiled_write_faults(place), may_mount()
    counts: dict[str, Counter[str]] = {}

    def found(number: int) -> tuple[int, Fault, list[str]]:
        fault = drawn(number, writes=preload is not None)
        with own_place(place, number, own_shared_memory=own_shared_memory) as own:
            wrong = list(_wrong_with(own, fault, preload))
            if wrong and keep is not None:
                without_sockets = shutil.ignore_patterns("tmp")
                shutil.copytree(
                    own.folder, keep / f"seed{number}", symlinks=True, ignore=without_sockets, dirs_exist_ok=True
                )
            return number, fault, wrong

    with ThreadPoolExecutor(at_once if own_shared_memory else 1) as pool:
        for number, fault, wrong in pool.map(found, seeds):
            counts.setdefault(str(fault), Counter()).update(["runs", *(["wrong"] if wrong else [])])
            yield from (f"seed {number}, {fault} after {fault.after_s:.1f} s: {what}" for what in wrong)
    yield "| fault | runs | not as it should be |"
    yield "| --- | --: | --: |"
    yield from (f"| {name} | {count['runs']} | {count['wrong']} |" for name, count in sorted(counts.items()))


def _wrong_with(own: Place, fault: Fault, preload: Path | None) -> Iterator[str]:
    """Run, inject the fault, wait for the end, resume; yield every problem."""
    place = own.folder
    folder, said = place / "r", place / "said.txt"
    faulty = {"CHAOS": str(place / "chaos"), "CHAOS_FOLDER": str(folder)}
    environment = {**os.environ, "TMPDIR": str(place / "tmp"), **faulty}
    if fault.kind == FAILED_WRITE and preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    (place / "tmp").mkdir(exist_ok=True)
    shared_before = own.shared_files()
    with said.open("w") as output:
        running = _started(["s.yaml", "--out", folder.name], own, environment, output)
        before = _strike(running, fault, place, folder)
        code = _end_of(running)
    if code is None:
        yield f"no end within {LIMIT_S} s"
    lines = said.read_text().strip().splitlines()
    if any("internal error" in line or line.startswith("Traceback") for line in lines):
        yield f"said: {lines[-1]}; {_last_place(lines)}"
    if alive := _alive_after(ENDED_S, place):
        yield f"{len(alive)} processes alive: {', '.join(map(_name_of, alive))}"
        for process in alive:
            process.kill()
    if (folder / "run.json").exists() and not _is_complete(folder):
        with (place / "resumed.txt").open("w") as output:
            again = _end_of(_started(["s.yaml", "--resume", folder.name], own, environment, output))
        if again != 0:
            yield f"--resume ended with {again}"
    if lost := before - _completed(folder):
        yield f"{len(lost)} completed trials lost"
    temporary = place / "tmp"
    left = [*temporary.glob("loaderbench-*"), *temporary.glob("pymp-*"), *(own.shared_files() - shared_before)]
    if left and code in (0, 130):
        yield f"left: {', '.join(map(str, left))}"


def _started(arguments: Sequence[str], own: Place, environment: dict[str, str], output: IO[str]) -> psutil.Popen:
    """Start a run in which Ctrl-C works as in a terminal."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"sys.argv[1:] = {['run', *arguments, '-q']!r};"
        "from loaderbench.__main__ import main; main()"
    )
    command = own.command(sys.executable, "-c", code)
    return psutil.Popen(command, cwd=own.folder, env=environment, stdout=output, stderr=subprocess.STDOUT)


def _strike(running: psutil.Popen, fault: Fault, place: Path, folder: Path) -> set[str]:
    """Wait until the fault is due and inject it; return the trials that were complete."""
    clock = MachineClock()
    while clock.seconds() < fault.after_s and running.poll() is None:
        time.sleep(LOOK_S)
    victims = _victims(running, fault.whom)
    before = _completed(folder)
    with suppress(psutil.Error):
        if fault.kind == KILLED:
            for process in victims:
                process.kill()
        elif fault.kind == STOPPED:
            for process in victims:
                with suppress(psutil.Error):  # a process that has ended must not leave the others stopped
                    process.suspend()
            time.sleep(fault.lasts_s)
            for process in victims:
                with suppress(psutil.Error):
                    process.resume()
        elif fault.kind == FAILED_WRITE:
            (place / "chaos").write_text(str(fault.number))
            time.sleep(fault.lasts_s)
            (place / "chaos").unlink()
        else:
            running.send_signal(signal.SIGINT)
            time.sleep(0.2)
            running.send_signal(signal.SIGINT)
    return before


def _victims(running: psutil.Popen, whom: str) -> list[psutil.Process]:
    """The victims: the run's process, the fork server below it, a trial below that, or a worker below the trial."""
    if whom == "parent":
        return [running]
    below = _below(running)
    if whom == "all":
        return [running, *below]
    depth = {"fork server": 1, "trial": 2, "worker": 3}.get(whom, 0)
    return [process for process in below if _depth(process, running.pid) == depth and not _is_tracker(process)][:1]


def _depth(process: psutil.Process, top: int) -> int:
    with suppress(psutil.Error):
        return 1 + [parent.pid for parent in process.parents()].index(top)
    return 0


def _name_of(process: psutil.Process) -> str:
    """The end of a process's command line, and its CPU time."""
    with suppress(psutil.Error):
        times = process.cpu_times()
        return f"{process.status()} {times.user + times.system:.1f} s of CPU `{' '.join(process.cmdline())[-90:]}`"
    return "ended meanwhile"


def _last_place(lines: Sequence[str]) -> str:
    """The innermost line of code in a traceback."""
    return next((line.strip() for line in reversed(lines) if line.startswith("  File ")), "")


def _is_tracker(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any("resource_tracker" in part for part in process.cmdline())
    return False


def _below(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def _alive_after(seconds: float, place: Path) -> list[psutil.Process]:
    """Processes of this place that are still alive after `seconds`, including any whose start went unseen."""
    clock = MachineClock()
    while (alive := _processes_of(place)) and clock.seconds() < seconds:
        time.sleep(LOOK_S)
    return alive


def _processes_of(place: Path) -> list[psutil.Process]:
    """All processes that inherited the place's folder for temporary files."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("TMPDIR") == str(place / "tmp"):
                found.append(process)
    return found


def _end_of(running: psutil.Popen) -> int | None:
    clock = MachineClock()
    while (code := running.poll()) is None and clock.seconds() < LIMIT_S:
        time.sleep(LOOK_S)
    if code is None:
        for process in [*_below(running), running]:
            with suppress(psutil.Error):
                process.kill()
        running.wait()
    return code if code is None else int(code)


def _completed(folder: Path) -> set[str]:
    """Completed trials of the sweep, which a resumed run keeps."""
    if not (folder / "trials.jsonl").exists():
        return set()
    with suppress(json.JSONDecodeError):
        trials, _ = readable_trials(folder)
        return {trial.id for trial in trials if trial.status == "completed" and trial.role == "sweep"}
    return set()


def _is_complete(folder: Path) -> bool:
    return read_run(folder).complete
