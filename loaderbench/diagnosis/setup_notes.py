"""What to change in the configuration or the machine, although the numbers are as certain as without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loaderbench.diagnosis.gpu_warnings import gpu_setup_notes
from loaderbench.records import Measured, Trial


def find_setup_notes(trials: Sequence[Trial], measured: Measured) -> Iterator[str]:
    """Yield the notes, each once. The loader of a profile was made by the user's script, not by a suite."""
    if measured.kind != "profile":
        yield from dict.fromkeys(note for trial in trials if (note := _unshuffled(trial, measured.loader)))
    yield from gpu_setup_notes(trials, measured.environment)


def _unshuffled(trial: Trial, loader: Mapping[str, Any]) -> str | None:
    """A stream that a suite asks to shuffle. torch refuses to, so trials leave `shuffle` out."""
    asked, stream = trial.config.get("shuffle", loader.get("shuffle")), trial.dataset_traits.get("stream")
    if asked is not True or stream is None or "loader" in trial.dataset_traits:
        return None
    return (
        f"shuffle=true has no effect: {stream} is an IterableDataset, which a DataLoader cannot shuffle; "
        "shuffle inside it"
    )
