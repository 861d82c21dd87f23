"""`compare` and gates through the command: exit codes, JUnit, Markdown, and the summary of a job."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Cli

from loaderbench.commands.gates import Gates
from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.records import RunRecord, to_dict
from loaderbench.session.first_suite import look_at, suite_text
from loaderbench.store import read_run
from loaderbench.suite import load_suite

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"


def saved(folder: Path, factor: float, change: dict[str, object] | None = None) -> Path:
    """The committed example with other rates."""
    run: RunRecord = read_run(EXAMPLE)
    trials = tuple(replace(t, samples_per_s=t.samples_per_s and t.samples_per_s * factor) for t in run.trials)
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({**to_dict(replace(run, trials=trials)), **(change or {})}))
    return folder


@pytest.mark.parametrize(
    ("factor", "gates", "code"),
    [
        (1.0, [], 0),
        (0.5, [], 0),
        (1.0, ["--fail-if", "samples_per_s:-20%"], 0),
        (0.5, ["--fail-if", "samples_per_s:-20%"], 1),
        (0.8, ["--fail-if", "samples_per_s:-20%"], 4),
        (0.5, ["--warn-if", "samples_per_s:-20%"], 0),
        (0.5, ["--fail-if", "data_wait_share>99%", "--fail-if", "samples_per_s:-20%"], 1),
    ],
)
def test_the_exit_code_is_what_the_gates_say(
    cli: Cli, tmp_path: Path, factor: float, gates: list[str], code: int
) -> None:
    result = cli("compare", saved(tmp_path / "a", 1.0), saved(tmp_path / "b", factor), *gates)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == (1 if code else 0)
    assert "Samples/s: " in result.stdout


def test_runs_of_two_machines_are_incomparable_and_it_says_why(cli: Cli, tmp_path: Path) -> None:
    other = to_dict(read_run(EXAMPLE))["environment"] | {"cpu_model": "another"}
    places = saved(tmp_path / "a", 1.0), saved(tmp_path / "b", 1.0, {"environment": other})
    result = cli("compare", *places, "--fail-if", "samples_per_s:-20%")
    assert result.returncode == 4
    assert "Runs are not comparable" in result.stdout
    assert "another" in result.stdout


def test_a_comparison_can_be_written_in_every_form(cli: Cli, tmp_path: Path) -> None:
    places = saved(tmp_path / "a", 1.0), saved(tmp_path / "b", 0.5)
    forms = ("--json", "c.json", "--md", "c.md", "--junit", "c.xml")
    result = cli("compare", *places, *forms, "--fail-if", "samples_per_s:-20%", GITHUB_STEP_SUMMARY="summary.md")
    assert result.returncode == 1
    told = json.loads((tmp_path / "c.json").read_text())
    assert told["comparison"]["outcome"] == "regressed"
    assert told["gates"][0]["outcome"] == "failed"
    assert "FAILED" in (tmp_path / "c.md").read_text()
    assert (tmp_path / "summary.md").read_text().strip() == (tmp_path / "c.md").read_text().strip()
    suite = ElementTree.parse(tmp_path / "c.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert "samples_per_s:-20%" in [case.get("name") for case in suite]


def test_a_summary_that_cannot_be_written_is_a_line_and_the_code_is_that_of_the_gates(cli: Cli, tmp_path: Path) -> None:
    places = saved(tmp_path / "a", 1.0), saved(tmp_path / "b", 0.5)
    result = cli("compare", *places, "--fail-if", "samples_per_s:-20%", GITHUB_STEP_SUMMARY="no/such/file.md")
    assert result.returncode == 1
    summary, gate = result.stderr.splitlines()
    assert summary == "loaderbench: GITHUB_STEP_SUMMARY no/such/file.md: cannot write: No such file or directory"
    assert "gate failed" in gate


def test_a_run_that_cannot_be_compared_is_known_before_it_is_measured() -> None:
    run = read_run(EXAMPLE)
    planned = replace(run, trials=(), configurations=(), best=None)
    assert Gates(None, None, run, run.consumer).doubt(planned) == ""
    assert Gates(None, None, None, run.consumer).doubt(planned) == ""
    elsewhere = replace(planned, environment=replace(run.environment, cpu_model="another"))
    said = Gates(None, None, run, run.consumer).doubt(elsewhere)
    assert said.startswith("--baseline: Runs are not comparable. CPU: ")
    assert said.endswith("another")


def test_only_a_gate_that_can_fail_is_worth_more_rounds(tmp_path: Path) -> None:
    before, after = read_run(EXAMPLE), read_run(saved(tmp_path / "slower", 0.76))
    gate = ["samples_per_s:-20%"]
    assert len(Gates(gate, None, before, before.consumer).undecided(after)) == 1
    assert Gates(None, gate, before, before.consumer).undecided(after) == ()
    assert Gates(["samples_per_s<800"], None, None, before.consumer).undecided(after) == ()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "s.yaml", "--fail-if", "samples_per_s:-5%"),
        ("run", "s.yaml", "--fail-if", "speed<3"),
        ("run", "s.yaml", "--baseline", "nowhere"),
        ("run", "s.yaml", "--junit", "nowhere/a.xml"),
        ("compare", "nowhere", "nowhere"),
    ],
)
def test_a_wrong_gate_is_one_line_before_anything_is_measured(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "s.yaml").write_text("dataset: {root: data}\nsweep: {batch_size: [4]}\n")
    result = cli(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "reports").exists()


def test_a_gate_on_data_wait_needs_a_consumer(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("dataset: {root: data}\nsweep: {batch_size: [4]}\nconsumer: {kind: none}\n")
    places = saved(tmp_path / "a", 1.0), saved(tmp_path / "b", 1.0, {"consumer": "none"})
    level, change = ("--fail-if", "data_wait_share>20%"), ("--warn-if", "data_wait_share:+3pp")
    for arguments in (("run", "s.yaml", *level), ("compare", *places, *change), ("compare", *places[::-1], *change)):
        result = cli(*arguments)
        assert result.returncode == 2
        assert "data wait needs a consumer, and consumer.kind is none" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_init_writes_a_suite_that_fits_the_folder_and_can_be_run(cli: Cli, tmp_path: Path, photos: Path) -> None:
    result = cli("init", photos)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "photos.yaml").read_text()
    assert "24 files of 3 classes (.jpg)" in text
    assert "batch_size: [6]" in text
    again = cli("init", photos)
    assert again.returncode == 2
    assert "exists" in again.stderr
    plan = cli("check", "photos.yaml")
    assert plan.returncode == 0, plan.stderr
    assert "24 images of 3 classes" in plan.stdout


def test_init_writes_the_suite_to_stdout_and_nothing_else(cli: Cli, tmp_path: Path, photos: Path) -> None:
    result = cli("init", photos, "--out", "-")
    assert (result.returncode, result.stderr, list(tmp_path.iterdir())) == (0, "", [])
    assert "loaderbench run photos.yaml" in result.stdout
    (tmp_path / "piped.yaml").write_text(result.stdout)
    assert "24 images of 3 classes" in cli("check", "piped.yaml").stdout


def test_init_quotes_whatever_a_folder_is_called(cli: Cli, tmp_path: Path, photos: Path) -> None:
    odd = tmp_path / 'a "b" ${HOME} #c: \\d'
    odd.symlink_to(photos, target_is_directory=True)
    assert cli("init", odd, "--out", "odd.yaml").returncode == 0
    assert "24 images" in cli("check", "odd.yaml").stdout


def test_init_without_a_folder_writes_a_suite_on_generated_photos(cli: Cli, tmp_path: Path) -> None:
    assert cli("init").stdout == "Wrote images.yaml; measure it with: loaderbench run images.yaml\n"
    assert cli("check", "images.yaml").stdout.startswith("images: 512 synthetic JPEGs")


@pytest.mark.parametrize(
    "name", ["123", "1_000", "0x1f", "true", "null", "bell\x07", "caf\u00e9", os.fsdecode(b"caf\xff")]
)
def test_init_writes_a_suite_that_can_be_read_whatever_the_folder_is_called(
    tmp_path: Path, photos: Path, name: str
) -> None:
    root, file = tmp_path / "of" / name, tmp_path / "of" / "s.yaml"
    root.parent.mkdir()
    root.mkdir()
    (root / "a").symlink_to(photos, target_is_directory=True)
    file.write_text(suite_text(look_at(root), file, gpus=0))
    suite = load_suite(file).suite
    assert isinstance(suite.dataset, ImageFolder)
    assert suite.name in (name, "bell", "caf")
    assert suite.dataset.root == name
    assert len(scan_image_folder(file.parent / suite.dataset.root).samples) == 24


def test_init_says_where_there_is_no_image(cli: Cli, tmp_path: Path) -> None:
    result = cli("init", tmp_path)
    assert result.returncode == 5
    assert "no images found" in result.stderr
