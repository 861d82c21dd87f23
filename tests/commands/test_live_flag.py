"""`profile --live`: what cannot be followed is one line before the script starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Cli

from loaderbench.commands.profile import TOOLS
from loaderbench.commands.scripts import trained_script
from loaderbench.exporters import exporter


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """One that says that it was started."""
    (tmp_path / "train.py").write_text("open('started', 'w')\n")
    return tmp_path / "started"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["foo"], "expected TOOL=PLACE such as tensorboard=logs; TOOL is one of mlflow, prometheus, tensorboard"),
        (["tensorboard="], "expected TOOL=PLACE"),
        (["excel=x"], "expected TOOL=PLACE"),
        (["csv=x"], f"csv takes finished runs only, by loaderbench export; live: {', '.join(TOOLS)}"),
        (["parquet=x"], "parquet takes finished runs only"),
        (["perfetto=x"], "perfetto takes finished runs only"),
        (["tensorboard=gs://bucket/logs"], "expected a local path"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_usage_line(
    cli: Cli, script: Path, tmp_path: Path, asked: list[str], words: str
) -> None:
    flags = [part for one in asked for part in ("--live", one)]
    done = cli("profile", "--out", "run", *flags, "train.py")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"--live {asked[-1]}: {words}" in done.stderr
    assert not script.exists()
    assert not (tmp_path / "run").exists()


def test_without_its_library_a_tracker_is_the_line_and_code_of_export(
    cli: Cli, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "is_installed", lambda _: False)
    done = cli("profile", "--live", "wandb=x", "train.py")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "wandb is not installed; pip install wandb" in done.stderr
    assert not script.exists()


@pytest.mark.parametrize(
    ("words", "module", "name"),
    [
        (["train.py", "--lr", "0.1"], None, "train"),
        (["torchrun", "--nproc-per-node", "2", "src/train.py", "a.py"], None, "train"),
        (["torchrun", "-m", "package.train"], None, "torchrun"),
        (["--lr", "0.1"], "package.train", "package.train"),
    ],
)
def test_a_series_is_named_after_the_script_and_not_after_its_launcher(
    words: list[str], module: str | None, name: str
) -> None:
    assert trained_script(words, module) == name
