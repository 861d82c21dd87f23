"""Targets that a trial runs in a process of its own, and how a test runs one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from loaderbench.records import PlannedTrial, Trial
from loaderbench.runner import TrialOrder, TrialOutcome, TrialRunner
from loaderbench.suite import Suite

TARGETS = """
import os, signal, subprocess, sys, threading, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Numbers(Dataset):
    def __init__(self, spoil=None): self.spoil = spoil
    def __len__(self): return 64
    def __getitem__(self, index):
        time.sleep(0.001)
        if self.spoil == "lock": lock = threading.Lock(); lock.acquire(); lock.acquire()
        if self.spoil == "raise": raise ValueError("planted in a worker")
        if self.spoil == "leaves" and index > 20: raise SystemExit(3)
        if self.spoil == "unsendable":
            class Local(Exception): pass
            raise Local("cannot be sent")
        if self.spoil == "shapes": return torch.zeros(1 + index % 3)
        if self.spoil == "kill_worker": os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(3), index

class Stream(IterableDataset):
    def __iter__(self): yield from range(10_000)

def numbers(spoil=None): return Numbers(spoil)
def stream(): return Stream()
def announced(place): open(f"{place}/started-{os.getpid()}", "w").close(); return Numbers()
def loader(batch_size): return DataLoader(Numbers(), batch_size=batch_size)
def unbatched(): return DataLoader(Images(), batch_size=None)
def generator(): return (torch.zeros(5) for _ in range(100_000))
def stands_still(): subprocess.Popen(["sleep", "1234.{OWN}"]); time.sleep(1000)
def kills_itself(): os.kill(os.getpid(), signal.SIGKILL)
def exits(): print("last words", file=sys.stderr, flush=True); os._exit(7)
def not_a_loader(): return 3
def leaves_a_child(): subprocess.Popen(["sleep", "4321.{OWN}"], start_new_session=True); return Numbers()

class Images(Numbers):
    def __getitem__(self, index): return torch.zeros(3, 32, 32), index

class Heavy(Numbers):
    held = None
    def __getitem__(self, index):
        if self.held is None: self.held = bytearray(os.urandom(1024)) * 60_000
        return super().__getitem__(index)

def heavy(): return Heavy()
def step(batch): time.sleep(0.01)
def slow_step(batch, pause_s=0.0): time.sleep(pause_s)
def step_of_size(batch, batch_size): time.sleep(0.1 if len(batch[0]) == batch_size else 0.0)
def makes_step_of_size(batch_size): return lambda batch: step_of_size(batch, batch_size)
def make_step(): return step
""".replace("{OWN}", str(os.getpid()))


def run(
    runner: TrialRunner,
    place: Path,
    dataset: dict[str, Any],
    config: dict[str, Any],
    consumer: Any = None,
    loader: dict[str, Any] | None = None,
    **measure: Any,
) -> TrialOutcome:
    (place / "lb_runner_targets.py").write_text(TARGETS)
    suite = Suite.model_validate(
        {
            "dataset": dataset,
            "loader": loader or {},
            "measure": {"seconds": 0.2, **measure},
            "consumer": consumer or {"kind": "none"},
        }
    )
    planned = PlannedTrial(id="r1-c00", role="sweep", config=config, round=1)
    return runner.run(TrialOrder(planned, suite, place, (), suite.consumer.kind, place / "log"))


def target(name: str, **args: Any) -> dict[str, Any]:
    return {"kind": "target", "target": f"lb_runner_targets:{name}", "args": args}


def completed(outcome: TrialOutcome) -> Trial:
    assert outcome.trial.failure is None
    assert outcome.trial.status == "completed"
    return outcome.trial
