"""Run once under each condition of containers, pods, shared servers and laptops, created for real.

    uv run --group storage python benchmarks/conditions.py [--only NAME ...] [--no-verify] [--keep FOLDER]

Namespaces, control groups, limits and mounts create the conditions, which requires root on Linux. A condition that this
machine cannot create is listed with the reason. Each row shows what the program said, its first recommendation, its
exit code, and its duration relative to the same run without any condition. Every condition is removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from loaderbench.datasets.photos import generate_photos
from loaderbench.errors import MissingError, UsageError
from loaderbench.result import Run, load

LIMIT_S = 900
GROUPS = Path("/sys/fs/cgroup")
SUITE = """\
name: conditions
dataset: {root: photos}
loader: {shuffle: true, drop_last: true}
sweep: {batch_size: [32, 128], num_workers: [0, 2]}
measure: {rounds: 3, seconds: 0.5}
"""
TARGETS = """
import time
import torch

class Stalling(torch.utils.data.Dataset):
    '''Storage that stops answering once: the first reader of sample 200 waits for ever.'''
    def __len__(self): return 512
    def __getitem__(self, index):
        time.sleep(0.002)
        worker = torch.utils.data.get_worker_info()
        if index == 200 and worker is not None and worker.num_workers == 2: time.sleep(100_000)
        return torch.zeros(3, 64, 64)

def stalling(): return Stalling()

class Fields(Stalling):
    '''Samples of many tensors, each of which is an open file while its batch is in flight.'''
    def __getitem__(self, index):
        time.sleep(0.005)
        return {str(field): torch.full((8,), index) for field in range(24)}

def fields(): return Fields()
"""


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* The seconds in the file CLOCK are added to the time of day; the monotonic clock stays. */
static long jump(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK"), "r");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *found) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, found);
    if (id == CLOCK_REALTIME) found->tv_sec += jump();
    return code;
}
int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int code = real(found, zone);
    found->tv_sec += jump();
    return code;
}
"""


@dataclass(frozen=True)
class Condition:
    """A condition. `script` runs the program as `$RUN`; `groups` are cgroup limits: (controller, {file: value})."""

    name: str
    script: str = "$RUN"
    mounts: bool = False
    groups: tuple[tuple[str, dict[str, str]], ...] = ()
    meanwhile: Callable[[psutil.Popen, Path], None] | None = None
    stdin: int | None = None
    suite: str = "s.yaml"


def _stop_for_20_s(running: psutil.Popen, place: Path) -> None:
    """Stop all processes for a while, as closing the lid of a laptop does."""
    _until_measuring(running, place)
    processes = [running, *running.children(recursive=True)]
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    time.sleep(20)
    for process in processes:
        with suppress(psutil.Error):
            process.resume()


def _clock_jumps(running: psutil.Popen, place: Path) -> None:
    """Set the clock forward by an hour, and back by two."""
    _until_measuring(running, place)
    for seconds in (3600, -3600):
        (place / "clock").write_text(str(seconds))
        time.sleep(5)


def _neighbor(running: psutil.Popen, _: Path) -> None:
    """Keep all CPUs busy until the run ends."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with suppress(subprocess.TimeoutExpired):
            running.wait(LIMIT_S)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _fill_disk(running: psutil.Popen, place: Path) -> None:
    _until_measuring(running, place)
    with suppress(OSError), (Path(f"/proc/{running.pid}/cwd") / "small" / "filler").open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()


def _until_measuring(running: psutil.Popen, place: Path) -> None:
    """Wait until two trials are measured."""
    while running.poll() is None and (place / "said").read_text().count("[Sweep") < 3:
        time.sleep(0.1)


def _shm(size: str) -> str:
    return f"mount -t tmpfs -o size={size} tmpfs /dev/shm && $RUN"


def _fuse(latency_s: float, *, stall_at: int = 0) -> str:
    """Read the photos through FUSE; its process ends when the file system is removed with its namespace."""
    python, script = shlex.quote(sys.executable), shlex.quote(str(Path(__file__).with_name("slow_files.py")))
    serve = f"{python} {script} photos fuse {latency_s} {stall_at} > server.log 2>&1 &"
    wait = "for _ in $(seq 100); do mountpoint -q fuse && break; sleep 0.1; done; mountpoint -q fuse || exit 77"
    return f"mkdir -p fuse; {serve} {wait}; $RUN; code=$?; umount --lazy fuse; kill -9 $!; exit $code"


def _memory(mib: int) -> tuple[tuple[str, dict[str, str]], ...]:
    return (("memory", {"memory.limit_in_bytes|memory.max": str(mib << 20)}),)


def _cpus(count: float) -> tuple[tuple[str, dict[str, str]], ...]:
    return (("cpu", {"cpu.cfs_quota_us|cpu.max": f"{count * 100_000:.0f}"}),)


SEARCH = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"  # the interpreter may be in a home of root
NOBODY = f"setpriv --reuid 65534 --regid 65534 --clear-groups {SEARCH} env HOME=$PWD/home"
CONDITIONS = (
    Condition("healthy"),
    Condition("/dev/shm of 64 MiB", _shm("64m"), mounts=True),
    Condition("/dev/shm of 1 MiB", _shm("1m"), mounts=True),
    Condition("memory limit of 500 MiB", groups=_memory(500)),
    Condition("memory limit of 700 MiB", groups=_memory(700)),
    Condition("memory limit of 900 MiB", groups=_memory(900)),
    Condition("memory limit of 1,200 MiB", groups=_memory(1200)),
    Condition("CPU quota of 0.5", groups=_cpus(0.5)),
    Condition("CPU quota of 1.5", groups=_cpus(1.5)),
    Condition("one CPU", "taskset -c 0 $RUN"),
    Condition("pids.max of 14", groups=(("pids", {"pids.max": "14"}),)),
    Condition("ulimit -u 24", f"ulimit -u 24; {NOBODY} $RUN"),
    Condition("ulimit -n 64", "ulimit -n 64; $RUN"),
    Condition("ulimit -n 64, samples of 24 tensors", "ulimit -n 64; $RUN", suite="fields.yaml"),
    Condition(
        "read-only root",
        "for used in small $TMPDIR; do mount --bind $used $used; done; mount -o remount,bind,ro / && "
        "mount -o remount,bind,rw small; $RUN",
        mounts=True,
    ),
    Condition(
        "home that cannot be written to",
        "mkdir -p home; mount -t tmpfs -o ro tmpfs home; HOME=$PWD/home $RUN",
        mounts=True,
    ),
    Condition(
        "disk full in the middle", "mount -t tmpfs -o size=2m tmpfs small; $RUN", mounts=True, meanwhile=_fill_disk
    ),
    Condition("no /proc", "mount -t tmpfs -o ro tmpfs /proc; $RUN", mounts=True),
    Condition("no /proc of others", f"mount -t proc -o hidepid=2 proc /proc; {NOBODY} $RUN", mounts=True),
    Condition("another user than root", f"{NOBODY} $RUN"),
    Condition("no terminal, no stdin", "setsid $RUN <&-", stdin=subprocess.DEVNULL),
    Condition("all processes stopped for 20 s", meanwhile=_stop_for_20_s),
    Condition(
        "clock that jumps by an hour",
        "gcc -shared -fPIC -o clock.so clock.c -ldl || exit 77; CLOCK=$PWD/clock LD_PRELOAD=$PWD/clock.so $RUN",
        meanwhile=_clock_jumps,
    ),
    Condition("storage that stalls", suite="stalling.yaml"),
    Condition("storage of 10 ms a read, by FUSE", _fuse(0.01), mounts=True, suite="fuse.yaml"),
    Condition("storage that stalls for a minute, by FUSE", _fuse(0.001, stall_at=3000), mounts=True, suite="fuse.yaml"),
    Condition("neighbor that takes all CPUs", meanwhile=_neighbor),
)


@contextmanager
def control_groups(groups: tuple[tuple[str, dict[str, str]], ...]) -> Iterator[list[Path]]:
    """Create control groups with limits, of version 1 or 2. Raises `OSError` if that is not allowed."""
    made: list[Path] = []
    try:
        for controller, limits in groups:
            first = (GROUPS / controller).is_dir()
            group = GROUPS / (controller if first else "") / f"loaderbench-conditions-{os.getpid()}"
            group.mkdir(exist_ok=True)
            made.append(group)
            for names, value in limits.items():
                name = names.partition("|")[0] if first else names.rpartition("|")[2]
                (group / name).write_text(value)
        yield made
    finally:
        for group in made:
            for pid in (group / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            for _ in range(50):
                with suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)


def run_under(condition: Condition, place: Path, *flags: str) -> tuple[int | str, float]:
    """Return the exit code, or what prevented the run, and the seconds."""
    command = shlex.join([sys.executable, "-m", "loaderbench", "run", condition.suite, "--out", "small/r", *flags])
    with ExitStack() as stack:
        try:
            groups = stack.enter_context(control_groups(condition.groups))
        except OSError as error:
            return f"not made: {error}", 0.0
        joined = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        script = f"{joined}RUN={shlex.quote(command)}; {condition.script}"
        environment = {**os.environ, "TMPDIR": str(place / "tmp"), "PYTHONUNBUFFERED": "1"}
        apart = ["unshare", "--mount"] if condition.mounts else []
        with (place / "said").open("w") as said:
            began_s = time.monotonic()
            running = psutil.Popen(
                [*apart, "sh", "-c", script], cwd=place, env=environment, stdin=condition.stdin,
                stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            if condition.meanwhile is not None:
                condition.meanwhile(running, place)
            try:
                code: int | str = running.wait(LIMIT_S)
            except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
                code = f"no end after {LIMIT_S} s"
                for process in [*running.children(recursive=True), running]:
                    with suppress(psutil.Error):
                        process.kill()
            return code, time.monotonic() - began_s


def said_by(place: Path) -> tuple[str, str, str]:
    """Return the verdict or last line, the first fix, and the failures by kind."""
    lines = (place / "said").read_text().strip().splitlines() or [""]
    try:
        run: Run = load(place / "small" / "r")
    except (OSError, UsageError, MissingError):
        return lines[-1], "", ""
    record = run.record
    kinds = [trial.failure.kind for trial in record.trials if trial.failure]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    fixes = [fix for fix in record.recommendations if fix.status == "open"]
    gain = f": {fixes[0].gain.est:.2f}x" if fixes and fixes[0].gain else ""
    return run.verdict.headline, f"{fixes[0].title}{gain}" if fixes else "", counted


def main() -> int:
    """Run the requested conditions and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="conditions whose names contain one of these")
    parser.add_argument("--keep", type=Path, help="keep runs and what was printed in this folder")
    parser.add_argument("--no-verify", action="store_true", help="try no fixes")
    asked = parser.parse_args()
    flags = ["--no-verify"] if asked.no_verify else []
    healthy_s = None
    print("| condition | verdict or last line | first fix | failures | code | time |")
    print("| --- | --- | --- | --- | --: | --: |")
    for number, condition in enumerate(CONDITIONS):
        if asked.only and number and not any(part in condition.name for part in asked.only):
            continue
        with ExitStack() as stack:
            kept = asked.keep / f"{number:02d}" if asked.keep else None
            place = kept or Path(stack.enter_context(TemporaryDirectory()))
            _prepare(place)
            code, seconds = run_under(condition, place, *flags)
            verdict, fix, failures = said_by(place)
        healthy_s = healthy_s or seconds
        print(f"| {condition.name} | {verdict} | {fix} | {failures} | {code} | {seconds / healthy_s:.2f} |", flush=True)
    return 0


def _prepare(place: Path) -> None:
    """Create files and folders that every user can write to."""
    for folder in (place, place / "tmp", place / "small", place / "home"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
    generate_photos(place / "photos", images=256, classes=4)
    (place / "s.yaml").write_text(SUITE)
    (place / "fuse.yaml").write_text(SUITE.replace("root: photos", "root: fuse"))
    (place / "clock.c").write_text(CLOCK)
    (place / "target_data.py").write_text(TARGETS)
    for kind in ("stalling", "fields"):
        target = SUITE.replace("{root: photos}", f"{{kind: target, target: 'target_data:{kind}'}}")
        (place / f"{kind}.yaml").write_text(target)


if __name__ == "__main__":
    sys.exit(main())
