"""`loaderbench doctor`: check the machine as a loader sees it. Each line is ok, warn or bad, with the fix."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.errors import GateFailedError, MissingError, UsageError

if TYPE_CHECKING:
    from loaderbench.gpu_checkup.records import GpuCheck

_MARKS = {"passed": "ok", "warning": "warn", "failed": "bad", "not_checked": "warn"}


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", help="Also check GPU timing against known waits.")] = False,
    device: Annotated[str | None, typer.Option(metavar="cuda:N", help="GPU to check; default cuda:0.")] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for the results of --gpu; default loaderbench-gpu-<UTC time>.json; - is stdout.",
        ),
    ] = None,
) -> None:
    """Check this machine for problems, and print fixes."""
    if not gpu:
        if device is not None or out is not None:
            raise UsageError(f"{'--device' if device is not None else '--out'} needs --gpu")
        _raise_for(_check_machine())
        return
    _check_gpu(_index(device or "cuda:0"), out)


def _check_machine() -> list[str]:
    """Print a line for each check, and return the names of those that are bad."""
    from loaderbench.environment.checkup import check_machine, look_at_packages
    from loaderbench.monitors import count_gpus

    bad = []
    packages = replace(look_at_packages(), gpus_of_driver=count_gpus())
    for check in check_machine(packages):
        _print(check.state, check.name, check.said)
        if check.fix:
            print(f"      {check.fix}")
        sys.stdout.flush()
        bad += [check.name] if check.state == "bad" else []
    return bad


def _raise_for(bad: Sequence[str]) -> None:
    if bad:
        raise MissingError(f"must be fixed before a loader can be measured: {', '.join(bad)}")


def _check_gpu(index: int, out: str | None) -> None:
    """Check the machine and the GPU, and write the results to a file. A failed check raises `GateFailedError`.

    If the results go to stdout, the lines go to stderr.
    """
    from loaderbench.commands.outputs import STDOUT, Outputs, write_output
    from loaderbench.environment import describe_machine
    from loaderbench.gpu_checkup.document import document, document_json, passed
    from loaderbench.monitors import count_gpus
    from loaderbench.records import in_bytes
    from loaderbench.runner import TrialServer
    from loaderbench.runner.gpu_checks import check_gpu, find_gpu

    server = TrialServer()
    place = out or f"loaderbench-gpu-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}.json"
    Outputs(page=place).check()
    with redirect_stdout(sys.stderr) if place == STDOUT else nullcontext():
        bad = _check_machine()
        gpu = find_gpu(server, index)
        _print("ok", f"cuda:{index}", f"{gpu.name}, {in_bytes(gpu.memory_total_bytes)}")
        checks = []
        for check in check_gpu(server, gpu):
            _print(_MARKS[check.state], check.title, check.said)
            checks.append(check)
    environment = describe_machine(server.method, (gpu,), {}, gpus_of_driver=max(count_gpus(), 1))
    write_output("--out", place, document_json(document(environment, checks)))
    if place != STDOUT:
        print(f"Wrote {place}; it names no path, user or host of this machine")
    if not passed(checks):
        results = "these results" if place == STDOUT else place
        raise GateFailedError(f"{_failed(checks)}; please report it with {results}")
    _raise_for(bad)


def _failed(checks: Sequence[GpuCheck]) -> str:
    return "checks failed: " + ", ".join(check.title for check in checks if check.state == "failed")


def _print(mark: str, name: str, said: str) -> None:
    print(f"{mark:<5} {name}: {said}", flush=True)


def _index(device: str) -> int:
    """The number in `cuda:1`. Raises `UsageError`."""
    match = re.fullmatch(r"cuda(?::(\d{1,3}))?", device)
    if match is None:
        raise UsageError(f"--device {device}: expected cuda:N, e.g. cuda:1")
    return int(match[1] or 0)
