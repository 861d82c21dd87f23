"""The registry of exporters, and what is said where a library is absent."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import run_factory as runs
from command_line import Cli
from PIL.Image import Image
from report_run import EXAMPLE

from loaderbench.errors import MissingError
from loaderbench.exporters import EXPORTERS, exporter as module
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
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    done = cli("export", EXAMPLE, "--to", to, "--out", "place")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert f"is not installed; pip install {EXPORTERS[to].package}\n" in done.stderr


@pytest.mark.parametrize(
    ("installed", "missing"), [({"tensorboard"}, False), ({"tensorboardX"}, False), ({"wandb"}, True)]
)
def test_either_library_of_tensorboard_is_enough(
    installed: set[str], missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: name if name in installed else None)
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


def test_parquet_without_pyarrow_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise MissingError("pyarrow cannot be imported")

    monkeypatch.setattr("loaderbench.store.parquet.parquet", fails)
    with pytest.raises(MissingError, match="pyarrow"):
        parquet(SimpleNamespace(), str(tmp_path / "x"))  # type: ignore[arg-type]
