"""`loaderbench attach`: watch a running training from outside, and print what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.gates import JunitFile
from loaderbench.commands.options import HideProgress, OpenPage, finite
from loaderbench.commands.outputs import JsonFile, MarkdownFile, Outputs, SpeedscopeFile, make_console, show_page
from loaderbench.commands.scripts import write_copies
from loaderbench.ending_signals import signals_put_off
from loaderbench.errors import Interrupted, NoMeasurementError
from loaderbench.stderr import say

if TYPE_CHECKING:
    from loaderbench.attach.job import Training
    from loaderbench.attach.measured import Seen
    from loaderbench.script.recording import Recording


def attach(
    pid: Annotated[int, typer.Argument(metavar="PID", help="Any process of the training job.")],
    seconds: Annotated[
        float, typer.Option(metavar="S", min=2, max=3600, callback=finite, help="Seconds to watch.")
    ] = 10,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/attach-<PID>-<UTC time>.")
    ] = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
    speedscope: SpeedscopeFile = None,
    open_page: OpenPage = False,
    quiet: HideProgress = False,
) -> None:
    """Watch a running training job from outside and find out what it waits for.

    The job is not changed or restarted. With py-spy installed, the report also names lines of your code.
    """
    from loaderbench.attach.attach import look_at
    from loaderbench.attach.job import find_trainings
    from loaderbench.script.run_folders import make_run_folder, write_run_folders
    from loaderbench.script.summary import print_loaders

    trainings = find_trainings(pid)
    outputs = Outputs(json_file, md_file, junit, speedscope=speedscope)
    outputs.check(folder=out)
    folder = make_run_folder(f"attach-{pid}", out)
    if not quiet:
        say(f"watching {_named(trainings)} for {seconds:g} s")
    seen = look_at(trainings, seconds)
    for one in seen:
        if one.stopped and one.stopped_by is None:
            say(f"{one.training}: {one.stopped}")
    with signals_put_off():
        loaders = write_run_folders([_recording(one, len(trainings)) for one in seen], folder)
        if loaders:
            write_copies(loaders[0].run, outputs, after_script=False)
        if not outputs.to_stdout:
            print_loaders(loaders, make_console())
    if loaders and open_page:
        show_page(loaders[0].page)
    if seen[0].stopped_by is not None:
        raise Interrupted(f"loaderbench: interrupted; results so far: {folder}", seen[0].stopped_by)
    if all(trial.status == "failed" for one in loaders for trial in one.run.trials):
        raise NoMeasurementError(f"process {pid} ended before it could be read twice; attach while the training runs")


def _named(trainings: Sequence[Training]) -> str:
    """Processes by pid: `process 12`, `process 12, 4 ranks`, or `processes 12, 34` without ranks."""
    if len(trainings) > 1 and trainings[0].rank is None:
        return f"processes {', '.join(str(one.pid) for one in trainings)}"
    ranks = f", {len(trainings)} ranks" if len(trainings) > 1 else ""
    return f"process {trainings[0].pid}{ranks}"


def _recording(seen: Seen, ranks: int) -> Recording:
    """Create the recording of a training, or of one of its `ranks` ranks."""
    from loaderbench.attach.measured import measured_of
    from loaderbench.script.recording import Recording

    pid, rank = seen.training.pid, seen.training.rank
    measured, readings = measured_of(seen, f"attach {pid}")
    place = f"process {pid}" if rank is None else f"{ranks} ranks"
    of_job = None if rank is None else seen.training.ranks
    return Recording(name="process", place=place, rank=rank, measured=measured, readings=readings, ranks=of_job)
