"""A run in the user's program."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loaderbench.conclusion import conclude, with_judgements
from loaderbench.records import Comparison, Readings, RunRecord, Trial
from loaderbench.report.document import build_document
from loaderbench.report.html import notebook_html, render_html
from loaderbench.report.markdown import render_markdown
from loaderbench.report.model import Document
from loaderbench.report.perfetto import chrome_trace, write_trace
from loaderbench.report.speedscope import write_speedscope
from loaderbench.report.terminal import print_summary
from loaderbench.statistics.calibrating import calibration_of
from loaderbench.statistics.comparison import compare_runs
from loaderbench.store import (
    TRIALS_FILE,
    batches_frame,
    folder_of,
    read_run,
    readable_timeline,
    readable_trials,
    run_json,
    timeline_frame,
    trials_frame,
)

if TYPE_CHECKING:
    import pandas as pd

_WIDTH = 100  # columns of the printed summary


class Run:
    """A measured run, read with `load` or returned by `run` and `Profiler.result`.

    Every field of `run.json` is an attribute. Those used most: `verdict`, `best`, `baseline`, `configurations`,
    `trials`, `recommendations` (the fixes), `warnings`, `not_measured`, `environment` and `plan`. Units are in their
    names. `print(run)` shows the verdict, the fixes and the table; in a notebook the run shows itself.
    """

    def __init__(
        self,
        record: RunRecord,
        readings: Readings | None = None,
        folder: Path | None = None,
        unreadable: tuple[str, ...] = (),
    ) -> None:
        self.record = record
        self.unreadable = unreadable
        """A line for each file that cannot be read, or not entirely."""
        self.folder = folder
        self.readings = Readings() if readings is None else readings
        """Monitor readings and kept batches, by trial."""

    def batches_to_dataframe(self) -> pd.DataFrame:
        """Return one row per recorded batch, as a `pandas.DataFrame`.

        Columns: `trial`, `epoch`, `batch` (its number in the epoch, from 0), `samples`, `steady`, `asked_s`, `got_s`,
        `wait_s`, `ended_s`, `worker`, `began_s`, `collate_began_s`, `made_s` and `stages_s`. Times of events are in
        seconds since the trial began. `wait_s` is the data wait in seconds; `stages_s` has the seconds of each timed
        stage.
        """
        return batches_frame(self.readings.batches)

    def __getattr__(self, name: str) -> Any:
        if name == "record":  # copy and pickle ask for it before it is set
            raise AttributeError(name)
        return getattr(self.record, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *vars(self.record)]

    def __str__(self) -> str:
        out = io.StringIO()
        console = Console(file=out, width=_WIDTH, force_terminal=False, force_jupyter=False, color_system=None)
        print_summary(self.document, console)
        return out.getvalue()

    def _repr_html_(self) -> str:
        """The run in a notebook, as static HTML."""
        return notebook_html(self.document)

    def __repr__(self) -> str:
        return f"<Run {self.record.name}: {self.record.verdict.headline}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `run.json` as a dictionary."""
        found: dict[str, Any] = json.loads(run_json(self.record))
        return found

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per trial of the sweep, as a `pandas.DataFrame`; a profile has one row.

        Columns: one per axis, then the metrics under their names in `run.json`, with the unit in the name. For each GPU
        they are followed by `gpu0_utilization_percent`, `gpu0_power_w` and so on.
        """
        return trials_frame(self.record.sweep)

    def timeline_to_dataframe(self) -> pd.DataFrame:
        """Return one row per monitor reading: `trial`, `t_s`, `metric`, `value`.

        `t_s` is in seconds since the trial began. `value` is in the unit that the metric is named after.
        """
        return timeline_frame(self.readings)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the HTML report; with `path`, also write it there, in UTF-8. Raises `OSError`."""
        html = render_html(self.document)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return verdict, fixes and table as Markdown for a pull request; with `path`, also write it there, in UTF-8.

        Raises `OSError`.
        """
        text = render_markdown(self.document)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_perfetto(self, path: str | Path, trial: str | None = None) -> None:
        """Write a trial as a Chrome trace for ui.perfetto.dev, compressed if the name ends in `.gz`.

        By default, it is a trial of the configuration that the verdict is about. Raises `UsageError` if none of its
        batches was kept, and `OSError`.
        """
        write_trace(Path(path), chrome_trace(self.record, self.readings, trial))

    def to_speedscope(self, path: str | Path) -> None:
        """Write the stacks of the loading threads, for speedscope.app.

        The stacks are from the configuration that the verdict is about. Raises `UsageError` for a run without stacks,
        and `OSError`.
        """
        write_speedscope(Path(path), self.record)

    def to_calibration(self, path: str | Path) -> None:
        """Write step times by batch size, so another machine can emulate this GPU.

        Raises `UsageError` for a run that trained nothing, and `OSError`.
        """
        text = json.dumps(asdict(calibration_of(self.record)), indent=1) + "\n"
        Path(path).write_text(text, encoding="utf-8")

    def compare(self, after: Run) -> Comparison:
        """Compare `after` with this run; intervals need several rounds in both.

        The result has an `outcome` (`improved`, `regressed`, `within noise`, `inconclusive` or `incomparable`), a
        `headline`, the `reasons` for doubt, and `metrics`: one change per config and metric. The `change` of
        `samples_per_s` is the ratio after ÷ before; that of `data_wait_share` is the difference.
        """
        return compare_runs(self.record, after.record)

    @cached_property
    def document(self) -> Document:
        """All texts and numbers of the report, which HTML, terminal and Markdown display."""
        return build_document(self.record, self.readings, self.folder)


def load(path: str | Path) -> Run:
    """Read a run folder or its `run.json`, with the saved conclusions.

    The commands `show` and `report` apply the rules of the installed version instead, so their verdict can differ from
    that of an older run. A run that was killed has the trials measured until then. Units are in the names of fields.
    Raises `RunFileError` with a one-line message.
    """
    place = Path(path)
    folder, record, damaged = folder_of(place), read_run(place), tuple[str, ...]()
    if _has_left_trials(record) and (folder / TRIALS_FILE).is_file():
        trials, damaged = readable_trials(folder)
        record = _with_left_trials(record, trials)
    readings, unreadable = readable_timeline(place)
    missing = (f"{line}; its charts are missing" for line in unreadable)
    return Run(with_judgements(record), readings, folder, (*damaged, *missing))


def load_concluded(path: str | Path) -> Run:
    """Read a run as `load` does, and draw its conclusions again with the rules of this version."""
    saved = load(path)
    return Run(conclude(saved.record), saved.readings, saved.folder, saved.unreadable)


def _has_left_trials(run: RunRecord) -> bool:
    """Whether the run was killed or is still in progress: only `trials.jsonl` has its trials."""
    return not run.complete and not run.trials and run.kind != "profile"


def _with_left_trials(run: RunRecord, trials: Iterable[Trial]) -> RunRecord:
    """Conclude the run from these trials, without trials of fixes, which are inconclusive until their step ends."""
    found = tuple(trial for trial in trials if trial.role not in ("freed", "remedy"))
    return conclude(replace(run, trials=found)) if found else run
