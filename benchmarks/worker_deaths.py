"""How soon a trial ends when one of its workers dies, by a signal or an exit, after a random number of samples."""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer, probe
from loaderbench.suite import Suite

WAYS = ("SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGTERM", "exit 3", "exit 0")
TARGET = '''
import os, pathlib, signal, time
import torch

class Dying(torch.utils.data.Dataset):
    """The last worker notes the time and dies after so many samples."""
    def __init__(self, way, after, note): self.way, self.after, self.note, self.made = way, after, note, 0
    def __len__(self): return 100_000
    def __getitem__(self, index):
        worker = torch.utils.data.get_worker_info()
        self.made += 1
        if worker.id == worker.num_workers - 1 and self.made > self.after:
            pathlib.Path(self.note).write_text(str(time.monotonic()))
            if self.way.startswith("exit"): os._exit(int(self.way.split()[1]))
            os.kill(os.getpid(), getattr(signal, self.way))
        time.sleep(0.002)
        return torch.zeros(3)

def dying(way, after, note): return Dying(way, after, note)
'''


def deaths(place: Path, times: int, dice: random.Random) -> Iterator[str]:
    """Run a trial for each death; report the seconds from the death to the trial's end, and the failure's kind."""
    (place / "dying_target.py").write_text(TARGET)
    server = TrialServer()
    found = probe(server)
    runner = TrialRunner(server, describe_machine(server.method, found.gpus, found.not_measured))
    took_s: dict[str, list[float]] = defaultdict(list)
    named: dict[str, set[str]] = defaultdict(set)
    for number in range(times):
        way, note = WAYS[number % len(WAYS)], place / f"died{number}"
        args = {"way": way, "after": dice.randrange(400), "note": str(note)}
        dataset = {"kind": "target", "target": "dying_target:dying", "args": args}
        suite = Suite.model_validate({"dataset": dataset, "measure": {"seconds": 5}, "consumer": {"kind": "none"}})
        config = {"batch_size": dice.choice([1, 4, 16]), "num_workers": dice.randrange(1, 5)}
        planned = PlannedTrial(id="t", role="sweep", config=config, round=1)
        trial = runner.run(TrialOrder(planned, suite, place, (), "none", place / f"log{number}")).trial
        took_s[way].append(time.monotonic() - float(note.read_text()))
        named[way].add(trial.failure.kind if trial.failure else trial.status)
    yield "| death | trials | called | seconds until the trial ended: median | longest |"
    yield "| --- | --: | --- | --: | --: |"
    for way, seconds in took_s.items():
        kinds = ", ".join(sorted(named[way]))
        yield f"| {way} | {len(seconds)} | {kinds} | {statistics.median(seconds):.2f} | {max(seconds):.2f} |"
