"""The registry of exporters, and what is said where a library is absent."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import run_factory as runs
from command_line import Cli
from PIL.Image import Image
from report_run import EXAMPLE

from loaderbench.errors import MissingError, UsageError
from loaderbench.exporters import EXPORTERS, exporter as module, mlflow as mlflow_exporter, prometheus
from loaderbench.exporters.files import parquet
from loaderbench.report import style
from loaderbench.report.document import build_document
from loaderbench.report.heat_map_picture import heat_map_pictures

if sys.version_info >= (3, 11):
    import tomllib
TRACKERS = sorted(name for name, found in EXPORTERS.items() if found.libraries)


def test_the_trackers_are_there() -> None:
    assert TRACKERS == ["mlflow", "prometheus", "tensorboard", "visdom", "wandb"]


@pytest.mark.parametrize("to", TRACKERS)
def test_without_its_library_a_tracker_is_one_line_that_installs_it(
    to: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_installed", lambda _: False)
    done = cli("export", EXAMPLE, "--to", to, "--out", "place")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert f"is not installed; pip install {EXPORTERS[to].package}\n" in done.stderr


@pytest.mark.parametrize(
    ("installed", "missing"), [({"tensorboard"}, False), ({"tensorboardX"}, False), ({"wandb"}, True)]
)
def test_either_library_of_tensorboard_is_enough(
    installed: set[str], missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_installed", lambda name: name in installed)
    refused: list[str] = []
    try:
        EXPORTERS["tensorboard"].require()
    except MissingError as error:
        refused.append(str(error))
    assert refused == ["tensorboard is not installed; pip install tensorboard"] * missing


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib")
def test_every_tracker_has_an_extra_of_its_name() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(TRACKERS) <= set(project["optional-dependencies"])


def test_the_picture_of_the_heat_map_has_the_colors_of_the_report() -> None:
    pictures = {metric.id: picture for metric, picture in heat_map_pictures(build_document(runs.typical()))}
    assert list(pictures) == ["samples_per_s", "data_wait_share", "cpu_percent_of_allotted"]
    for picture in pictures.values():
        assert {style.cividis(0.0), style.cividis(1.0)} <= colors(picture)


def test_a_failed_cell_is_gray_and_a_run_of_one_configuration_has_no_picture() -> None:
    metric, picture = next(heat_map_pictures(build_document(runs.partly_failed())))
    assert metric.id == "samples_per_s"
    assert (228, 231, 235) in colors(picture)
    assert list(heat_map_pictures(build_document(runs.one_trial()))) == []


def colors(picture: Image) -> set[tuple[int, ...]]:
    return {color for _, color in picture.getcolors(maxcolors=1_000_000) or []}


def test_a_next_step_can_be_pasted_whatever_the_place_is_called() -> None:
    assert EXPORTERS["tensorboard"].next_step_at("my logs").endswith("tensorboard --logdir 'my logs'")
    assert EXPORTERS["wandb"].next_step_at("a b").endswith("wandb sync 'a b'/wandb/offline-run-*")
    assert EXPORTERS["csv"].next_step_at("a b") == ""


@pytest.mark.parametrize(
    ("to", "takes"),
    [("tensorboard", False), ("prometheus", False), ("wandb", False), ("mlflow", True), ("visdom", True)],
)
def test_only_trackers_with_a_server_take_an_address(to: str, takes: bool) -> None:
    refused: list[str] = []
    try:
        EXPORTERS[to].check_place("gs://bucket/logs", "--out gs://bucket/logs")
    except UsageError as error:
        refused.append(str(error))
    assert refused == ["--out gs://bucket/logs: expected a local path; write it there, then copy it"] * (not takes)


@pytest.mark.parametrize("out", [".", "", "/"])
def test_a_place_that_can_only_be_a_folder_is_no_file_of_prometheus(out: str) -> None:
    with pytest.raises(UsageError, match=r"^--out .*: expected a file that ends in \.prom$"):
        prometheus._file(out, f"--out {out}")


@pytest.mark.skipif(find_spec("mlflow") is None, reason="no mlflow")
def test_a_database_without_all_of_mlflow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    def refuse(tracking_uri: str) -> None:
        raise mlflow.exceptions.MlflowException(
            f"Model registry functionality is unavailable; got unsupported URI '{tracking_uri}'"
        )

    monkeypatch.setattr("mlflow.MlflowClient", refuse)
    for out, words in (
        ("sqlite:///m.db", "--out x: a database needs all of MLflow; pip install mlflow"),
        ("s3://x", "unsupported URI"),
    ):
        with pytest.raises(MissingError, match=words), mlflow_exporter._client(out, "--out x"):
            pass


def test_parquet_without_pyarrow_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise MissingError("pyarrow cannot be imported")

    monkeypatch.setattr("loaderbench.store.parquet.parquet", fails)
    with pytest.raises(MissingError, match="pyarrow"):
        parquet(SimpleNamespace(), str(tmp_path / "x"))  # type: ignore[arg-type]
