"""A run in each tracker, read back by the tracker's own client: `uv run --group trackers pytest -m slow`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from command_line import Cli, in_process
from read_back import events, read_wandb
from report_run import BEST, EXAMPLE

from loaderbench.exporters.table import Row, rows
from loaderbench.result import load_concluded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> dict[str, Row]:
    """What was measured, by configuration."""
    return {row.name: row for row in rows(load_concluded(EXAMPLE).record)}


def export(to: str, out: str | Path, cwd: Path) -> None:
    done = in_process("export", EXAMPLE, "--to", to, "--out", str(out), cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tensorboard")
    place = tmp_path_factory.mktemp("tensorboard")
    export("tensorboard", "logs", place)
    return place / "logs"


def test_tensorboard_has_each_configuration_with_its_interval_and_its_rounds(
    tensorboard: Path, found: dict[str, Row]
) -> None:
    assert {path.name for path in tensorboard.iterdir()} == {"report", *found}
    read = events(tensorboard / BEST)
    expected = found[BEST]
    assert {name for name in read.Tags()["scalars"] if not name.startswith("rounds/")} == set(expected.numbers)
    for name in ("samples_per_s", "samples_per_s_lo", "samples_per_s_hi"):
        assert read.Scalars(name)[0].value == pytest.approx(expected.numbers[name])
    by_round = {point.step: point.value for point in read.Scalars("rounds/samples_per_s")}
    assert by_round == pytest.approx({one.number: one.numbers["samples_per_s"] for one in expected.rounds})


def test_tensorboard_has_hyperparameters_heat_maps_and_the_report(tensorboard: Path) -> None:
    from tensorboard.plugins.hparams import metadata

    whole, own = events(tensorboard / "report"), events(tensorboard / BEST)
    assert "INPUT-BOUND" in whole.Tensors("report/text_summary")[0].tensor_proto.string_val[0].decode()
    assert {"heat map/Samples/s", "heat map/Data wait, % of step time"} <= set(whole.Tags()["images"])
    assert whole.Scalars("gain_over_baseline")[0].value > 1
    plugin = own.PluginTagToContent("hparams")
    start = metadata.parse_session_start_info_plugin_data(plugin[metadata.SESSION_START_INFO_TAG])
    values = {name: value.number_value for name, value in start.hparams.items()}
    assert (values["batch_size"], values["num_workers"]) == (32, 2)
    columns = metadata.parse_experiment_plugin_data(whole.PluginTagToContent("hparams")[metadata.EXPERIMENT_TAG])
    assert "samples_per_s" in [info.name.tag for info in columns.metric_infos]


def test_tensorboardx_writes_what_tensorboard_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboardX")
    pytest.importorskip("tensorboard")
    from loaderbench.exporters import tensorboard as exporter

    class NotThere(ModuleType):
        __path__ = ()

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", NotThere("torch.utils.tensorboard"))
    writer, hparams = exporter._library()
    assert (writer.__module__.split(".")[0], hparams.__module__.split(".")[0]) == ("tensorboardX", "tensorboardX")
    export("tensorboard", "logs", tmp_path)
    assert "rounds/samples_per_s" in events(tmp_path / "logs" / BEST).Tags()["scalars"]


def test_a_folder_with_other_runs_is_left_alone(tensorboard: Path, cli: Cli) -> None:
    done = cli("export", EXAMPLE, "--to", "tensorboard", "--out", tensorboard)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "choose a new one" in done.stderr


def test_prometheus_text_is_read_by_both_parsers(tmp_path: Path, found: dict[str, Row]) -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as prometheus

    export("prometheus", "loader.prom", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["loader.prom"]
    text = (tmp_path / "loader.prom").read_text()
    for parse in (prometheus, openmetrics):
        samples = {
            (sample.name, sample.labels.get("batch_size"), sample.labels.get("num_workers")): sample.value
            for family in parse(text)
            for sample in family.samples
        }
        for end in ("", "_lo", "_hi"):
            expected = found[BEST].numbers[f"samples_per_s{end}"]
            assert samples[f"loaderbench_samples_per_s{end}", "32", "2"] == pytest.approx(expected)
        assert samples["loaderbench_is_best", "32", "2"] == 1
        assert samples["loaderbench_gain_over_baseline_lo", "", ""] > 1
        assert not [name for name, *_ in samples if "gpu" in name]


def test_mlflow_has_a_run_with_the_report_and_a_nested_one_for_each_configuration(
    tmp_path: Path, found: dict[str, Row]
) -> None:
    pytest.importorskip("mlflow")
    export("mlflow", tmp_path / "store", tmp_path)
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=str(tmp_path / "store"))
    experiment = client.get_experiment_by_name("images")
    runs = client.search_runs(experiment.experiment_id)
    [whole] = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    own = {run.info.run_name: run for run in runs if run.data.tags.get("mlflow.parentRunId") == whole.info.run_id}
    assert set(own) == set(found)
    assert own[BEST].data.params["num_workers"] == "2"
    assert {name: own[BEST].data.metrics[name] for name in found[BEST].numbers} == pytest.approx(found[BEST].numbers)
    history = client.get_metric_history(own[BEST].info.run_id, "rounds/samples_per_s")
    by_round = {one.number: one.numbers["samples_per_s"] for one in found[BEST].rounds}
    assert {point.step: point.value for point in history} == pytest.approx(by_round)
    assert {file.path for file in client.list_artifacts(whole.info.run_id)} >= {"report.html", "run.json"}
    assert whole.data.params["bound"] == "input"
    assert "INPUT-BOUND" in whole.data.tags["mlflow.note.content"]
    assert whole.data.metrics["gain_over_baseline"] > 1


def test_wandb_has_offline_runs_with_every_number(tmp_path: Path, found: dict[str, Row]) -> None:
    pytest.importorskip("wandb")
    export("wandb", "offline", tmp_path)
    runs = [read_wandb(file) for file in sorted(tmp_path.glob("offline/wandb/offline-run-*/*.wandb"))]
    own = {name: (summary, history) for job, name, summary, history in runs if job == "configuration"}
    assert set(own) == set(found)
    summary, history = own[BEST]
    assert {name: summary[name] for name in found[BEST].numbers} == pytest.approx(found[BEST].numbers)
    rates = [one["rounds/samples_per_s"] for one in history]
    assert rates == pytest.approx([one.numbers["samples_per_s"] for one in found[BEST].rounds])
    [whole] = [summary for job, _, summary, _ in runs if job == "run"]
    assert {"report", "configurations", "trials", "samples_per_s_lo"} <= set(whole)


def test_wandb_takes_an_axis_of_numbers_and_words_and_names_of_any_length(
    tmp_path: Path, found: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    from loaderbench.exporters import wandb as exporter

    monkeypatch.chdir(tmp_path)
    mixed = [replace(found[BEST], config={"size": value}) for value in (64, "large", None)]
    table = exporter._table(mixed)
    assert [row[0] for row in table.data] == ["64", "large", None]
    group = exporter._Group(str(tmp_path), project="p" * 150, name="g" * 150)
    with exporter._offline(group, job="run", name="n" * 150, config={}) as run:
        assert [len(run.project), len(run.group), len(run.name)] == [128, 128, 128]
    wandb.teardown()


def test_visdom_shows_the_verdict_the_rates_and_the_heat_maps(
    visdom_server: str, tmp_path: Path, found: dict[str, Row]
) -> None:
    export("visdom", f"{visdom_server}/env/loader", tmp_path)
    from visdom import Visdom

    host, _, port = visdom_server.rpartition(":")
    client = Visdom(server=host, port=int(port), env="loader", use_incoming_socket=False, raise_exceptions=True)
    assert "loader" in client.get_env_list()
    windows = json.loads(client.get_window_data(env="loader"))
    assert set(windows) >= {"verdict", "rates", "rounds", "heat map samples_per_s"}
    assert "INPUT-BOUND" in windows["verdict"]["content"]
    [bars] = windows["rates"]["content"]["data"]
    assert dict(zip(bars["x"], bars["y"], strict=True)) == pytest.approx(
        {name.replace(",", "<br>"): row.numbers["samples_per_s"] for name, row in found.items()}
    )
    assert len(bars["error_y"]["array"]) == len(found)


def test_an_address_without_a_visdom_server_is_one_line(cli: Cli, visdom_server: str) -> None:
    for out, code, words in (
        ("http://127.0.0.1:9", 5, "no Visdom server at http://127.0.0.1:9"),
        (f"{visdom_server}/elsewhere", 5, "no Visdom server at"),
        ("ftp://127.0.0.1", 2, "expected a Visdom server such as"),
        ("http://127.0.0.1:x", 2, "expected a Visdom server such as"),
    ):
        done = cli("export", EXAMPLE, "--to", "visdom", "--out", out)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
        assert words in done.stderr
