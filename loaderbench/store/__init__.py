"""The run folder: written during the run, and read without executing anything in it."""

from loaderbench.store.parquet import BATCHES_FILE, batches_frame, note_without_parquet
from loaderbench.store.reading import (
    files_of,
    folder_of,
    measured_files,
    read_run,
    readable_timeline,
    readable_trials,
    timeline_frame,
    trials_frame,
)
from loaderbench.store.writing import (
    PAGE_FILE,
    RUN_FILE,
    TIMELINE_FILE,
    TRIALS_FILE,
    Store,
    new_run_folder,
    run_json,
)

__all__ = [
    "BATCHES_FILE",
    "PAGE_FILE",
    "RUN_FILE",
    "TIMELINE_FILE",
    "TRIALS_FILE",
    "Store",
    "batches_frame",
    "files_of",
    "folder_of",
    "measured_files",
    "new_run_folder",
    "note_without_parquet",
    "read_run",
    "readable_timeline",
    "readable_trials",
    "run_json",
    "timeline_frame",
    "trials_frame",
]
