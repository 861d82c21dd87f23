"""A script that trackers follow while it trains, read back by their own clients."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from full_disk import file_size_limited
from read_back import events, read_wandb
from scripts import HEAD, profile, write

from loaderbench.exporters import EXPORTERS
from loaderbench.exporters.exporter import LivePoint
from loaderbench.records import Trial
from loaderbench.result import load
from loaderbench.script import launch, live

pytestmark = pytest.mark.slow

TRAINING = (
    HEAD
    + """\
def main():
    model = torch.nn.Linear(8, 4)
    train_loader = DataLoader(Slow(2_400), batch_size=8, num_workers=2)
    val_loader = DataLoader(Slow(120, 0.001), batch_size=8)
    for epoch in range(2):
        for inputs, labels in train_loader:
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        for inputs, labels in val_loader:
            model(inputs)
    print(sorted(name for name in os.environ if name.startswith(("WANDB", "MLFLOW", "LOADERBENCH"))))


if __name__ == "__main__":
    main()
"""
)
LIBRARIES = {
    "tensorboard": "tensorboard",
    "prometheus": "prometheus_client",
    "mlflow": "mlflow",
    "wandb": "wandb",
    "visdom": "visdom",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A training that all trackers follow which are installed, with a save every half second."""
    place = tmp_path_factory.mktemp("live")
    write(place, TRAINING)
    asked = {tool: tool for tool, library in LIBRARIES.items() if find_spec(library)}
    if not asked:
        pytest.skip("no tracker is installed")
    if "visdom" in asked:
        asked["visdom"] = f"{request.getfixturevalue('visdom_server')}/env/live"
    flags = [part for tool, out in asked.items() for part in ("--live", f"{tool}={out}")]
    with pytest.MonkeyPatch.context() as changed:
        for name in list(os.environ):
            if name.startswith(("WANDB", "MLFLOW", "LOADERBENCH")):  # of trackers that ran in this process before
                changed.delenv(name)
        changed.setattr(launch, "LIVE_SAVE_S", 0.5)
        changed.setattr(live, "LOOK_S", 0.1)
        done = profile(place, "--out", "run", *flags, "train.py")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert "without this tracker" not in done.stderr
    return place


def trial(place: Path, loader: str) -> Trial:
    """What the report has of it."""
    (found,) = load(place / "run" / ("" if loader == "train_loader" else loader)).trials
    return found


def check(place: Path, loader: str, steps: Sequence[float], rates: Sequence[float], waits: Sequence[float]) -> None:
    """Several points in order, whose last is the end, and around the means of the report."""
    whole = trial(place, loader)
    assert all(earlier < later for earlier, later in pairwise(steps))
    assert steps[-1] == whole.batches + whole.warmup_batches
    assert min(rates) <= whole.samples_per_s * 1.001
    assert max(rates) >= whole.samples_per_s * 0.999
    assert min(waits) - 0.001 <= whole.data_wait_share <= max(waits) + 0.001
    assert len(steps) == len(rates) == len(waits) >= (3 if loader == "train_loader" else 1)


@pytest.mark.parametrize("loader", ["train_loader", "val_loader"])
def test_tensorboard_has_a_run_for_each_loader_with_a_step_for_each_save(place: Path, loader: str) -> None:
    pytest.importorskip("tensorboard")
    assert {path.name for path in (place / "tensorboard" / "run").iterdir()} == {"train_loader", "val_loader"}
    read = events(place / "tensorboard" / "run" / loader)
    points = read.Scalars("samples_per_s")
    steps = [point.step for point in points]
    waits = [point.value for point in read.Scalars("data_wait_share")]
    check(place, loader, steps, [point.value for point in points], waits)
    assert [point.value for point in read.Scalars("batches")] == steps
    read_over_time = {"cpu_percent_of_allotted", "rss_bytes"} if loader == "train_loader" else set()  # too short for it
    assert {"time_to_first_batch_s", *read_over_time} <= set(read.Tags()["scalars"])


def test_prometheus_has_the_last_numbers_and_says_that_the_script_has_ended(place: Path) -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as prometheus

    text = (place / "prometheus").read_text()
    for parse in (prometheus, openmetrics):
        found = {
            (sample.name.removeprefix("loaderbench_live_"), sample.labels.get("loader")): sample.value
            for family in parse(text)
            for sample in family.samples
        }
        for loader in ("train_loader", "val_loader"):
            whole = trial(place, loader)
            assert found["batches", loader] == whole.batches + whole.warmup_batches
            assert 0 < found["samples_per_s", loader] < 10 * whole.samples_per_s
        assert found["is_running", None] == 0
        assert 'script="train"' in text


def test_mlflow_has_a_run_of_the_script_with_one_for_each_loader(place: Path) -> None:
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=str(place / "mlflow"))
    runs = client.search_runs(client.get_experiment_by_name("train").experiment_id)
    [parent] = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    own = {run.info.run_name: run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id}
    assert (parent.info.run_name, set(own)) == ("run", {"train_loader", "val_loader"})
    assert {run.info.status for run in runs} == {"FINISHED"}
    for loader, run in own.items():
        rates, waits = (
            sorted(client.get_metric_history(run.info.run_id, name), key=lambda one: one.step)
            for name in ("samples_per_s", "data_wait_share")
        )
        steps = [point.step for point in rates]
        check(place, loader, steps, [point.value for point in rates], [point.value for point in waits])


def test_wandb_has_an_offline_run_for_each_loader(place: Path) -> None:
    pytest.importorskip("wandb")
    runs = [read_wandb(file) for file in sorted(place.glob("wandb/wandb/offline-run-*/*.wandb"))]
    assert {(job, name) for job, name, *_ in runs} == {("loader", "train_loader"), ("loader", "val_loader")}
    for _, loader, _, history in runs:
        columns = ([one[name] for one in history] for name in ("_step", "samples_per_s", "data_wait_share"))
        check(place, loader, *columns)


def test_visdom_has_a_window_for_each_metric_with_a_curve_for_each_loader(place: Path, visdom_server: str) -> None:
    from visdom import Visdom

    host, _, port = visdom_server.rpartition(":")
    client = Visdom(server=host, port=int(port), env="live", use_incoming_socket=False, raise_exceptions=True)
    windows = json.loads(client.get_window_data(env="live"))
    rates, waits = (
        {curve["name"]: curve for curve in windows[name]["content"]["data"]}
        for name in ("samples_per_s", "data_wait_share")
    )
    assert set(rates) == {"train_loader", "val_loader"}
    for loader, curve in rates.items():
        check(place, loader, curve["x"], curve["y"], waits[loader]["y"])
    assert windows["data_wait_share"]["title"] == "Data wait"
    assert windows["samples_per_s"]["content"]["layout"]["yaxis"]["rangemode"] == "tozero"


def points(count: int) -> list[LivePoint]:
    return [
        LivePoint(loader=f"loader-{number}", rank=0, batches=count, numbers={"samples_per_s": 100.0 * count})
        for number in range(2)
    ]


def test_tensorboardx_writes_the_same_events_where_tensorboard_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX")
    pytest.importorskip("tensorboard")
    with monkeypatch.context() as changed:
        changed.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
        tracker = EXPORTERS["tensorboard"].live(str(tmp_path), "train", "run")
        for count in (1, 2):
            tracker.write(points(count))
        tracker.close()
    read = events(tmp_path / "run" / "loader-1-rank0").Scalars("samples_per_s")
    assert [(point.step, point.value) for point in read] == [(1, 100.0), (2, 200.0)]


def test_runs_of_one_name_never_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    for count in (1, 2):
        tracker = EXPORTERS["tensorboard"].live(str(tmp_path), "train", "run")
        tracker.write(points(count))
        tracker.close()
    EXPORTERS["tensorboard"].live(str(tmp_path), "train", "empty").close()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "run-2"}
    assert [one.step for one in events(tmp_path / "run-2" / "loader-0-rank0").Scalars("samples_per_s")] == [2]


@pytest.mark.parametrize("tool", ["tensorboard", "prometheus"])
def test_a_full_disk_is_an_error_at_once_and_leaves_what_was_written(tool: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[tool])
    tracker = EXPORTERS[tool].live(str(tmp_path / "place"), "train", "run")
    tracker.write(points(1))
    [file] = [path for path in tmp_path.rglob("*") if path.is_file()][:1]
    before = file.read_bytes()
    with file_size_limited(16):
        with pytest.raises(OSError, match="File too large"):
            tracker.write(points(2))
        with pytest.raises(OSError, match="File too large"):
            tracker.close()
    assert file.read_bytes().startswith(before)
    assert not list(tmp_path.rglob("*.part"))


def test_an_mlflow_run_with_a_failed_write_ends_as_failed(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    tracker = EXPORTERS["mlflow"].live(str(tmp_path / "place"), "train", "run")
    tracker.write(points(1))
    with file_size_limited(16), pytest.raises(Exception, match="File too large"):
        tracker.write(points(2))
    tracker.close()
    client = MlflowClient(tracking_uri=str(tmp_path / "place"))
    runs = client.search_runs(client.get_experiment_by_name("train").experiment_id)
    assert [run.info.status for run in runs] == ["FAILED"] * 3
