"""What several tests share: a folder of photos, and a real run made through the command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import SMALL_SUITE, Cli, loaderbench
from hypothesis import settings

from loaderbench.datasets.photos import generate_photos

settings.register_profile("any machine", deadline=None)  # no test asserts how fast a machine is
settings.load_profile("any machine")


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
