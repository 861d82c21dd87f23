"""The plan that `check` prints: one line per fact, in readable units."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.datasets import image_folder


def suite(folder: Path, text: str) -> Path:
    file = folder / "s.yaml"
    file.write_text(text)
    return file


def test_a_name_or_a_value_with_a_line_break_stays_on_its_line(cli: Cli, tmp_path: Path) -> None:
    target = "dataset: {kind: target, target: 'a:b'}"
    suite(tmp_path, f'name: "a\\nb"\n{target}\nsweep: {{mode: ["x\\ny"]}}\n')
    lines = cli("check", "s.yaml").stdout.splitlines()
    assert lines[0] == "a\\nb: target a:b"
    assert "  mode: x\\ny" in lines
    assert "  mode=x\\ny  (baseline)" in lines


@pytest.mark.parametrize("given", ["10", "10s"])
def test_a_budget_is_printed_and_means_the_same_in_a_flag(cli: Cli, tmp_path: Path, given: str) -> None:
    suite(tmp_path, "sweep: {num_workers: [0]}\n")
    by_flag = cli("check", "s.yaml", "--budget", given).stdout
    suite(tmp_path, f"sweep: {{num_workers: [0]}}\nmeasure: {{budget: {given}}}\n")
    assert by_flag == cli("check", "s.yaml").stdout
    assert "Time limit: 10 s (measure.budget)" in by_flag


def test_a_plan_of_weeks_is_told_in_days(cli: Cli, tmp_path: Path) -> None:
    suite(tmp_path, "sweep: {num_workers: [0]}\nmeasure: {rounds: 10000, seconds: 100}\n")
    assert "; about 40 days" in cli("check", "s.yaml").stdout


def test_ctrl_c_ends_a_listing_with_its_exit_code(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(image_folder, "scan_image_folder", interrupted)
    suite(tmp_path, "sweep: {num_workers: [0]}\n")
    result = cli("check", "s.yaml", "--data", tmp_path)
    assert (result.returncode, result.stderr) == (130, "loaderbench: interrupted\n")
