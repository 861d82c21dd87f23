"""What several tests share: a folder of photos, and a real run made through the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loaderbench.datasets.photos import generate_photos

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL_SUITE = """\
name: small
dataset: {root: photos}
loader: {shuffle: true, drop_last: true}
sweep:
  batch_size: [4]
  num_workers: [0, 1]
  pin_memory: [false, true]
consumer: {kind: emulated, demand: 50}
measure: {rounds: 3, seconds: 0.2}
"""


def loaderbench(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "loaderbench", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 photos in three classes."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    generate_photos(folder, images=24, classes=3)
    return folder


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command, run in a new folder."""

    def call(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return loaderbench(*arguments, cwd=tmp_path, **environment)

    return call


@pytest.fixture(scope="session")
def small_run(photos: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A real run: its folder, and what the command printed."""
    place = photos.parent
    (place / "small.yaml").write_text(SMALL_SUITE)
    result = loaderbench("run", "small.yaml", "--out", "run", "--json", "copy.json", cwd=place)
    return place / "run", result
