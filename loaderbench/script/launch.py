"""Runs a script like Python would, and records every epoch of its loaders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

from loaderbench.errors import MissingError
from loaderbench.script.launcher import read_failure, said_if_late
from loaderbench.script.live import LiveTo, followed, open_trackers
from loaderbench.script.order import LIVE_SAVE_S, LONGEST_SAVE_S, RecordOrder, own_python_path
from loaderbench.script.recorded_processes import begun_pids, has_lost, wait_for_last_saves
from loaderbench.script.recording import SENT, Recording, read_recordings
from loaderbench.stderr import say

if TYPE_CHECKING:
    from loaderbench.script.tuner import TunedLoader

LAST_SAVE_S = 15.0
"""Seconds to wait for last saves. A cluster allows a job 30 s to end (default of Slurm and Kubernetes)."""

_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


@dataclass(frozen=True, kw_only=True)
class ScriptEnd:
    """How a script ended, and what was recorded. A negative `code` is the number of the signal that ended it.

    `tuned` is `None` if no loader was tuned, and `untuned` gives the reason if a rank refused to tune. `sent_to` is the
    machine of rank 0, if ranks of this machine sent their recordings there. `begun`: a loader was iterated over,
    whether or not any recording was saved. `lost`: a process ended before its last save. `failure` says why a launcher
    could start no rank, or why a rank got no GPU.
    """

    code: int
    recordings: tuple[Recording, ...]
    tuned: TunedLoader | None = None
    untuned: str = ""
    sent_to: str = ""
    begun: bool = False
    lost: bool = False
    failure: str = ""


def python_command(script: Sequence[str], *, module: bool = False) -> list[str]:
    """The command that runs a script, or a module with `-m`, in this interpreter."""
    return [sys.executable, *(["-m"] if module else []), *script]


@dataclass(frozen=True)
class Tuning:
    """Tune the training loader for `budget_s` seconds into a run folder, then let the script continue or end it.

    `quiet`: do not announce the tuning.
    """

    budget_s: float
    folder: Path
    keep_training: bool
    quiet: bool = False


def run_script(
    command: Sequence[str],
    *,
    steps: int | None = None,
    seconds: float | None = None,
    launcher: bool = False,
    tuning: Tuning | None = None,
    live: Sequence[LiveTo] = (),
) -> ScriptEnd:
    """Run a command and wait until it ends. With `launcher`, the command is a program that starts Python processes.

    The trackers in `live` receive numbers while it runs. Raises `MissingError` if the command does not exist, and
    passes on the error of a tracker that cannot be opened.
    """
    with TemporaryDirectory(prefix="loaderbench-profile-", ignore_cleanup_errors=True) as folder:
        order = RecordOrder(
            folder=folder,
            python_path=own_python_path(),
            steps=steps,
            seconds=seconds,
            inherited=launcher,
            tune_s=tuning.budget_s if tuning else None,
            tune_folder=str(tuning.folder.absolute()) if tuning else "",
            keep_training=tuning is not None and tuning.keep_training,
            quiet=tuning is not None and tuning.quiet,
            longest_save_s=LIVE_SAVE_S if live else LONGEST_SAVE_S,
        )
        code, place = _run(command, order, live), Path(folder)
        tuned = _read_tuned(place) if tuning else None
        sent_to = (place / SENT).read_text() if (place / SENT).exists() else ""
        found, begun = tuple(read_recordings(place)), bool(begun_pids(place))
        return ScriptEnd(
            code=code,
            recordings=found,
            tuned=tuned,
            untuned=_why_untuned(place) if tuning else "",
            sent_to=sent_to,
            begun=begun,
            lost=has_lost(place),
            failure=read_failure(place),
        )


def _read_tuned(folder: Path) -> TunedLoader | None:
    """Read the tuning result. The import is local because tuning modules must not be loaded before a script."""
    from loaderbench.script.tuner import read_tuned

    return read_tuned(folder)


def _why_untuned(folder: Path) -> str:
    from loaderbench.script.tuning_ranks import NOT_ALL, REFUSED, SEVERAL, all_take_batches

    return SEVERAL if (folder / REFUSED).exists() else "" if all_take_batches(folder) else NOT_ALL


def _run(command: Sequence[str], order: RecordOrder, live: Sequence[LiveTo]) -> int:
    environment, trackers = order.environment(), open_trackers(live)  # the script gets no variables of trackers
    with followed(Path(order.folder), trackers), _signals_left_to_the_script() as children:
        try:
            child = subprocess.Popen(command, env=environment, close_fds=False)  # a shell passes `<(command)` as one
        except OSError as error:
            raise MissingError(f"{command[0]}: {error.strerror or error}") from None
        children.append(child)
        with said_if_late(Path(order.folder)) if order.inherited else nullcontext():
            code = child.wait()
        if order.inherited:
            _wait_for_ranks(Path(order.folder))
        return code


def _wait_for_ranks(folder: Path) -> None:
    """Let processes that the script did not wait for save their recordings."""
    left = wait_for_last_saves(folder, LAST_SAVE_S)
    if left:
        processes = "1 process of the script is" if left == 1 else f"{left} processes of the script are"
        say(f"{processes} still running; the report contains what was saved so far")


@contextmanager
def _signals_left_to_the_script() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Forward signals sent to this process only, and leave it to the script to handle them.

    Signals that are already ignored, as under `nohup`, stay ignored for the script.
    """
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not _shares_terminal():
            for child in children:
                child.send_signal(number)

    numbers = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heard}
    try:
        yield children
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # the handler was not set from Python
                signal.signal(number, handler)


def _shares_terminal() -> bool:
    """Whether Ctrl-C in a terminal reaches this process, and therefore the script as well."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
