"""A saved run is handed to other tools, from the command line."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

from loaderbench.errors import MissingError
from loaderbench.exporters import EXPORTERS
from loaderbench.records import Config, Side
from loaderbench.result import Run, load

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"
SIDES: tuple[Side, ...] = ("before", "after")


def test_a_run_is_exported_as_a_trace_and_as_tables(cli: Cli, small_run: Any, tmp_path: Path) -> None:
    folder, _ = small_run
    for to, name in (("perfetto", "trace.json.gz"), ("csv", "trials.csv"), ("parquet", "trials.parquet")):
        done = cli("export", folder, "--to", to, "--out", name)
        assert (done.returncode, done.stdout.strip()) == (0, name), done.stderr
    trace = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert any(event["name"] == "training step" for event in trace["traceEvents"])
    rows = list(csv.DictReader((tmp_path / "trials.csv").open()))
    import pandas as pd

    assert [row["id"] for row in rows] == list(pd.read_parquet(tmp_path / "trials.parquet")["id"])


def test_one_trial_can_be_chosen(cli: Cli, small_run: Any, tmp_path: Path) -> None:
    folder, _ = small_run
    trial = json.loads((folder / "run.json").read_text())["trials"][0]["id"]
    assert cli("export", folder, "--to", "perfetto", "--out", "t.json", "--trial", trial).returncode == 0
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["trial"] == trial
    refused = cli("export", folder, "--to", "csv", "--out", "t.csv", "--trial", trial)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_show_writes_the_trace_too(cli: Cli, small_run: Any, tmp_path: Path) -> None:
    folder, _ = small_run
    done = cli("show", folder, "--perfetto", "trace.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_run_writes_the_trace_too(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        f"name: one\ndataset: {{root: {photos}}}\nloader: {{batch_size: 4}}\nconsumer: {{kind: none}}\n"
        "measure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    done = cli("run", "one.yaml", "--out", "run", "--perfetto", "trace.json", "-q")
    assert done.returncode == 0, done.stderr
    names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"batch 0", "decode", "collate", "next() for batch 0"} <= names


def test_what_cannot_be_exported_is_one_line(cli: Cli, small_run: Any, photos: Path, tmp_path: Path) -> None:
    folder, _ = small_run
    (tmp_path / "one.yaml").write_text(f"name: one\ndataset: {{root: {photos}}}\n")
    for arguments, words in (
        (("export", folder, "--to", "excel", "--out", "x"), "one of calibration, csv, mlflow, parquet, perfetto"),
        (("export", folder, "--to", "csv", "--out", tmp_path / "no" / "x"), "cannot write"),
        (("export", folder, "--to", "perfetto", "--out", "x", "--trial", "x"), "expected one of r1-"),
        (("export", folder, "--to", "csv", "--out", "s3://bucket/t.csv"), "--out s3://bucket/t.csv: expected a local"),
        (("export", folder, "--to", "tensorboard", "--out", "gs://bucket/logs"), "expected a local path"),
        (("show", folder, "--perfetto", tmp_path / "no" / "x"), "cannot write"),
        (("run", "one.yaml", "--perfetto", "same", "--md", "same"), "two results cannot share one file"),
        (("show", folder, "--perfetto", "same", "--md", "same"), "two results cannot share one file"),
    ):
        done = cli(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_run_of_an_older_version_says_why_it_has_no_trace(cli: Cli, small_run: Any, tmp_path: Path) -> None:
    folder, _ = small_run
    for name in ("run.json", "timeline.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = cli("export", tmp_path, "--to", "perfetto", "--out", "x")
    assert done.returncode == 2
    assert "no batches of its trials were saved" in done.stderr
    assert cli("show", tmp_path).returncode == 0


def test_tables_have_the_trials_of_every_role_and_of_both_versions(tmp_path: Path) -> None:
    import pandas as pd

    run = load(EXAMPLE)
    [first, *others] = run.record.trials[:3]
    trials = (*(replace(first, id=side, role="ab", side=side) for side in SIDES), *others)
    changed = Run(replace(run.record, trials=trials), run.readings, None)
    for to, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        EXPORTERS[to].write(changed, str(tmp_path / to))
        table = read(tmp_path / to)
        assert table["id"].tolist() == [trial.id for trial in trials]
        assert table["role"].tolist() == [trial.role for trial in trials]
        assert table["side"].fillna("").tolist() == [trial.side or "" for trial in trials]


def test_the_values_of_an_axis_are_in_csv_as_the_suite_has_them(tmp_path: Path) -> None:
    run = load(EXAMPLE)
    axes: list[Config] = [{"prefetch_factor": None}, {"prefetch_factor": 2}, {"pin_memory": True}]
    trials = tuple(replace(run.record.trials[0], id=str(axis), config=axis) for axis in axes)
    EXPORTERS["csv"].write(Run(replace(run.record, trials=trials), run.readings, None), str(tmp_path / "trials.csv"))
    rows = list(csv.DictReader((tmp_path / "trials.csv").open()))
    assert [row["prefetch_factor"] for row in rows] == ["null", "2", ""]
    assert [row["pin_memory"] for row in rows] == ["", "", "true"]


def test_a_compression_that_needs_another_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingError, match=r"^--out .*t\.csv\.zst: .*zstandard.*$"):
        EXPORTERS["csv"].write(load(EXAMPLE), str(tmp_path / "t.csv.zst"))


def test_an_axis_with_numbers_and_words_is_text_in_parquet(tmp_path: Path) -> None:
    import pandas as pd

    axes = [{"size": value} for value in (64, "large", None)]
    run = load(EXAMPLE)
    trials = [replace(run.record.trials[0], id=str(axis), config=axis) for axis in axes]
    changed = Run(replace(run.record, trials=tuple(trials)), run.readings, None)
    EXPORTERS["parquet"].write(changed, str(tmp_path / "trials.parquet"))
    assert pd.read_parquet(tmp_path / "trials.parquet")["size"].fillna("").tolist() == ["64", "large", ""]
