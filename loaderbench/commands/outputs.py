"""Outputs in addition to the run folder: files that flags name, or stdout; and lines about slow steps on stderr."""

from __future__ import annotations

import errno
import os
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.errors import UsageError
from loaderbench.stderr import say

if TYPE_CHECKING:
    from rich.console import Console

    from loaderbench.records import GateResult, RunRecord
    from loaderbench.result import Run


STDOUT = "-"
VERBOSE = "-v"

JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write run.json to FILE, too; - is stdout.")
]
MarkdownFile = Annotated[
    str | None, typer.Option("--md", metavar="FILE", help="Write a Markdown comment; - is stdout.")
]

PerfettoFile = Annotated[
    Path | None,
    typer.Option("--perfetto", metavar="FILE", help="Write a trace for ui.perfetto.dev; FILE.gz is compressed."),
]

SpeedscopeFile = Annotated[
    Path | None,
    typer.Option("--speedscope", metavar="FILE", help="Write stack samples of your loading code, for speedscope.app."),
]


@dataclass(frozen=True)
class Outputs:
    """The files that flags name; `page` is that of `--out`, if that is not a run folder. A path `-` is stdout."""

    json: str | None = None
    md: str | None = None
    junit: Path | None = None
    perfetto: Path | None = None
    speedscope: Path | None = None
    page: str | None = None

    @property
    def to_stdout(self) -> bool:
        """Whether a result goes to stdout, which leaves no room for a summary."""
        return STDOUT in {self.json, self.md, str(self.junit), self.page}

    def check(self, *, folder: Path | None = None, runs: Sequence[Path] = (), inputs: Sequence[Path] = ()) -> None:
        """Check before measuring that each output can be written, and that no two share a file. Raises `UsageError`.

        `folder` is the run folder to be created or continued. `runs` and `inputs` are the runs and the other files that
        the command reads.
        """
        given = self.given()
        for flag in ("--perfetto", "--speedscope"):
            if given.get(flag) == STDOUT:
                raise UsageError(f"{flag} -: this result cannot go to stdout; name a file")
        files = {flag: place if place == STDOUT else os.path.realpath(place) for flag, place in given.items()}
        for flag, place in given.items():
            keep_runs(f"{flag} {place}", files[flag], runs)
            _keep_files(f"{flag} {place}", files[flag], folder, inputs)
            if same := [f"{other} {given[other]}" for other in given if files[other] == files[flag] and other != flag]:
                raise UsageError(f"{flag} {place} and {same[0]}: two results cannot share one file; change one of them")
            is_made = folder is not None and not folder.exists() and Path(files[flag]).parent == folder.resolve()
            if place != STDOUT and not is_made:
                with writing(f"{flag} {place}"):
                    _try_to_write(Path(place))

    def given(self) -> dict[str, str]:
        """The places by flag, without flags that were not given."""
        places: dict[str, str | Path | None] = {
            "--json": self.json,
            "--md": self.md,
            "--junit": self.junit,
            "--perfetto": self.perfetto,
            "--speedscope": self.speedscope,
            "--out": self.page,
        }
        return {flag: str(place) for flag, place in places.items() if place is not None}

    def write_texts(self, run: Run, markdown: str | None = None) -> None:
        """Write the JSON and the Markdown of a run, or other Markdown. Raises `UsageError`."""
        from loaderbench.store import run_json

        if self.json is not None:
            write_output("--json", self.json, run_json(run.record) + "\n")
        if self.md is not None:
            write_output("--md", self.md, run.to_markdown() if markdown is None else markdown)

    def write_junit(self, run: RunRecord, gates: Sequence[GateResult] = ()) -> None:
        """Write gates and trials as JUnit XML. Raises `UsageError`."""
        from loaderbench.report.junit import render_junit

        if self.junit is not None:
            write_output("--junit", str(self.junit), render_junit(run, gates))

    def say_unwritten(self, why: str) -> None:
        """Print a line on stderr for each file that was asked for, although the command is quiet."""
        say(*(f"{flag} {place}: not written: {why}" for flag, place in self.given().items()))

    def write_perfetto(self, run: Run) -> None:
        """Write the trace of a run. Raises `UsageError`, also if no batches were recorded."""
        if self.perfetto is not None:
            with writing(f"--perfetto {self.perfetto}"):
                run.to_perfetto(self.perfetto)

    def write_perfetto_if_any(self, run: Run) -> None:
        """Write the trace of a run. If none can be drawn, print the reason and leave no file. Raises `UsageError`."""
        if self.perfetto is not None:
            _write_or_say("--perfetto", self.perfetto, run.to_perfetto)

    def write_speedscope(self, run: Run) -> None:
        """Write the stack samples of a run. Without any, print the reason and leave no file. Raises `UsageError`."""
        if self.speedscope is not None:
            _write_or_say("--speedscope", self.speedscope, run.to_speedscope)


def _write_or_say(flag: str, place: Path, write: Callable[[Path], object]) -> None:
    """Write a result, or print why a run lacks it. Raises `UsageError` if the file cannot be written."""
    with writing(f"{flag} {place}"):
        try:
            write(place)
        except UsageError as error:
            say(f"{flag} {place}: {error}")
            if place.exists() and not place.stat().st_size:
                place.unlink()


def keep_runs(what: str, place: str, runs: Sequence[Path]) -> None:
    """Raise `UsageError`, with a message that begins with `what`, if a result would replace a run's measurements.

    `runs` are those that the command reads; a run folder that holds `place` is kept, too.
    """
    from loaderbench.store import TRIALS_FILE, measured_files

    holds = Path(os.path.realpath(place)).parent
    every = [*runs, *([holds] if (holds / TRIALS_FILE).exists() else [])]
    kept = {os.path.realpath(file) for run in every for file in measured_files(run)}
    if place != STDOUT and os.path.realpath(place) in kept:
        raise UsageError(f"{what}: would replace what was measured; choose another file")


def _keep_files(what: str, place: str, folder: Path | None, inputs: Sequence[Path]) -> None:
    """Raise `UsageError` if a result would replace a file of the command's run folder, or one that it reads."""
    from loaderbench.store import files_of

    own = {os.path.realpath(file) for file in ([folder, *files_of(folder)] if folder else ())}
    if place in own:
        raise UsageError(f"{what}: the run writes to this path itself; choose another file")
    if place in {os.path.realpath(file) for file in inputs}:
        raise UsageError(f"{what}: would replace a file that this command reads; choose another file")
    if place.endswith(".py") and Path(place).exists():
        raise UsageError(f"{what}: would replace a Python file; choose another file")


def _try_to_write(file: Path) -> None:
    """Raise `OSError` if the file cannot be written. No empty file is left behind.

    A pipe or device is opened only for the result: its reader may not be ready yet, and would take closing it for the
    end.
    """
    if file.is_fifo() or file.is_char_device():  # `/dev/stdout`, or a shell's process substitution `>(...)`
        if not os.access(file, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    target = file.resolve()  # keep a symbolic link, even a dangling one
    was_there = target.exists()
    target.open("a").close()
    if not was_there:
        target.unlink()


def write_output(flag: str, place: str, text: str) -> None:
    """Write text to a file or to stdout, always in UTF-8. Raises `UsageError`."""
    if place == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        return
    with writing(f"{flag} {place}"):
        Path(place).write_text(text, encoding="utf-8")


def load_to_show(place: Path) -> Run:
    """Load a saved run with this version's conclusions. Print a line on stderr for each unreadable file."""
    from loaderbench.result import load_concluded

    saved = load_concluded(place)
    say(*saved.unreadable)
    return saved


def make_console() -> Console:
    """The console that prints the summary to stdout. Raises `BrokenPipeError` if the reader is gone."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, the code of a failed gate

    return Pipe()


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Convert an `OSError` while writing to a one-line `UsageError` that begins with `what`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: cannot write: {error.strerror or error}") from None


def show_page(page: Path) -> None:
    """Open a report in a browser. What the browser prints goes to stderr, because a result may be on stdout."""
    sys.stdout.flush()
    own = os.dup(1)
    try:
        os.dup2(2, 1)
        webbrowser.open(page.absolute().as_uri())
    finally:
        os.dup2(own, 1)
        os.close(own)


FIRST_S, AGAIN_S = 2.0, 10.0


@contextmanager
def said_if_slow(what: str, *, first_s: float = FIRST_S, again_s: float = AGAIN_S) -> Iterator[None]:
    """Print a line if the body takes longer than `first_s`, and another one every `again_s`."""
    ended = Event()
    thread = Thread(target=_say_until, args=(ended, what, first_s, again_s), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _say_until(ended: Event, what: str, first_s: float, again_s: float) -> None:
    wait_s, elapsed_s = first_s, 0.0
    while not ended.wait(wait_s):
        elapsed_s += wait_s
        print(f"{what}: {elapsed_s:.0f} s so far; Ctrl-C stops", file=sys.stderr, flush=True)
        wait_s = again_s
