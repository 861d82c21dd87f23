"""A callback for Lightning: `Trainer(callbacks=[LoaderBenchCallback()])`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:  # the older name of the package
    from pytorch_lightning import Callback

from loaderbench.script.in_process import LoaderRecording


class LoaderBenchCallback(Callback):  # type: ignore[misc]
    """Records every `DataLoader` of a fit, prints the verdict at its end and writes a run folder.

    `out` is the folder (default `reports/profile-<script>-<UTC time>`), written when the fit ends or raises. `steps` is
    the number of batches recorded per loader (default all). Raises `UsageError` for invalid `steps`.
    """

    def __init__(self, out: str | Path | None = None, steps: int | None = None) -> None:
        super().__init__()
        self._recording = LoaderRecording(out, steps)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - Lightning's signature
        """Start recording, before Lightning begins an epoch."""
        if stage == "fit":
            self._recording.start()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002
        """Stop recording, and write the run folder."""
        if stage == "fit":
            self._recording.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Write what was recorded before the exception."""
        self._recording.finish()
