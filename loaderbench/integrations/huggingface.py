"""A callback for Hugging Face's `Trainer`: `Trainer(..., callbacks=[LoaderBenchCallback()])`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from transformers import TrainerCallback

from loaderbench.script.in_process import LoaderRecording


class LoaderBenchCallback(TrainerCallback):  # type: ignore[misc]
    """Records every `DataLoader` of a training, prints the verdict at its end and writes a run folder.

    `out` is the folder (default `reports/profile-<script>-<UTC time>`), written when the training ends. `steps` is the
    number of batches recorded per loader (default all). `Trainer` calls no callback after an exception; the recording
    is then written when the next training begins. Raises `UsageError` for invalid `steps`.
    """

    _under_way: ClassVar[LoaderRecording | None] = None

    def __init__(self, out: str | Path | None = None, steps: int | None = None) -> None:
        self._recording = LoaderRecording(out, steps)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start recording, before the first epoch begins."""
        if LoaderBenchCallback._under_way is not None:
            LoaderBenchCallback._under_way.finish()
        LoaderBenchCallback._under_way = self._recording
        self._recording.start()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Stop recording, and write the run folder."""
        LoaderBenchCallback._under_way = None
        self._recording.finish()
