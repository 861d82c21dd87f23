"""The recording of `loaderbench profile`, started and finished by the script itself."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from loaderbench.errors import LoaderbenchError, UsageError
from loaderbench.profiler.profiler import checked_number
from loaderbench.ranks import rank_of_training
from loaderbench.script.hook import RecordedKind, is_recorded
from loaderbench.script.hosts import find_machines
from loaderbench.script.order import RecordOrder
from loaderbench.script.recording import SENT, read_recordings
from loaderbench.script.run_folders import RecordedLoader, make_run_folder, write_run_folders
from loaderbench.stderr import say

_AGAIN = "this script is already recorded; its callback does nothing"


class LoaderRecording:
    """Records the epochs of all loaders from `start` to `finish`, which writes a run folder.

    `out` is that folder, by default a new one under `reports/`. `steps` is the number of batches recorded for each
    loader. Under torchrun, rank 0 writes one folder for all ranks; under another launcher, each rank writes a folder
    with its number in the name. No exception reaches the training: errors are printed as one line on stderr. If a
    script ends without `finish`, the recording is still written. Raises `UsageError` for invalid `steps`.
    """

    def __init__(self, out: str | Path | None = None, steps: int | None = None, *, quiet: bool = False) -> None:
        self._out, self._quiet = out, quiet
        self._steps = None if steps is None else checked_number("steps", steps, 1)
        self._recorded: RecordedKind | None = None
        self._folder: Path | None = None
        self._rank: int | None = None
        self._pid = 0

    def start(self) -> None:
        """Start recording. A second call does nothing."""
        from torch.utils.data import DataLoader

        if self._recorded is not None:
            return
        if is_recorded(DataLoader):
            say(_AGAIN)
            return
        self._rank, self._pid = rank_of_training(), os.getpid()
        try:
            self._folder = Path(mkdtemp(prefix="loaderbench-callback-"))
        except OSError as error:
            say(f"cannot record: {error.strerror or error}; the training continues")
            return
        order = RecordOrder(folder=str(self._folder), python_path=None, steps=self._steps)
        self._recorded = RecordedKind(DataLoader, order)
        self._recorded.change()
        atexit.register(self.finish)

    def finish(self) -> Sequence[RecordedLoader]:
        """Stop recording and write the run folder. Does nothing unless `start` was called."""
        if self._recorded is None or self._folder is None or os.getpid() != self._pid:  # or in a forked child
            return []
        recorded, self._recorded = self._recorded, None
        atexit.unregister(self.finish)
        recorded.finish()
        try:
            if (self._folder / SENT).exists():  # rank 0 writes this rank's recordings
                return []
            found = write_run_folders(read_recordings(self._folder), self._run_folder())
        except Exception as error:
            say(str(error) if isinstance(error, LoaderbenchError | OSError) else f"cannot write: {error!r}")
            return []
        finally:
            rmtree(self._folder, ignore_errors=True)
        if not self._quiet:
            _print(found)
        return found

    def _run_folder(self) -> Path:
        """Create `out`, or a new folder if `out` already contains a run."""
        of_rank = "" if self._rank is None or find_machines(alone=True) else f"-rank{self._rank}"
        name = f"profile-{Path(next(iter(sys.argv), '') or 'python').stem}{of_rank}"
        try:
            return make_run_folder(name, None if self._out is None else Path(f"{self._out}{of_rank}"))
        except UsageError as error:
            if self._out is None:
                raise
            say(str(error).partition(";")[0] + "; the run is written to a new folder")
            return make_run_folder(name, None)


def _print(found: Sequence[RecordedLoader]) -> None:
    from rich.console import Console

    from loaderbench.script.summary import print_loaders

    print_loaders(found, Console(stderr=True))
