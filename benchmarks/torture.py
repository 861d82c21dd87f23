"""What a run survives: provoked failures, `kill -9` and Ctrl-C at random times, and many trials in one run.

    uv run python benchmarks/torture.py [--only failures|deaths|kills|interrupts|many|chaos] [--times 100]
        [--trials 1000] [--seed 0] [--seeds N,N] [--at-once 4] [--keep FOLDER]

If small file systems can be mounted, /dev/shm has 64 MB for all experiments.

Failures: each kind is provoked in a separate trial with real workers, and must be named correctly. Deaths: one worker
of a trial dies; reports the seconds until the trial has ended. Kills: a separate run is killed after a random time, and
the next start resumes it. No completed trial may be lost, no process may survive, and no file may be left in /dev/shm
or the temporary folder. Interrupts: Ctrl-C instead, which must end the run with code 130, a readable run.json and a
report; reports the seconds until then. Many: sequential trials of one run; reports the memory and open files of the
process that starts them. Chaos: random faults, see `chaos.py`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from chaos import chaos
from worker_deaths import deaths

from loaderbench.datasets.photos import generate_photos
from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer, probe
from loaderbench.store import read_run, readable_trials
from loaderbench.suite import Suite

TARGETS = '''
import ctypes, io, os, resource, signal, threading, time, zipfile
import torch
from PIL import Image
from torch.utils.data import Dataset

class Spoilt(Dataset):
    """Ends as `how` says, in whatever process asks for a sample."""
    def __init__(self, how): self.how = how; self.kept = (lambda: 1) if how == "lambda" else None
    def __len__(self): return 64
    def __getitem__(self, index):
        how = self.how
        if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if how == "segfault": ctypes.string_at(0)
        if how == "exit": os._exit(3)
        if how == "lock": lock = threading.Lock(); lock.acquire(); lock.acquire()
        if how == "shapes": return torch.zeros(1 + index % 3)
        if how == "none": return None if index % 2 else torch.zeros(3)
        if how == "object": return object()
        if how == "missing": return open(f"/nowhere/{index}.jpg", "rb").read()
        if how == "memory": resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)); return torch.zeros(1 << 34)
        if how == "python_memory": raise MemoryError
        if how == "files": resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); return open("/etc/hostname").read()
        if how == "image": return Image.open(io.BytesIO(b"no image")).load()
        if how == "denied": os.geteuid() or os.seteuid(65534); return open("/etc/shadow").read()
        if how == "large": return torch.zeros(1 << 20)
        if how == "raise": raise ValueError("planted")
        return torch.zeros(3)

def spoilt(how): return Spoilt(how)

class Zipped(Dataset):
    """One archive opened before the workers are forked: they share its place in the file."""
    def __init__(self):
        self.path = "/tmp/" + str(os.getpid()) + ".zip"
        with zipfile.ZipFile(self.path, "w") as archive:
            for i in range(64): archive.writestr(str(i), os.urandom(300_000))
        self.archive = zipfile.ZipFile(self.path); os.unlink(self.path)
    def __len__(self): return 64
    def __getitem__(self, index): return len(self.archive.read(str(index)))

def zipped(): return Zipped()
def crashes(): ctypes.string_at(0)
def kills_itself(): os.kill(os.getpid(), signal.SIGKILL)
def exits(): os._exit(7)
def hangs(): time.sleep(1000)
'''

SPAWN = {"multiprocessing_context": "spawn"}
FAILURES: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("worker_killed", "spoilt", {"how": "kill"}, {"num_workers": 1}),
    ("worker_crashed", "spoilt", {"how": "segfault"}, {"num_workers": 1}),
    ("worker_exited", "spoilt", {"how": "exit"}, {"num_workers": 1}),
    ("hang", "spoilt", {"how": "lock"}, {"num_workers": 1}),
    ("collate", "spoilt", {"how": "shapes"}, {"num_workers": 1}),
    ("collate", "spoilt", {"how": "none"}, {"num_workers": 1}),
    ("collate", "spoilt", {"how": "object"}, {"num_workers": 1}),
    ("missing", "spoilt", {"how": "missing"}, {"num_workers": 1}),
    ("host_memory", "spoilt", {"how": "memory"}, {"num_workers": 1}),
    ("host_memory", "spoilt", {"how": "python_memory"}, {"num_workers": 1}),
    ("too_many_files", "spoilt", {"how": "files"}, {"num_workers": 1}),
    ("not_picklable", "spoilt", {"how": "lambda"}, {"num_workers": 1, **SPAWN}),
    ("shared_handle", "zipped", {}, {"num_workers": 4}),
    ("bad_image", "spoilt", {"how": "image"}, {"num_workers": 1}),
    ("shared_memory_full", "spoilt", {"how": "large"}, {"num_workers": 1, "batch_size": 32}),
    ("permission", "spoilt", {"how": "denied"}, {"num_workers": 1}),
    ("error", "spoilt", {"how": "raise"}, {"num_workers": 1}),
    ("process_killed", "kills_itself", {}, {}),
    ("process_crashed", "crashes", {}, {}),
    ("process_exited", "exits", {}, {}),
    ("hang", "hangs", {}, {}),
    ("target", "nobody", {}, {}),
)
SUITE = """\
name: tortured
dataset: {root: photos}
sweep: {num_workers: [0, 2]}
consumer: {kind: none}
measure: {rounds: 3, seconds: 0.3, verify: false}
"""


def failures(place: Path) -> Iterator[str]:
    """Provoke each kind of failure in a trial."""
    (place / "spoilt_targets.py").write_text(TARGETS)
    server = TrialServer()
    found = probe(server)
    runner = TrialRunner(server, describe_machine(server.method, found.gpus, found.not_measured))
    named, seen = 0, list[str]()
    yield "| provoked | named | said |"
    yield "| --- | --- | --- |"
    for kind, name, args, config in FAILURES:
        dataset = {"kind": "target", "target": f"spoilt_targets:{name}", "args": args}
        measure = {"seconds": 0.2, "timeout_s": 6.0 if kind == "hang" else 60.0}
        suite = Suite.model_validate({"dataset": dataset, "measure": measure, "consumer": {"kind": "none"}})
        planned = PlannedTrial(id="t", role="sweep", config={"batch_size": 4, **config}, round=1)
        trial = runner.run(TrialOrder(planned, suite, place, (), "none", place / f"log{len(seen)}")).trial
        seen.append(kind)
        told = trial.failure.kind if trial.failure else trial.status
        named += told == kind
        said = trial.failure.message.splitlines()[-1][:90] if trial.failure else ""
        yield f"| {kind} | {'yes' if told == kind else told} | {said.replace('|', '/')} |"
    kinds = len({kind for kind, *_ in FAILURES})
    yield f"\n{named} of {len(FAILURES)} named right, {kinds} kinds."


def started(place: Path, folder: str, *more: str) -> subprocess.Popen[bytes]:
    """Start a run in which Ctrl-C works as in a terminal."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"sys.argv[1:] = {['run', 's.yaml', '-q', *more] + ([] if '--resume' in more else ['--out', folder])!r};"
        "from loaderbench.__main__ import main; main()"
    )
    (place / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(place / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def shared_files() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("torch_*")}


def kills(place: Path, times: int, dice: random.Random) -> Iterator[str]:
    """Kill the parent with `kill -9`, then start again."""
    lost = alive = left = resumed = begun = 0
    for number in range(times):
        folder, before = f"kill{number}", shared_files()
        running = started(place, folder)
        deadline = time.monotonic() + dice.uniform(1.0, 12.0)
        children: dict[int, psutil.Process] = {}
        while time.monotonic() < deadline and running.poll() is None:
            children |= {child.pid: child for child in below(running.pid)}
            time.sleep(0.05)
        running.kill()
        running.wait()
        done = {trial.id for trial in _trials(place / folder) if trial.status == "completed"}
        begun += bool(done)
        _, still = psutil.wait_procs(list(children.values()), timeout=15)
        alive += sum(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in still)
        if (place / folder / "run.json").exists() and not read_run(place / folder).complete:
            started(place, folder, "--resume", folder).wait()
            run = read_run(place / folder)
            resumed += run.complete
            lost += len(done - {trial.id for trial in run.trials} - _later(done))
        else:  # it had not started, or had ended: the next start is another run
            started(place, f"after{number}", "--rounds", "1", "--no-verify", "--seconds", "0.1").wait()
        left += len(shared_files() - before) + len(_temporary(place / "tmp"))
    heads = "killed", "with trials", "completed trials lost", "processes alive", "files left after the next start"
    yield f"| {' | '.join(heads)} | resumed to the end |"
    yield "| --: | --: | --: | --: | --: | --: |"
    yield f"| {times} | {begun} | {lost} | {alive} | {left} | {resumed} |"


def _temporary(folder: Path) -> list[Path]:
    """Temporary files of loaderbench and multiprocessing; torch keeps a cache there."""
    return [*folder.glob("loaderbench-*"), *folder.glob("pymp-*")]


def _trials(folder: Path) -> list[Trial]:
    return readable_trials(folder)[0] if (folder / "trials.jsonl").exists() else []


def _later(ids: set[str]) -> set[str]:
    """Isolation trials, which are measured again."""
    return {name for name in ids if not (name.partition("-")[2].startswith("c") or name.endswith("-aa"))}


def interrupts(place: Path, times: int, dice: random.Random) -> Iterator[str]:
    """Send Ctrl-C at random times after the first trial has started."""
    wrong, took_s = [], []
    for number in range(times):
        folder = place / f"stop{number}"
        running = started(place, folder.name)
        while running.poll() is None and not (folder / "run.json").exists():
            time.sleep(0.02)
        time.sleep(dice.uniform(0.0, 10.0))
        finished = running.poll() is not None
        began = time.monotonic()
        if not finished:
            running.send_signal(signal.SIGINT)
        running.wait()
        took_s.append(0.0 if finished else time.monotonic() - began)
        fine = running.returncode == (0 if finished else 130) and (folder / "report.html").exists()
        read_run(folder)  # raises if it cannot be read
        if not fine:
            wrong.append(f"{folder.name}: code {running.returncode}")
    yield "| interrupted | not as it should be | seconds until the end: median | longest |"
    yield "| --: | --: | --: | --: |"
    yield f"| {times} | {len(wrong)} {'; '.join(wrong[:3])} | {statistics.median(took_s):.1f} | {max(took_s):.1f} |"


def many(place: Path, trials: int) -> Iterator[str]:
    """Report the parent's resources after a tenth of the trials, half and nearly all, half of them baseline twins."""
    (place / "many.yaml").write_text(
        "dataset: {kind: target, target: 'spoilt_targets:spoilt', args: {how: fine}}\n"
        "sweep: {batch_size: [4]}\nconsumer: {kind: none}\n"
        f"measure: {{rounds: {trials // 2}, seconds: 0.02, verify: false}}\n"
    )
    (place / "spoilt_targets.py").write_text(TARGETS)
    command = [sys.executable, "-m", "loaderbench", "run", "many.yaml", "--out", "many", "-q"]
    running = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL)
    parent, seen, file = psutil.Process(running.pid), list[tuple[int, int, int]](), place / "many" / "trials.jsonl"
    while running.poll() is None:
        try:
            done = file.read_bytes().count(b"\n") if file.exists() else 0
            seen.append((done, parent.memory_info().rss, parent.num_fds()))
        except psutil.Error:
            break
        time.sleep(0.2)
    most = max(done for done, _, _ in seen)
    yield "| trials done | resident memory of the parent | open files |"
    yield "| --: | --: | --: |"
    for share in (0.1, 0.5, 0.98):
        done, rss, files = next(row for row in seen if row[0] >= share * most)
        yield f"| {done} | {rss / 1e6:.0f} MB | {files} |"
    yield f"| {most}, while the page is drawn | {max(rss for _, rss, _ in seen) / 1e6:.0f} MB | {seen[-1][2]} |"


def main() -> int:
    """Run the requested experiments and print their tables."""
    asked = _arguments()
    _with_small_shared_memory()
    with TemporaryDirectory() as folder:
        place, dice = Path(folder), random.Random(asked.seed)
        generate_photos(place / "photos", images=24, classes=3)
        (place / "s.yaml").write_text(SUITE)
        tables: dict[str, Callable[[], Iterator[str]]] = {
            "failures": lambda: failures(place),
            "deaths": lambda: deaths(place, asked.times, dice),
            "kills": lambda: kills(place, asked.times, dice),
            "interrupts": lambda: interrupts(place, asked.times, dice),
            "many": lambda: many(place, asked.trials),
            "chaos": lambda: chaos(place, asked.seeds or _range(asked), asked.at_once, asked.keep),
        }
        for name in [asked.only] if asked.only else tables:
            for line in tables[name]():
                print(line, flush=True)
            print()
    return 0


def _with_small_shared_memory() -> None:
    """Restart with a /dev/shm of 64 MB, as in a container; continue unchanged if mounting is not allowed."""
    mount = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
    if (
        "TORTURE_SMALL" not in os.environ
        and subprocess.run(["unshare", "-m", *mount.split()], check=False).returncode == 0
    ):
        again = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, *sys.argv]
        os.execvpe("unshare", again, {**os.environ, "TORTURE_SMALL": "1"})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("failures", "deaths", "kills", "interrupts", "many", "chaos"))
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=_seeds, help="of chaos, in place of --times from --seed on: 623,903")
    parser.add_argument("--at-once", type=int, default=1, help="runs of chaos at a time, where mounts are allowed")
    parser.add_argument("--keep", type=Path, help="where the folders of what went wrong in chaos are kept")
    return parser.parse_args()


def _seeds(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _range(asked: argparse.Namespace) -> range:
    return range(asked.seed, asked.seed + asked.times)


if __name__ == "__main__":
    sys.exit(main())
