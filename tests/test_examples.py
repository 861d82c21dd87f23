"""The scripts that users copy run as they stand, and show what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str | Path, cwd: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_the_training_loop_tells_its_wait_its_stages_and_its_samples(
    photos: Path, tmp_path: Path, workers: int
) -> None:
    printed = run("training_loop.py", photos, "--workers", str(workers), cwd=tmp_path)
    assert "Data wait" in printed
    assert "training_loop.html" not in printed
    page = (tmp_path / "training_loop.html").read_text()
    for words in ("transfer", "forward and backward", "decode", "RandomResizedCrop"):
        assert words in page


@pytest.mark.slow
def test_the_custom_loader_tells_its_wait_and_the_stages_marked_by_hand(photos: Path, tmp_path: Path) -> None:
    printed = run("custom_loader.py", photos, cwd=tmp_path)
    assert "Data wait" in printed
    page = (tmp_path / "custom_loader.html").read_text()
    for words in ("normalize", "step", "threads", "collate"):
        assert words in page
