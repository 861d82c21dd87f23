"""Turns a script's recordings into run folders: one for the main loader, with the others inside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from loaderbench.conclusion import conclude
from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.errors import LoaderbenchError, UsageError
from loaderbench.new_files import free_place
from loaderbench.recorder.ranks import RankRun, merge_ranks
from loaderbench.report.index import update_index
from loaderbench.result import Run
from loaderbench.script.recording import MOST_LOADERS, Recording
from loaderbench.store import PAGE_FILE, Store, new_run_folder, note_without_parquet


@dataclass(frozen=True)
class RecordedLoader:
    """A loader of the script: where the script iterates over it, and its run.

    `note` says how long its loop waits for other loaders, or the script for this one; empty if that is little.
    """

    place: str
    run: Run
    folder: Path
    note: str = ""

    @property
    def page(self) -> Path:
        """The path of the report."""
        return self.folder / PAGE_FILE


def make_run_folder(name: str, out: Path | None) -> Path:
    """Create an empty folder, before a script runs for hours. Raises `UsageError` if that fails."""
    folder = out or new_run_folder(name)
    try:
        folder = _new_folder(name) if out is None else out
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder}: folder exists and is not empty; choose a new one with --out")
    except OSError as error:
        raise UsageError(f"{folder}: cannot write: {error.strerror or error}") from None
    return folder


@contextmanager
def kept_if_started(folder: Path) -> Iterator[None]:
    """Remove the empty folder if the script is not started."""
    try:
        yield
    except LoaderbenchError:
        with suppress(OSError):
            folder.rmdir()
        raise


def _new_folder(name: str) -> Path:
    """Create a new folder, distinct from that of a command that starts in the same second."""
    new_run_folder(name).parent.mkdir(parents=True, exist_ok=True)
    while True:
        folder = new_run_folder(name)
        with suppress(FileExistsError):
            folder.mkdir()
            return folder


def write_run_folders(recordings: Sequence[Recording], folder: Path) -> list[RecordedLoader]:
    """Conclude and write each loader's run; the first is the loader in whose loop the script spent most of its time.

    If that loop waits for other loaders rather than for its own, the first is instead the loader with the longest wait.
    With more than `MOST_LOADERS`, a note on the first gives the number of loaders left out and their share of the time.

    An empty folder is removed if there is nothing to write. If the script has written files there, runs go into a new
    folder within it. Raises `UsageError` if the folder cannot be written.
    """
    if not recordings:
        with suppress(OSError):
            folder.rmdir()
        return []
    if folder.exists() and any(folder.iterdir()):
        folder = free_place(folder / "loaderbench")
    found = _main_first([*_of_jobs(recordings)])
    (main, *others), left_out = found[:MOST_LOADERS], found[MOST_LOADERS:]
    longer = _note_on_longer_waits(main, others, found)
    written = [_write(main, folder, on_others=[_note_on_left_out(left_out, found), *longer.values()])]
    written += [
        _write(recording, free_place(folder / _slug(recording)), on_wait=longer.get(recording.place, ""))
        for recording in others
    ]
    update_index(folder)
    return written


def _main_first(found: Sequence[Recording]) -> Sequence[Recording]:
    """Recordings sorted by loop time; by wait, if the loop with the most time waits for other loaders."""
    by_time = sorted(found, key=lambda one: -one.took_s)
    return sorted(found, key=lambda one: -one.waited_s) if by_time[0].waits_for_others else by_time


def _of_jobs(recordings: Sequence[Recording]) -> Iterator[Recording]:
    """One recording per loader, with all its ranks merged.

    A line can make several loaders of one name. The first of a rank is merged with the first of the others, and so on.
    """
    counts = Counter[tuple[str, str, int]]()
    by_loader: dict[tuple[str, str, int], dict[int, Recording]] = {}
    for one in recordings:
        if one.rank is None:
            yield one
            continue
        key = (one.name, one.place, one.rank)
        by_loader.setdefault((one.name, one.place, counts[key]), {})[one.rank] = one
        counts[key] += 1
    yield from map(_merged, by_loader.values())


def _merged(ranks: Mapping[int, Recording]) -> Recording:
    """The recording of a loader in all ranks."""
    found = [RankRun(rank, one.measured, one.readings, one.steps) for rank, one in ranks.items()]
    first = next(iter(ranks.values()))
    measured, readings = merge_ranks(found, first.ranks)
    main = measured.trials[0].rank
    return Recording(
        name=first.name,
        place=first.place,
        rank=main if len(ranks) == 1 else None,
        measured=measured,
        readings=readings,
        others_share=first.others_share if main is None else ranks[main].others_share,
    )


def _write(recording: Recording, folder: Path, *, on_wait: str = "", on_others: Sequence[str] = ()) -> RecordedLoader:
    note = "; ".join(filter(None, (_note_on_others(recording), on_wait)))
    notes = (*recording.measured.notes, *filter(None, [note, *on_others]), *note_without_parquet())
    run = Run(conclude(replace(recording.measured, notes=notes)), recording.readings, folder)
    store = Store(folder)
    try:
        store.keep_only(run.record.trials)
        store.write_run(run.record)
        store.write_timeline(run.readings)
        store.write_page(run.to_html())
    finally:
        store.close()
    return RecordedLoader(recording.place, run, folder, note)


def _note_on_others(recording: Recording) -> str:
    share = recording.others_share
    return f"{share:.0%} of its step time is waiting for other loaders" if share >= NOTICED else ""


def _note_on_longer_waits(main: Recording, others: Sequence[Recording], found: Sequence[Recording]) -> dict[str, str]:
    """By place, a note on each loader that the script waits for longer than for the main one, if that is noticeable."""
    all_s = sum(one.took_s for one in found) or 1.0
    return {
        one.place: f"the script waits for {one.name} for {one.waited_s / all_s:.0%} of the time in its loops, "
        f"for {main.name} for {main.waited_s / all_s:.0%}"
        for one in others
        if one.waited_s >= NOTICED * all_s and one.waited_s > main.waited_s
    }


def _note_on_left_out(left_out: Sequence[Recording], found: Sequence[Recording]) -> str:
    if not left_out:
        return ""
    share = sum(one.took_s for one in left_out) / (sum(one.took_s for one in found) or 1.0)
    return f"{len(found):,} loaders recorded; no report for {len(left_out):,} with the least time ({share:.0%} of all)"


def _slug(recording: Recording) -> str:
    rank = "" if recording.rank is None else f"-rank{recording.rank}"
    return recording.folder_name + rank
